"""The people of a sample, dealt like cards: each of them once in a run, in a random order."""

import numpy as np

from sottovoce.lab.data.sample import Sample
from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must


class Deck:
    """An environment for ``simulate``: arm k brings a person 1 if k is their label, 0 otherwise.

    A run is told by its generator: the first deal to a new one shuffles the deck with it. So a
    deck serves many runs, one after the other, but not two at the same time.

    arms: K, the number of classes; the length of ``DataSet.arms``.
    """

    def __init__(self, sample: Sample, arms: int) -> None:
        self.sample = sample
        self.arms = check.whole_number(arms, what="arms", least=1)
        if len(sample) == 0 or sample.labels.min() < 0 or sample.labels.max() >= arms:
            rule = f"have at least one row, and labels from 0 to {arms - 1}"
            raise ExperimentError(must("the sample of a deck", rule, f"{len(sample)} rows"))
        self._rng: np.random.Generator | None = None
        self._order: Counts = np.empty(0, dtype=np.int64)
        self._next = 0

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return int(self.sample.contexts.shape[1])

    def deal(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """Deal the next n people: contexts (n, d), and what each arm brings them (n, K)."""
        if rng is not self._rng:
            self._rng, self._order, self._next = rng, rng.permutation(len(self.sample)), 0
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
