"""What is said of auxiliary data: what it is worth, and whether it misleads; by hand, and at first.

``test_diagnosis_simulated.py`` has whole runs.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.estimate.diagnosis import Audit, Diagnosis, Source


def source(**changes: Any) -> Source:
    plain = Source(
        population="clinic-b",
        epsilon=2.0,
        reports=100,
        expected=400,
        worth=1.5,
        exploration=1.0,
        overlap=1.0,
        promises=0.1,
        harmful=False,
    )
    return replace(plain, **changes)


def audit(**changes: Any) -> Audit:
    plain = Audit(answers=100, delivered=0.8, promised=0.8, at_random=0.4, standard_error=0.02)
    return replace(plain, **changes)


# --- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exploration", "usable"),
    [
        (None, 1.0),  # nothing is known against it
        (1.0, 1.0),
        (0.5, 2 / (4 + 4 / 9)),  # shares of 1/4 and 3/4: 1/0.5² + 1/1.5²
        (0.2, 2 / (25 + 1 / 3.24)),
        (0.0, 0.0),
        (-0.01, 0.0),  # an estimate, by its noise
    ],
)
def test_a_row_is_worth_less_where_an_arm_was_seldom_tried(
    exploration: float | None, usable: float
) -> None:
    found = source(exploration=exploration)
    assert found.effective_users == pytest.approx(100 * 1.5 * usable)
    assert found.expected_users == pytest.approx(400 * 1.5 * usable)
    assert found.quality == pytest.approx(1.5 * usable)


@pytest.mark.parametrize(
    ("delivered", "falls_short", "holds"),
    [
        (0.4, True, False),
        (0.5499, True, False),  # half of the gain is 0.6, and 2.5 standard errors are 0.05
        (0.5501, False, False),
        (0.6, False, False),
        (0.6499, False, False),
        (0.6501, False, True),
        (0.8, False, True),
    ],
)
def test_an_audit_falls_short_two_and_a_half_standard_errors_below_half_of_the_gain(
    delivered: float, falls_short: bool, holds: bool
) -> None:
    found = audit(delivered=delivered)
    assert found.doubt == pytest.approx((delivered - 0.6) / 0.02)
    assert (found.falls_short, found.holds) == (falls_short, holds)


def test_an_audit_without_answers_says_nothing() -> None:
    found = audit(answers=0, delivered=0.5, standard_error=math.inf)
    assert found.doubt == 0
    assert not found.falls_short
    assert not found.holds


def test_the_best_come_first_and_equals_in_their_order() -> None:
    found = Diagnosis(
        (
            source(population="a", worth=1.0),
            source(population="b", worth=3.0, exploration=0.1),
            source(population="c", worth=2.0),
            source(population="d", worth=1.0, reports=10**6),  # by what a row is worth
            source(population="e", worth=9.0, exploration=0.0),
        ),
        None,
    )
    assert found.best_first() == ("c", "a", "d", "b", "e")


def test_warnings_are_plain_sentences_with_the_figures() -> None:
    short = audit(delivered=0.4123)
    cases: list[tuple[Source, Audit | None, list[str]]] = [
        (source(), short, []),
        (source(), None, []),
        (source(harmful=True), None, []),
        (
            source(harmful=True),
            short,
            [
                "clinic-b seems to mislead: mean reward 0.412 ± 0.020 where 0.800 was promised"
                " and arms at random are expected to bring 0.400. Go on without it."
            ],
        ),
        (
            source(exploration=0.04),
            short,
            [
                "clinic-b has hardly any rows with one of the arms (exploration 0.04): it can say"
                " little about that arm."
            ],
        ),
        (source(exploration=0.1), short, []),
        (source(exploration=None), short, []),
        (
            source(overlap=0.21),
            short,
            [
                "clinic-b has its people elsewhere (overlap 0.21): it says little about most of"
                " the target's."
            ],
        ),
        (source(overlap=0.25), short, []),
        (source(overlap=None), short, []),
    ]
    for one, of_all, lines in cases:
        found = Diagnosis((source(population="clinic-c"), one), of_all)
        assert found.warnings == tuple(lines)
        assert found.harmful == (("clinic-b",) if one.harmful else ())
    everything = source(harmful=True, exploration=0.0, overlap=0.0)
    assert len(Diagnosis((everything, everything), short).warnings) == 6


@pytest.mark.parametrize(("answers", "decides"), [(99, False), (100, True)])
def test_fewer_than_a_hundred_answers_decide_nothing(answers: int, decides: bool) -> None:
    for delivered, falls_short in ((0.1, True), (0.9, False)):
        audit = Audit(answers, delivered, promised=0.8, at_random=0.4, standard_error=0.05)
        assert audit.falls_short == (decides and falls_short)
        assert audit.holds == (decides and not falls_short)


# --- before anybody has come ----------------------------------------------------------------------


def populations(*each: tuple[float, Sequence[float] | None], **settings: Any) -> sv.Learner:
    auxiliary = [
        sv.Population(f"clinic {m}", epsilon, 500, behaviour)
        for m, (epsilon, behaviour) in enumerate(each)
    ]
    return sv.Learner(experiment(auxiliary=auxiliary, **{"method": "whisper", **settings}))


UNIFORM = (1 / 3, 1 / 3, 1 / 3)


def test_before_any_report_only_epsilon_and_behaviour_are_known() -> None:
    found = populations((2.0, (0.1, 0.3, 0.6)), (2.0, None)).diagnosis()
    assert found.audit is not None
    assert found.audit.answers == 0
    assert found.audit.standard_error == math.inf
    assert found.audit.promised == found.audit.at_random == 0.5
    known, unknown = found.sources
    assert known.exploration == pytest.approx(0.3)
    assert unknown.exploration is None
    # Half of those whose behaviour is unknown are asked for counts, one in ten of the others.
    assert unknown.worth / known.worth == pytest.approx(0.5 / 0.9)
    for each in found.sources:
        assert (each.reports, each.expected, each.epsilon) == (0, 500, 2.0)
        assert (each.overlap, each.promises, each.harmful) == (None, None, False)
        assert each.effective_users == 0
        assert each.expected_users > 0
    assert found.warnings == found.harmful == ()


def test_an_arm_that_is_missing_is_warned_of_before_any_report() -> None:
    found = populations((2.0, (0.5, 0.5, 0.0))).diagnosis()
    assert found.sources[0].exploration == 0
    assert found.sources[0].expected_users == 0
    assert "hardly any rows with one of the arms" in found.warnings[0]


def test_without_auxiliary_populations_there_is_nothing_to_say() -> None:
    found = populations().diagnosis()
    assert found == Diagnosis((), None)
    assert found.warnings == found.best_first() == ()


def test_louder_populations_come_first() -> None:
    found = populations((0.5, UNIFORM), (8.0, UNIFORM), (1.0, UNIFORM), (4.0, UNIFORM)).diagnosis()
    assert found.best_first() == ("clinic 1", "clinic 3", "clinic 2", "clinic 0")


def test_populations_that_explore_come_first() -> None:
    found = populations(
        (2.0, (0.05, 0.05, 0.9)), (2.0, UNIFORM), (2.0, (0.0, 0.5, 0.5)), (2.0, (0.2, 0.3, 0.5))
    ).diagnosis()
    assert found.best_first() == ("clinic 1", "clinic 3", "clinic 0", "clinic 2")


def test_of_ldpmab_the_budgets_are_compared_and_nobody_is_asked() -> None:
    learner = populations((2.0, UNIFORM), (0.5, UNIFORM), (4.0, None), method="ldpmab")
    found = learner.diagnosis()
    assert found.audit is None
    assert [each.worth for each in found.sources] == [4.0, 0.25, 16.0]  # the target has ε = 1
    assert found.best_first() == ("clinic 2", "clinic 0", "clinic 1")
    assert found.warnings == found.harmful == ()
    for each in found.sources:
        assert (each.exploration, each.overlap, each.promises) == (None, None, None)
    device = sv.Device(learner.release(), population="clinic 0")
    row = {"age": 42, "bmi": 27.5}
    learner.receive(device.report_logged(row, arm="coach", reward=1.0))
    assert [each.reports for each in learner.diagnosis().sources] == [1, 0, 0]
    assert learner.diagnosis().sources[0].effective_users == 4.0
