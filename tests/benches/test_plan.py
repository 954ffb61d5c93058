"""How plans are held to worlds that they have not seen, and the rule that is fitted."""

from typing import Any

import pytest
from benchmarks.plan import checked, drawn, fit, off_loss, off_people, reached, summary

from sottovoce.shared.whisper import planned
from sottovoce.shared.whisper.planned import expected_loss


def row(planned: float | None, happened: float | None, people: int = 20_000) -> dict[str, Any]:
    return {"people_planned": planned, "people_happened": happened, "people": people}


def test_settings_are_always_the_same_ones_and_of_many_kinds() -> None:
    settings = drawn("check", 90)
    assert settings == drawn("check", 90)
    assert drawn("fit", 90) != settings
    assert {each.arms for each in settings} == {2, 3, 4}
    assert {len(each.kinds) for each in settings} == {1, 2, 3, 4, 6, 8}
    assert {each.case.experiment.horizon for each in settings} == {each.people for each in settings}


def test_an_error_is_relative_to_what_happened() -> None:
    assert off_people(row(1250, 1000)) == pytest.approx(0.25)
    assert off_people(row(None, None)) == 0
    # More than 20,000 were foreseen, and 10,000 were enough: off by a factor of 2 at least.
    assert off_people(row(None, 10_000)) == pytest.approx(1)
    assert off_people(row(15_000, None)) == pytest.approx(0.25)
    assert [reached(row(1, 2)), reached(row(None, 2)), reached(row(None, None))] == [2, 1, 0]
    assert off_loss({"lost_planned": 90.0, "lost_happened": 100.0}) == pytest.approx(0.1)


def test_a_plan_is_held_to_other_worlds_of_its_setting() -> None:
    setting = next(each for each in drawn("check", 90) if each.people == 5_000 and each.arms == 2)
    (found,) = checked([setting], worlds=3, workers=1)
    assert found["lost_planned"] != found["lost_happened"]
    assert 0 <= found["within_range"] <= 1
    assert summary([{**found, "people_planned": 9.0, "people_happened": 9.0}])[0] == "1 settings"


def test_a_fit_finds_the_numbers_that_made_the_shares() -> None:
    rows = [
        {
            "arms": each.arms,
            "kinds": each.kinds,
            "epsilon": each.epsilon,
            "effect": each.effect,
            "people": each.people,
            "share": expected_loss(each.case.experiment, effect=each.effect),
        }
        for each in drawn("fit", 200)
    ]
    found = fit(rows)
    assert found["root mean square error"] == pytest.approx(0, abs=1e-6)
    powers = planned.POWERS._asdict()
    assert {name: found[name] for name in powers} == pytest.approx(powers, rel=1e-3)
    assert (found["EFFECTS"], found["FALL"]) == pytest.approx((planned.EFFECTS, planned.FALL))
