"""What each difference between the authors' code and the paper's text does to the regret.

From the authors' experiment (leaking noise, their constants, batches of 100), one thing is changed
at a time to what the paper prints. Prints JSON for benchmarks/figures.py.
"""

import json
import math
import sys
from typing import Any
from unittest.mock import patch

import numpy as np

import sottovoce as sv
from sottovoce.estimate.ldpmab.constants import Constants, constants
from sottovoce.lab.environments import Exponential
from sottovoce.lab.ldpmab import policy
from sottovoce.lab.means import mean_of
from sottovoce.lab.simulation import Auxiliary, simulate
from sottovoce.shared.partition import HALVINGS

N, REPS = 80_000, 20
EPSILONS = (1.0, 8.0, 1024.0)
EMPTY = [Auxiliary(0, 1024.0)] * 2  # the authors' logs have two empty auxiliary sets


def printed_taus(authors: Constants) -> dict[str, Any]:
    """Return the paper's τ_s."""
    return {"taus": 2 * math.sqrt(authors.dimension) * authors.taus}


def no_depth_cap(authors: Constants) -> dict[str, Any]:
    """Return a cap that no run reaches, with τ_s for each depth."""
    deepest = HALVINGS * authors.dimension
    return {"deepest": deepest, "taus": 2.0 ** (-np.arange(deepest + 1) / authors.dimension)}


CHANGES: dict[str, Any] = {
    "nothing": lambda authors: {},
    "τ_s = 2√d·2^(-s/d)": printed_taus,
    "band 2r": lambda authors: {"band_radius": 2.0, "band_tau": 0.0},
    "split when some arm has r < τ": lambda authors: {"split_when_all": False},
    "no depth cap": no_depth_cap,
    "C_n = ln n": lambda authors: {"confidence": math.log(N)},
    "warm-up ln² n": lambda authors: {"warm_up": math.log(N) ** 2},
    "uniform policy": lambda authors: {"tilt": 0.0},
    "no sums of running sums": lambda authors: {"running_sums": False},
    "estimates not clipped": lambda authors: {"clip": False},
}


OTHERS: dict[str, dict[str, Any]] = {
    "honest noise": {"not_private_leaking_noise": False},
    "centres k/K": {"environment": Exponential(printed=True)},
    "a release after every user": {"release_every": 1},
    "no empty auxiliary sets": {"auxiliary": []},
}


def regret(epsilon: float, change: Any, **settings: Any) -> dict[str, float | None]:
    """Return the mean and standard error with one change."""
    defaults = {"environment": Exponential(), "auxiliary": EMPTY, "not_private_leaking_noise": True}
    settings = {**defaults, **settings, "method": sv.Ldpmab("authors"), "epsilon": epsilon, "n": N}
    world = settings.pop("environment")

    def changed(experiment: sv.Experiment) -> Constants:
        authors = constants(experiment)
        return authors._replace(**change(authors))

    with patch.object(policy, "constants", changed):
        runs = [simulate(world, seed=seed, **settings) for seed in range(REPS)]
    mean = mean_of([float(run.regret[-1]) for run in runs])
    return {"mean": mean.mean, "standard_error": mean.standard_error}


def main() -> None:
    """Print the table, a row for each change."""
    rows: dict[str, dict[str, Any]] = {name: {"change": CHANGES[name]} for name in CHANGES}
    for name, settings in OTHERS.items():
        rows[name] = {"change": CHANGES["nothing"], **settings}
    table = []
    for name, row in rows.items():
        print(name, file=sys.stderr)
        cells = [{"epsilon": epsilon, **regret(epsilon, **row)} for epsilon in EPSILONS]
        table.append({"changed": name, "cells": cells})
    print(json.dumps(table))


if __name__ == "__main__":
    main()
