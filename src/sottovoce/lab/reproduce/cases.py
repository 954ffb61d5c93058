"""What is run: the settings of each experiment, as the paper and the authors' logs have them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sottovoce.lab.environments import Environment, Exponential, Shifted, Symmetric
from sottovoce.lab.simulation import Auxiliary, Result, simulate
from sottovoce.shared.ldpmab import Ldpmab
from sottovoce.shared.methods import MethodSettings

Model = Literal["exponential", "symmetric"]
Line = Literal["leaking", "honest"]

MODELS: dict[Model, Environment] = {"exponential": Exponential(), "symmetric": Symmetric()}

LINES: dict[Line, str] = {
    "leaking": "ldpmab, authors' noise (NOT PRIVATE)",
    "honest": "ldpmab, honest noise",
}
"""What is compared, besides the published means, and how it is called in print."""

AUTHORS = Ldpmab("authors")

PUBLISHED = "published (made with leaking noise)"


@dataclass(frozen=True, slots=True)
class Case:
    """One setting.

    experiment: the name of the experiment in the authors' logs.
    epsilon_aux, n_aux: one for each auxiliary set, in the order in which they come.
    """

    experiment: str
    model: Model
    line: Line
    epsilon: float
    n: int
    epsilon_aux: tuple[float, ...] = ()
    n_aux: tuple[int, ...] = ()
    gamma: float = 0.0
    kappa: float = 1.0
    release_every: int = 100

    @classmethod
    def of(cls, setting: Mapping[str, Any]) -> "Case":
        """Read what ``asdict`` wrote, also after a trip through JSON."""
        case = cls(**setting)
        return replace(case, epsilon_aux=tuple(case.epsilon_aux), n_aux=tuple(case.n_aux))

    def run(self, seed: int, *, method: MethodSettings | str = AUTHORS, **settings: Any) -> Result:
        """Make one run, on the authors' own contexts so that figures can be compared."""
        environment = MODELS[self.model]
        shifted = Shifted(environment, self.gamma, authors=True) if self.gamma else environment
        return simulate(
            environment,
            method=method,
            epsilon=self.epsilon,
            n=self.n,
            seed=seed,
            release_every=self.release_every,
            auxiliary=[
                Auxiliary(users, epsilon, shifted, self.kappa)
                for users, epsilon in zip(self.n_aux, self.epsilon_aux, strict=True)
            ],
            not_private_leaking_noise=self.line == "leaking",
            **settings,
        )


def total_regret(setting: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Make one run of a sweep."""
    return {"regret": float(Case.of(setting).run(seed).regret[-1])}


EXPERIMENTS = ("sample_size_target", "sample_size_source", "kappa", "gamma", "order_of_auxiliary")
"""The experiments of the authors' logs that are reproduced."""

EPSILONS = (1, 2, 4, 8, 1024)
SIZES = (10_000, 20_000, 40_000, 60_000, 80_000, 120_000, 160_000, 240_000)
AUXILIARY_SIZES = (0, 10_000, 20_000, 50_000, 100_000)
LARGE_SETS = (10_000, 50_000, 100_000)


def target_sizes(model: Model) -> list[Case]:
    """Regret over n_P, without auxiliary data and with 5000 rows at ε = 8.

    Without auxiliary data the authors' logs have two empty sets, which deepens their depth cap.
    """
    cases = []
    for line in LINES:
        for epsilon in EPSILONS:
            for n in SIZES:
                case = Case("sample_size_target", model, line, epsilon, n)
                cases.append(replace(case, epsilon_aux=(1024.0,) * 2, n_aux=(0, 0)))
                cases.append(replace(case, epsilon_aux=(8.0,), n_aux=(5000,)))
    return cases


def source_sizes(model: Model) -> list[Case]:
    """Regret over n_Q for the six panels of γ and ε."""
    return [
        replace(case, gamma=gamma)
        for line in LINES
        for epsilon in (1, 2)
        for gamma in (0.0, 0.2, 2.0)
        for case in _two_sets(
            Case("sample_size_source", model, line, epsilon, 80_000),
            (2.0, 4.0, 8.0, 1024.0),
            AUXILIARY_SIZES,
        )
    ]


def exploration(model: Model) -> list[Case]:
    """Regret over κ at two auxiliary budgets."""
    return [
        replace(case, gamma=0.2, kappa=kappa / 10)
        for line in LINES
        for case in _two_sets(Case("kappa", model, line, 2, 40_000), (1.0, 8.0), LARGE_SETS)
        for kappa in range(0, 11, 2)
    ]


def shift(model: Model) -> list[Case]:
    """Regret over γ at two auxiliary budgets."""
    return [
        replace(case, gamma=gamma / 10)
        for line in LINES
        for case in _two_sets(Case("gamma", model, line, 2, 40_000), (2.0, 8.0), LARGE_SETS)
        for gamma in range(0, 21, 2)
    ]


def _two_sets(case: Case, budgets: Sequence[float], sizes: Sequence[int]) -> Iterator[Case]:
    """Give a case two auxiliary sets that are alike, with each budget and each size."""
    for epsilon_aux in budgets:
        for n_aux in sizes:
            yield replace(case, epsilon_aux=(epsilon_aux,) * 2, n_aux=(n_aux,) * 2)


def order(model: Model) -> list[Case]:
    """Regret when the set with ε = 8 comes first, or the one with ε = 2."""
    return [
        Case(
            *("order_of_auxiliary", model, line, epsilon, n),
            epsilon_aux=epsilon_aux,
            n_aux=(n_aux,) * 2,
        )
        for line in LINES
        for n in (10_000, 80_000)
        for epsilon in (1, 2)
        for epsilon_aux in ((8.0, 2.0), (2.0, 8.0))
        for n_aux in AUXILIARY_SIZES
    ]
