"""What people tell of their outcomes: the gate, the sums, and what was promised beside them."""

import json
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sottovoce.estimate.whisper.board import Board, begin

import sottovoce as sv
from sottovoce.estimate.diagnosis import Audit
from sottovoce.estimate.whisper import rules
from sottovoce.estimate.whisper.audit import audit, is_clear, look_out, to_ask
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.shared import wire
from sottovoce.shared.whisper.questions import sheet
from support.boards import (
    ANSWERS,
    ASKED,
    CHANCE,
    CONTESTED,
    DELIVERED,
    EVENTS,
    NODES,
    PROMISED,
    RELEASE,
    believing,
)
from support.boards import experiment as of_arms
from support.insides import board_of
from support.whispers import CONTRAST, MASS, grown, number, person, send, whispering

REWARD = 18  # the seventh kind, with two features


def told(learner: sv.Learner, plus: bool = True, **changes: Any) -> sv.Report:
    """Somebody says that it went well, or that it did not."""
    release = learner.release()
    good = sv.Report(
        release.experiment.fingerprint,
        release.version,
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

ABOUT_ALL = "be about everybody, in an experiment with auxiliary populations"
OF_TWO = "be asked where there are two arms, if it is about both"  # the next kind; here are three


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"question": REWARD + 1}, "UNKNOWN_QUESTION", ABOUT_ALL),
        ({"question": REWARD + 2}, "UNKNOWN_QUESTION", ABOUT_ALL),
        ({"question": REWARD + 3}, "UNKNOWN_QUESTION", OF_TWO),
        ({"question": REWARD + 5}, "UNKNOWN_QUESTION", OF_TWO),
        ({"question": REWARD + 6}, "UNKNOWN_QUESTION", "be in the list; got 24"),
        ({"population": 1}, "UNKNOWN_QUESTION", "only the target's people say how it went"),
        ({"population": 2}, "UNKNOWN_QUESTION", "only the target's people say how it went"),
        ({"payload": b""}, "WRONG_LENGTH", "a packed set must take 1 bytes; got 0"),
        ({"payload": b"\0\0"}, "WRONG_LENGTH", "a packed set must take 1 bytes; got 2"),
        ({"payload": b"\2"}, "MALFORMED", "hold 1 of 1 cells"),
        ({"payload": (1.0,)}, "MALFORMED", "must be a packed set"),
        ({"ranking": (0, 1, 2)}, "MALFORMED", "ranking must be left out for this question"),
        ({"ranking": (0,)}, "MALFORMED", "ranking must be left out for this question"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"public_arms": True}, {"epsilon": 1.0}], ids=str)
def test_a_bad_report_about_a_reward_is_refused_and_changes_nothing(
    settings: dict[str, Any], changes: dict[str, Any], reason: str, message: str
) -> None:
    learner = grown(reports=205, **settings)
    refused(learner, told(learner, **changes), reason, message)
    before = learner.to_json()
    learner.receive(told(learner))
    assert learner.to_json() != before


@pytest.mark.parametrize("public_arms", [False, True])
def test_nobody_says_how_it_went_where_there_are_no_auxiliary_populations(
    public_arms: bool,
) -> None:
    learner = sv.Learner(whispering(auxiliary=[], public_arms=public_arms))
    refused(learner, told(learner), "UNKNOWN_QUESTION", ABOUT_ALL)


def test_a_logged_row_of_the_target_cannot_pass_as_somebody_who_was_served() -> None:
    """What is logged says so by its question; about a reward only served people are counted."""
    learner = sv.Learner(whispering(release_every=3))
    learner.receive(told(learner))
    learner.receive(person(random.Random(0), learner.release(), logged=True))
    assert json.loads(learner.to_json())["told"] == [1, 1]
    assert json.loads(learner.to_json())["served"] == 1


