"""What people tell of their rewards: the gate, the sums, and what was promised beside them."""

import json
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import CONTRAST, MASS, grown_whisper, whispering
from sottovoce.shared import wire
from sottovoce.shared.whisper.cells import cell_layout
from support.insides import whisper_state_of
from support.slow import slow_but
from support.states import TOTALS, audit_of
from support.whispers import number, person, send, tell_places

REWARD = 18  # the seventh kind, with two features


def told(learner: sv.Learner, plus: bool = True, **changes: Any) -> sv.Report:
    """Somebody says that it went well, or that it did not."""
    release = learner.release()
    good = sv.Report(
        wire.release_id(release),
        0,
        bytes(16),
        bytes([plus]),
        REWARD,
    )
    return replace(good, **changes)


def refused(learner: sv.Learner, report: sv.Report, reason: str, message: str) -> None:
    before = learner.to_json()
    with pytest.raises(sv.ReportRejected, match=message) as caught:
        learner.receive(report)
    assert caught.value.reason is sv.Rejection[reason]
    assert learner.to_json() == before


def signal(epsilon: float) -> float:
    """β of randomised response."""
    return math.tanh(epsilon / 2)


# --- the gate -------------------------------------------------------------------------------------

ABOUT_ALL = "be about no axis where everybody is in one cell"
REST = "SCALE, LOGGED_SCALE, COUNT, OUTCOME"
BEYOND = 8 * 3 + 2 * 27 * 2 + 2  # 8 kinds with a pattern for each axis, 2 about places, 2 of bins
ASKED = rf"be one that its experiment asks \(MASS, .*\bREWARD, {REST}\); got"
OF_TARGET = "only the target's people are asked for their reward"


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"question": REWARD + 1}, "UNKNOWN_QUESTION", ABOUT_ALL),
        ({"question": REWARD + 2}, "UNKNOWN_QUESTION", ABOUT_ALL),
        ({"question": REWARD + 3}, "UNKNOWN_QUESTION", ASKED),
        ({"question": REWARD + 5}, "UNKNOWN_QUESTION", ASKED),
        ({"question": BEYOND}, "UNKNOWN_QUESTION", ASKED + f" {BEYOND}"),
        ({"population": 1}, "UNKNOWN_QUESTION", OF_TARGET),
        ({"population": 2}, "UNKNOWN_QUESTION", OF_TARGET),
        ({"payload": b""}, "WRONG_LENGTH", "a packed set must take 1 bytes; got 0"),
        ({"payload": b"\0\0"}, "WRONG_LENGTH", "a packed set must take 1 bytes; got 2"),
        ({"payload": b"\2"}, "MALFORMED", "be a set that holds 1 of 1 cells"),
        ({"payload": (1.0,)}, "MALFORMED", "must be a packed set"),
        ({"ranking": (0, 1, 2)}, "MALFORMED", "ranking must be left out for this question"),
        ({"ranking": (0,)}, "MALFORMED", "ranking must be left out for this question"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"public_arms": True}, {"epsilon": 1.0}], ids=str)
def test_a_bad_report_about_a_reward_is_refused_and_changes_nothing(
    settings: dict[str, Any], changes: dict[str, Any], reason: str, message: str
) -> None:
    learner = grown_whisper(reports=205, **settings)
    refused(learner, told(learner, **changes), reason, message)
    before = learner.to_json()
    learner.receive(told(learner))
    assert learner.to_json() != before


@pytest.mark.parametrize("public_arms", [False, True])
def test_nobody_tells_a_reward_where_there_are_no_auxiliary_populations(
    public_arms: bool,
) -> None:
    learner = sv.Learner(whispering(auxiliary=[], public_arms=public_arms))
    asked = "be one that its experiment asks .MASS, [^W]*; got 18"  # without REWARD
    refused(learner, told(learner), "UNKNOWN_QUESTION", asked)


def test_a_logged_row_of_the_target_cannot_pass_as_somebody_who_was_served() -> None:
    """What is logged says so by its question; about a reward only served people are counted."""
    learner = sv.Learner(whispering(release_every=3))
    learner.receive(told(learner))
    learner.receive(person(random.Random(0), learner.release(), logged=True))
    assert json.loads(learner.to_json())["rewards"] == [1, 1]
    assert json.loads(learner.to_json())["target"] == 1


