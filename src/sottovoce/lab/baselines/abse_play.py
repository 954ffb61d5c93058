"""The bins of ``abse`` and the people in them, compiled."""

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sottovoce.estimate.history import Cut, Dated, Elimination
from sottovoce.lab.baselines.baseline import no_release
from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.crowd.ldpmab.people import outcome
from sottovoce.lab.crowd.play import Counts, Floats
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release

if TYPE_CHECKING:
    from sottovoce.lab.baselines.abse import Abse

ELIMINATED, SPLIT = 0, 1
NODES, EVENTS, PEOPLE = range(3)


class Bins(NamedTuple):
    """The tree, as arrays over at most S nodes; K arms, depths 0..k_0."""

    child: Counts  # (S,) the first of its 2^d children, which stand together; 0 for a leaf
    depth: Counts  # (S,)
    arms: Counts  # (S, K) the live arms, in the first ``live`` places
    live: Counts  # (S,)
    turn: Counts  # (S,) whose turn it is, as a place among the live arms
    rounds: Counts  # (S,) full rounds
    sums: Floats  # (S, K) rewards, by place
    events: Counts  # (S·K, 4) people, kind, node, arm
    totals: Counts  # (3,) nodes, events, people
    last_round: Counts  # (k_0 + 1,) ℓ_B of each depth
    expected: Floats  # (k_0 + 1,) n|B|^d of each depth
    constant: float
    release_every: int


@inlined
def find(child: Counts, point: Floats) -> int:
    """Return the leaf that holds a point: at each node, one bit an axis."""
    node = 0
    scale = 1.0
    while child[node] > 0:
        place = 0
        scale *= 2.0
        for axis in range(len(point)):
            # The upper half of this bin is the odd half of the cube; 1 itself is in the last.
            scaled = int(min(point[axis] * scale, scale - 1.0))
            place = 2 * place + scaled % 2
        node = child[node] + place
    return node


@inlined
def drop(bins: Bins, node: int) -> None:
    """Policy 1, after a round: keep the arms within 2·U(s, n|B|^d) of the best mean."""
    arms, sums, totals = bins.arms[node], bins.sums[node], bins.totals
    s = bins.rounds[node]
    logarithm = max(np.log(bins.expected[bins.depth[node]] / s), 1.0)
    radius = 2.0 * bins.constant * np.sqrt(logarithm / s)
    live = bins.live[node]
    best = sums[:live].max()
    kept = 0
    for place in range(live):
        if sums[place] >= best - radius * s:
            arms[kept], sums[kept] = arms[place], sums[place]
            kept += 1
        else:
            bins.events[totals[EVENTS]] = (totals[PEOPLE], ELIMINATED, node, arms[place])
            totals[EVENTS] += 1
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
        bins.arms[one, :live] = bins.arms[node, :live]
    bins.events[totals[EVENTS]] = (totals[PEOPLE], SPLIT, node, 0)
    totals[EVENTS] += 1


@compiled
def look(bins: Bins, points: Floats, policies: Floats) -> None:
    """Fill in the chance of each arm at each point: the live arms come in turn."""
    policies[:] = 0.0
    for p in range(len(points)):
        node = find(bins.child, points[p])
        for place in range(bins.live[node]):
            policies[p, bins.arms[node, place]] = 1.0 / bins.live[node]


@compiled
def serve(
    bins: Bins,
    rng: np.random.Generator,
    start: int,
    contexts: Floats,
    means: Floats,
    outcomes: Floats,
    points: Floats,
    lost: Floats,
    regret: Floats,
    policies: Floats,
) -> tuple[int, int]:
    """Let people come from ``start`` on, as ``Play.serve``; stop early where room is needed."""
    totals, turn, rounds = bins.totals, bins.turn, bins.rounds
    children = 2 ** contexts.shape[1]
    releases = 0
    i = start
    while i < len(contexts) and totals[NODES] + children <= len(bins.child):
        node = find(bins.child, contexts[i])
        place = turn[node]
        arm = bins.arms[node, place]
        best = means[i, 0]
        for k in range(1, means.shape[1]):
            best = max(best, means[i, k])
        lost[0] += best - means[i, arm]
        totals[PEOPLE] += 1
        if bins.live[node] > 1:
            bins.sums[node, place] += outcome(outcomes, means, i, arm, rng)
            turn[node] += 1
            if turn[node] == bins.live[node]:
                turn[node] = 0
                rounds[node] += 1
                drop(bins, node)
                depth = bins.depth[node]
                due = rounds[node] >= bins.last_round[depth]
                if due and bins.live[node] > 1 and depth < len(bins.last_round) - 1:
                    split(bins, node, children)
        i += 1
        if totals[PEOPLE] % bins.release_every == 0:
            regret[releases] = lost[0]
            if len(points) > 0:
                look(bins, points, policies[releases])
            releases += 1
    return i, releases


