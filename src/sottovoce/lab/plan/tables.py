"""A plan in words, for people and for scripts."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.table import Table

from sottovoce.lab.plan.plan import Line
from sottovoce.shared.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Plan:
    """What was planned, and what is to be expected.

    effect, baseline: in the owner's unit, and as an arm's name or in words.
    traffic: people a day, if that is known.
    lines: by the name of their group, the first for several ε.
    own: the line of the file as it is.
    offered: the least ε at which the people are enough, of those that were looked at.
    check: what the rule of thumb says of the file as it is: the share of random that is lost.
    remedies: what would help, where the plan is hopeless.
    """

    experiment: Experiment
    effect: float
    baseline: str
    traffic: float | None
    lines: dict[str, list[Line]]
    own: Line
    offered: float | None
    check: float | None
    remedies: tuple[str, ...]


def tables_of(plan: Plan) -> list[Table]:
    """Return a table for each group of lines."""
    return [_table(plan, name, lines) for name, lines in plan.lines.items() if lines]


def summary_of(plan: Plan) -> list[str]:
    """Say what the tables mean, in a few lines."""
    experiment, own, unit = plan.experiment, plan.own, plan.experiment.rewards.width
    of = "" if unit == 1 else f" (of {unit:g})"
    lines = [
        f"{experiment.name}: {len(experiment.arms)} arms, {len(experiment.context)} features,"
        f" ε = {experiment.epsilon:g}, {own.people:,} people{_days(own.people, plan)}.",
        f"Effect: a person's best arm brings {plan.effect:g}{of} more than the next best."
        f" Baseline: {plan.baseline}.",
    ]
    until = own.people_until_most
    if own.enough:
        lines.append(
            f"Most people (80 %) get an arm that suits them after about"
            f" {rounded(until.middle)} people{_days(until.middle, plan)}; 1 world of 10 needs"
            f" fewer than {rounded(until.low)}, 1 of 10 more than {rounded(until.high)}."
        )
    else:
        lines.append(
            f"In most worlds {own.people:,} people are too few until 80 % get an arm that suits"
            f" them; at the end {own.suited_at_end:.0%} do."
        )
    if own.hopeless:
        helps = f": {_or(plan.remedies)}" if plan.remedies else ""
        lines.append(
            f"This plan looks hopeless: people lose {own.lost_share:.0%} of what arms at random"
            f" lose{helps}."
        )
    if plan.offered is None:
        lines.append(f"No ε of these is enough for {own.people:,} people.")
    else:
        lines.append(f"For {own.people:,} people ε = {plan.offered:g} is enough.")
    lines.append(f"{own.worlds} plausible worlds; losses and gains are in rewards{of}.")
    return lines


def as_json(plan: Plan) -> dict[str, Any]:
    """Write everything as JSON has it; what is never reached is null."""
    return {
        "experiment": plan.experiment.name,
        "fingerprint": plan.experiment.fingerprint,
        "people": plan.own.people,
        "effect": plan.effect,
        "baseline": plan.baseline,
        "traffic": plan.traffic,
        "hopeless": plan.own.hopeless,
        "offered_epsilon": plan.offered,
        "rule_of_thumb": plan.check,
        "remedies": list(plan.remedies),
        "own": line_to_table(plan.own, plan),
        "groups": {
            name: [line_to_table(line, plan) for line in lines]
            for name, lines in plan.lines.items()
        },
    }


def line_to_table(line: Line, plan: Plan) -> dict[str, Any]:
    """Write one line as JSON has it."""
    table = {**asdict(line), "verdict": line.verdict, "hopeless": line.hopeless}
    for name in ("people_until_most", "people_until_gain_shows"):
        values = table[name]
        table[name] = {key: _finite(value) for key, value in values.items()}
        if plan.traffic is not None:
            days = {key: _finite(value / plan.traffic) for key, value in values.items()}
            table[name.replace("people", "days", 1)] = days
    return table


def rounded(people: float) -> str:
    """Write a number of people with two digits: more are not known."""
    if not math.isfinite(people):
        return "never"
    unit = 10 ** max(math.floor(math.log10(max(people, 1))) - 1, 0)
    return f"{round(people / unit) * unit:,.0f}"


def _table(plan: Plan, name: str, lines: Sequence[Line]) -> Table:
    """Return one group as a table: cases across, what is expected of each down."""
    table = Table(box=box.SIMPLE, title=name, title_justify="left")
    table.add_column("")
    for line in lines:
        style = "bold" if line == plan.own else None
        table.add_column(_heading(plan, line), justify="right", style=style)
    cells = [_cells(line, plan) for line in lines]
    for row in cells[0]:
        table.add_row(row, *(each[row] for each in cells))
    return table


def _heading(plan: Plan, line: Line) -> str:
    """Say in what a case differs from the file, or its ε."""
    own = plan.own
    if line.features != own.features:
        return f"{line.features} of {own.features}"
    if line.people != own.people:
        return f"{line.people:,}"
    return f"ε = {line.epsilon:g}"


def _cells(line: Line, plan: Plan) -> dict[str, str]:
    """Return what is shown of a case, by the name of its row."""
    until, shows = line.people_until_most, line.people_until_gain_shows.middle
    beyond = f"> {line.people:,}"

    def people(value: float) -> str:
        return beyond if value > line.people else rounded(value)

    cells = {"people until 80 % are suited": people(until.middle)}
    if plan.traffic is not None:
        cells["  days"] = _in_days(until.middle, line.people, plan.traffic)
    cells |= {
        "  in 1 world of 10 fewer than": people(until.low),
        "  in 1 world of 10 more than": people(until.high),
        "  worlds in which that happens": f"{line.reached:.0%}",
        "suited at the end": f"{line.suited_at_end:.0%}",
        "lost until 80 % are suited": _amount(line.lost_until_most) if line.enough else "",
        "lost in all": _amount(line.lost),
        "  as a share of random": f"{line.lost_share:.0%}",
        "gain over the baseline, each": f"{line.gain:+.2g}",
        "  of the last people": f"{line.gain_at_end:+.2g}",
        "all people worse than baseline": f"{line.worse_in_all:.0%}",
        "  the last people": f"{line.worse_at_end:.0%}",
        "the gain shows after": rounded(shows),
    }
    if plan.traffic is not None:
        cells["    days"] = _in_days(shows, math.inf, plan.traffic)
    return {**cells, "verdict": line.verdict}


def _in_days(people: float, most: float, traffic: float) -> str:
    if not math.isfinite(people) or people > most:
        return ""
    days = people / traffic
    return f"{days:,.0f}" if days >= 10 else f"{days:.1f}"


def _days(people: float, plan: Plan) -> str:
    if plan.traffic is None or not math.isfinite(people):
        return ""
    days = people / plan.traffic
    return f", {days:,.0f} days" if days >= 10 else f", {days:.1f} days"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _or(words: Sequence[str]) -> str:
    listed = list(words)
    return " or ".join([", ".join(listed[:-1]), listed[-1]] if listed[1:] else listed)
