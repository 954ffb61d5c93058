"""What the crowd needs beside the learner's state: mechanisms by number of cells, and tallies."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.state import Counts, Floats, Records, State
from sottovoce.estimate.whisper.tally import MECHANISM, mechanism_record
from sottovoce.shared.baseline import baseline_arms
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.whisper.cells import (
    CellMechanism,
    all_bins_mechanism,
    cell_mechanism,
    one_cell_mechanism,
    parts_of,
)
from sottovoce.shared.whisper.questions import menu
from sottovoce.shared.whisper.thresholds import THRESHOLDS


class Tallies(NamedTuple):
    """Answers since the last step, added up.

    Q questions (kind and index), C cells at most. A columns: one, or K where arms are public and
    each answer is about the arm that its ranking gives.
    """

    answers: Counts  # (Q,) how many answers to each question
    asked: Counts  # (Q, A, C) of each whole cell, filled in when it is handed over
    sums: Floats  # (Q, A, C)
    named: Floats  # (C, 1) answers to the plain contrast that name the cell
    place_answers: Floats  # (d,) people who told where they are along each axis …
    places: Floats  # (d,) … and the sum of what they told
    rewards: Floats  # (2,) answers of people who were asked for their reward, and their sum
    groups: Counts  # (2, 2) of the policy group and of the baseline group, who sent minus and plus
    first: Counts  # (S, 2) the first cell of each contested node: of whole bins, and by arm
    bins: Counts  # (C, 3) of each bin's cell, its node and the arms that are compared
    pairs: Counts  # (C, 3) of each (bin, arm), its node and the arm
    # (C, 2) how many of a cell's people tell of their outcome, 1 but for capped arms; and how many
    # get the first arm, which is read of all bins only
    told: Floats
    leaf: Counts  # (S,) the cell of each bin, where settled ones have one, too …
    leaves: Counts  # (S, 3) … and of each such cell its node and the arms on offer …
    leaf_told: Floats  # (S, 2) … and the same of it as above
    single: Floats  # (C,) scratch: one answer
    order: Counts  # (C,) scratch: the cells in order
    picks: Counts  # (C,) scratch


class Crowd(NamedTuple):
    """The learner's state, and what the crowd has told since the last step."""

    state: State
    tallies: Tallies


class Fixed(NamedTuple):
    """What stands still while people of a population come."""

    constants: Constants
    kinds: Counts  # (n,) which questions are asked …
    bounds: Counts  # (n,) … by a coin, as in ``Menu`` of shared/whisper/questions.py
    reward_kinds: Counts  # the same of those who are asked for their reward
    reward_bounds: Counts
    variants: Counts  # (1 + d,) which row of mechanisms a question about no axis and each has
    mechanisms: Records  # (V, cells + 1) of MECHANISM, by number of whole cells; [:, 0] stays empty
    target_mechanisms: Records  # the same of the target's people
    halves: (
        int  # the variant of axes with an order, which decides whether whole bins are asked about
    )
    leaf_mechanisms: Records  # (nodes + 1,) of questions about all bins, by their number
    reward_mechanism: Records  # (1,) for people who are asked for their reward
    place_mechanism: Records  # (1,) for people who are asked where they are
    thresholds: Floats  # (THRESHOLDS,)
    ranking: Counts  # (K,) the public ranking of the person who came last
    baseline: Counts  # the arms of people of the baseline group, each as likely


