"""How the diagnosis of auxiliary data does on real tables: JSON for benchmarks/figures.py.

Needs the data sets (SOTTOVOCE_DATA). The seeds were used for no choice of any rule.
"""

import json
import os
import sys

import numpy as np

from sottovoce.lab.data.catalogue import load
from sottovoce.lab.data.playing import play, reward_at
from sottovoce.lab.data.sample import DataSet
from sottovoce.lab.means import mean_of
from sottovoce.lab.simulation import Result

SEEDS = range(300, 320)
MISLEADS = "green-taxi-street"
HELPS = ("adult", "green-taxi", "jobs-hr", "flights")


def final_reward(result: Result) -> float:
    """Return the mean reward of all people."""
    return reward_at(result, float(result.people[-1]))


def misled(data: DataSet, epsilon: float, epsilon_aux: float) -> dict[str, object]:
    """Play without auxiliary rows, with them, and heeding the warning: the same people each."""
    heeded, rewards = [], []
    for seed in SEEDS:
        alone = play(data, epsilon=epsilon, seed=seed)
        blind = play(data, epsilon=epsilon, epsilon_aux=epsilon_aux, seed=seed)
        careful = play(data, epsilon=epsilon, epsilon_aux=epsilon_aux, seed=seed, heed=True)
        heeded.append(careful.heeded)
        rewards.append([final_reward(each) for each in (alone, blind, careful)])
    values = np.array(rewards)
    gain = mean_of((values[:, 2] - values[:, 0]).tolist())
    means = dict(zip(("alone", "blind", "careful"), values.mean(axis=0).tolist(), strict=True))
    return {
        "epsilon": epsilon,
        "epsilon_aux": epsilon_aux,
        "runs": len(SEEDS),
        **means,
        "gain": gain.mean,
        "gain_error": gain.standard_error,
        "heeded": heeded,
    }


def alarms(data: DataSet, epsilon: float, epsilon_aux: float) -> dict[str, object]:
    """Count warnings about rows that help."""
    runs = [
        play(data, epsilon=epsilon, epsilon_aux=epsilon_aux, seed=seed, heed=True) for seed in SEEDS
    ]
    return {
        "dataset": data.name,
        "epsilon": epsilon,
        "epsilon_aux": epsilon_aux,
        "runs": len(runs),
        "warned": sum(run.heeded is not None for run in runs),
    }


def main() -> None:
    """Print both parts."""
    folder = os.environ["SOTTOVOCE_DATA"]
    street, false = [], []
    for epsilon in (1.0, 2.0):
        print(f"{MISLEADS}, ε = {epsilon:g}", file=sys.stderr)
        street.append(misled(load(MISLEADS, folder), epsilon, 4.0))
    for name in HELPS:
        data = load(name, folder)
        for epsilon in (1.0, 2.0):
            for epsilon_aux in (1.0, 4.0):
                print(f"{name}, ε = {epsilon:g}, ε_m = {epsilon_aux:g}", file=sys.stderr)
                false.append(alarms(data, epsilon, epsilon_aux))
    print(json.dumps({"misled": street, "alarms": false}))


if __name__ == "__main__":
    main()
