"""The people who come: which bin they are in, which arm they get, what they answer.

Everybody answers one by one, by the device's own functions; the answers are added up, and handed
over to the learner's own functions after each block of people between two steps.
"""

import numpy as np

from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.shapes import OTHERS, TARGET
from sottovoce.estimate.whisper.state import Counts, Floats, Records, State
from sottovoce.estimate.whisper.trust import STAY
from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.environments import People, Rows
from sottovoce.lab.loop import compile_loop
from sottovoce.lab.whisper.cells import (
    hand_over_all,
    hand_over_places,
    lay_out,
    lay_out_leaves,
)
from sottovoce.lab.whisper.draws import send
from sottovoce.lab.whisper.groups import add_groups, draw_group, tell_group
from sottovoce.lab.whisper.places import tell_place
from sottovoce.lab.whisper.rules import (
    add_rewards,
    asked_axis,
    asked_kind,
    credit,
    learner_step,
    level_at,
    logged_share,
    midpoint,
    own_cell,
    part_and_sign,
    position_at,
    share_of,
    state_has_room,
    told_share_of_arm,
)
from sottovoce.lab.whisper.tables import Crowd, Fixed
from sottovoce.shared.baseline import BASELINE, NEITHER
from sottovoce.shared.whisper.questions import ONE, Kind
from sottovoce.shared.whisper.tuning import ASK, SHARES

_OUTCOME, _REWARD = int(Kind.OUTCOME), int(Kind.REWARD)


@inlined
def leaf_of(state: State, constants: Constants, point: Floats) -> int:
    """Return the leaf that holds a point."""
    bins, node = state.tree, 0
    while bins.child[node] != node:
        axis = bins.axis[node]
        levels = constants.axes.levels[axis]
        if levels > 0:
            slot = constants.axes.slots[axis] + level_at(point[axis], levels)
            node = bins.child[node] + state.upper[node, slot]
        else:
            node = bins.child[node] + (point[axis] >= bins.middle[node])
    return node


@inlined
def middle_of(state: State, node: int, axis: int) -> float:
    """Return the middle of a leaf along an axis."""
    middle: float = position_at(state.scale[axis], midpoint(state.tree, node, axis))
    return middle


@inlined
def draw_axis(state: State, whole: int, rng: np.random.Generator) -> int:
    """Draw the axis that is asked about, or -1. whole: how many more people get the latter."""
    low = state.ask[0] - whole
    axis: int = asked_axis(state.ask, low + int(rng.random() * (ASK - low)))
    return axis


@inlined
def draw_row(constants: Constants, axis: int, parts: int, rng: np.random.Generator) -> int:
    """Draw a row of the Hadamard matrix, if there is one."""
    if axis < 0 or constants.axes.levels[axis] == 0 or parts > 1:
        return 0
    rows = constants.axes.patterns[axis + 1] - constants.axes.patterns[axis]
    return int(rng.random() * rows)


@inlined
def pattern_of(constants: Constants, axis: int, row: int) -> int:
    """Return the number of a pattern."""
    number: int = 0 if axis < 0 else constants.axes.patterns[axis] + row
    return number


@inlined
def part_of(
    state: State, constants: Constants, node: int, point: Floats, axis: int, row: int
) -> tuple[int, int]:
    """Return a person's part of a leaf along an axis, and its sign; -1 for no axis."""
    if axis < 0:
        return -1, 1
    middle = middle_of(state, node, axis)
    found: tuple[int, int] = part_and_sign(point[axis], middle, constants.axes.levels[axis], row)
    return found


@inlined
def draw_sign(people: People | Rows, i: int, arm: int, rng: np.random.Generator) -> float:
    """Draw the outcome of a person's arm, rounded at random to a sign."""
    good = people.outcomes[i, arm] if len(people.outcomes) > 0 else people.means[i, arm]
    return 1.0 if rng.random() < good else -1.0


@inlined
def draw_arm(state: State, constants: Constants, node: int, rng: np.random.Generator) -> int:
    """Draw one of the two arms on offer in a bin."""
    pair = state.pair[node]
    share = share_of(constants.caps, pair[1], pair[0]) if constants.capped else 0.5
    arm: int = pair[int(rng.random() < share)]
    return arm


@inlined
def tells(
    state: State,
    constants: Constants,
    question: Records,
    node: int,
    arm: int,
    rng: np.random.Generator,
) -> bool:
    """Draw whether a person tells of an outcome: where an arm is capped, not all with its rival."""
    if not constants.capped or not question.thinned:
        return True
    other = state.pair[node, 0] + state.pair[node, 1] - arm
    told = told_share_of_arm(share_of(constants.caps, arm, other))
    return bool(rng.random() < told)


@inlined
def first_live(state: State, node: int, ranking: Counts) -> int:
    """Return the first live arm of a bin in a ranking."""
    rank = 0
    while not state.live[node, ranking[rank]]:
        rank += 1
    arm: int = ranking[rank]
    return arm


