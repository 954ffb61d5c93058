"""The coins of ``whisper``, from the operating system's randomness.

The public ones are the question, and the ranking where arms are public: the device draws them
without looking at the person. One is not public: whether a person tells of an outcome, where an arm
is capped.
"""

from sottovoce.device.draws import OPERATING_SYSTEM
from sottovoce.device.method import Secret
from sottovoce.device.whisper.answer import (
    asked_axis,
    asked_kind,
    whole_share_of_rows,
)
from sottovoce.shared.baseline import BASELINE, NEITHER, POLICY
from sottovoce.shared.release import Release
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.caps import told_share_of_arm
from sottovoce.shared.whisper.cells import CellLayout, cell_layout
from sottovoce.shared.whisper.questions import Kind, Menu, Question, menu, questions_of
from sottovoce.shared.whisper.tuning import ASK, SHARES

_BITS = 53


_OF_GROUPS = {POLICY: Kind.POLICY_REWARD, BASELINE: Kind.BASELINE_REWARD}


def asked_of_group(group: int, drawn: Question) -> Question:
    """Return the question of somebody in a group; of others, the one that was drawn."""
    return drawn if group == NEITHER else Question(_OF_GROUPS[group])


def draw_question(release: Release, *, population: int, logged: bool) -> Question:
    """Draw one of the questions that a person may be asked, by their public shares."""
    draws, experiment = OPERATING_SYSTEM, release.experiment
    served = population == 0 and not logged
    if served and draws.chance(release.reward_share, SHARES):
        return Question(_kind_about_reward(release))
    if draws.chance(release.scale_share, SHARES):
        axes = [axis for axis, threshold in enumerate(release.thresholds) if threshold]
        axis = axes[draws.below(len(axes))]
        about = Kind.LOGGED_SCALE if logged else Kind.SCALE
        return Question(about, axis, release.thresholds[axis] - 1)
    key = ("menu", population, logged)
    if key not in release.derived:
        release.derived[key] = menu(experiment, population=population, logged=logged)
    asked: Menu = release.derived[key]
    kind = asked_kind(asked.kinds, asked.bounds, draws.below(SHARES))
    by_arm = questions_of(experiment)[kind].by_arm
    layout = cell_layout(release, population=population, by_arm=by_arm)
    if layout is None:
        return Question(kind)
    axis = asked_axis(release.ask, _axis_coin(release, layout, logged=logged))
    if axis < 0:
        return Question(kind)
    rows = slots_of(experiment)
    count = rows.patterns[axis + 1] - rows.patterns[axis]
    divided = layout.mechanism(axis).parts > 1
    return Question(kind, axis, draws.below(1 if divided else count))


def _kind_about_reward(release: Release) -> int:
    """Draw what somebody is asked who is asked for their reward; where there is one bin, that."""
    if len(release.bins) == 1:
        return Kind.REWARD
    if _kind_about_reward not in release.derived:
        release.derived[_kind_about_reward] = menu(
            release.experiment, population=0, logged=False, audits=True
        )
    asked: Menu = release.derived[_kind_about_reward]
    return asked_kind(asked.kinds, asked.bounds, OPERATING_SYSTEM.below(SHARES))


def _axis_coin(release: Release, layout: CellLayout, *, logged: bool) -> int:
    """Draw the coin that decides which axis is asked about; the lowest ones ask about none."""
    halves = layout.halves
    whole = 0 if halves.parts == 2 else release.ask[0]
    if logged:
        whole = whole_share_of_rows(halves.parts, halves.elsewhere, release.ask[0])
    low = release.ask[0] - whole
    return low + OPERATING_SYSTEM.below(ASK - low)


def draw_telling(release: Release, secret: Secret) -> bool:
    """Draw whether a person tells of an outcome: where an arm is capped, not all with its rival.

    The chance depends on the person's bin and arm. What is sent is private all the same: whatever
    the coin says, the mechanism gets some cell and value, or none (docs/explanation/mechanism.md).
    In a release without a cap nobody draws; in others everybody does, by as many bits.
    """
    if not release.experiment.caps:
        return True
    policy = release.policies[secret.path]
    bounds = _bounds(release)[policy.propensities]
    place = (0, len(bounds) - 1)[secret.arm != policy.arms[0]]
    return OPERATING_SYSTEM.chance_of_bits(bounds[place], _BITS)


def _bounds(release: Release) -> dict[tuple[float, ...], tuple[int, ...]]:
    """Return how many of 2^53 coins tell, for each arm and all chances of a release.

    They are worked out for all bins at once: if each bin had to wait for its first person, the
    time of an answer would tell who was there before.
    """
    if draw_telling not in release.derived:
        chances = {policy.propensities for policy in release.bins}
        release.derived[draw_telling] = {
            each: tuple(round(2**_BITS * told_share_of_arm(share)) for share in each)
            for each in chances
        }
    found: dict[tuple[float, ...], tuple[int, ...]] = release.derived[draw_telling]
    return found


def draw_ranking(release: Release) -> tuple[int, ...]:
    """Draw a public order of the arms, each order with the same probability.

    It is empty where arms are private.
    """
    if not release.experiment.settings.arms_are_public:
        return ()
    arms = list(range(len(release.experiment.arms)))
    return tuple(arms.pop(OPERATING_SYSTEM.below(len(arms))) for _ in range(len(arms)))
