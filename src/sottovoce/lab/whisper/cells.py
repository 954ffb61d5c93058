"""The cells of the crowd's answers, and how these are handed over to the learner."""

from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.state import State
from sottovoce.estimate.whisper.tally import Tally
from sottovoce.lab.compiled import compiled
from sottovoce.lab.whisper.rules import add_places, hand_over, share_of, told_share
from sottovoce.lab.whisper.tables import Crowd, Fixed, Tallies
from sottovoce.shared.whisper.questions import ALL_BINS


@compiled
def lay_out(state: State, tallies: Tallies, constants: Constants, logged: bool) -> tuple[int, int]:
    """Give every contested node its cells; return how many whole ones there are, and by arm."""
    bins, pairs = 0, 0
    for position in range(state.totals[0].contested):
        node = state.contested[position]
        tallies.first[node, 0], tallies.first[node, 1] = bins, pairs
        tallies.bins[bins, 0] = node
        # Rows of a log are compared bin by bin only where there are just two arms.
        tallies.bins[bins, 1] = 0 if logged else state.pair[node, 0]
        tallies.bins[bins, 2] = 1 if logged else state.pair[node, 1]
        if constants.capped:
            tallies.told[bins, 0] = told_share(
                constants.caps, state.pair[node, 0], state.pair[node, 1]
            )
        bins += 1
        for k in range(state.live.shape[1]):
            if state.live[node, k]:
                tallies.pairs[pairs, 0], tallies.pairs[pairs, 1] = node, k
                pairs += 1
    return bins, pairs


@compiled
def lay_out_leaves(state: State, tallies: Tallies, constants: Constants) -> int:
    """Give every bin a cell, settled or not; return how many there are."""
    leaves = 0
    for node in range(state.totals[0].nodes):
        if state.tree.child[node] == node:
            first, second = state.pair[node, 0], state.pair[node, 1]
            tallies.leaf[node] = leaves
            tallies.leaves[leaves, 0] = node
            tallies.leaves[leaves, 1], tallies.leaves[leaves, 2] = first, second
            if constants.capped and first != second:
                tallies.leaf_told[leaves, 1] = share_of(constants.caps, first, second)
            leaves += 1
    return leaves


@compiled
def hand_over_all(
    crowd: Crowd, fixed: Fixed, population: int, bins: int, pairs: int, leaves: int
) -> None:
    """Hand all tallies of a population over to the learner, and begin new ones."""
    tallies, constants = crowd.tallies, fixed.constants
    for number in range(len(tallies.answers)):
        count = tallies.answers[number]
        if count == 0:
            continue
        patterns = constants.axes.patterns[constants.dimension]
        kind, pattern = number // patterns, number % patterns
        axis = constants.dimension - 1
        while axis >= 0 and constants.axes.patterns[axis] > pattern:
            axis -= 1
        row = pattern - constants.axes.patterns[axis] if axis >= 0 else 0
        question = constants.questions[kind]
        whole = pairs if question.by_arm else bins
        cells = tallies.pairs[:whole] if question.by_arm else tallies.bins[:whole]
        mechanism, shares = fixed.mechanisms[fixed.variants[1 + axis], whole], tallies.told
        if question.cells == ALL_BINS:
            whole, cells, shares = leaves, tallies.leaves[:leaves], tallies.leaf_told
            mechanism = fixed.leaf_mechanisms[leaves]
        asked, sums = tallies.asked[number], tallies.sums[number]
        if not question.ranked:
            asked[0, :whole] = count
        told = Tally(population, axis, row, asked.T, sums.T, tallies.named)
        hand_over(crowd.state, constants, mechanism, question, told, cells, shares)
        asked[:, :whole] = 0
        sums[:, : mechanism.cells] = 0.0
        tallies.answers[number] = 0
    if constants.certified:
        tallies.named[:bins] = 0.0


@compiled
def hand_over_places(crowd: Crowd, fixed: Fixed, group: int) -> None:
    """Hand over where people said they are. group: TARGET or OTHERS."""
    state, tallies = crowd.state, crowd.tallies
    mechanism = fixed.place_mechanism[0]
    for axis in range(len(tallies.places)):
        if tallies.place_answers[axis] > 0.0:
            add_places(
                state,
                group,
                axis,
                state.thresholds[axis] - 1,
                tallies.place_answers[axis],
                tallies.places[axis] / mechanism.signal,
                mechanism.inside,
            )
            tallies.place_answers[axis] = 0.0
            tallies.places[axis] = 0.0