@inlined
def tell_reward(
    crowd: Crowd,
    fixed: Fixed,
    sign: float,
    node: int,
    leaves: int,
    rng: np.random.Generator,
) -> None:
    """Let somebody tell their reward, and perhaps in which bin they are, or that alone.

    sign: of the reward.
    """
    tallies, constants, kind = crowd.tallies, fixed.constants, _REWARD
    if leaves > 1:
        kind = asked_kind(fixed.reward_kinds, fixed.reward_bounds, int(rng.random() * SHARES))
    if kind == _REWARD:
        tallies.rewards[0] += 1.0
        sums, mechanism, cell = tallies.rewards[1:], fixed.reward_mechanism[0], 0
    else:
        number = kind * constants.axes.patterns[constants.dimension]
        tallies.answers[number] += 1
        sums, mechanism = tallies.sums[number, 0], fixed.leaf_mechanisms[leaves]
        question = constants.questions[kind]
        cell, sign = own_cell(question, tallies.leaf[node], sign, False, -1, 1, 1)
    send(mechanism, cell, sign, sums, tallies.order, tallies.picks, rng)


@compiled
def serve(
    crowd: Crowd,
    fixed: Fixed,
    people: People,
    start: int,
    stop: int,
    arms: Counts,
    rng: np.random.Generator,
) -> None:
    """Let target users come, choose their arm and answer."""
    state, tallies, constants = crowd.state, crowd.tallies, fixed.constants
    ranking, pair, reward = fixed.ranking, state.pair, fixed.reward_mechanism[0]
    order, picks = tallies.order, tallies.picks
    patterns = constants.axes.patterns[constants.dimension]
    bins, pairs = lay_out(state, tallies, constants, False)
    leaves = lay_out_leaves(state, tallies, constants) if constants.audited else 0
    whole_share = 0 if fixed.mechanisms[fixed.halves, bins].parts == 2 else state.ask[0]
    reward_share = state.totals[0].reward_share
    scale_share = state.totals[0].scale_share
    baseline_share, group = state.gain.share[0], NEITHER
    for i in range(start, stop):
        node = leaf_of(state, constants, people.contexts[i])
        axis = draw_axis(state, whole_share, rng)
        mechanism = fixed.mechanisms[fixed.variants[1 + axis], bins]
        row = draw_row(constants, axis, mechanism.parts, rng)
        kind = asked_kind(fixed.kinds, fixed.bounds, int(rng.random() * SHARES))
        if constants.public_arms:
            for k in range(constants.arms - 1, 0, -1):
                other = int(rng.random() * (k + 1))
                ranking[k], ranking[other] = ranking[other], ranking[k]
            arm = first_live(state, node, ranking)
        else:
            arm = draw_arm(state, constants, node, rng)
        if constants.running:
            group = draw_group(baseline_share, rng)
            if group == BASELINE:
                arm = fixed.baseline[int(rng.random() * len(fixed.baseline))]
        arms[i] = arm
        if not constants.running:
            continue  # people are served and nobody is asked
        if group != NEITHER:
            tell_group(crowd, fixed, group, draw_sign(people, i, arm, rng), rng)
            continue
        if constants.audited and int(rng.random() * SHARES) < reward_share:
            sign = draw_sign(people, i, arm, rng)
            tell_reward(crowd, fixed, sign, node, leaves, rng)
            continue
        if int(rng.random() * SHARES) < scale_share:
            tell_place(crowd, fixed, people.contexts[i], rng)
            continue
        if bins == 0:
            continue
        question = constants.questions[kind]
        cell, value = -1, 1.0
        if pair[node, 0] != pair[node, 1] and tells(state, constants, question, node, arm, rng):
            sign = draw_sign(people, i, arm, rng) if question.value != ONE else 0.0
            part, flip = part_of(state, constants, node, people.contexts[i], axis, row)
            whole, second = tallies.first[node, 0], arm == pair[node, 1]
            cell, value = own_cell(question, whole, sign, second, part, flip, mechanism.parts)
        number = kind * patterns + pattern_of(constants, axis, row)
        tallies.answers[number] += 1
        if question.ranked or (constants.certified and number == 0):
            tallies.single[: mechanism.cells] = 0.0
            send(mechanism, cell, value, tallies.single, order, picks, rng)
            add_single(crowd, fixed, mechanism, number, question.ranked)
        else:
            send(mechanism, cell, value, tallies.sums[number, 0], order, picks, rng)
    hand_over_all(crowd, fixed, 0, bins, pairs, leaves)
    hand_over_places(crowd, fixed, TARGET)
    if tallies.rewards[0] > 0.0:
        add_rewards(state, tallies.rewards[0], tallies.rewards[1] / reward.signal)
        tallies.rewards[:] = 0.0
    totals, came = state.totals[0], stop - start if constants.running else 0
    totals.paid += came
    add_groups(crowd, fixed, bins == 0, came)
    totals.target += came
    totals.reports += came
    totals.served += came


