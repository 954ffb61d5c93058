"""The bins of ``abse`` and the people in them, compiled."""

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sottovoce.estimate.history import DatedEvent, Elimination, Split
from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.driver import BLOCK
from sottovoce.lab.environments import Counts, Floats, People
from sottovoce.lab.loop import compile_loop, outcome
from sottovoce.shared.experiment import Experiment

if TYPE_CHECKING:
    from sottovoce.lab.baselines.abse import Abse

ELIMINATED, SPLIT = 0, 1
NODES, EVENTS, PEOPLE = range(3)


class Bins(NamedTuple):
    """The tree, as arrays over at most S nodes; K arms, depths 0..k_0."""

    child: Counts  # (S,) the first of its 2^d children, which stand together; 0 for a leaf
    depth: Counts  # (S,)
    arms: Counts  # (S, K) the live arms, in the first ``live`` columns
    live: Counts  # (S,)
    turn: Counts  # (S,) whose turn it is, as a column among the live arms
    rounds: Counts  # (S,) full rounds
    sums: Floats  # (S, K) rewards, by column
    events: Counts  # (S·K, 4) people, kind, node, arm
    totals: Counts  # (3,) nodes, events, people
    spare: int  # room for the nodes that may be born before the next step


class Numbers(NamedTuple):
    """The numbers that they run by."""

    last_round: Counts  # (k_0 + 1,) ℓ_B of each depth
    expected: Floats  # (k_0 + 1,) n|B|^d of each depth
    constant: float


@inlined
def find(child: Counts, point: Floats) -> int:
    """Return the leaf that holds a point: at each node, one bit an axis."""
    node = 0
    scale = 1.0
    while child[node] > 0:
        column = 0
        scale *= 2.0
        for axis in range(len(point)):
            # The upper half of this bin is the odd half of the cube; 1 itself is in the last.
            scaled = int(min(point[axis] * scale, scale - 1.0))
            column = 2 * column + scaled % 2
        node = child[node] + column
    return node


@inlined
def drop(bins: Bins, numbers: Numbers, node: int) -> None:
    """Policy 1, after a round: keep the arms within 2·U(s, n|B|^d) of the best mean."""
    arms, sums = bins.arms[node], bins.sums[node]
    s = bins.rounds[node]
    logarithm = max(np.log(numbers.expected[bins.depth[node]] / s), 1.0)
    radius = 2.0 * numbers.constant * np.sqrt(logarithm / s)
    live = bins.live[node]
    best, kept = sums[0], 0
    for column in range(1, live):
        best = max(best, sums[column])
    for column in range(live):
        if sums[column] >= best - radius * s:
            arms[kept], sums[kept] = arms[column], sums[column]
            kept += 1
        else:
            log_event(bins, ELIMINATED, node, arms[column])
    bins.live[node] = kept


@inlined
def split(bins: Bins, node: int, children: int) -> None:
    """Policy 3: the children begin anew with the arms that are left."""
    totals, live = bins.totals, bins.live[node]
    first = totals[NODES]
    totals[NODES] += children
    bins.child[node] = first
    for one in range(first, first + children):
        bins.depth[one] = bins.depth[node] + 1
        bins.live[one] = live
        for column in range(live):
            bins.arms[one, column] = bins.arms[node, column]
    log_event(bins, SPLIT, node, 0)


@inlined
def log_event(bins: Bins, kind: int, node: int, arm: int) -> None:
    """Write down that an arm was dropped, or a bin split."""
    event = bins.events[bins.totals[EVENTS]]
    event[0], event[1], event[2], event[3] = bins.totals[PEOPLE], kind, node, arm
    bins.totals[EVENTS] += 1


@compiled
def probabilities(bins: Bins, numbers: Numbers, points: Floats, out: Floats) -> None:
    """Fill in the chance of each arm at each point: the live arms come in turn."""
    out[:] = 0.0
    for p in range(len(points)):
        node = find(bins.child, points[p])
        for column in range(bins.live[node]):
            out[p, bins.arms[node, column]] = 1.0 / bins.live[node]