# --- the book -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
@pytest.mark.parametrize("public_arms", [False, True])
def test_what_people_tell_is_added_up_at_the_next_step(epsilon: float, public_arms: bool) -> None:
    learner = sv.Learner(
        whispering(epsilon=epsilon, public_arms=public_arms, release_every=8, auxiliary=AUXILIARY)
    )
    for plus in (True, True, False, True, True, True, False):
        learner.receive(told(learner, plus))
    assert json.loads(learner.to_json())["told"] == [7, 3]
    assert not board_of(learner).audit.any()
    learner.receive(told(learner, True))
    board = board_of(learner)
    # 6 yes, 2 no; each is worth 1/β in 2r - 1, that is half of it in r - 1/2. The one bin was
    # expected to bring 1/2, whatever the arm.
    assert board.audit == pytest.approx([8, 4 / signal(epsilon) / 2, 0, 0])
    assert board.experience.tolist() == [8, 8]
    assert json.loads(learner.to_json())["told"] == [0, 0]
    # They tell nothing else.
    for name in ("info", "lean", "mass_info", "mass_lean", "logged_info", "count_info"):
        assert not getattr(board, name).any()
    found = learner.diagnosis().audit
    assert found is not None
    assert found.answers == 8
    assert found.delivered == pytest.approx(0.5 + 4 / signal(epsilon) / 16)
    assert found.promised == found.at_random == 0.5
    # The answers are ±1/β, and r is half of that: 1/(2β) each.
    assert found.standard_error == pytest.approx(1 / (2 * signal(epsilon) * math.sqrt(8)))


AUXILIARY = [sv.Population("clinic-b", 6.0, 100)]


def test_what_was_promised_is_that_of_the_policy_people_had() -> None:
    """The outlook of the last step counts for answers until the next, not that of the next."""
    learner, rng = grown(), random.Random(5)
    send(learner, rng, 20 - sum(learner.status().reports.values()) % 20)
    board = board_of(learner)
    nodes = int(board.totals[0])
    leaves = [node for node in range(nodes) if board.child[node] == node]
    assert len(leaves) > 2
    outlook, before = board.outlook[leaves].copy(), board.audit.copy()
    for _ in range(20):
        learner.receive(told(learner))
    share = outlook[:, 0] / outlook[:, 0].sum()
    expected = [20, 20 / signal(8.0) / 2, 20 * share @ outlook[:, 1], 20 * share @ outlook[:, 2]]
    assert board_of(learner).audit - before == pytest.approx(expected)
    assert outlook[:, 1] @ share > outlook[:, 2] @ share  # a policy promises more than chance


def test_late_answers_about_rewards_are_counted() -> None:
    learner = grown()
    assert learner.release().version > 1
    status, waiting = learner.status(), json.loads(learner.to_json())["told"]
    learner.receive(told(learner, release=1))
    now = learner.status()
    assert now.late_reports == status.late_reports + 1
    assert now.dropped_cells == status.dropped_cells  # it is about everybody, whatever is cut
    assert now.reports["target"] == status.reports["target"] + 1
    assert json.loads(learner.to_json())["told"] == [waiting[0] + 1, waiting[1] + 1]


def test_people_say_how_it_went_where_nothing_is_contested() -> None:
    learner = sv.Learner(whispering(horizon=300, release_every=10))
    while (cells := sheet(learner.release(), population=0, by_arm=False)) is not None:
        mechanism = cells.law.mechanism
        assert mechanism.size == 1
        # Everybody says that the first arm is better, in the lower half of the first bin.
        report = person(random.Random(0), learner.release(), question=number(CONTRAST, 0))
        for bin_ in range(len(cells.bins)):
            learner.receive(replace(report, payload=bytes([4 * bin_ + 1])))
            learner.receive(replace(report, payload=bytes([4 * bin_ + 3])))
            if learner.release().version != report.release:
                break
    assert learner.release().reward_share == 144  # nobody else has anything to tell
    before = board_of(learner).audit.copy()
    empty = person(random.Random(0), learner.release(), question=number(MASS))
    assert empty.payload == b""
    refused(learner, told(learner, payload=b""), "WRONG_LENGTH", "take 1 bytes; got 0")
    rest = 10 - sum(learner.status().reports.values()) % 10
    for _ in range(rest + 9):
        learner.receive(empty)
    learner.receive(told(learner))
    assert board_of(learner).audit[ANSWERS] == before[ANSWERS] + 1
    assert board_of(learner).audit[PROMISED] > before[PROMISED]


