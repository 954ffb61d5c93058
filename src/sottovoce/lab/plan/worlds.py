"""Plausible worlds of a given effect, for the features and arms of an experiment.

What is an **effect**? What a person's best arm brings more than their next best one, on average
over people. In every world of a plan this is the same. Drawn at random, each time anew, are

- people: how each feature is spread, and how many miss a value (people.py);
- what matters: one feature, or two; of two, their weighted sum, or the lesser of them;
- who needs what: two arms or three, as far as there are so many, are best for somebody, each for at
  least a quarter of the people (a fifth of three), which arms being drawn, too. The other arms are
  best for nobody;
- how it changes: in steps, so that everybody's best arm brings the effect, or smoothly, so that it
  brings nothing at the border and more far from it;
- how good arms are in general: as low or as high as the effect leaves room for.

Where one arm is best for almost everybody there is nothing to adapt, and a plain trial would do:
such worlds are left out. So are those in which two features matter only together (exclusive or).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sottovoce.lab.environments import Counts, Floats
from sottovoce.lab.plan.people import Law, draw_crowd, draw_law
from sottovoce.shared.schema import Feature

SAMPLE = 4096
"""So many people fix the borders and the scale of a world."""

TWO_MATTER = 0.4
"""How often two features matter, where there are so many."""

LEAST_SHARE = {2: 0.25, 3: 0.2}
"""The least share of the people for whom each of so many arms is best."""

SUITS = 0.25
"""An arm suits a person if it brings at most this share of the effect less than their best one."""


@dataclass(frozen=True, slots=True)
class PlausibleWorld:
    """One world: an ``Environment``.

    relevant: the features that matter, by their numbers, and how much each weighs; () for the
        lesser of the two.
    borders: where the best arm changes, on the score of the features that matter, from 0 to 1.
    best: the arms that are best for somebody, in their order along the score.
    below: what each arm brings less than the best one, where it is not the best, in effects; from
        1 to 2.
    slope: how fast arms become worse along the score; None in steps.
    """

    features: tuple[Feature, ...]
    arms: int
    effect: float
    laws: tuple[Law, ...]
    relevant: tuple[int, ...]
    weights: tuple[float, ...]
    borders: tuple[float, ...]
    best: tuple[int, ...]
    below: tuple[float, ...]
    slope: float | None = None
    base: float = 0.0

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return sum(law.axes for law in self.laws)

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw who comes."""
        return draw_crowd(self.laws, rng, n)

    def means(self, contexts: Floats) -> Floats:
        """Return what each arm brings."""
        return np.clip(self.base + self.relative(self.score(contexts)), 0.0, 1.0)

    def score(self, contexts: Floats) -> Floats:
        """Return where people stand on what matters, (n,)."""
        starts = np.cumsum([0, *(law.axes for law in self.laws)])
        stands = [
            self.laws[number].stand(contexts[:, starts[number] : starts[number + 1]])
            for number in self.relevant
        ]
        if self.weights:
            return np.asarray(np.stack(stands, axis=1) @ np.array(self.weights))
        return np.asarray(np.min(stands, axis=0))

    def relative(self, score: Floats) -> Floats:
        """Return what each arm brings, up to the base, (n, K)."""
        below = np.array(self.below)
        if self.slope is None:
            brings = np.tile(-self.effect * below, (len(score), 1))
            here = np.searchsorted(self.borders, score, side="right")
            brings[np.arange(len(score)), np.array(self.best)[here]] = 0.0
            return brings
        ends = np.array([0.0, *self.borders, 1.0])
        heights = self._heights(score, ends)
        second = np.sort(heights, axis=1)[:, -2:-1]
        brings = second - self.effect * (below - 1)  # so that the others are never second
        brings[:, list(self.best)] = heights
        return np.asarray(brings)

    def _heights(self, score: Floats, ends: Floats) -> Floats:
        """Return tangents of one arch: neighbours are equally good at the border between them."""
        rank = np.arange(len(self.best))
        drops = np.concatenate([[0.0], np.cumsum(ends[1:-1])])
        return np.asarray((self.slope or 0.0) * (np.outer(score, rank) - drops))


