"""The learner's state as arrays over the nodes of a tree. The lab's crowd has the very same state.

S nodes at most, K arms, d axes, Z slots, M + 1 populations. Index 0 of an axis of length 1 + Z is
for the whole bin, index 1 + z for slot z: the difference between its halves along a number, or one
level (``shared/whisper/axes.py``).

What is known is kept in information form. With x what is to be estimated, answers with mean s·x and
variance v add 1/v each to the precision and answer/v to the information vector; x then has
precision s²·precision, and estimate vector/(s·precision). The scale s, a bin's share of the people,
is applied when one looks: it becomes better known with time.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.gain import Gain, new_gain
from sottovoce.estimate.tree import Tree, copy_into, new_tree
from sottovoce.estimate.whisper.audit import reward_share
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.shapes import (
    CENTRES,
    STEEPNESSES,
    TARGET,
    most_telling,
    scale_share,
    weigh_shapes,
)
from sottovoce.shared.scale import STRETCHES
from sottovoce.shared.whisper.thresholds import THRESHOLDS
from sottovoce.shared.whisper.tuning import ASK, BIASES, REWARD_DEVIATION, SLOPE_DEVIATION

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Records = Any
"""An array of records. Their fields are attributes, whose names NumPy's types do not know."""

TOTALS = np.dtype(
    [
        ("nodes", "i8"),
        ("contested", "i8"),  # nodes where more than one arm is live
        ("events", "i8"),
        ("release", "i8"),  # version of the newest one
        ("reports", "i8"),
        ("served", "i8"),  # reports of people who were served since the last step
        ("smoothed", "i8"),  # reports when the tree was last smoothed
        ("amended", "i8"),  # reports when an arm last came or went
        ("places", "i8"),  # places of the series of δ that are taken
        ("reward_share", "i8"),  # how many of SHARES are asked for their reward
        ("scale_share", "i8"),  # how many of SHARES are asked where they are
        ("paid", "f8"),  # target users so far, and what all other reports are worth in them
        ("target", "f8"),  # target users so far
        ("rows_paid", "f8"),  # what logged rows are worth in target users
        ("checked", "i8"),  # whether the audit found that promises of others are kept by and large
        ("misled", "i8"),  # whether auxiliary data misled, and is not learned from any more
        ("verdict", "i8"),  # of the last step: trust.STAY, or BEGIN_ANEW
        ("first_release", "i8"),  # of the tree as it is; answers for earlier ones do not fit it
        ("audit_answers", "f8"),  # people who were asked for their reward, and sums over them of
        ("audit_delivered", "f8"),  # … g = f - 1/2 as they told it
        ("audit_promised", "f8"),  # … as it was expected of the policy
        ("audit_at_random", "f8"),  # … as it was expected of arms at random
    ],
    align=True,
)

EVENT = np.dtype(
    [
        ("reports", "i8"),  # how many there were by then
        ("release", "i8"),  # the first one after it
        ("node", "i8"),
        ("axis", "i8"),  # the feature of a split; -1 if an arm was dropped
        ("arm", "i8"),  # the arm that was dropped
        ("winner", "i8"),
        ("statistic", "f8"),
        ("boundary", "f8"),
    ],
    align=True,
)


class Information(NamedTuple):
    """What is known of some unknowns, in information form: precision, and precision × mean."""

    precision: Floats
    vector: Floats


class Forecast(NamedTuple):
    """What was expected of each bin when it was last looked at."""

    share: Floats  # (S,) the target's people in it
    policy: Floats  # (S,) g under the policy
    at_random: Floats  # (S,) g of arms at random


class State(NamedTuple):
    """All that the rules read and write."""

    tree: Tree
    live: Flags  # (S, K) the arms that have not been dropped
    pair: Counts  # (S, 2) champion and challenger; twice the same arm where the bin is settled
    contested: Counts  # (S,) the nodes where more than one arm is live
    holds: Flags  # (S, Z) whether people of the bin can differ in a slot
    upper: Flags  # (S, Z) of a bin that is split by levels, those of its upper part
    shift: Floats  # (S,) how many effects of the split a part's g is away from its parent's
    effect_variance: Floats  # (S, Z) variance of its effects around those of its parent
    prior: Information  # (S, 1+Z, K, K) and (S, 1+Z, K): what all other bins say of g and effects
    served: Information  # (S, M+1, 1+Z, K, K) and (S, M+1, 1+Z, K): from people who were served
    logged: Information  # the same from logged rows
    mass: Floats  # (S, M+1) the share of people in the bin, as expected when it was made
    level_mass: Floats  # (S, M+1, Z) of those, with each level, as expected then
    mass_told: Information  # (S, M+1, 1+Z) each: what answers say of it
    rows_told: Information  # (S, M+1, 1+Z, K) each: of the share of logged rows with each arm
    relevance: Floats  # (d,) the share of its prior variance that an axis keeps
    ask: Counts  # (1+d,) how many people of ASK are asked about no axis, and about each
    scale: Floats  # (d, STRETCHES + 1) the knots of each axis
    scaled: Flags  # (d,) whether an axis has its scale, and may be split
    scaled_since: (
        Counts  # (d,) the first release in which it is no longer its own scale; 0 if it is
    )
    scale_told: Information  # (2, d, THRESHOLDS) each: what TARGET and OTHERS said of 1 - 2F there
    thresholds: Counts  # (d,) the one that is asked about along each axis, plus 1; 0 for none
    bias: Floats  # (S,) by how much the rewards of auxiliary populations may differ from ours
    promised: Floats  # (M+1,) what each population promised when the learner began anew
    forecast: Forecast
    # (S, K, 2) people who had paid for comparisons, and what rows were worth, when an arm came
    entered: Floats
    place: Counts  # (S, K) an arm's place in the series of δ; 0 where it was never compared
    votes: Counts  # (S, K, K) if certified: answers of the target that favour the first arm
    gain: Gain  # what the groups told, where there is a baseline
    events: Records  # (S·(K+1),) of EVENT
    totals: Records  # (1,) of TOTALS


