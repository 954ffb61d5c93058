"""Where there is a baseline: in which group a person is, and which arm the baseline group gets.

The coin is public, and drawn from the operating system's randomness before anything about the
person is looked at. Its only argument is the release. So the group is independent of the context,
of what each arm would bring the person and of all that was reported before: the two groups are
alike but for their arms, and the learner's estimate is without bias (``estimate/gain.py``).

What a report shows of it: that this person got the baseline's arm, or that their arm is private as
always. The baseline's arm follows from the experiment, not from anybody's data. What was not
public before, the outcome, is randomised as in every report (``whisper/subset.py``), under the same
ε. The proof is in docs/explanation/mechanism.md.
"""

from sottovoce.device.coins import Coins
from sottovoce.device.draws import OPERATING_SYSTEM
from sottovoce.shared.amendment import RUNNING
from sottovoce.shared.baseline import NEITHER, UNIT, baseline_arms, group_of
from sottovoce.shared.release import Release


def draw_coin() -> int:
    """Draw a coin of 0 … UNIT - 1."""
    return OPERATING_SYSTEM.below(UNIT)


def draw_group(release: Release, coins: Coins, *, population: int) -> int:
    """Return the group of somebody who is served by a release.

    Only people of the target are in groups, and only while they are asked at all.
    """
    asked = population == 0 and release.experiment.state == RUNNING
    if not asked or release.baseline_share == 0:
        return NEITHER
    return group_of(coins.group(draw_coin), release.baseline_share)


def draw_baseline_arm(release: Release) -> int:
    """Draw the arm of somebody in the baseline group: each of its arms is as likely."""
    arms = baseline_arms(release.experiment)
    return arms[OPERATING_SYSTEM.below(len(arms))]
