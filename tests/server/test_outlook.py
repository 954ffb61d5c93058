"""An operator is told when an experiment asks for more than it can get."""

import re
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.server.outlook import warning
from support.paths import ROOT


def planned(*, arms: int = 2, features: int = 1, levels: int = 0, **settings: Any) -> sv.Experiment:
    """An experiment of some size, with a name."""
    context: list[Any] = [sv.Numeric(f"x{number}", 0, 1) for number in range(features)]
    if levels:
        context.append(sv.Categorical("city", tuple(f"city {n}" for n in range(levels))))
    defaults: dict[str, Any] = {"epsilon": 1.0, "horizon": 5000, "name": "walking"}
    names = [f"arm {number}" for number in range(arms)]
    return sv.Experiment(arms=names, context=context, **{**defaults, **settings})


def test_enough_people_get_no_warning() -> None:
    assert warning(planned(horizon=100_000)) is None


def test_too_few_people_get_one_line_with_what_would_help() -> None:
    told = warning(planned(arms=3, features=2, levels=3, epsilon=0.5))
    assert told is not None
    assert re.fullmatch(
        r"walking looks hopeless: if the right arm brings 0\.1 more, 5,000 people at ε = 0\.5 will "
        r"lose about 8\d % of what random arms lose; plan for [\d,]+ people, "
        r"(set epsilon to [\d.]+, )?ask others for [\d,]+ logged rows at ε = 4 or "
        r"have fewer features, levels or arms",
        told,
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("size", [{}, {"arms": 5}, {"features": 20}, {"levels": 30}])
def test_each_number_that_is_proposed_is_enough_and_not_far_too_much(
    size: dict[str, int], epsilon: float
) -> None:
    settings: dict[str, Any] = {**size, "horizon": 10, "epsilon": epsilon}
    told = warning(planned(**settings))
    assert told is not None
    found = re.search(r"plan for ([\d,]+) people", told)
    assert found is not None
    people = int(found[1].replace(",", ""))
    assert warning(planned(**{**settings, "horizon": people})) is None
    assert warning(planned(**{**settings, "horizon": int(0.85 * people)})) is not None
    if larger := re.search(r"set epsilon to ([\d.]+\d)", told):
        assert epsilon < float(larger[1]) <= 4
        assert warning(planned(**{**settings, "epsilon": float(larger[1])})) is None


def test_only_what_an_experiment_has_can_be_fewer() -> None:
    assert "fewer" not in str(warning(planned(horizon=10)))
    assert str(warning(planned(horizon=10, features=2))).endswith("or have fewer features")
    assert str(warning(planned(horizon=10, arms=3))).endswith("or have fewer arms")


def test_a_large_epsilon_is_never_proposed() -> None:
    assert "epsilon to" not in str(warning(planned(horizon=10, epsilon=4.0)))
    assert "epsilon to" not in str(warning(planned(horizon=10, levels=100)))


def test_where_nothing_is_enough_the_warning_says_so() -> None:
    told = warning(planned(epsilon=4.0, method=sv.Whisper(half_life=1)))
    assert str(told).endswith("; no number of people would be enough")


def test_a_method_without_a_rule_gets_no_warning() -> None:
    assert warning(planned(horizon=1, epsilon=0.01, method="ldpmab")) is None


def test_the_warning_stands_in_the_documents_as_it_is_printed() -> None:
    page = (ROOT / "docs" / "how-to" / "plan-an-experiment.md").read_text()
    assert f"WARNING {warning(planned(arms=5, features=2, epsilon=0.5))}\n" in page
