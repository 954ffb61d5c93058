"""Means over repetitions, and how far to trust them."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from scipy import stats

from sottovoce.lab.sweeps import Run


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over repetitions."""

    mean: float
    sd: float
    reps: int

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None for one run."""
        return None if self.reps == 1 else self.sd / math.sqrt(self.reps)

    @property
    def half_width(self) -> float:
        """Half of the 95 % confidence interval of the mean (Student's t); NaN for one run."""
        if self.standard_error is None:
            return math.nan
        return float(stats.t.ppf(0.975, self.reps - 1)) * self.standard_error


def mean_of(values: list[float]) -> Mean:
    """Average values."""
    mean = math.fsum(values) / len(values)
    square = math.fsum((value - mean) ** 2 for value in values)
    return Mean(mean, math.sqrt(square / max(1, len(values) - 1)), len(values))


def mean_regrets(runs: Iterable[Run]) -> list[Mean]:
    """Average the regret of each setting of a sweep, in the order of the settings."""
    values: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        values[run.setting].append(run.figures["regret"])
    return [mean_of(values[setting]) for setting in sorted(values)]
