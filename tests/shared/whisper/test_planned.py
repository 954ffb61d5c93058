"""What people will lose where arms differ by so much is told by a rule that is held to runs."""

import itertools
import json
from typing import Any

import pytest
from benchmarks.plan import rule_error

import sottovoce as sv
from support.paths import ROOT

RESULTS = ROOT / "docs" / "figures" / "results" / "plan.json"


def planned(*, features: int = 2, levels: int = 0, rows: int = 0, **settings: Any) -> sv.Experiment:
    """An experiment of some size."""
    context: list[Any] = [sv.Numeric(f"x{number}", 0, 1) for number in range(features)]
    if levels:
        context.append(sv.Categorical("city", tuple(f"city {n}" for n in range(levels))))
    others = [sv.Population("others", 4.0, rows, [0.5, 0.5])] if rows else []
    usual: dict[str, Any] = {"epsilon": 1.0, "horizon": 20_000}
    return sv.Experiment(
        arms=["a", "b"], context=context, auxiliary=others, **{**usual, **settings}
    )


def share(experiment: sv.Experiment, effect: float = 0.1) -> float:
    found = experiment.settings.expected_loss(experiment, effect=effect)
    assert found is not None
    assert 0 <= found <= 1
    return found


@pytest.mark.parametrize(
    ("name", "harder"),
    [
        ("features", (1, 2, 8, 100)),
        ("levels", (3, 6, 30)),
        ("epsilon", (8.0, 2.0, 1.0, 0.5, 0.01)),
        ("horizon", (10**7, 20_000, 100, 1)),
        ("rows", (10**6, 1000, 0)),
    ],
)
def test_the_share_grows_with_what_is_to_be_learned_and_falls_with_what_helps(
    name: str, harder: tuple[Any, ...]
) -> None:
    shares = [share(planned(**{name: value})) for value in harder]
    assert all(before < after for before, after in itertools.pairwise(shares))


def test_a_larger_effect_is_found_by_fewer_people() -> None:
    shares = [share(planned(), effect) for effect in (1.0, 0.4, 0.1, 0.01, 0.001)]
    assert shares == sorted(shares)
    # Nearly four times the people for half of the effect: by the rule 2^1.9 times.
    more = planned(horizon=round(20_000 * 2**1.9))
    assert share(more, 0.05) == pytest.approx(share(planned(), 0.1), abs=0.002)


def test_what_fades_cannot_be_told_by_rows() -> None:
    forgets = sv.Whisper(half_life=1000)
    assert share(planned(method=forgets)) == share(planned(method=forgets, rows=10**6))


def test_nobody_knows_what_another_method_loses() -> None:
    other = planned(method="ldpmab")
    assert other.settings.expected_loss(other, effect=0.1) is None


def test_the_rule_agrees_with_what_was_measured() -> None:
    """And of those of whom it says more than 0.7, hardly any lost less than a half."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text())["result"]["rule"]
    assert len(rows) == 300
    assert rule_error(rows) < 0.15
    check: list[dict[str, Any]] = json.loads(RESULTS.read_text())["result"]["check"]
    warned = [row["share_planned"] for row in check if row["rule"] > 0.7]
    assert sum(share > 0.5 for share in warned) >= 0.9 * len(warned) > 0
