"""``one_bit`` on the device.

Proof that the bit is ε-LDP: whatever the true bit is, each of the two is told with probability
A/(A + B) or B/(A + B), and A/B ≤ e^ε. The coin that says the arm is drawn without a look at the
person. All draws are of whole numbers, from the operating system.
"""

import secrets

from contracts.one_bit.shared import odds, question_of
from sottovoce.device.coins import Coins
from sottovoce.device.method import Prepared, RandomisedAnswer, Secret, Spend, draw_arm
from sottovoce.shared.release import BinPolicy, Release


def choose(release: Release, policy: BinPolicy, coins: Coins) -> tuple[int, tuple[int, ...]]:
    """Draw a live arm; none is public."""
    return draw_arm(release, policy, coins), ()


def privatise(
    release: Release, secret: Secret, *, population: int, outcome: float | None, spend: Spend
) -> RandomisedAnswer:
    """Return the bit as a byte, and the arm that it is about."""
    prepared = prepare(release, secret, population=population, spend=spend)
    return RandomisedAnswer(finish(prepared.kept, outcome=outcome), prepared.question)


def prepare(release: Release, secret: Secret, *, population: int, spend: Spend) -> Prepared:
    """Return the bits that are told if it went well, and if it did not: each with its own lie."""
    (policy,) = release.bins
    arm = policy.arms[secrets.randbelow(len(policy.arms))]
    question = question_of(arm, arms=len(release.experiment.arms), logged=secret.logged)
    if policy.settled:
        return Prepared(b"", question)
    told, other = odds(release.experiment.populations[population].epsilon)
    spend()
    lies = [secrets.randbelow(told + other) >= told for _ in range(2)]
    return Prepared(bytes([(secret.arm == arm) ^ lies[0], lies[1]]), question)


def finish(kept: bytes, *, outcome: float | None) -> bytes:
    """Return one of the two."""
    if not kept:
        return b""
    # An outcome of 0.3 counts as good for 3 people in 10, with the float as the fraction it is.
    good, all_outcomes = (0 if outcome is None else outcome).as_integer_ratio()
    well = secrets.randbelow(all_outcomes) < good
    return kept[:1] if well else kept[1:]