@compiled
def add_single(crowd: Crowd, fixed: Fixed, mechanism: Records, number: int, ranked: bool) -> None:
    """Add one answer to its tally, bin by bin.

    A ranking gives each bin an arm of its own to learn of. A learner that must prove what it
    decides counts which answers name a bin.
    """
    state, tallies = crowd.state, crowd.tallies
    sums, single = tallies.sums[number], tallies.single
    parts = mechanism.parts
    for index in range(state.totals[0].contested):
        column = 0
        if ranked:
            column = first_live(state, tallies.bins[index, 0], fixed.ranking)
            tallies.asked[number, column, index] += 1
        else:
            tallies.named[index, 0] += abs(single[index])
        for cell in range(parts * index, parts * (index + 1)):
            sums[column, cell] += single[cell]


@compiled
def contribute(
    crowd: Crowd,
    fixed: Fixed,
    rows: Rows,
    start: int,
    stop: int,
    population: int,
    rng: np.random.Generator,
) -> None:
    """Let the rows of a log come and answer."""
    state, tallies, constants = crowd.state, crowd.tallies, fixed.constants
    state.totals[0].reports += stop - start
    bins, pairs = lay_out(state, tallies, constants, True)
    if bins == 0:
        return
    patterns = constants.axes.patterns[constants.dimension]
    scale_share, compared = state.totals[0].scale_share, 0
    for i in range(start, stop):
        if int(rng.random() * SHARES) < scale_share:
            tell_place(crowd, fixed, rows.contexts[i], rng)
            continue
        compared += 1
        node, arm = leaf_of(state, constants, rows.contexts[i]), rows.arms[i]
        kind = asked_kind(fixed.kinds, fixed.bounds, int(rng.random() * SHARES))
        question = constants.questions[kind]
        cells = pairs if question.by_arm else bins
        usual = fixed.mechanisms[fixed.halves, cells]
        whole_share = logged_share(usual.parts, usual.elsewhere, state.ask[0])
        axis = draw_axis(state, whole_share, rng)
        mechanism = fixed.mechanisms[fixed.variants[1 + axis], cells]
        row = draw_row(constants, axis, mechanism.parts, rng)
        cell, value = -1, 1.0
        if state.pair[node, 0] != state.pair[node, 1] and state.live[node, arm]:
            whole = tallies.first[node, int(question.by_arm)]
            if question.by_arm:
                whole += state.live[node, :arm].sum()
            sign = draw_sign(rows, i, arm, rng) if question.value != ONE else 0.0
            part, flip = part_of(state, constants, node, rows.contexts[i], axis, row)
            cell, value = own_cell(question, whole, sign, arm != 0, part, flip, mechanism.parts)
        number = kind * patterns + pattern_of(constants, axis, row)
        tallies.answers[number] += 1
        send(mechanism, cell, value, tallies.sums[number, 0], tallies.order, tallies.picks, rng)
    hand_over_all(crowd, fixed, population, bins, pairs, 0)
    hand_over_places(crowd, fixed, OTHERS)
    own = pairs if constants.questions[_OUTCOME].by_arm else bins
    target = fixed.target_mechanisms[fixed.halves, bins].variance
    variance = fixed.mechanisms[fixed.halves, own].variance
    credit(state, constants, target, variance, True, compared)


@compiled
def decide(crowd: Crowd, fixed: Fixed, rng: np.random.Generator) -> None:
    """Let the learner make its step."""
    if fixed.constants.running:
        learner_step(crowd.state, fixed.constants)


@compiled
def probabilities(crowd: Crowd, fixed: Fixed, points: Floats, out: Floats) -> None:
    """Fill in the chance of each arm at each point, (P, K)."""
    state = crowd.state
    out[:] = 0.0
    for p in range(len(points)):
        node = leaf_of(state, fixed.constants, points[p])
        if fixed.constants.public_arms:
            live = state.live[node].sum()
            for k in range(fixed.constants.arms):
                out[p, k] = state.live[node, k] / live
        else:
            first, second = state.pair[node, 0], state.pair[node, 1]
            out[p, first] += share_of(fixed.constants.caps, first, second)
            out[p, second] += share_of(fixed.constants.caps, second, first)


@compiled
def has_room(crowd: Crowd) -> bool:
    """Say whether there is room for the next step, and no need to begin anew."""
    room: bool = state_has_room(crowd.state) and crowd.state.totals[0].verdict == STAY
    return room


LOOP = compile_loop(
    "whisper",
    serve=serve,
    contribute=contribute,
    step=decide,
    probabilities=probabilities,
    has_room=has_room,
)
