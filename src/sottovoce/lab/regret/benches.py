"""Where regret is measured: the paper's cells over n, and the tuning problems."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

from sottovoce.lab.means import Mean
from sottovoce.lab.problems import TUNING
from sottovoce.lab.regret.cells import PUBLISHED, Options, Place, RegretCell, measure
from sottovoce.lab.reproduce.cases import EPSILONS, MODELS, SIZES, Case, Model
from sottovoce.lab.reproduce.table import Key, key_of, read_published
from sottovoce.lab.simulation import simulate
from sottovoce.lab.sweeps import Setting
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.methods import settings_from

NO_ROWS = ((1024.0, 1024.0), (0, 0))
"""No auxiliary data, as the authors' logs have it: two empty sets."""

ROWS = tuple(
    ((epsilon,) * sets, (users,) * sets)
    for epsilon in (4.0, 8.0)
    for users, sets in ((5000, 1), (5000, 2), (30_000, 2))
)
"""The auxiliary data of the authors' logs: ε and users of each set."""

PROBLEM_EPSILONS = (1.0, 4.0)
PROBLEM_SIZES = (20_000, 100_000)


def against_paper(
    options: Options,
    *,
    models: Sequence[str] = tuple(MODELS),
    auxiliary: bool = True,
    all_methods: bool = False,
    published: Path | None = None,
) -> list[RegretCell]:
    """Measure on the paper's cells: those in the published table or, without one, all of them.

    all_methods: run every method with auxiliary data too, not just the first.
    """
    _check_methods(options.methods)
    for model in models:
        if model not in get_args(Model):
            raise ExperimentError(must("models", f"be of {[*MODELS]}", repr(model)))
    known = None if published is None else read_published(published)
    places = [
        _paper_place(case, options.methods, all_methods, known)
        for case in paper_cases(models, auxiliary=auxiliary)
        if known is None or key_of(case) in known
    ]
    if not places:
        raise ExperimentError(
            f"{published} must have some of the cells that were asked for; got none of experiment"
            f" sample_size_target with the models {', '.join(models)}"
        )
    return measure(places, options, task=regret_of_case)


def on_problems(options: Options) -> list[RegretCell]:
    """Measure on the tuning problems."""
    _check_methods(options.methods)
    check.whole_number(options.reps, what="reps on the problems", least=2)
    places = []
    for name, environment in TUNING.items():
        for epsilon in PROBLEM_EPSILONS:
            for n in PROBLEM_SIZES:
                setting = {"problem": name, "epsilon": epsilon, "n": n}
                settings = {each: {"method": each, **setting} for each in options.methods}
                cell = RegretCell("tuning problems", name, "", epsilon, n, {})
                places.append(Place(cell, environment, settings))
    return measure(places, options, task=regret_on_problem)


def paper_cases(models: Sequence[str], *, auxiliary: bool) -> Iterator[Case]:
    """Yield the cells of the experiment over n_P, without and with auxiliary data."""
    for model in (each for each in MODELS if each in models):
        for epsilon_aux, n_aux in (NO_ROWS, *ROWS) if auxiliary else (NO_ROWS,):
            for epsilon in EPSILONS:
                for n in SIZES:
                    case = Case("sample_size_target", model, "honest", epsilon, n)
                    yield replace(case, epsilon_aux=epsilon_aux, n_aux=n_aux)


def _paper_place(
    case: Case, methods: tuple[str, ...], all_methods: bool, known: Mapping[Key, Mean] | None
) -> Place:
    rows = any(case.n_aux)
    sets = f"{len(case.n_aux)} × {case.n_aux[0]:,} rows at ε = {case.epsilon_aux[0]:g}"
    group = "auxiliary data" if rows else "no auxiliary data"
    cell = RegretCell(
        f"{group}, {'ε ≤ 8' if case.epsilon <= 8 else f'ε = {case.epsilon:g}'}",
        case.model,
        sets if rows else "no auxiliary data",
        *(case.epsilon, case.n),
        {} if known is None else {PUBLISHED: known[key_of(case)]},
    )
    settings = {
        method: {"method": method, "case": asdict(_as_run(case, method))}
        for method in (methods if all_methods or not rows else methods[:1])
    }
    return Place(cell, MODELS[case.model], settings)


def _as_run(case: Case, method: str) -> Case:
    """Leave empty sets out, but for the paper's method, whose depth cap counts them."""
    if any(case.n_aux) or method == "ldpmab":
        return case
    return replace(case, epsilon_aux=(), n_aux=())


def regret_of_case(setting: Setting, seed: int) -> dict[str, float]:
    """Make one run of a sweep on the paper's cells."""
    result = Case.of(setting["case"]).run(seed, method=setting["method"])
    return {"regret": float(result.regret[-1])}


def regret_on_problem(setting: Setting, seed: int) -> dict[str, float]:
    """Make one run of a sweep on the tuning problems."""
    result = simulate(
        TUNING[setting["problem"]],
        method=setting["method"],
        epsilon=setting["epsilon"],
        n=setting["n"],
        seed=seed,
    )
    return {"regret": float(result.regret[-1])}


def _check_methods(methods: Sequence[str]) -> None:
    for method in methods:
        settings_from(method)
    if not methods or len(set(methods)) < len(methods):
        raise ExperimentError(must("methods", "be different names", ", ".join(methods) or "none"))