def initial_state(constants: Constants) -> State:
    """One bin, all arms, and what is thought before the first report."""
    state = _allocate(64, constants)
    state.live[0] = ~constants.retired
    state.pair[0] = np.flatnonzero(state.live[0])[:2]
    state.place[0] = 1
    state.mass[0] = 1.0
    state.forecast.share[0] = 1.0
    identity = np.eye(constants.arms)
    state.prior.precision[0, 0] = identity / REWARD_DEVIATION**2
    state.prior.precision[0, 1:] = identity / SLOPE_DEVIATION**2
    state.holds[0] = True
    for axis, levels in enumerate(constants.axes.levels):
        if levels > 0:
            first = constants.axes.slots[axis]
            state.level_mass[0, :, first : first + levels] = 1.0 / levels
    state.relevance[:] = 1.0
    state.scale[:] = np.arange(STRETCHES + 1) / STRETCHES
    state.scaled[:] = ~constants.scalable
    state.ask[1:] = ASK // (2 * constants.dimension)
    state.ask[0] = ASK - state.ask[1:].sum()
    totals = state.totals[0]
    totals.nodes, totals.contested, totals.release, totals.places = 1, 1, 1, 1
    state.bias[0] = BIASES[0]
    totals.first_release = 1
    totals.reward_share = reward_share(state, constants)
    shapes = np.empty((CENTRES, STEEPNESSES))
    told = state.scale_told
    weigh_shapes(told.precision[TARGET, 0], told.vector[TARGET, 0], shapes)
    state.thresholds[~state.scaled] = 1 + most_telling(shapes)
    totals.scale_share = scale_share(int(np.sum(~state.scaled)))
    return state


def has_room(state: State) -> bool:
    """Say whether every bin can be opened again, lose its arms and be split, all in one step."""
    totals, arms = state.totals[0], state.live.shape[1]
    bins = (totals.nodes + 1) // 2
    nodes, events = totals.nodes + 2 * bins, totals.events + (1 + arms) * bins
    room: bool = nodes <= len(state.live) and events <= len(state.events)
    return room


def with_room(state: State, constants: Constants) -> State:
    """Return a state with room for the next step."""
    if has_room(state):
        return state
    larger = _allocate(2 * len(state.live), constants)
    copy_into(larger, state)
    return with_room(larger, constants)


def with_arms(state: State, constants: Constants) -> State:
    """Return a state with room for the arms that an experiment has by now."""
    larger = _allocate(len(state.live), constants)
    copy_into(larger, state)
    return larger


def arrays_of(state: State) -> list[tuple[str, Any]]:
    """Return every array of a state, with its name; parts have names such as ``tree.axis``."""
    listed = []
    for name, part in state._asdict().items():
        if isinstance(part, Tree | Information | Forecast | Gain):
            listed += [(f"{name}.{each}", array) for each, array in part._asdict().items()]
        else:
            listed.append((name, part))
    return listed


def _allocate(nodes: int, constants: Constants) -> State:
    arms, d, groups = constants.arms, constants.dimension, len(constants.behaviour)
    slots = int(constants.axes.slots[d])

    def floats(*shape: int) -> Floats:
        return np.zeros((nodes, *shape))

    def counts(*shape: int) -> Counts:
        return np.zeros((nodes, *shape), dtype=np.int64)

    def information(*shape: int, matrix: tuple[int, ...]) -> Information:
        return Information(floats(*shape, *matrix), floats(*shape, *matrix[:1]))

    return State(
        tree=new_tree(nodes, d),
        live=np.zeros((nodes, arms), dtype=np.bool_),
        pair=counts(2),
        contested=counts(),
        holds=np.zeros((nodes, slots), dtype=np.bool_),
        upper=np.zeros((nodes, slots), dtype=np.bool_),
        shift=floats(),
        effect_variance=floats(slots),
        prior=information(1 + slots, matrix=(arms, arms)),
        served=information(groups, 1 + slots, matrix=(arms, arms)),
        logged=information(groups, 1 + slots, matrix=(arms, arms)),
        mass=floats(groups),
        level_mass=floats(groups, slots),
        mass_told=information(groups, 1 + slots, matrix=()),
        rows_told=information(groups, 1 + slots, matrix=(arms,)),
        relevance=np.zeros(d),
        ask=np.zeros(1 + d, dtype=np.int64),
        scale=np.zeros((d, STRETCHES + 1)),
        scaled=np.zeros(d, dtype=np.bool_),
        scaled_since=np.zeros(d, dtype=np.int64),
        scale_told=Information(*(np.zeros((2, d, len(THRESHOLDS))) for _ in range(2))),
        thresholds=np.zeros(d, dtype=np.int64),
        bias=floats(),
        promised=np.zeros(groups),
        forecast=Forecast(floats(), floats(), floats()),
        entered=floats(arms, 2),
        place=counts(arms),
        votes=counts(arms, arms),
        gain=new_gain(constants.gain),
        events=np.zeros(nodes * (arms + 1), dtype=EVENT).view(np.recarray),
        totals=np.zeros(1, dtype=TOTALS).view(np.recarray),
    )
