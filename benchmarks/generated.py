"""Problems that are drawn, each from a seed and its number: nobody can know them beforehand.

``held_out.py`` takes the seed from a digest of the rules. A draw decides the number of
arms and features, how many features matter, the shape of the rewards, how far arms differ, who
comes, ε, n, and whether there is auxiliary data and what it is worth. Half of the problems are of a
harder family: see ``FAMILIES``.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sottovoce.lab.drift import SlowDrift, SuddenDrift
from sottovoce.lab.environments import Environment, Floats, regret_at_random, schema_of
from sottovoce.lab.missing import Missing
from sottovoce.lab.problems import (
    Arrivals,
    Curves,
    Heaps,
    Leaning,
    Problem,
    in_a_corner,
    uniform,
)
from sottovoce.lab.simulation import Auxiliary
from sottovoce.lab.worlds import LongTails, PartlyOther
from sottovoce.shared.schema import Categorical, Feature, Numeric

LEAST_LOSS = 0.01
"""A world in which arms at random lose less per person is drawn again: nothing could be seen."""

QUALITIES = {"alike": 0.4, "shifted": 0.3, "bent": 0.2, "other": 0.1}
"""What auxiliary rows are, and how often: of the same law; of other people with the same rewards;
of rewards that are a third another world's; of another world's altogether."""

PLAIN = 0.5
"""How often a problem is of no harder family."""

OPTIONAL = "optional" in {each.name for each in fields(Numeric)}
"""Whether a feature can be missing."""

FAMILIES = (
    *("many features", "levels", "long tails", "rows wrong in places", "drift"),
    *(("missing values",) if OPTIONAL else ()),
)
"""Harder families, each as likely as the others: 7 to 50 features; one that matters has levels
without an order; features with long tails; auxiliary rows whose best arms are others in a part of
the space; best arms that change while people come, at once or slowly; values of the first feature
that are missing, at random or not."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One problem. group: its family or, if it is of none, what its auxiliary data is worth."""

    name: str
    group: str
    auxiliary_name: str
    environment: Environment
    epsilon: float
    n: int
    auxiliary: tuple[Auxiliary, ...]


@dataclass(frozen=True, slots=True)
class Levelled:
    """One feature has levels instead of numbers, in an order that says nothing.

    order: the place of each level among the L equal pieces of the environment's axis.
    """

    environment: Environment
    axis: int
    order: tuple[int, ...]

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return self.environment.arms

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return self.environment.dimension

    @property
    def features(self) -> Sequence[Feature]:
        """Those of the environment, but for one."""
        own = list(schema_of(self.environment))
        levels = tuple(f"level {number + 1}" for number in range(len(self.order)))
        own[self.axis] = Categorical("levels", levels)
        return own

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw from the environment, and find the level of each."""
        return self._reordered(self.environment.contexts(rng, n), np.argsort(self.order))

    def means(self, contexts: Floats) -> Floats:
        """Return what the environment says in the middle of each level's piece."""
        return self.environment.means(self._reordered(contexts, np.array(self.order)))

    def _reordered(self, contexts: Floats, order: NDArray[np.int64]) -> Floats:
        count, moved = len(order), contexts.copy()
        piece = np.minimum((contexts[:, self.axis] * count).astype(np.int64), count - 1)
        moved[:, self.axis] = (order[piece] + 0.5) / count
        return moved


