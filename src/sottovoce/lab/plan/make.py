"""From a case to its plan: all cases side by side, summed up."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sottovoce.lab.plan.asking import AT_RANDOM, share_of_group
from sottovoce.lab.plan.plan import (
    Limits,
    Line,
    Tell,
    curve_of,
    line_of,
    offered,
    plan_cases,
    play,
)
from sottovoce.lab.plan.runs import Case, Followed
from sottovoce.lab.plan.tables import Plan
from sottovoce.server.outlook import remedies


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, with the runs that it was made from, for a picture."""

    plan: Plan
    share: float
    by_epsilon: tuple[tuple[Case, Sequence[Followed]], ...]


def make_plan(
    case: Case, limits: Limits, *, traffic: float | None = None, tell: Tell = lambda _: None
) -> Made:
    """Play all cases, and sum them up."""
    experiment = case.experiment
    share = share_of_group(experiment)
    groups = plan_cases(case)
    cases = [each for group in groups.values() for each in group]
    runs = play(cases, limits, tell)
    summed = [line_of(each, some, share=share) for each, some in zip(cases, runs, strict=True)]
    left = iter(summed)
    lines = {name: [next(left) for _ in group] for name, group in groups.items()}
    own = _own(lines["by ε"], experiment.epsilon)
    said = experiment.settings.expected_loss(experiment, effect=case.effect)
    known = own.hopeless and said is not None  # without a rule nobody knows what would be enough
    helps = remedies(experiment, effect=case.effect) if known else []
    arm = AT_RANDOM if case.baseline is None else experiment.arms[case.baseline]
    plan = Plan(
        experiment=experiment,
        effect=case.effect * experiment.rewards.width,
        baseline="arms at random" if arm == AT_RANDOM else f"always {arm}",
        traffic=traffic,
        lines=lines,
        own=own,
        offered=offered(lines["by ε"]),
        check=said,
        remedies=tuple(helps),
    )
    first = len(groups["by ε"])
    return Made(plan, share, tuple(zip(cases[:first], runs[:first], strict=True)))


def make_picture(made: Made, path: Path) -> None:
    """Draw the curves of the plan."""
    from sottovoce.lab.plan.pictures import draw_plan

    experiment = made.plan.experiment
    curves = {
        case.experiment.epsilon: curve_of(case, runs, share=made.share)
        for case, runs in made.by_epsilon
    }
    unit = "in rewards" if experiment.rewards.width == 1 else f"of {experiment.rewards.width:g}"
    draw_plan(curves, own=experiment.epsilon, unit=unit, path=path)


def _own(lines: Sequence[Line], epsilon: float) -> Line:
    (own,) = [line for line in lines if line.epsilon == epsilon]
    return own
