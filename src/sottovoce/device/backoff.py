"""When to try again: ever later, at random, and not before the server asks for it.

Only differences of a monotonic clock count, and nothing of it is written down: a device whose
clock is wrong by years, or is set back, behaves like any other.
"""

import re
from collections.abc import Callable

FIRST_WAIT = 1.0
"""Seconds: the longest wait after one failure. It doubles with each further one."""

LONGEST_WAIT = 3600.0
"""Seconds: no failure and no server makes a device wait for longer, but for the jitter."""


class Backoff:
    """Exponential backoff with full jitter.

    clock: seconds, monotonic.
    jitter: a random number in [0, 1), so that devices which failed together come back apart.
    """

    def __init__(self, *, clock: Callable[[], float], jitter: Callable[[], float]) -> None:
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._not_before = clock()

    @property
    def wait(self) -> float:
        """Seconds until the next try; 0 if it may be now."""
        return max(0.0, self._not_before - self._clock())

    def failed(self, retry_after: str | None = None) -> None:
        """Wait, and after a Retry-After for at least as long as it says."""
        # Capped first: 2.0 ** failures overflows after a thousand failures.
        spread = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(self._failures, 32))
        self._failures += 1
        self._not_before = self._clock() + _seconds(retry_after) + spread * self._jitter()

    def succeeded(self) -> None:
        """Begin anew."""
        self._failures = 0
        self._not_before = self._clock()


def _seconds(retry_after: str | None) -> float:
    """Read a Retry-After in whole seconds; a date would need a clock, and is left out."""
    if retry_after is None or not re.fullmatch("[0-9]{1,9}", retry_after.strip()):
        return 0.0
    return min(LONGEST_WAIT, float(retry_after))