def mixed(rng: random.Random, learner: sv.Learner, count: int) -> list[sv.Report]:
    """Reports of all kinds, a third of them about rewards, some late; the learner gets them."""
    releases, reports = [learner.release()], []
    for _ in range(count):
        release = rng.choice(releases) if rng.random() < 0.2 else learner.release()
        if rng.random() < 1 / 3:
            changes = {"release": release.version, "nonce": rng.randbytes(16)}
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
    "settings", [{}, {"epsilon": 1.0}, {"public_arms": True}, {"guarantee": "certified"}], ids=str
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
    assert board_of(at_once).audit[ANSWERS] > 200


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
        waited += json.loads(text)["told"][0] > 0
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
    assert 0 < table["told"][0] < table["served"]
    assert table["board"]["audit"][ANSWERS] > 0
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
    table["told"] = value(table["told"][0], table["served"])
    with pytest.raises(sv.StateError, match="counts of people who said how it went do not fit"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("value", [None, [], [1], [1, 1, 1], "x", 3, ["a", "b"]])
def test_a_state_whose_answers_are_no_two_numbers_is_refused(value: Any) -> None:
    table = json.loads(SAVED)
    table["told"] = value
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))
    del table["told"]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("audit", (ANSWERS,), -1.0, "its audit cannot be"),
        ("audit", (DELIVERED,), math.nan, "audit must be finite"),
        ("audit", (PROMISED,), math.inf, "audit must be finite"),
        ("outlook", (0, 0), 0.0, "its audit cannot be"),
        ("outlook", (0, 0), -0.5, "its audit cannot be"),
        ("outlook", (0, 1), math.nan, "outlook must be finite"),
    ],
)
def test_a_board_whose_audit_cannot_be_is_refused(
    name: str, place: tuple[int, ...], value: float, message: str
) -> None:
    table = json.loads(SAVED)
    array = np.array(table["board"][name])
    array[place] = value
    table["board"][name] = array.tolist()
    with pytest.raises(sv.StateError, match=message):
        sv.Learner.from_json(json.dumps(table))


def test_a_waiting_tally_about_rewards_is_refused() -> None:
    """They are counted apart; a tally of them would be folded into some bin."""
    table = json.loads(SAVED)
    table["tallies"].append([1, 0, REWARD, [[1]], [[1], [0], [0]], [[1], [0], [0]]])
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


# --- by hand --------------------------------------------------------------------------------------


def test_the_outlook_of_a_bin_is_that_of_its_two_arms_and_of_all() -> None:
    known = constants(of_arms(arms=3, behaviours=(None,)))
    board = begin(known)
    assert board.outlook[0].tolist() == [1, 0, 0]
    mean = np.array([0.3, -0.1, 0.2])
    board.pair[0] = [2, 1]
    look_out(board, known, 0, 0.25, mean)
    assert board.outlook[0] == pytest.approx([0.25, (0.2 - 0.1) / 2, 0.4 / 3])
    board.pair[0] = [0, 0]  # settled
    look_out(board, known, 0, 0.75, mean)
    assert board.outlook[0] == pytest.approx([0.75, 0.3, 0.4 / 3])


def test_where_arms_are_public_the_outlook_is_that_of_all_live_arms() -> None:
    """Everybody there gets one of the live arms, each as often as any: not the best two alone."""
    for public_arms, expected in ((False, (0.1 + 0.05) / 2), (True, (0.1 + 0.05 - 0.3) / 3)):
        known = constants(of_arms(arms=3, behaviours=(None,), public_arms=public_arms))
        board = believing(known, [0.1, 0.05, -0.3], deviation=0.3, users=1.0)
        rules.step(board, known)
        assert board.live[0].all()
        assert board.outlook[0] == pytest.approx([1.0, expected, -0.15 / 3], abs=1e-6)


def test_an_audit_weighs_leaves_by_their_people_and_leaves_out_what_was_cut() -> None:
    known = constants(of_arms(arms=3, behaviours=(None,)))
    board = begin(known)
    board.totals[0] = 3
    board.child[:3] = [1, 1, 2]
    board.outlook[:3] = [[1.0, 9.0, 9.0], [0.3, 0.2, 0.0], [0.1, -0.2, 0.1]]
    audit(board, 8.0, -2.0)
    # (0.3·0.2 - 0.1·0.2)/0.4 = 0.1 and 0.01/0.4 = 0.025, of 8 people each.
    assert board.audit == pytest.approx([8, -1, 0.8, 0.2])
    board.outlook[2] = [0.1, 0.2, 0.1]
    audit(board, 2.0, 4.0)
    assert board.audit == pytest.approx([10, 1, 0.8 + 2 * 0.2, 0.25])