def tallies_for(state: State, fixed: Constants) -> Tallies:
    """Return room for the answers about every node of a state."""
    nodes, patterns = len(state.live), int(fixed.axes.patterns[fixed.dimension])
    questions, columns = len(fixed.questions) * patterns, fixed.arms if fixed.public_arms else 1
    cells = max(2, int(fixed.axes.levels.max())) * nodes * fixed.arms + 1

    def counts(*shape: int) -> Counts:
        return np.zeros(shape, dtype=np.int64)

    return Tallies(
        answers=counts(questions),
        asked=counts(questions, columns, nodes * fixed.arms),
        sums=np.zeros((questions, columns, cells)),
        named=np.zeros((cells, 1)),
        place_answers=np.zeros(fixed.dimension),
        places=np.zeros(fixed.dimension),
        rewards=np.zeros(2),
        groups=counts(2, 2),
        first=counts(nodes, 2),
        bins=counts(nodes, 3),
        pairs=counts(nodes * fixed.arms, 3),
        told=np.tile((1.0, 0.5), (nodes * fixed.arms, 1)),
        leaf=counts(nodes),
        leaves=counts(nodes, 3),
        leaf_told=np.tile((1.0, 0.5), (nodes, 1)),
        single=np.zeros(cells),
        order=np.arange(cells),
        picks=counts(cells),
    )


def fixed_for(experiment: Experiment, population: int, *, nodes: int) -> Fixed:
    """Return what stands still while people of a population come, with room for so many nodes."""
    asked = menu(experiment, population=population, logged=population > 0)
    of_rewards = menu(experiment, population=0, logged=False, audits=True)
    axes, divisions = (None, *range(experiment.dimension)), _divisions(experiment)
    return Fixed(
        constants=constants(experiment),
        kinds=np.array(asked.kinds),
        bounds=np.array(asked.bounds),
        reward_kinds=np.array(of_rewards.kinds, dtype=np.int64),
        reward_bounds=np.array(of_rewards.bounds, dtype=np.int64),
        variants=np.array([divisions.index(parts_of(experiment, axis)) for axis in axes]),
        mechanisms=mechanisms(experiment, population, nodes=nodes),
        target_mechanisms=mechanisms(experiment, 0, nodes=nodes),
        halves=divisions.index(2) if 2 in divisions else 0,
        leaf_mechanisms=_leaf_mechanisms(experiment.epsilon, nodes),
        reward_mechanism=one_cell_record(experiment, 0),
        place_mechanism=one_cell_record(experiment, population),
        thresholds=np.array(THRESHOLDS),
        ranking=np.arange(len(experiment.arms)),
        baseline=np.array(baseline_arms(experiment)),
    )


def _divisions(experiment: Experiment) -> tuple[int, ...]:
    """Return into how many parts whole cells may be divided; 1 comes first."""
    axes = (None, *range(experiment.dimension))
    return tuple(sorted({parts_of(experiment, axis) for axis in axes}))


def mechanisms(experiment: Experiment, population: int, *, nodes: int) -> Records:
    """Return the devices' own mechanism for each division and number of whole cells."""
    cells = nodes if population == 0 else nodes * len(experiment.arms)
    return _mechanisms(experiment.populations[population].epsilon, cells, _divisions(experiment))


@lru_cache(maxsize=64)
def _mechanisms(epsilon: float, cells: int, divisions: tuple[int, ...]) -> Records:
    table = np.zeros((len(divisions), cells + 1), dtype=MECHANISM).view(np.recarray)
    for variant, parts in enumerate(divisions):
        for whole in range(1, cells + 1):
            table[variant, whole] = mechanism_record(cell_mechanism(epsilon, whole, parts=parts))
    return table


@lru_cache(maxsize=64)
def _leaf_mechanisms(epsilon: float, nodes: int) -> Records:
    table = np.zeros(nodes + 1, dtype=MECHANISM).view(np.recarray)
    for bins in range(1, nodes + 1):
        table[bins] = mechanism_record(all_bins_mechanism(epsilon, bins))
    return table


def one_cell_record(experiment: Experiment, population: int) -> Records:
    """Return the mechanism for the one cell in which everybody is."""
    plain = CellMechanism(one_cell_mechanism(experiment, population), parts=1, elsewhere=False)
    return np.array([mechanism_record(plain)], dtype=MECHANISM).view(np.recarray)
