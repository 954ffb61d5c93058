"""What is run: methods on data sets, with and without auxiliary data, and ``abse`` beside them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.lab.baselines.abse import TUNED, Abse
from sottovoce.lab.data.catalogue import load
from sottovoce.lab.data.playing import best_arm_share, play, reward_at
from sottovoce.lab.data.sample import DataSet
from sottovoce.lab.data.table import Table
from sottovoce.lab.environments import Floats
from sottovoce.lab.methods import Begin, baseline_to_table, source_of
from sottovoce.lab.sweeps import Run, Setting
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import ExperimentError, must

METHODS = ("whisper", "ldpmab", "linear", "nn")
"""The methods that are ranked; all are private."""

PUBLISHED_ABSE = "abse (not private)"
TUNED_ABSE = "abse, tuned (not private)"
ABSE: Mapping[str, Abse] = {PUBLISHED_ABSE: Abse(), TUNED_ABSE: TUNED}
"""Beside them, not ranked; rewards are told relative to the first, as in the paper."""

FRACTIONS = {0.25: "n/4", 1.0: "n"}
"""At which parts of the target the rewards are told, and how that is called in print."""

# ``abse`` has no ε, being not private, but every run needs a number.
_ANY_EPSILON = 1.0


@dataclass(frozen=True, slots=True)
class Player:
    """A method, with (w) or without (wo) auxiliary data."""

    method: str
    auxiliary: bool

    def __str__(self) -> str:
        return f"{self.method} {self.how}"

    @property
    def how(self) -> str:
        """The paper's letters."""
        return "w" if self.auxiliary else "wo"


@dataclass(frozen=True, slots=True)
class Case:
    """What a run depends on, and nothing else: so a run serves every cell that asks for it.

    epsilon: None for ``abse``.
    epsilon_aux: None without auxiliary data.
    """

    dataset: str
    method: str
    epsilon: float | None = None
    epsilon_aux: float | None = None

    @classmethod
    def of(cls, dataset: str, player: Player, budgets: tuple[float, float]) -> "Case":
        """Return the case of a player in a cell."""
        epsilon, epsilon_aux = budgets
        return cls(dataset, player.method, epsilon, epsilon_aux if player.auxiliary else None)


Own = Mapping[str, Begin]
"""Policies of somebody's own, by name."""


def players(methods: Sequence[str], *, auxiliary: bool, own: Own | None = None) -> list[Player]:
    """List the players, each method with and without auxiliary data, or without only."""
    known = [*METHODS, *(own or ())]
    unknown = [method for method in methods if method not in known]
    if unknown or not methods or len(set(methods)) < len(methods):
        rule = f"be different ones of {known}"
        raise ExperimentError(must("the methods", rule, list(methods)))
    both = (True, False) if auxiliary else (False,)
    return [Player(method, each) for method in methods for each in both]


def make_cases(
    datasets: Iterable[str], ranked: Sequence[Player], budgets: Sequence[tuple[float, float]]
) -> list[Case]:
    """List the runs that all cells need, each once."""
    cases: dict[Case, None] = {}
    for dataset in datasets:
        cases |= {Case(dataset, name): None for name in ABSE}
        cases |= {Case.of(dataset, player, each): None for player in ranked for each in budgets}
    return list(cases)


def as_setting(case: Case, source: Mapping[str, Any], *, own: Own | None = None) -> dict[str, Any]:
    """Write a case as a setting of a sweep.

    A policy of somebody's own goes by its source, so that an edited one is not taken for the same.

    source: where the data set is: a folder (``data_dir``), or what tells a table from others.
    """
    method: Any = case.method
    if method in ABSE:
        method = baseline_to_table(ABSE[method])
    elif own and method in own:
        method = {OWN: method, "source": source_of(own[method])}
    return {
        "dataset": case.dataset,
        "method": method,
        "epsilon": case.epsilon,
        "epsilon_aux": case.epsilon_aux,
        "source": dict(source),
    }


PAIRED_BY = ("dataset",)
"""All runs of a data set have the same people in the same order, repetition by repetition."""

OWN = "own"
"""The key of a setting's method that names a policy of somebody's own."""


def mean_rewards(
    setting: Setting, seed: int, *, table: Table | None = None, own: Own | None = None
) -> dict[str, float]:
    """Make one run of a sweep, on a named data set or on a table of somebody's own."""
    data = _data(setting, table)
    method, epsilon = setting["method"], setting["epsilon"]
    if own and OWN in method:
        method = own[method[OWN]]
    result = play(
        data,
        method=method,
        epsilon=_ANY_EPSILON if epsilon is None else epsilon,
        epsilon_aux=setting["epsilon_aux"],
        seed=seed,
    )
    people = len(data.target)
    rewards = {
        name: reward_at(result, max(1, fraction * people)) for fraction, name in FRACTIONS.items()
    }
    return {**rewards, "people": people, "best arm": best_arm_share(data)}


_loaded: dict[bytes, DataSet] = {}


def _data(setting: Setting, table: Table | None) -> DataSet:
    """Load a data set once in each process."""
    name, source = setting["dataset"], setting["source"]
    key = canonical_json([name, source])
    if key not in _loaded:
        _loaded[key] = load(name, source["data_dir"]) if table is None else table.load()
    return _loaded[key]


@dataclass(frozen=True, slots=True)
class Rewards:
    """What came out of the runs.

    rewards: for each case and fraction the mean reward of each repetition, in order.
    people: n of each data set.
    best_arm: the largest share of a class in its target.
    """

    rewards: Mapping[tuple[Case, float], Floats]
    people: Mapping[str, int]
    best_arm: Mapping[str, float]


def gather(cases: Sequence[Case], runs: Sequence[Run]) -> Rewards:
    """Sort the runs of a sweep by case."""
    listed: dict[tuple[Case, float], list[float]] = {}
    people: dict[str, int] = {}
    best_arm: dict[str, float] = {}
    for run in sorted(runs, key=lambda run: (run.setting, run.repetition)):
        case = cases[run.setting]
        for fraction, name in FRACTIONS.items():
            listed.setdefault((case, fraction), []).append(run.figures[name])
        people[case.dataset] = int(run.figures["people"])
        best_arm[case.dataset] = run.figures["best arm"]
    return Rewards({key: np.array(values) for key, values in listed.items()}, people, best_arm)
