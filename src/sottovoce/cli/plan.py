"""The command that plans: how many people, which ε, what it costs."""

from pathlib import Path
from typing import TYPE_CHECKING

from sottovoce.cli.app import (
    AsJson,
    Command,
    Workers,
    argument,
    console,
    errors,
    option,
    say,
    say_json,
)
from sottovoce.shared.experiment import Experiment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sottovoce.lab.plan.runs import Followed


class Plan(Command, extra="lab,server"):
    """Plan an experiment: how many people, which ε, what it costs, before the first person.

    Plays plausible worlds with the features and arms of the file. Say how much
    more the right arm brings, and it says how many people come until most of
    them get the arm that suits them, for several ε side by side.

    sottovoce plan walking.toml --effect 0.1 --traffic 500/day
    """

    experiment: Path = argument(..., "The TOML file of the experiment.")
    effect: float | None = option(
        None,
        "How much more a person's best arm brings than the next best, in the unit of the rewards;"
        " a tenth of their range if nobody says.",
    )
    baseline: str | None = option(
        None, "The arm that everybody would get otherwise, or random; the first arm if nobody says."
    )
    people: int | None = option(None, "How many people come; the horizon of the file otherwise.")
    traffic: str | None = option(None, "How many people come in a time, such as 500/day.")
    days: float | None = option(None, "How many days there are: with --traffic, how many come.")
    auxiliary: str | None = option(
        None, "Logged rows of others before, as ROWS or ROWS@EPSILON; those of the file otherwise."
    )
    worlds: int = option(200, "How many plausible worlds are played at most.", min=1)
    seconds: float = option(
        30.0, "After so many seconds no further worlds are begun, if there are four.", min=0
    )
    seed: int = option(0, "Fixes the worlds and their people.", min=0)
    picture: Path | None = option(None, "A .png or .svg file for the curves.")
    workers: Workers = -1
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.lab.plan import asking
        from sottovoce.lab.plan.make import make_picture, make_plan
        from sottovoce.lab.plan.plan import Limits
        from sottovoce.lab.plan.tables import as_json, summary_of, tables_of

        experiment = asking.auxiliary_of(Experiment.from_toml(self.experiment), self.auxiliary)
        traffic = asking.people_a_day(self.traffic)
        people = asking.people_of(experiment, self.people, traffic, self.days)
        case = asking.case_of(experiment, effect=self.effect, baseline=self.baseline, people=people)
        limits = Limits(self.worlds, self.seconds, self.workers, self.seed)
        with errors.status(
            "planning: starting, and compiling the crowd if this is its first run"
        ) as shown:

            def tell(runs: "Sequence[Sequence[Followed]]") -> None:
                done = sum(map(len, runs))
                least = min(map(len, runs))
                shown.update(f"planning: {done} runs, {least} worlds of each case")

            made = make_plan(case, limits, traffic=traffic, tell=tell)
        if self.picture is not None:
            make_picture(made, self.picture)
        if self.as_json:
            say_json(as_json(made.plan))
            return
        for line in summary_of(made.plan):
            say(line)
        for table in tables_of(made.plan):
            console.print(table)
        if self.picture is not None:
            say(f"Picture: {self.picture}")