# --- the sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
@pytest.mark.parametrize("public_arms", [False, True])
def test_what_people_tell_is_added_up_at_the_next_step(epsilon: float, public_arms: bool) -> None:
    learner = sv.Learner(
        whispering(epsilon=epsilon, public_arms=public_arms, release_every=8, auxiliary=AUXILIARY)
    )
    for plus in (True, True, False, True, True, True, False):
        learner.receive(told(learner, plus))
    assert json.loads(learner.to_json())["rewards"] == [7, 3]
    assert not any(audit_of(whisper_state_of(learner)))
    learner.receive(told(learner, True))
    state = whisper_state_of(learner)
    # 6 yes, 2 no; each is worth 1/β in 2r - 1, that is half of it in r - 1/2. The one bin was
    # expected to bring 1/2, whatever the arm.
    assert audit_of(state) == pytest.approx([8, 4 / signal(epsilon) / 2, 0, 0])
    assert (state.totals[0].paid, state.totals[0].target) == (8, 8)
    assert json.loads(learner.to_json())["rewards"] == [0, 0]
    # They tell nothing else.
    for told_of in (state.served, state.mass_told, state.logged, state.rows_told):
        assert not told_of.precision.any()
        assert not told_of.vector.any()
    found = learner.diagnosis().audit
    assert found is not None
    assert found.answers == 8
    assert found.delivered == pytest.approx(0.5 + 4 / signal(epsilon) / 16)
    assert found.promised == found.at_random == 0.5
    # The answers are ±1/β, and r is half of that: 1/(2β) each.
    assert found.standard_error == pytest.approx(1 / (2 * signal(epsilon) * math.sqrt(8)))


AUXILIARY = [sv.Population("clinic-b", 6.0, 100)]


def test_what_was_promised_is_that_of_the_policy_people_had() -> None:
    """The forecast of the last step counts for answers until the next, not that of the next."""
    learner, rng = grown_whisper(), random.Random(5)
    send(learner, rng, 20 - sum(learner.status().reports.values()) % 20)
    state = whisper_state_of(learner)
    leaves = [node for node in range(state.totals[0].nodes) if state.tree.child[node] == node]
    assert len(leaves) > 2
    people, policy, at_random = (array[leaves].copy() for array in state.forecast)
    before = np.array(audit_of(state))
    for _ in range(20):
        learner.receive(told(learner))
    share = people / people.sum()
    expected = [20, 20 / signal(8.0) / 2, 20 * share @ policy, 20 * share @ at_random]
    assert np.array(audit_of(whisper_state_of(learner))) - before == pytest.approx(expected)
    assert policy @ share > at_random @ share  # a policy promises more than chance


def test_late_answers_about_rewards_are_counted() -> None:
    learner = grown_whisper()
    assert learner.release().version > 1
    status, waiting = learner.status(), json.loads(learner.to_json())["rewards"]
    learner.receive(
        told(learner, release=wire.release_id(sv.Learner(learner.experiment).release()))
    )
    now = learner.status()
    assert now.late_reports == status.late_reports + 1
    assert now.dropped_cells == status.dropped_cells  # it is about everybody, whatever is split
    assert now.reports["target"] == status.reports["target"] + 1
    assert json.loads(learner.to_json())["rewards"] == [waiting[0] + 1, waiting[1] + 1]


def test_people_tell_their_rewards_where_nothing_is_contested() -> None:
    learner = sv.Learner(whispering(horizon=300, release_every=10))
    tell_places(learner, random.Random(0))
    while (layout := cell_layout(learner.release(), population=0, by_arm=False)) is not None:
        assert layout.halves.mechanism.size == 1
        # Everybody says that the first arm is better, in the lower half of the first bin.
        report = person(random.Random(0), learner.release(), question=number(CONTRAST, 0))
        for bin_ in range(len(layout.bins)):
            learner.receive(replace(report, payload=bytes([4 * bin_ + 1])))
            learner.receive(replace(report, payload=bytes([4 * bin_ + 3])))
            if wire.release_id(learner.release()) != report.release:
                break
    assert learner.release().reward_share == 144  # nobody else has anything to tell
    answers, _, promised, _ = audit_of(whisper_state_of(learner))
    empty = person(random.Random(0), learner.release(), question=number(MASS))
    assert empty.payload == b""
    refused(learner, told(learner, payload=b""), "WRONG_LENGTH", "take 1 bytes; got 0")
    rest = 10 - sum(learner.status().reports.values()) % 10
    for _ in range(rest + 9):
        learner.receive(empty)
    learner.receive(told(learner))
    after = audit_of(whisper_state_of(learner))
    assert after[0] == answers + 1
    assert after[2] > promised


def mixed(rng: random.Random, learner: sv.Learner, count: int) -> list[sv.Report]:
    """Reports of all kinds, a third of them about rewards, some late; the learner gets them."""
    releases, reports = [learner.release()], []
    for _ in range(count):
        release = rng.choice(releases) if rng.random() < 0.2 else learner.release()
        if rng.random() < 1 / 3:
            changes = {"release": wire.release_id(release), "nonce": rng.randbytes(16)}
            report = told(learner, rng.random() < 0.7, **changes)
        else:
            population = rng.choice([0, 0, 1, 2])
            logged = population > 0 and rng.random() < 0.5
            report = person(rng, release, population=population, logged=logged)
        reports.append(report)
        learner.receive(report)
        if releases[-1].version != learner.release().version:
            releases.append(learner.release())
    return reports


