"""The bench in worlds beyond the paper's: shares of random, limits, and what is printed."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import sottovoce as sv
from sottovoce.lab.environments import regret_at_random
from sottovoce.lab.means import Mean
from sottovoce.lab.regret import worlds
from sottovoce.lab.regret.cells import Options, RegretCell
from sottovoce.lab.regret.tables import limit_lines, world_tables
from sottovoce.lab.regret.worlds import WORLDS, Limit, Shared, chosen_worlds, in_worlds, judged
from sottovoce.lab.simulation import simulate
from support import commands

TAILS, UNIFORM = "exponential, long tails", "exponential, uniform"
DRIFT = "sudden drift, 2nd half"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few people come to each world."""
    small = {
        name: replace(world, n=600, since=300 if world.since else 0)
        for name, world in WORLDS.items()
    }
    monkeypatch.setattr(worlds, "WORLDS", small)


def run(*arguments: str) -> commands.Done:
    return commands.run("bench", "regret", "--worlds", "--workers", "1", *arguments)


def cell(name: str, share: float, *, epsilon: float = 1.0, method: str = "whisper") -> RegretCell:
    lost = {method: Mean(share * 100, 4, 16), "random": Mean(100, 0.1, 10_000)}
    return RegretCell("worlds", name, "", epsilon, 1000, lost)


def test_every_limit_is_for_an_epsilon_that_is_run_and_a_world_that_is_there() -> None:
    for world in WORLDS.values():
        assert set(world.limits) <= set(world.epsilons)
        for epsilon, limit in world.limits.items():
            assert limit.of is None or epsilon in WORLDS[limit.of].epsilons
        assert 0 <= world.since < world.n
        assert world.since % 100 == 0  # a release


def test_the_table_of_worlds_has_the_limits_that_were_set() -> None:
    def most(name: str) -> list[float]:
        return [limit.most for limit in WORLDS[name].limits.values()]

    assert most("exponential, 1 of 20 features") == [0.42, 0.07]
    assert most("exponential, 1 of 40 features") == [0.55, 0.11]
    assert most("linear, 2 of 20 features") == [1.6, 2]
    assert most("6 levels in turns") == [0.32, 0.05, 0.04]
    assert most("30 levels in turns") == [0.35, 0.10]
    assert most(TAILS) == [1.3, 1.3]
    assert most("rows: right") == [0.02, 0.01]
    for share in (25, 50, 75):
        assert most(f"rows: wrong in {share} %") == [1.15, 1.5]


def test_worlds_are_chosen_by_name_together_with_those_they_are_measured_by() -> None:
    assert list(chosen_worlds()) == list(WORLDS)
    assert list(chosen_worlds("Levels")) == [name for name in WORLDS if "levels" in name]
    assert list(chosen_worlds("tails")) == [UNIFORM, TAILS]
    with pytest.raises(sv.ExperimentError, match="only must be in the name of a world; got 'moon'"):
        chosen_worlds("moon")


def test_a_limit_is_a_share_or_a_multiple_of_another_world_s_share() -> None:
    found = judged(
        [
            cell(UNIFORM, 0.2),
            cell(TAILS, 0.25),
            cell("30 levels in turns", 0.9),
            cell("30 levels in turns", 0.36, epsilon=4.0),
        ]
    )
    assert [each.limit for each in found] == [None, Limit(1.3, UNIFORM), None, Limit(0.35)]
    assert [each.allowed for each in found] == [None, pytest.approx(0.26), None, 0.35]
    assert [each.holds for each in found] == [None, True, None, False]
    assert [each.share.mean for each in found] == pytest.approx([0.2, 0.25, 0.9, 0.36])
    assert found[0].share.standard_error == pytest.approx(0.01)


def test_a_multiple_is_that_of_the_same_method() -> None:
    cells = [cell(UNIFORM, 0.1), cell(UNIFORM, 0.5, method="ldpmab")]
    cells += [cell(TAILS, 0.2), cell(TAILS, 0.6, method="ldpmab")]
    limits = {each.method: each.holds for each in judged(cells) if each.limit}
    assert limits == {"whisper": False, "ldpmab": True}


