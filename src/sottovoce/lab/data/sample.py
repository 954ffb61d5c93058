"""People with a class each: what a bandit is made of."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.errors import ExperimentError, must


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
    features: what the d axes are.
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
