"""What a plan is asked: checked, and told in words where no plan can be made of it."""

import math
import re
from dataclasses import replace

from sottovoce.lab.plan.gain import SHARE
from sottovoce.lab.plan.runs import Case
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment, Population

EFFECT = 0.1
"""What the right arm brings more, as a share of the range of rewards, where nobody says."""

AT_RANDOM = "random"
"""The baseline under which everybody gets an arm at random."""

LONGEST = 36_525
"""No plan is longer than so many days, a hundred years."""

_PER_DAY = {"hour": 24.0, "day": 1.0, "week": 1 / 7, "month": 12 / 365.25, "year": 1 / 365.25}


def effect_of(experiment: Experiment, effect: float | None) -> float:
    """Return an effect in the owner's unit as a share of the range of rewards."""
    if effect is None:
        return EFFECT
    rewards = experiment.rewards
    given = check.finite_float(effect)
    if given is None or not 0 < given <= rewards.width:
        rule = f"lie above 0 and be at most {rewards.width:g}, the whole range of rewards"
        hint = "say how much more the right arm brings a person, in the unit of the rewards"
        raise ExperimentError(must("effect", rule, effect, hint=hint))
    return given / rewards.width


def baseline_of(experiment: Experiment, name: str | None) -> int | None:
    """Return the number of the arm that everybody would get otherwise; None for arms at random.

    name: what was asked for; without it, what the experiment says, or else its first arm.
    """
    if name is None:
        declared = experiment.compared_with
        name = experiment.arms[0] if declared is None else (declared.arm or AT_RANDOM)
    if name in experiment.arms:
        return list(experiment.arms).index(name)
    if name == AT_RANDOM:
        return None
    rule = f"be one of {list(experiment.arms)}, or {AT_RANDOM!r}"
    raise ExperimentError(must("baseline", rule, repr(name)))


def share_of_group(experiment: Experiment) -> float:
    """Return the share of the people in each of the two groups that measure the gain."""
    declared = experiment.compared_with
    return SHARE if declared is None else declared.share


def people_a_day(text: str | None) -> float | None:
    """Read a traffic such as 500/day."""
    if text is None:
        return None
    rule = "be people in a time, such as 500/day, 20/hour or 3000/week"
    found = re.fullmatch(r"\s*([\d_,]*\.?\d+)\s*/\s*(\w+?)s?\s*", text)
    if found is None or found[2] not in _PER_DAY:
        raise ExperimentError(must("traffic", rule, repr(text)))
    number = float(found[1].replace(",", "").replace("_", ""))
    if not 0 < number < 1e12:
        raise ExperimentError(must("traffic", "be more than nobody, and less than 10^12", text))
    return number * _PER_DAY[found[2]]


def people_of(
    experiment: Experiment, people: int | None, traffic: float | None, days: float | None
) -> int:
    """Return how many people the plan is for: as asked, or those who come in time, or the file's.

    traffic: people a day.
    """
    if days is not None and not 0 < days <= LONGEST:
        rule = f"be more than 0 and at most {LONGEST:,}"
        raise ExperimentError(must("days", rule, days))
    if days is not None and traffic is None and people is None:
        hint = "say --traffic 500/day, or --people"
        raise ExperimentError(must("days", "come with a traffic", "days alone", hint=hint))
    if people is not None:
        check.whole_number(people, what="people", least=1)
    come = None if traffic is None or days is None else math.floor(traffic * days)
    if come is not None and come < 1:
        rule = "bring somebody within the days"
        raise ExperimentError(must("traffic", rule, f"{traffic:g} a day for {days:g} days"))
    wanted = people or come or experiment.horizon
    if come is not None and wanted > come:
        rule = f"come within {days:g} days"
        hint = f"at {traffic:g} a day {come:,} do: allow more days, or plan for fewer people"
        raise ExperimentError(must(f"{wanted:,} people", rule, f"{come:,}", hint=hint))
    if traffic is not None and wanted / traffic > LONGEST:
        rule = f"come within {LONGEST:,} days"
        hint = "no plan can meet that: find more traffic, or plan for fewer people"
        came = f"{wanted / traffic:,.0f} days at {traffic:g} a day"
        raise ExperimentError(must(f"{wanted:,} people", rule, came, hint=hint))
    return wanted


def auxiliary_of(experiment: Experiment, rows: str | None) -> Experiment:
    """Return the experiment with logged rows of others, given as ROWS or ROWS@EPSILON."""
    if rows is None:
        return experiment
    rule = "be a number of rows and their epsilon, such as 20000@4"
    number, at, budget = rows.partition("@")
    if not re.fullmatch(r"\d[\d_,]*", number.strip()) or bool(at) != bool(budget.strip()):
        raise ExperimentError(must("auxiliary", rule, repr(rows)))
    try:
        epsilon = float(budget) if at else experiment.epsilon
    except ValueError:
        raise ExperimentError(must("auxiliary", rule, repr(rows))) from None
    users = int(number.replace(",", "").replace("_", ""))
    arms = len(experiment.arms)
    others = Population("others", epsilon, users, [1 / arms] * arms)
    return replace(experiment, auxiliary=[others])


def case_of(
    experiment: Experiment, *, effect: float | None, baseline: str | None, people: int
) -> Case:
    """Return what is to be simulated."""
    case = Case(experiment, effect_of(experiment, effect), baseline_of(experiment, baseline))
    return case.with_people(people)
