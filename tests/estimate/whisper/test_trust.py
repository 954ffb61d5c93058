"""Whether what was learned holds for the target's people; and the learner that begins anew."""

import json
import random
from typing import Any

import pytest

import sottovoce as sv
from factories import grown_whisper, unit_cube
from sottovoce.estimate.whisper.anew import begin_anew
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.state import State, initial_state
from sottovoce.estimate.whisper.step import step
from sottovoce.estimate.whisper.trust import BEGIN_ANEW, STAY, fade, judge
from support.states import audit_of, set_audit

ROWS: dict[str, Any] = {"behaviours": (None,)}


def audited(*, answers: float, delivered: float, **settings: Any) -> tuple[State, Constants]:
    """A gain of 0.2 was promised; ``delivered`` of it came, by so many answers."""
    known = constants(unit_cube(**(settings or ROWS)))
    state = initial_state(known)
    state.totals[0].served = 100
    set_audit(state, answers, answers * 0.2 * delivered, answers * 0.2, 0.0)
    return state, known


@pytest.mark.parametrize(
    ("delivered", "verdict"),
    [(1.5, STAY), (1.0, STAY), (0.85, STAY), (0.1, BEGIN_ANEW), (-0.5, BEGIN_ANEW)],
)
def test_a_learner_begins_anew_if_promises_are_broken_by_far(
    delivered: float, verdict: int
) -> None:
    state, known = audited(answers=50_000, delivered=delivered)
    assert judge(state, known) == verdict
    assert state.totals[0].misled == (verdict == BEGIN_ANEW)


def test_a_few_answers_are_no_reason() -> None:
    for answers in (0, 1, 20):
        state, known = audited(answers=answers, delivered=-0.5)
        assert judge(state, known) == STAY


@pytest.mark.parametrize(
    "settings", [{}, {**ROWS, "guarantee": "certified"}], ids=["no rows", "certified"]
)
def test_who_learned_from_its_own_people_or_has_proof_does_not(settings: dict[str, Any]) -> None:
    state, known = audited(answers=50_000, delivered=-1.0, **{"arms": 2, **settings})
    assert judge(state, known) == STAY


def test_rows_that_misled_are_judged_once() -> None:
    state, known = audited(answers=50_000, delivered=-1.0)
    assert judge(state, known) == BEGIN_ANEW
    new = begin_anew(state, known)
    new.totals[0].served = 100
    assert judge(new, known) == STAY


def test_one_bin_and_all_arms_are_left_and_the_counts_go_on() -> None:
    known = constants(unit_cube(**ROWS))
    state = initial_state(known)
    totals = state.totals[0]
    totals.release, totals.reports, totals.target, totals.paid = 7, 900, 500, 600
    state.live[0, 1], state.pair[0] = False, 0
    state.logged.precision[0, 1, 0, 0, 0] = 1.0
    totals.served = 100
    set_audit(state, 50_000.0, -9000.0, 9000.0, 0.0)
    step(state, known)
    assert totals.verdict == BEGIN_ANEW
    new = begin_anew(state, known)
    now = new.totals[0]
    assert (now.nodes, now.contested, now.events) == (1, 1, 0)
    assert new.live[0].all()
    assert (now.release, now.first_release, now.reports, now.target) == (8, 8, 900, 500)
    assert now.paid == 0  # for comparisons that begin now
    assert not new.logged.precision.any()
    assert audit_of(new) == audit_of(state)  # so that the diagnosis says why
    assert now.reward_share == 0  # nothing is left to check
    assert now.misled


def misled(*, reports: int = 267) -> sv.Learner:
    """A learner that begins anew at its next step."""
    learner = grown_whisper(reports=reports)
    table = json.loads(learner.to_json())
    names = list(initial_state(constants(learner.experiment)).totals.dtype.names)
    totals = table["state"]["totals"][0]
    for name, value in {
        "audit_answers": 50_000.0,
        "audit_delivered": -9000.0,
        "audit_promised": 9000.0,
    }.items():
        totals[names.index(name)] = value
    return sv.Learner.from_json(json.dumps(table))


def send(learner: sv.Learner, count: int) -> None:
    rng = random.Random(3)
    for _ in range(count):
        device = sv.Device(learner.release())
        device.choose({"age": rng.uniform(18, 90), "bmi": rng.uniform(15, 45)})
        learner.receive(device.report(reward=float(rng.random() < 0.5)))


def test_a_learner_says_that_it_began_anew_and_goes_on_to_learn() -> None:
    learner = misled()
    before, late = learner.certificates(), learner.release()
    assert len(late.bins) > 1
    send(learner, 20 - sum(learner.status().reports.values()) % 20)
    release = learner.release()
    assert release.version == late.version + 1
    assert [policy.path for policy in release.bins] == [""]
    assert release.bins[0].live == tuple(range(len(learner.experiment.arms)))
    assert isinstance(learner.history()[-1].event, sv.BeganAnew)
    assert learner.certificates() == before
    again = sv.Learner.from_json(learner.to_json())
    assert again.to_json() == learner.to_json()
    send(learner, 40)
    send(again, 40)
    assert learner.status().reports == again.status().reports
    # Answers for releases with other bins of the same path count, and tell nothing.
    state = json.loads(learner.to_json())["state"]
    for _ in range(20):
        device = sv.Device(late)
        device.choose({"age": 40, "bmi": 30})
        learner.receive(device.report(reward=1.0))
    after = json.loads(learner.to_json())["state"]
    assert after["served.precision"] == state["served.precision"]


def test_what_was_learned_fades_by_half_over_a_half_life() -> None:
    known = constants(unit_cube(half_life=1000))
    state = initial_state(known)
    told = (
        state.served.precision,
        state.served.vector,
        state.logged.precision,
        state.logged.vector,
    )
    for array in told:
        array[:2] = 8.0
    state.totals[0].served = 500
    for _ in range(4):
        fade(state, known)
    for array in told:
        assert array[0] == pytest.approx(2.0)
        assert (array[1] == 8.0).all()  # it is not contested
    state.totals[0].served = 0
    fade(state, known)  # rows are no time
    assert told[0][0] == pytest.approx(2.0)


def test_without_a_half_life_nothing_fades() -> None:
    known = constants(unit_cube())
    state = initial_state(known)
    state.served.precision[0] = 8.0
    state.totals[0].served = 5000
    fade(state, known)
    assert (state.served.precision[0] == 8.0).all()


def test_what_was_right_until_now_does_not_hide_a_change() -> None:
    state, known = audited(answers=50_000, delivered=1.0, half_life=20_000)
    assert judge(state, known) == STAY
    assert audit_of(state) == [0, 0, 0, 0]
    set_audit(state, 5000.0, 0.0, 1000.0, 0.0)
    assert judge(state, known) == BEGIN_ANEW
    assert not state.totals[0].misled
    new = begin_anew(state, known)
    assert new.totals[0].reward_share > 0  # it goes on to look


def test_half_a_life_is_none_and_proof_does_not_fade() -> None:
    for wrong in (0, -5, 1.5, True, "long"):
        with pytest.raises(sv.ExperimentError, match="half_life of whisper must be"):
            sv.Whisper(half_life=wrong)  # type: ignore[arg-type]
    with pytest.raises(sv.ExperimentError, match="certified"):
        sv.Whisper("certified", half_life=100)
    assert sv.Whisper(half_life=5).to_table()["half_life"] == 5
    assert "half_life" not in sv.Whisper().to_table()
