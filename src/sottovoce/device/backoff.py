"""When to try again: later after each failure, at random, and not before the server allows it.

It uses only differences of a monotonic clock and stores none of them. So it does not matter if a
device's clock is wrong by years, or is set back.
"""

import re
from collections.abc import Callable

from sottovoce.device.transport import Response

FIRST_WAIT = 1.0
"""The longest wait after one failure, in seconds. It doubles with each further failure."""

LONGEST_WAIT = 3600.0
"""The longest wait that failures or a server can ask for, in seconds, without the jitter."""


class Backoff:
    """Exponential backoff with full jitter.

    clock: seconds, monotonic.
    jitter: a random number in [0, 1), so that devices that failed together do not return together.
    """

    def __init__(self, *, clock: Callable[[], float], jitter: Callable[[], float]) -> None:
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._not_before = clock()

    @property
    def wait(self) -> float:
        """Seconds until the next try may begin."""
        return max(0.0, self._not_before - self._clock())

    def failed(self, response: Response | None) -> None:
        """Note a failure: wait, and at least as long as the Retry-After of an answer says."""
        said = response.headers.get("retry-after", "").strip() if response else ""
        # In whole seconds; a date is ignored, since it would need a clock.
        asked = min(LONGEST_WAIT, float(said)) if re.fullmatch("[0-9]{1,9}", said) else 0.0
        # Capped first: 2.0 ** failures overflows after a thousand failures.
        spread = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(self._failures, 32))
        self._failures += 1
        self._not_before = self._clock() + asked + spread * self._jitter()

    def succeeded(self) -> None:
        """Note a success: the next try may begin at once."""
        self._failures = 0
        self._not_before = self._clock()
