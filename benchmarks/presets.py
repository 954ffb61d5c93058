"""What the presets of ldpmab lose, as a share of arms at random: JSON for benchmarks/figures.py.

The paper's exponential model, honest noise, a release every 100 people. The preset ``authors`` is
run with a million people only: fewer are among the cells of ``sottovoce bench regret``.
"""

import json
import sys

import sottovoce as sv
from sottovoce.lab.environments import Exponential, regret_at_random
from sottovoce.lab.means import mean_of
from sottovoce.lab.simulation import simulate

EPSILONS = (1.0, 8.0, 1024.0)
REPS = {20_000: 20, 80_000: 20, 1_000_000: 10}
"""How many runs, by the number of people; their seeds are 0, 1, 2 and so on."""

PAPER = (0.01, 0.1, 1.0, 10.0)
"""The c of the preset ``paper``."""


def main() -> None:
    """Print the cells."""
    world = Exponential()
    at_random = regret_at_random(world)
    wanted = [("paper", c, n) for c in PAPER for n in REPS] + [("authors", None, 1_000_000)]
    cells = []
    for preset, c, n in wanted:
        for epsilon in EPSILONS:
            print(f"{preset}, c = {c}, ε = {epsilon:g}, n = {n:,}", file=sys.stderr)
            method = sv.Ldpmab("authors") if c is None else sv.Ldpmab("paper", c)
            runs = [
                simulate(world, method=method, epsilon=epsilon, n=n, seed=seed)
                for seed in range(REPS[n])
            ]
            share = mean_of([float(run.regret[-1]) / n / at_random for run in runs])
            cells.append(
                {
                    "preset": preset,
                    "c": c,
                    "epsilon": epsilon,
                    "n": n,
                    "mean": share.mean,
                    "standard_error": share.standard_error,
                }
            )
    print(json.dumps(cells))


if __name__ == "__main__":
    main()