class _Draw:
    """The draws of one problem, one after the other from one generator.

    Each shape of rewards is a function from contexts (n, d) to a score of each arm, (n, K) in
    [-1, 1]; ``matters`` (d,) is 1 for the features that it may depend on, and 0 for the others.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        plain = self.rng.random() < PLAIN
        self.family = None if plain else FAMILIES[self.rng.integers(len(FAMILIES))]
        self.arms = int(self.rng.integers(2, 6))
        self.dimension = int(self.rng.integers(1, 7))
        if self.family == "many features":
            self.dimension = round(self.between(7, 50))
        self.matters: list[int] = []
        self.relevant = int(self.rng.integers(1, min(self.dimension, 3) + 1))

    def between(self, low: float, high: float) -> float:
        """Draw a number that is as likely to be in any part of the scale of logarithms."""
        return float(low * (high / low) ** self.rng.random())

    def direction(self, matters: Floats) -> Floats:
        """Draw one feature of those that matter, or a weighted sum; weights of absolute sum 1."""
        weights = matters * self.rng.normal(size=self.dimension)
        if self.rng.random() < 0.5:
            weights = np.where(np.arange(self.dimension) == np.abs(weights).argmax(), weights, 0)
        return np.asarray(weights / np.abs(weights).sum())

    def places(self, matters: Floats) -> Callable[[Floats], Floats]:
        """Draw a direction; return the place of each context along it, in [0, 1]."""
        direction = self.direction(matters)
        return lambda contexts: contexts @ direction - np.minimum(direction, 0).sum()

    def steps(self, matters: Floats) -> Curves:
        """Draw two to five steps along a direction."""
        pieces, along = int(self.rng.integers(2, 6)), self.places(matters)
        levels = self.rng.uniform(-1, 1, size=(pieces, self.arms))
        edges = np.sort(self.rng.random(pieces - 1))
        return lambda contexts: levels[np.searchsorted(edges, along(contexts))]

    def slopes(self, matters: Floats) -> Curves:
        """Draw a straight line for each arm, each in its own direction."""
        weights = self.rng.uniform(-1, 1, size=self.arms)
        columns = [weight * self.direction(matters) for weight in weights / np.abs(weights).max()]
        directions = np.stack(columns, axis=1)
        return lambda contexts: (2 * contexts - 1) @ directions

    def logistic(self, matters: Floats) -> Curves:
        """Draw straight lines that level off."""
        lines, steepness = self.slopes(matters), self.between(1, 8)
        offsets = self.rng.uniform(-0.5, 0.5, size=self.arms)
        return lambda contexts: np.tanh(steepness * (lines(contexts) - offsets))

    def bumps(self, matters: Floats) -> Curves:
        """Draw a bump for each arm, around its own centre."""
        centres = self.rng.random((self.arms, self.dimension))
        width = self.rng.uniform(0.15, 0.5)

        def scores(contexts: Floats) -> Floats:
            far = (contexts[:, np.newaxis] - centres) ** 2 @ matters
            return np.asarray(2 * np.exp(-far / (2 * width**2)) - 1)

        return scores

    def stripes(self, matters: Floats) -> Curves:
        """Draw arms that take turns along a direction, half a turn to two and a half."""
        along, phases = self.places(matters), self.rng.random(self.arms)
        turns = self.rng.uniform(0.5, 2.5)
        return lambda contexts: np.cos(
            2 * math.pi * (turns * along(contexts)[:, np.newaxis] + phases)
        )

    def curves(self) -> tuple[str, Curves]:
        """Draw what each arm brings.

        f_k(x) = base + common·(x - 1/2) + effect·((1 - flat)·score_k(x) + flat·level_k).
        """
        kinds = (self.steps, self.slopes, self.logistic, self.bumps, self.stripes)
        kind = kinds[self.rng.integers(len(kinds))]
        self.matters = self.rng.choice(self.dimension, self.relevant, replace=False).tolist()
        matters = np.zeros(self.dimension)
        matters[self.matters] = 1
        scores, effect, rise = kind(matters), self.between(0.05, 0.4), self.rng.uniform(0, 0.2)
        base = 0.5 + max(0.0, 0.5 - effect - rise / 2) * self.rng.uniform(-1, 1)
        common = rise * self.direction(np.ones(self.dimension))
        flat = self.rng.random() if self.rng.random() < 0.5 else 0.0
        levels = self.rng.uniform(-1, 1, size=self.arms)

        def means(contexts: Floats) -> Floats:
            shared = base + (contexts - 0.5) @ common
            own = (1 - flat) * scores(contexts) + flat * levels
            return np.clip(shared[:, np.newaxis] + effect * own, 0, 1)

        return kind.__name__, means

    def arrivals(self) -> tuple[str, Arrivals]:
        """Draw who comes."""
        centres = self.rng.random((int(self.rng.integers(2, 7)), self.dimension)).tolist()
        laws: dict[str, Arrivals] = {
            "uniform": uniform,
            "half in a corner": in_a_corner,
            "leaning": Leaning(*self.rng.uniform(0.5, 2.5, size=2).tolist()),
            "on heaps": Heaps(tuple(map(tuple, centres)), self.between(0.02, 0.1)),
        }
        name = list(laws)[self.rng.integers(len(laws))]
        return name, laws[name]

    def world(self) -> tuple[str, Problem]:
        """Draw a world in which there is something to lose."""
        while True:
            (kind, curves), (law, arrivals) = self.curves(), self.arrivals()
            problem = Problem(self.arms, self.dimension, curves, arrivals)
            if regret_at_random(problem, people=20_000) >= LEAST_LOSS:
                matter = f"{self.dimension} features, {self.relevant} matter"
                return f"{kind}, {self.arms} arms, {matter}, {law}", problem

    def harder(self) -> Callable[[Environment], Environment]:
        """Draw what the family makes of an environment: of the target's, and of each set's."""
        if self.family == "levels":
            order = self.rng.permutation(round(self.between(3, 30))).tolist()
            axis = self.matters[0]
            return lambda world: Levelled(world, axis, tuple(order))
        if self.family == "long tails":
            sigma = float(self.rng.uniform(0.5, 1.5))
            return lambda world: LongTails(world, sigma)
        if self.family == "missing values":
            share, matters = float(self.rng.uniform(0.1, 0.5)), bool(self.rng.random() < 0.5)
            return lambda world: Missing(world, share, matters)
        return lambda world: world

    def drifting(self, world: Environment, n: int) -> Environment:
        """Draw a drift of a world, to which n people come."""
        share, axis = float(self.rng.uniform(0.25, 1)), int(self.rng.integers(self.dimension))
        if self.rng.random() < 0.5:
            return SlowDrift(world, n, share, axis)
        return SuddenDrift(world, int(n * self.rng.uniform(0.3, 0.7)), share, axis)

    def wrong_in_places(self, problem: Problem) -> tuple[str, Auxiliary]:
        """Draw a set of auxiliary rows with other rewards in a part of the space."""
        share, axis = float(self.rng.uniform(0.1, 0.9)), int(self.rng.integers(self.dimension))
        quality = f"wrong in {share:.0%} along feature {axis + 1}"
        return quality, self.set_of_rows(PartlyOther(problem, share, axis))

    def rows(self, problem: Problem) -> tuple[str, Auxiliary]:
        """Draw a set of auxiliary rows."""
        quality = str(self.rng.choice(list(QUALITIES), p=list(QUALITIES.values())))
        other = self.world()[1]

        def bent(contexts: Floats) -> Floats:
            return (2 * problem.curves(contexts) + other.curves(contexts)) / 3

        world = {
            "alike": problem,
            "shifted": replace(problem, arrivals=other.arrivals),
            "bent": replace(problem, curves=bent),
            "other": replace(problem, curves=other.curves),
        }[quality]
        return quality, self.set_of_rows(world)

    def set_of_rows(self, world: Environment) -> Auxiliary:
        """Draw how many rows come from a world, and with which ε and behaviour."""
        kappa = 1.0 if self.rng.random() < 0.5 else float(self.rng.uniform(0.2, 1))
        users, epsilon = int(self.between(2_000, 30_000)), self.between(1, 8)
        return Auxiliary(users, epsilon, world, kappa, bool(self.rng.random() < 0.5))


@cache
def draw_problem(seed: str, number: int) -> Drawn:
    """Draw the problem with this number; the seed is any text."""
    draw = _Draw(int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest(), "big"))
    name, problem = draw.world()
    epsilon, n = draw.between(0.5, 8), int(draw.between(10_000, 160_000))
    harder = draw.harder()
    sets = [draw.rows(problem) for _ in range(draw.rng.integers(3))]
    if draw.family == "rows wrong in places":
        sets = [draw.wrong_in_places(problem), *sets[:1]]
    group = draw.family or "no auxiliary data"
    if sets and draw.family is None:
        others = any(quality in ("bent", "other") for quality, _ in sets)
        group = f"auxiliary data of {'other' if others else 'the same'} rewards"
    listed = ", ".join(f"{each.users} rows at ε = {each.epsilon:.1f} {q}" for q, each in sets)
    environment = harder(problem)
    if draw.family == "drift":
        environment = draw.drifting(environment, n)
    return Drawn(
        f"{number}: {name}",
        group,
        listed,
        environment,
        round(epsilon, 2),
        n,
        tuple(replace(each, environment=harder(each.environment or problem)) for _, each in sets),
    )