class AbsePlay:
    """Implements ``Play``; it grows when its tree needs room."""

    def __init__(self, experiment: Experiment, settings: "Abse") -> None:
        self.experiment = experiment
        arms, d, n = len(experiment.arms), experiment.dimension, experiment.horizon
        depths = range(settings.deepest(arms=arms, dimension=d, people=n) + 1)
        self.bins = _allocate(
            64 + 2**d,
            arms=arms,
            last_round=np.array([settings.rounds(k, dimension=d, people=n) for k in depths]),
            expected=np.array([n * 2.0 ** (-k * d) for k in depths]),
            constant=settings.constant,
            release_every=experiment.release_every,
        )
        self.bins.arms[0] = np.arange(arms)
        self.bins.live[0] = arms
        self.bins.totals[NODES] = 1

    @property
    def waiting(self) -> int:
        """The number of people since the last release."""
        return int(self.bins.totals[PEOPLE]) % self.experiment.release_every

    def contribute(
        self,
        rng: np.random.Generator,
        population: int,
        contexts: Floats,
        means: Floats,
        outcomes: Floats,
        logged: Counts,
    ) -> None:
        """Do nothing: the method knows no auxiliary data."""

    def serve(
        self,
        rng: np.random.Generator,
        contexts: Floats,
        means: Floats,
        outcomes: Floats,
        points: Floats,
        lost: Floats,
        regret: Floats,
        policies: Floats,
    ) -> int:
        """Let people come."""
        done, releases = 0, 0
        while True:
            rows = (contexts, means, outcomes)
            kept = (points, lost, regret[releases:], policies[releases:])
            done, more = serve(self.bins, rng, done, *rows, *kept)
            releases += int(more)
            if done == len(contexts):
                return releases
            self.bins = _grow(self.bins)

    def look(self, points: Floats, policies: Floats) -> None:
        """Fill in the policy at the points."""
        look(self.bins, points, policies)

    def history(self) -> tuple[Dated, ...]:
        """Return eliminations, and each split as cuts along one axis after the other.

        It counts target users alone: the rows of other populations are not looked at.
        """
        dated: list[Dated] = []
        paths = self._paths()
        rows = self.bins.events[: self.bins.totals[EVENTS]].tolist()
        for (people, kind, node), group in groupby(rows, key=lambda row: tuple(row[:3])):
            path = paths[node]
            if kind == ELIMINATED:
                arms = tuple(sorted(row[3] for row in group))
                dated.append(Dated(people, Elimination(path, arms)))
                continue
            for axis in range(self.experiment.dimension):
                for side in range(2**axis):
                    half = format(side, f"0{axis}b") if axis else ""
                    dated.append(Dated(people, Cut(path + half, axis)))
        return tuple(dated)

    def release(self) -> Release:
        """Refuse: nobody's device can follow a policy that needs each person's raw data."""
        raise no_release("abse")

    def _paths(self) -> list[str]:
        """Name each node by its path from the root: d bits a level, the first axis first."""
        d = self.experiment.dimension
        paths = [""] * int(self.bins.totals[NODES])
        for node, path in enumerate(paths):
            first = int(self.bins.child[node])
            for place in range(2**d if first else 0):
                paths[first + place] = path + format(place, f"0{d}b")
        return paths


def _grow(bins: Bins) -> Bins:
    """Return the same bins with room for twice as many."""
    larger = _allocate(
        2 * len(bins.child),
        arms=bins.arms.shape[1],
        last_round=bins.last_round,
        expected=bins.expected,
        constant=bins.constant,
        release_every=bins.release_every,
    )
    for old, new in zip(bins, larger, strict=True):
        if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
            new[: len(old)] = old
    return larger


def _allocate(
    nodes: int,
    *,
    arms: int,
    last_round: Counts,
    expected: Floats,
    constant: float,
    release_every: int,
) -> Bins:
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
        last_round=last_round,
        expected=expected,
        constant=constant,
        release_every=release_every,
    )
