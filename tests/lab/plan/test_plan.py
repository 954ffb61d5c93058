"""A plan sums up what happens in plausible worlds."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import sottovoce as sv
from sottovoce.cli.commands import app
from sottovoce.lab.plan.make import make_plan
from sottovoce.lab.plan.plan import LEAST_WORLDS, Limits, Spread, line_of, play, spread
from sottovoce.lab.plan.runs import Case, Followed, follow, looks
from sottovoce.lab.plan.tables import rounded, summary_of
from sottovoce.server.outlook import warning

USELESS = (
    """
name = "useless"
arms = ["control", "coach"]
epsilon = 0.5
horizon = 5000
context = [
"""
    + "\n".join(f'  {{ name = "x{n}", numeric = [0, 1] }},' for n in range(8))
    + "\n]\n"
)

GOOD = """
name = "good"
arms = ["control", "coach"]
epsilon = 4.0
horizon = 20000
reward = [0, 60]
context = [{ name = "age", numeric = [18, 90] }, { name = "new", boolean = true }]
"""

ONE = Limits(worlds=4, seconds=0, workers=1)


def case(**settings: Any) -> Case:
    usual: dict[str, Any] = {"epsilon": 4.0, "horizon": 3000}
    experiment = sv.Experiment(
        arms=["a", "b"], context=[sv.Numeric("x", 0, 1)], **{**usual, **settings}
    )
    return Case(experiment, 0.3, 0)


def made_up(suited: list[float], lost: list[float], baseline: float = 0.2) -> Followed:
    people = np.array([100, 1000, 10_000])
    return Followed(people, np.array(suited), np.array(lost), baseline, at_random=0.25)


def run(*arguments: object) -> Result:
    words = ["plan", *map(str, arguments), "--workers", "1", "--seconds", "0"]
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, words)


def test_a_run_is_looked_at_after_releases_and_at_the_end() -> None:
    found = looks(5_030, 100)
    assert found[0] == 100
    assert found[-1] == 5_030
    assert all(each % 100 == 0 for each in found[:-1])
    assert sorted(set(found)) == found


def test_a_run_follows_who_is_suited_and_what_is_lost() -> None:
    found = follow(case(), 1)
    assert found.people[-1] == 3000
    assert (np.diff(found.lost) >= 0).all()
    assert ((found.suited >= 0) & (found.suited <= 1)).all()
    assert found.lost[-1] < 0.8 * found.at_random * 3000
    assert found.suited[-1] > 0.7
    again = follow(case(), 1)
    assert (again.lost == found.lost).all()


def test_people_are_counted_until_most_are_suited() -> None:
    run = made_up([0.5, 0.7, 0.9], [10, 60, 200])
    # Half-way from 0.7 to 0.9, in the logarithm of the people.
    assert run.people_until(0.8) == pytest.approx(math.sqrt(1000 * 10_000))
    assert run.people_until(0.4) == 100
    assert run.people_until(0.95) == math.inf
    assert run.lost_until(550) == pytest.approx(35)
    # Beyond the run it goes on as it was on average: 190 for 9,900 people.
    assert run.lost_until(20_000) == pytest.approx(200 + 10_000 * 190 / 9_900)


def test_figures_are_those_of_the_runs_in_the_owners_unit() -> None:
    asked = case(horizon=10_000, reward=[0, 10])
    runs = [
        made_up([0.5, 0.7, 0.9], [10, 60, 200]),
        made_up([0.5, 0.6, 0.7], [20, 200, 1800], baseline=0.1),
    ]
    line = line_of(asked, runs, share=0.1)
    # The lowest is that of the first run; of two runs the middle is half-way, and so never.
    assert line.people_until_most.low == pytest.approx(math.sqrt(1000 * 10_000))
    assert line.people_until_most.middle == line.people_until_most.high == math.inf
    assert line.reached == 0.5
    assert line.suited_at_end == pytest.approx(0.8)
    assert line.lost == pytest.approx(10 * (200 + 1800) / 2)
    assert line.lost_until_most == line.lost  # the middle is never reached
    assert line.lost_share == pytest.approx(2000 / 5000)
    assert line.gain == pytest.approx(10 * ((0.2 - 0.02) + (0.1 - 0.18)) / 2)
    assert line.worse_in_all == 0.5
    # The last of the second run lose 1600/9000 each, more than the 0.1 of the baseline.
    assert line.worse_at_end == 0.5
    assert not line.enough
    assert not line.hopeless
    assert line.verdict == "tight"


def test_a_spread_is_of_what_was_seen() -> None:
    assert spread(list(range(1, 11))) == Spread(1, 5.5, 9)
    assert spread([3.0]) == Spread(3.0, 3.0, 3.0)
    assert spread([1.0, math.inf, math.inf]) == Spread(1.0, math.inf, math.inf)


def test_some_worlds_are_played_however_short_the_time() -> None:
    told: list[int] = []
    limits = Limits(worlds=50, seconds=0, workers=1)
    runs = play(
        [case(), case(epsilon=1.0)], limits, lambda found: told.append(sum(map(len, found)))
    )
    assert [len(each) for each in runs] == [LEAST_WORLDS, LEAST_WORLDS]
    assert told == list(range(1, 2 * LEAST_WORLDS + 1))
    # Cases share their worlds.
    assert runs[0][0].baseline == runs[1][0].baseline


def test_a_larger_epsilon_and_more_people_help() -> None:
    """Shares of random over 12 worlds: the differences are many times their errors."""
    limits = Limits(worlds=12, seconds=600, workers=1)
    cases = [case(), case(epsilon=0.5), case(horizon=12_000)]
    usual, noisy, longer = (
        line_of(each, runs, share=0.1)
        for each, runs in zip(cases, play(cases, limits), strict=True)
    )
    assert longer.lost_share < usual.lost_share < noisy.lost_share


def test_a_useless_plan_is_called_hopeless_by_plan_and_by_serve_and_a_good_one_is_not(
    tmp_path: Path,
) -> None:
    verdicts = {}
    for name, text in {"useless": USELESS, "good": GOOD}.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        experiment = sv.Experiment.from_toml(path)
        plan = make_plan(Case(experiment, 0.1, 0), ONE).plan
        said = any("looks hopeless" in line for line in summary_of(plan))
        served = warning(experiment)
        assert said == plan.own.hopeless == bool(plan.remedies)
        verdicts[name] = (said, served is not None)
    assert verdicts == {"useless": (True, True), "good": (False, False)}


def test_a_plan_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    picture = tmp_path / "plan.png"
    options = ("--people", "3000", "--traffic", "100/day", "--effect", "12", "--worlds", "4")
    done = run(path, *options, "--json", "--picture", picture)
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert (figures["people"], figures["effect"], figures["traffic"]) == (3000, 12, 100)
    assert figures["baseline"] == "always control"
    assert figures["own"]["worlds"] == 4
    by_epsilon = figures["groups"]["by ε"]
    assert [each["epsilon"] for each in by_epsilon] == [0.5, 1, 2, 4]
    until = figures["own"]["people_until_most"]
    assert figures["own"]["days_until_most"]["low"] == pytest.approx(until["low"] / 100)
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = run(path, *options)
    assert "Effect: a person's best arm brings 12 (of 60) more than the next best" in shown.stdout
    assert "3,000 people, 30 days" in shown.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--effect", "0"), "effect must lie above 0"),
        (("--effect", "61"), "at most 60, the whole range of rewards"),
        (("--baseline", "couch"), "baseline must be one of"),
        (("--traffic", "10/day", "--days", "30", "--people", "5000"), "come within 30 days"),
        (("--traffic", "some"), "traffic must be people in a time"),
    ],
)
def test_mistakes_are_told_before_anything_is_played(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    assert words in str(run(path, *options).exception)


def test_numbers_of_people_have_two_digits() -> None:
    assert [rounded(n) for n in (7.0, 123, 12_345, math.inf)] == ["7", "120", "12,000", "never"]
