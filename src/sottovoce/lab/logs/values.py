"""What a policy would have brought, from a log of another one: off-policy estimates.

With p_i the chance of the arm a_i that row i has, π(k|x) the policy's own, w_i = π(a_i|x_i)/p_i and
q_k(x) a model of the rewards that was fitted elsewhere,

    inverse propensity      Σ_i w_i·r_i / n                                          (IPS)
    self-normalised         Σ_i w_i·r_i / Σ_i w_i                                    (SNIPS)
    doubly robust           Σ_i (Σ_k π(k|x_i)·q_k(x_i) + w_i·(r_i - q_{a_i}(x_i)))/n   (DR)

The first and the last are unbiased if the propensities are right, whatever the model; the second is
nearly so, and often has the smaller error. (Horvitz and Thompson 1952; Hájek 1971; Dudík, Langford
and Li 2011.) Intervals are normal, ± 1.96 standard errors. They need some hundred rows that count:
``effective`` says how many do, (Σw)²/Σw².

A library was looked for. The Open Bandit Pipeline (obp 0.4 and 0.5) asks for Python below 3.10,
scikit-learn 0.24 and PyTorch, and cannot be installed beside this package.
"""

import math
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Floats
from sottovoce.lab.logs.log import Log, design

NORMAL = 1.96
"""Half of a 95 % interval in standard errors."""

RIDGE = 1.0
"""What is added to the squares of each coefficient but the first in the model of the rewards."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval, in the unit of the rewards."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Values:
    """What a policy would have brought, by each estimator. effective: how many rows count."""

    ips: Estimate
    snips: Estimate
    dr: Estimate
    effective: float


@dataclass(frozen=True, slots=True)
class RewardModel:
    """A linear model for each arm, by ridge regression: q_k(x), cut to [0, 1].

    coefficients (K, p); an arm that nobody had gets the mean of all.
    """

    coefficients: Floats

    @classmethod
    def fit(cls, log: Log) -> "RewardModel":
        """Fit on the rows of a log."""
        columns = design(log.contexts, log.schema)
        penalty = RIDGE * np.eye(columns.shape[1])
        penalty[0, 0] = 1e-9
        found = np.zeros((len(log.arms), columns.shape[1]))
        found[:, 0] = log.rewards.mean()
        for k in range(len(log.arms)):
            mine = log.chosen == k
            if mine.any():
                x, y = columns[mine], log.rewards[mine]
                found[k] = np.linalg.solve(x.T @ x + penalty, x.T @ y)
        return cls(found)

    def predict(self, log: Log) -> Floats:
        """Return q_k at each row, (n, K)."""
        columns = design(log.contexts, log.schema)
        return np.clip(columns @ self.coefficients.T, 0.0, 1.0)


def value_of(policy: Floats, log: Log, model: Floats, *, clip: float = 0.0) -> Values:
    """Estimate what a policy would have brought.

    policy (n, K): its chances at each row. It must not have learned from these rows.
    model (n, K): rewards that a model expects; the model must not have learned from them either.
    clip: smaller propensities count as this; estimates are then biased, and less noisy.
    """
    rows = np.arange(len(log))
    chance = policy[rows, log.chosen]
    weights = chance / np.maximum(log.propensities, clip)
    expected = (policy * model).sum(axis=1)
    robust = expected + weights * (log.rewards - model[rows, log.chosen])
    total = weights.sum()
    if total > 0:
        ratio = float((weights * log.rewards).sum() / total)
        # The error of a ratio of two means, by the delta method.
        spread = math.sqrt((weights**2 * (log.rewards - ratio) ** 2).sum()) / float(total)
        effective = float(total**2 / (weights**2).sum())
    else:
        ratio, spread, effective = math.nan, math.nan, 0.0
    return Values(
        ips=_mean(weights * log.rewards, log),
        snips=_estimate(ratio, spread, log),
        dr=_mean(robust, log),
        effective=effective,
    )


def mean_reward(log: Log, rewards: Floats | None = None) -> Estimate:
    """Return the mean of rewards, by default of those that the log's own policy brought."""
    return _mean(log.rewards if rewards is None else rewards, log)


def _mean(values: Floats, log: Log) -> Estimate:
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return _estimate(float(values.mean()), error, log)


def _estimate(value: float, error: float, log: Log) -> Estimate:
    scale = log.scale
    return Estimate(
        scale.mean(value), scale.mean(value - NORMAL * error), scale.mean(value + NORMAL * error)
    )
