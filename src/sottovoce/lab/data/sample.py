"""People with a class each, what a bandit is made of: a sample, a data set, and a deck to deal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Feature, Numeric


@dataclass(frozen=True, slots=True)
class Sample:
    """The people of one population.

    contexts (n, d)   in [0, 1]
    labels (n,)       0..K-1: the arm that brings reward 1
    """

    contexts: Floats
    labels: Counts

    def __post_init__(self) -> None:
        contexts = np.array(self.contexts, dtype=np.float64)
        labels = np.array(self.labels, dtype=np.int64)
        if contexts.ndim != 2 or labels.shape != contexts.shape[:1]:
            came = f"contexts {contexts.shape}, labels {labels.shape}"
            raise ExperimentError(must("a sample", "have shapes (n, d) and (n,)", came))
        if not ((contexts >= 0) & (contexts <= 1)).all():
            raise ExperimentError(must("the contexts of a sample", "lie in [0, 1]", "others"))
        contexts.flags.writeable = labels.flags.writeable = False
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class DataSet:
    """A target and auxiliary populations, ready to be played.

    arms: the classes, in the order of the labels.
    features: what the d axes are, in words.
    schema: the features as a device would have them; () for numbers from 0 to 1.
    encoded: how many columns of numbers there were before the reduction.
    dropped: how many rows were left out because something was missing.
    """

    name: str
    arms: tuple[str, ...]
    features: tuple[str, ...]
    target: Sample
    auxiliary: Mapping[str, Sample]
    encoded: int = 0
    dropped: int = 0
    schema: tuple[Feature, ...] = ()


class Deck:
    """An environment for ``simulate``: arm k brings a person 1 if k is their label, 0 otherwise.

    The people of a sample are dealt like cards: each of them once in a run, in a random order. A
    run is told by its generator: the first deal to a new one shuffles the deck with it. So a deck
    serves many runs, one after the other, but not two at the same time.

    arms: K, the number of classes; the length of ``DataSet.arms``.
    order: that of all people in every run (n,); None to shuffle.
    features: what the axes are; none given means numbers from 0 to 1.
    """

    def __init__(
        self,
        sample: Sample,
        arms: int,
        *,
        order: Counts | None = None,
        features: Sequence[Feature] = (),
    ) -> None:
        self.sample = sample
        self.arms = check.whole_number(arms, what="arms", least=1)
        if len(sample) == 0 or sample.labels.min() < 0 or sample.labels.max() >= arms:
            rule = f"have at least one row, and labels from 0 to {arms - 1}"
            raise ExperimentError(must("the sample of a deck", rule, f"{len(sample)} rows"))
        self._rng: np.random.Generator | None = None
        self._given = order
        self.features = tuple(features) or tuple(
            Numeric(f"x{axis + 1}", 0, 1) for axis in range(self.dimension)
        )
        axes = sum(len(feature.axes) for feature in self.features)
        if axes != self.dimension:
            rule = f"have the {self.dimension} axes of its sample"
            raise ExperimentError(must("the features of a deck", rule, axes))

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return int(self.sample.contexts.shape[1])

    def deal(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """Deal the next n people: contexts (n, d), and what each arm brings them (n, K)."""
        if rng is not self._rng:
            self._rng, self._next = rng, 0
            given = self._given
            self._order = rng.permutation(len(self.sample)) if given is None else given
        rows = self._order[self._next : self._next + n]
        if len(rows) < n:
            rule = f"deal at most its {len(self.sample)} people in a run"
            raise ExperimentError(must("a deck", rule, f"{self._next + n} to deal"))
        self._next += n
        means = np.zeros((n, self.arms))
        means[np.arange(n), self.sample.labels[rows]] = 1
        return self.sample.contexts[rows], means

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Deal the next n people, without what the arms bring them."""
        return self.deal(rng, n)[0]

    def means(self, contexts: Floats) -> Floats:
        """Refuse: what an arm brings is known of people, not of places."""
        if len(contexts):
            rule = "be left out with real data: the means at a place are not known"
            raise ExperimentError(must("points", rule, len(contexts)))
        return np.empty((0, self.arms))