@inlined
def serve(
    bins: Bins,
    numbers: Numbers,
    people: People,
    start: int,
    stop: int,
    arms: Counts,
    rng: np.random.Generator,
) -> None:
    """Let people come; each is learned from at once."""
    totals, turn, rounds = bins.totals, bins.turn, bins.rounds
    children = 2 ** people.contexts.shape[1]
    for i in range(start, stop):
        node = find(bins.child, people.contexts[i])
        column = turn[node]
        arms[i] = bins.arms[node, column]
        totals[PEOPLE] += 1
        if bins.live[node] > 1:
            bins.sums[node, column] += outcome(people, i, arms[i], rng)
            turn[node] += 1
            if turn[node] == bins.live[node]:
                turn[node] = 0
                rounds[node] += 1
                drop(bins, numbers, node)
                depth = bins.depth[node]
                due = rounds[node] >= numbers.last_round[depth]
                if due and bins.live[node] > 1 and depth < len(numbers.last_round) - 1:
                    split(bins, node, children)


@inlined
def has_room(bins: Bins) -> bool:
    """Say whether all bins that may be born before the next step have room."""
    enough: bool = bins.totals[NODES] + bins.spare <= len(bins.child)
    return enough


LOOP = compile_loop("abse", serve=serve, probabilities=probabilities, has_room=has_room)


class AbsePolicy:
    """Adaptively binned successive elimination. It knows no auxiliary data."""

    loop = LOOP

    def __init__(self, experiment: Experiment, settings: "Abse") -> None:
        self.experiment = experiment
        arms, d, n = len(experiment.arms), experiment.dimension, experiment.horizon
        depths = range(settings.deepest(arms=arms, dimension=d, people=n) + 1)
        self.numbers = Numbers(
            last_round=np.array([settings.rounds(k, dimension=d, people=n) for k in depths]),
            expected=np.array([n * 2.0 ** (-k * d) for k in depths]),
            constant=settings.constant,
        )
        # A bin splits after a round of two people at least, and never below the last depth.
        splits = min(experiment.release_every, BLOCK) // 2 + 1
        spare = min(2**d * splits, sum(2 ** (k * d) for k in depths))
        self.state = _allocate(64 + spare, arms=arms, spare=spare)
        self.state.arms[0] = np.arange(arms)
        self.state.live[0] = arms
        self.state.totals[NODES] = 1

    def fixed(self, population: int) -> Numbers:
        """Return the numbers."""
        return self.numbers

    def grow(self) -> None:
        """Make room for twice as many bins."""
        larger = _allocate(
            2 * len(self.state.child), arms=self.state.arms.shape[1], spare=self.state.spare
        )
        for old, new in zip(self.state, larger, strict=True):
            if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
                new[: len(old)] = old
        self.state = larger

    def history(self) -> tuple[DatedEvent, ...]:
        """Return eliminations, and each split as cuts along one axis after the other.

        It counts target users alone: the rows of other populations are not looked at.
        """
        dated: list[DatedEvent] = []
        paths = self._paths()
        rows = self.state.events[: self.state.totals[EVENTS]].tolist()
        for (people, kind, node), group in groupby(rows, key=lambda row: tuple(row[:3])):
            path = paths[node]
            if kind == ELIMINATED:
                arms = tuple(sorted(row[3] for row in group))
                dated.append(DatedEvent(people, Elimination(path, arms)))
                continue
            for axis in range(self.experiment.dimension):
                for side in range(2**axis):
                    half = format(side, f"0{axis}b") if axis else ""
                    dated.append(DatedEvent(people, Split(path + half, axis)))
        return tuple(dated)

    def _paths(self) -> list[str]:
        """Name each node by its path from the root: d bits a level, the first axis first."""
        d = self.experiment.dimension
        paths = [""] * int(self.state.totals[NODES])
        for node, path in enumerate(paths):
            first = int(self.state.child[node])
            for column in range(2**d if first else 0):
                paths[first + column] = path + format(column, f"0{d}b")
        return paths


def _allocate(nodes: int, *, arms: int, spare: int) -> Bins:
    def counts(*shape: int) -> Counts:
        return np.zeros(shape, dtype=np.int64)

    return Bins(
        child=counts(nodes),
        depth=counts(nodes),
        arms=counts(nodes, arms),
        live=counts(nodes),
        turn=counts(nodes),
        rounds=counts(nodes),
        sums=np.zeros((nodes, arms)),
        events=counts(nodes * arms, 4),
        totals=counts(3),
        spare=spare,
    )