def draw_world(
    features: Sequence[Feature], *, arms: int, effect: float, rng: np.random.Generator
) -> PlausibleWorld:
    """Draw a plausible world; the effect is a share of the range of rewards."""
    laws = tuple(draw_law(feature, rng) for feature in features)
    relevant, weights = _what_matters(len(features), rng)
    order = rng.permutation(arms)
    several = int(rng.integers(2, min(arms, 3) + 1))
    below = np.minimum(rng.uniform(1, 2, size=arms), 1 / effect)
    below[order[: min(arms, 2)]] = 1.0  # two of those who bring an effect less at most
    world = PlausibleWorld(
        features=tuple(features),
        arms=arms,
        effect=effect,
        laws=laws,
        relevant=relevant,
        weights=weights,
        borders=(0.5,),
        best=tuple(order[:several].tolist()),
        below=tuple(below.tolist()),
    )
    score = np.sort(world.score(draw_crowd(laws, rng, SAMPLE)))
    borders = _borders(score, several, rng)
    best = world.best[: len(borders) + 1]
    steps = _with(world, borders, best, None)
    smooth = _with(world, borders, best, _slope(world, borders, best, score))
    lowest, highest = _room(smooth, score)
    world = steps if rng.random() < 0.5 or highest - lowest > 1 else smooth
    lowest, highest = _room(world, score)
    base = float(rng.uniform(-lowest, max(1 - highest, -lowest)))
    return _with(world, borders, best, world.slope, base)


def suits(means: Floats, effect: float) -> Counts:
    """Say which arms suit whom, (n, K) of 0 and 1."""
    lost = means.max(axis=1, keepdims=True) - means
    return np.asarray(lost <= SUITS * effect, dtype=np.int64)


def _what_matters(
    features: int, rng: np.random.Generator
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Draw the features that matter, and their weights."""
    two = features > 1 and rng.random() < TWO_MATTER
    relevant = tuple(rng.permutation(features)[: 2 if two else 1].tolist())
    first = float(rng.uniform(0.3, 0.7))
    if not two:
        return relevant, (1.0,)
    return relevant, (first, 1 - first) if rng.random() < 0.5 else ()


def _borders(score: Floats, several: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Draw the borders between the parts of the people; those of the same score stay together."""
    least = LEAST_SHARE[several]
    rest = rng.dirichlet(np.ones(several)) * (1 - several * least)
    values, counts = np.unique(score, return_counts=True)
    ends = np.cumsum(counts[:-1]) / len(score)
    found = []
    for wanted in np.cumsum(least + rest)[:-1]:
        nearest = int(np.argmin(np.abs(ends - wanted)))
        found.append(float((values[nearest] + values[nearest + 1]) / 2))
    return tuple(sorted(set(found)))


def _slope(
    world: PlausibleWorld, borders: tuple[float, ...], best: tuple[int, ...], score: Floats
) -> float:
    """Return the slope with which the best arm brings the effect more, on average."""
    one = _with(world, borders, best, 1.0)
    heights = np.sort(one._heights(score, np.array([0.0, *borders, 1.0])), axis=1)
    return float(world.effect / np.mean(heights[:, -1] - heights[:, -2]))


def _room(world: PlausibleWorld, score: Floats) -> tuple[float, float]:
    brings = world.relative(score)
    return float(brings.min()), float(brings.max())


def _with(
    world: PlausibleWorld,
    borders: tuple[float, ...],
    best: tuple[int, ...],
    slope: float | None,
    base: float = 0.0,
) -> PlausibleWorld:
    return replace(world, borders=borders, best=best, slope=slope, base=base)
