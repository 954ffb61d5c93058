"""What the device needs of a method: how an arm is drawn, and how an outcome is privatised.

A method's module ``device/<name>`` has the functions of ``DeviceMethod``.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, cast

from sottovoce.device.coins import Coins
from sottovoce.shared.baseline import NEITHER
from sottovoce.shared.methods import method_part
from sottovoce.shared.release import BinPolicy, Release


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """All that is private about one person. It has no repr, so that no log can hold it.

    point: the context in [0, 1]^d. path: its bin. arm: the arm that the person got.
    logged: whether some other policy chose the arm. This is public.
    ranking: the public ranking that chose the arm, where arms are public.
    group: in which a public coin put the person, where there is a baseline (``groups.py``).
    """

    point: tuple[float, ...]
    path: str
    arm: int
    logged: bool = False
    ranking: tuple[int, ...] = ()
    group: int = NEITHER


@dataclass(frozen=True, slots=True)
class RandomisedAnswer:
    """What leaves the device: public coins and a randomised payload."""

    payload: tuple[float, ...] | bytes
    question: int = 0
    ranking: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Prepared:
    """An answer whose outcome is yet to come.

    kept: what the method needs to finish it, as bytes; b"" where the answer will be empty. It lies
        on the device until then, so it holds as little about the person as the method can do with.
    """

    kept: bytes
    question: int = 0
    ranking: tuple[int, ...] = ()


Spend = Callable[[], None]
"""Spends the ε of one report. A method calls it when its mechanism is ready, just before it draws.

A crash after that wastes budget, never privacy.
"""


class DeviceMethod(Protocol):
    """A method on the device."""

    def choose(
        self, release: Release, policy: BinPolicy, coins: Coins
    ) -> tuple[int, tuple[int, ...]]:
        """Draw an arm by the policy of a bin; return it with the public ranking, if any.

        coins: where the draws come from. A method draws nothing else here.
        """

    def privatise(
        self,
        release: Release,
        secret: Secret,
        *,
        population: int,
        outcome: float | None,
        spend: Spend,
    ) -> RandomisedAnswer:
        """Return the ε-LDP answer of one person. The proof is beside the mechanism's code.

        An outcome of None says that the person has nothing to tell: what the method sends then must
        not depend on the secret, and is private like any other answer.
        """

    def prepare(
        self, release: Release, secret: Secret, *, population: int, spend: Spend
    ) -> Prepared:
        """Return the answer of one person but for the outcome, which may take days to come."""

    def finish(self, kept: bytes, *, outcome: float | None) -> tuple[float, ...] | bytes:
        """Return the payload of a prepared answer, now that the outcome is known.

        It has the same law as what ``privatise`` sends for that secret and outcome.
        """


def device_method(release: Release) -> DeviceMethod:
    """Return the device's part of the method of a release."""
    return cast(DeviceMethod, method_part(release.experiment.settings.name, "device"))


def draw_arm(release: Release, policy: BinPolicy, coins: Coins) -> int:
    """Draw one of the arms on offer by its propensity, to a part in 2^53.

    Everybody makes one draw of 53 bits, also where only one arm is left.
    """
    return policy.arms[bisect_right(_bounds(release)[policy.propensities], coins.bits(policy))]


def _bounds(release: Release) -> dict[tuple[float, ...], tuple[int, ...]]:
    """Return where the draws for each arm but the last end, for all chances of a release.

    They are worked out for all bins at once: if each bin had to wait for its first person, the
    time of a choice would tell who was there before.
    """
    if draw_arm not in release.derived:
        chances = {policy.propensities for policy in release.bins}
        release.derived[draw_arm] = {each: _ends(each) for each in chances}
    found: dict[tuple[float, ...], tuple[int, ...]] = release.derived[draw_arm]
    return found


def _ends(propensities: tuple[float, ...]) -> tuple[int, ...]:
    sums = list(accumulate(propensities))
    return tuple(round(2**53 * (each / sums[-1])) for each in sums[:-1])
