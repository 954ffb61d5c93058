"""``one_bit`` on the device.

Proof that the bit is ε-LDP: whatever the true bit is, each of the two is told with probability
A/(A + B) or B/(A + B), and A/B ≤ e^ε. The coin that says the arm is drawn without a look at the
person. All draws are of whole numbers, from the operating system.
"""

import secrets

from contracts.one_bit.shared import odds, question_of
from sottovoce.device.coins import PublicCoins
from sottovoce.device.method import RandomisedAnswer, Secret, Spend, draw_arm
from sottovoce.shared.release import BinPolicy, Release


def choose(release: Release, policy: BinPolicy, coins: PublicCoins) -> tuple[int, tuple[int, ...]]:
    """Draw a live arm; none is public."""
    return draw_arm(release, policy), ()


def privatise(
    release: Release, secret: Secret, *, population: int, outcome: float | None, spend: Spend
) -> RandomisedAnswer:
    """Return the bit as a byte, and the arm that it is about."""
    (policy,) = release.bins
    arm = policy.arms[secrets.randbelow(len(policy.arms))]
    question = question_of(arm, arms=len(release.experiment.arms), logged=secret.logged)
    if policy.settled:
        return RandomisedAnswer(b"", question)
    told, other = odds(release.experiment.populations[population].epsilon)
    spend()
    # An outcome of 0.3 counts as good for 3 people in 10, with the float as the fraction it is.
    good, all_outcomes = (0 if outcome is None else outcome).as_integer_ratio()
    bit = secret.arm == arm and secrets.randbelow(all_outcomes) < good
    truly = secrets.randbelow(told + other) < told
    return RandomisedAnswer(bytes([bit if truly else not bit]), question)