# --- how many are asked ---------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_an_audit_is_clear_when_it_holds_or_falls_short(epsilon: float) -> None:
    known = constants(whispering(epsilon=epsilon))
    rng = np.random.default_rng(int(10 * epsilon))
    seen = set()
    for answers in [0, 1, 99, 100, 101, *rng.integers(2, 100, 200), *rng.integers(100, 9999, 600)]:
        promised, at_random = rng.uniform(0.3, 0.8, 2)
        error = 1 / (2 * signal(epsilon) * math.sqrt(answers)) if answers else math.inf
        doubt = rng.choice([-1, 1]) * rng.choice([0.1, 1.2, 1.3, 2.4, 2.49, 2.51, 2.6, 6.0])
        delivered = (promised + at_random) / 2 + (doubt * error if answers else 0.0)
        expected = Audit(int(answers), delivered, promised, at_random, error)
        board = begin(known)
        board.audit[ANSWERS] = answers
        for place, mean in ((DELIVERED, delivered), (PROMISED, promised), (CHANCE, at_random)):
            board.audit[place] = answers * (mean - 0.5)
        assert is_clear(board, known) == (expected.holds or expected.falls_short)
        seen.add((answers >= 100, expected.holds, expected.falls_short))
    few, unclear = (False, False, False), (True, False, False)
    assert seen == {few, unclear, (True, True, False), (True, False, True)}


def settled_in(known: Constants, eighths: int) -> Board:
    """A board whose bins are settled for so many eighths of the people; the rest is contested."""
    board = begin(known)
    board.totals[[NODES, CONTESTED]] = 5, 2
    board.child[:5] = [1, 3, 2, 3, 4]
    board.contested[:2] = [2, 4]
    # Two bins were cut, and nobody is counted in them, whatever their pair was.
    board.outlook[:5, 0] = [0.8, 0.5, (8 - eighths) / 16, eighths / 8, (8 - eighths) / 16]
    board.pair[:5] = [[1, 1], [0, 1], [0, 1], [1, 1], [1, 0]]
    return board


CLEAR = [10_000.0, 2000.0, 0.0, 0.0]  # answers 0.2 above what was promised


@pytest.mark.parametrize(
    ("eighths", "asked"), [(0, 24), (2, 24), (4, 24), (5, 24), (6, 72), (7, 120), (8, 144)]
)
def test_the_more_people_are_in_settled_bins_the_more_are_asked_until_it_is_clear(
    eighths: int, asked: int
) -> None:
    """Of 160, in steps of 24: by how much those in settled bins outnumber the others."""
    known = constants(of_arms(behaviours=(None,)))
    board = settled_in(known, eighths)
    assert to_ask(board, known) == asked
    board.outlook[:5, 0] /= 3  # shares need not add up to one
    assert to_ask(board, known) == asked
    board.audit[:] = CLEAR
    assert to_ask(board, known) == 24
    board.audit[DELIVERED] *= -1  # it is as clear that it went badly
    assert to_ask(board, known) == 24


@pytest.mark.parametrize("eighths", [0, 4, 8])
def test_nobody_is_asked_where_there_are_no_auxiliary_populations(eighths: int) -> None:
    known = constants(of_arms())
    board = settled_in(known, eighths)
    assert to_ask(board, known) == 0
    board.audit[:] = CLEAR
    assert to_ask(board, known) == 0


def test_a_step_makes_a_new_release_when_only_the_share_of_those_asked_changes() -> None:
    known = constants(of_arms(behaviours=(None,)))
    board = settled_in(known, 8)
    board.totals[CONTESTED] = 0  # no bin is looked at, so that nothing else changes
    assert board.totals[ASKED] == 24
    for release, asked, told in ((2, 144, 0), (2, 144, 0), (3, 24, 1), (3, 24, 1), (4, 144, 0)):
        board.audit[:] = np.array(CLEAR) * told
        rules.step(board, known)
        assert board.totals[[RELEASE, ASKED, EVENTS]].tolist() == [release, asked, 0]


def test_releases_say_how_many_are_asked() -> None:
    assert sv.Learner(whispering()).release().reward_share == 24
    assert sv.Learner(whispering(auxiliary=[])).release().reward_share == 0
