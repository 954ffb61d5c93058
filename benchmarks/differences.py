"""What each difference between the authors' code and the paper's text does to the regret.

From the authors' experiment (leaking noise, their constants, batches of 100), one thing is changed
at a time to what the paper prints. Run with:  python benchmarks/differences.py
"""

import math
from typing import Any
from unittest.mock import patch

import numpy as np

import sottovoce as sv
from sottovoce.estimate.ldpmab.constants import Constants, constants
from sottovoce.lab.environments import Exponential
from sottovoce.lab.ldpmab import crowd
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


def regret(epsilon: float, change: Any, **settings: Any) -> str:
    """Return the mean and standard error with one change."""
    defaults = {"environment": Exponential(), "auxiliary": EMPTY, "not_private_leaking_noise": True}
    settings = {**defaults, **settings, "method": sv.Ldpmab("authors"), "epsilon": epsilon, "n": N}
    world = settings.pop("environment")

    def changed(experiment: sv.Experiment) -> Constants:
        authors = constants(experiment)
        return authors._replace(**change(authors))

    with patch.object(crowd, "constants", changed):
        values = [simulate(world, seed=seed, **settings) for seed in range(REPS)]
    totals = [value.regret[-1] for value in values]
    return f"{np.mean(totals):.0f} ± {np.std(totals, ddof=1) / REPS**0.5:.0f}"


def main() -> None:
    """Print the table."""
    rows: dict[str, list[str]] = {
        name: [regret(epsilon, change) for epsilon in EPSILONS] for name, change in CHANGES.items()
    }
    nothing = CHANGES["nothing"]
    others: dict[str, dict[str, Any]] = {
        "honest noise": {"not_private_leaking_noise": False},
        "centres k/K": {"environment": Exponential(printed=True)},
        "a release after every user": {"release_every": 1},
        "no empty auxiliary sets": {"auxiliary": []},
    }
    for name, settings in others.items():
        rows[name] = [regret(epsilon, nothing, **settings) for epsilon in EPSILONS]
    print(
        "| changed to what the paper prints | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |"
    )
    print("|---|" + "---|" * len(EPSILONS))
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