EACH = pytest.mark.parametrize(
    "settings",
    slow_but([{}], [{}, {"epsilon": 1.0}, {"public_arms": True}, {"guarantee": "certified"}]),
    ids=str,
)


@EACH
def test_many_at_once_count_as_one_by_one(settings: dict[str, Any]) -> None:
    one_by_one = sv.Learner(whispering(**settings))
    reports = mixed(random.Random(1), one_by_one, 700)
    assert one_by_one.status().late_reports > 20
    at_once = sv.Learner(one_by_one.experiment)
    packed = [wire.report_to_bytes(report) for report in reports]
    assert at_once.receive_many(packed[:333]) == [None] * 333
    assert at_once.receive_many(packed[333:]) == [None] * 367
    assert at_once.to_json() == one_by_one.to_json()
    assert at_once.diagnosis() == one_by_one.diagnosis()
    assert audit_of(whisper_state_of(at_once))[0] > 200


@EACH
def test_a_resumed_learner_goes_on_bit_for_bit_with_answers_that_wait(
    settings: dict[str, Any],
) -> None:
    stays = sv.Learner(whispering(**settings))
    reports = mixed(random.Random(2), stays, 300)
    moves, waited = sv.Learner(stays.experiment), 0
    for report in reports:
        moves.receive(report)
        text = moves.to_json()
        waited += json.loads(text)["rewards"][0] > 0
        moves = sv.Learner.from_json(text)
        assert moves.to_json() == text
    assert waited > 200
    assert moves.to_json() == stays.to_json()
    assert moves.diagnosis() == stays.diagnosis()


@EACH
def test_the_order_of_answers_between_two_steps_does_not_matter(settings: dict[str, Any]) -> None:
    one = sv.Learner(whispering(release_every=60, **settings))
    reports = mixed(random.Random(3), one, 60)
    other = sv.Learner(one.experiment)
    for report in random.Random(4).sample(reports, 60):
        other.receive(report)
    assert other.to_json() == one.to_json()


WAITING = sv.Learner(whispering())
mixed(random.Random(6), WAITING, 215)
SAVED = WAITING.to_json()


def test_the_state_to_be_damaged_is_sound() -> None:
    table = json.loads(SAVED)
    assert 0 < table["rewards"][0] < table["target"]
    assert table["state"]["totals"][0][TOTALS.index("audit_answers")] > 0
    assert sv.Learner.from_json(SAVED).to_json() == SAVED


@pytest.mark.parametrize(
    "value",
    [
        lambda told, served: [served + 1, 0],
        lambda told, served: [10**9, 0],
        lambda told, served: [-1, 0],
        lambda told, served: [-1, 1],
        lambda told, served: [told, told + 1],
        lambda told, served: [told, -told - 1],
        lambda told, served: [0, 1],
    ],
    ids=["more than served", "far more", "negative", "both", "too good", "too bad", "of nobody"],
)
def test_a_state_in_which_more_is_told_than_can_be_is_refused(value: Any) -> None:
    table = json.loads(SAVED)
    table["rewards"] = value(table["rewards"][0], table["target"])
    with pytest.raises(sv.StateError, match="counts of people who told their reward do not fit"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("value", [None, [], [1], [1, 1, 1], "x", 3, ["a", "b"]])
def test_a_state_whose_answers_are_no_two_numbers_is_refused(value: Any) -> None:
    table = json.loads(SAVED)
    table["rewards"] = value
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))
    del table["rewards"]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("audit_answers", -1.0, "its audit cannot be"),
        ("audit_delivered", math.nan, "totals.audit_delivered must be finite"),
        ("audit_promised", math.inf, "totals.audit_promised must be finite"),
        ("forecast.share", 0.0, "its audit cannot be"),
        ("forecast.share", -0.5, "its audit cannot be"),
        ("forecast.policy", math.nan, "forecast.policy must be finite"),
    ],
)
def test_a_state_whose_audit_cannot_be_is_refused(name: str, value: float, message: str) -> None:
    table = json.loads(SAVED)
    if name in TOTALS:
        table["state"]["totals"][0][TOTALS.index(name)] = value
    else:
        table["state"][name][0] = value
    with pytest.raises(sv.StateError, match=message):
        sv.Learner.from_json(json.dumps(table))


def test_a_waiting_tally_about_rewards_is_refused() -> None:
    """They are counted apart; a tally of them would be added to some bin."""
    table = json.loads(SAVED)
    table["tallies"].append([1, 0, REWARD, [[1]], [[1], [0], [0]], [[1], [0], [0]]])
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))