@pytest.mark.usefixtures("few")
def test_only_the_second_half_of_a_drift_is_judged() -> None:
    setting = {"world": DRIFT, "epsilon": 4.0, "method": "whisper"}
    drift = worlds.WORLDS[DRIFT].environment
    method = sv.Whisper(half_life=worlds.WORLDS[DRIFT].half_life)
    result = simulate(drift, method=method, epsilon=4.0, n=600, seed=7)
    lost = worlds.regret_in_world(setting, 7)["regret"]
    assert lost == result.regret[-1] - result.regret[2]
    assert result.people[2] == 300


@pytest.mark.usefixtures("few")
def test_a_few_people_in_two_worlds_are_measured_printed_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    arguments = ("--only", "tails", "--reps", "2", "--out", str(out))
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    listed = [(each["world"], each["epsilon"]) for each in figures["worlds"]]
    assert listed == [(name, epsilon) for name in (UNIFORM, TAILS) for epsilon in (1, 4)]
    runs = [json.loads(line)["figures"]["regret"] for line in out.read_text().splitlines()[1:]]
    at_random = 600 * regret_at_random(WORLDS[UNIFORM].environment)
    first, _, tails, _ = figures["worlds"]
    assert first["share_of_random"] == pytest.approx(sum(runs[:2]) / 2 / at_random)
    assert first["limit"] is None
    assert tails["limit"] == {"most": 1.3, "of": UNIFORM}
    assert tails["allowed"] == pytest.approx(1.3 * first["share_of_random"])
    assert tails["holds"] == (tails["share_of_random"] <= tails["allowed"])
    assert figures["limits"] == 2
    assert figures["kept"] == sum(each["holds"] is True for each in figures["worlds"])

    kept = out.read_bytes()
    table = run(*arguments)
    assert table.returncode == 0, table.stderr
    assert out.read_bytes() == kept  # no run was made again
    assert f"{tails['share_of_random']:.3f} ±{tails['standard_error']:.3f}" in table.stdout
    assert f"≤ {tails['allowed']:.3f} (1.3 ×)" in table.stdout
    assert f"{figures['kept']} of 2 limits hold." in table.stdout


@pytest.mark.usefixtures("few")
def test_several_methods_stand_in_one_table() -> None:
    done = run("--only", "4 stripes", "--reps", "2", "--methods", "whisper,linear")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("linear") == 3  # the title, and a line for each ε
    assert "0 of 0 limits hold." in done.stdout


def test_the_table_fits_in_80_columns_and_names_what_does_not_hold() -> None:
    name = DRIFT
    share = Mean(0.7, 0.04, 16)
    found = [
        Shared(UNIFORM, "whisper", 1.0, share),
        Shared(name, "whisper", 1.0, share, Limit(0.6), 0.6),
        Shared(TAILS, "whisper", 1.0, share, Limit(1.3, UNIFORM), 0.91),
        Shared(TAILS, "whisper", 4.0, share, Limit(1.3, UNIFORM), 0.26),
    ]
    console = Console(width=80, file=io.StringIO(), record=True)
    for table in world_tables(found):
        console.print(table)
    text = console.export_text()
    assert "…" not in text
    assert name in text
    assert text.count("0.700 ±0.010") == 4
    assert (text.count("yes"), text.count("NO")) == (1, 2)
    assert list(limit_lines(found)) == [
        f"! whisper loses more than its limit: {name}, ε = 1, 0.700 ±0.010 against 0.600",
        f"! whisper loses more than its limit: {TAILS}, ε = 4, 0.700 ±0.010 against 0.260"
        f" = 1.3 × {UNIFORM}",
        "1 of 3 limits hold.",
    ]


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(sv.ExperimentError, match="reps in the worlds must be a whole number >= 2"):
        in_worlds(Options(1, ("whisper",)))
    with pytest.raises(sv.ExperimentError, match="guess"):
        in_worlds(Options(2, ("guess",)), only="xor")
    done = run("--only", "moon")
    assert done.returncode != 0
    assert "only must be in the name of a world" in done.stderr
    unasked = commands.run("bench", "regret", "--only", "xor")
    assert unasked.returncode != 0
    assert "--only must come with --worlds; got 'xor'" in unasked.stderr
