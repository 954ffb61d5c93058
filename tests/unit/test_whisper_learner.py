"""A learner whose method is ``whisper``: late reports, order, saved states, bad reports."""

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device import ask
from sottovoce.device.subset import whisper
from sottovoce.estimate.history import Cut, Elimination
from sottovoce.estimate.whisper.board import Board
from sottovoce.estimate.whisper.book import WhisperBook
from sottovoce.shared import wire
from sottovoce.shared.partition import Partition
from sottovoce.shared.questions import Kind, Question, sheet
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.subset import pack, unpack
from support.examples import experiment
from support.examples import grown as ldpmab_grown

CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED = range(6)
DIMENSION = 2


def number(kind: int, feature: int | None = None) -> int:
    """The place of a question in the list: 1 + d for each kind."""
    return kind * (1 + DIMENSION) + (0 if feature is None else 1 + feature)


class Seeded:
    """Randomness of a device that can be replayed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def chance(self, numerator: int, denominator: int) -> bool:
        return self._rng.randrange(denominator) < numerator

    def below(self, limit: int) -> int:
        return self._rng.randrange(limit)

    def bits(self, count: int) -> int:
        return self._rng.getrandbits(count)


def truth(point: tuple[float, ...], arm: int) -> float:
    """Mean rewards: which arm is best depends on the first feature, and a little on the second."""
    x, y = point
    return (0.2 + 0.6 * x, 0.8 - 0.6 * x, 0.45 + 0.1 * y)[arm]


def person(
    rng: random.Random,
    release: sv.Release,
    *,
    population: int = 0,
    logged: bool = False,
    question: int | None = None,
    means: Callable[[tuple[float, ...], int], float] = truth,
) -> sv.Report:
    """The report of someone at random, on some question that is open to them."""
    settings = release.experiment.settings
    assert isinstance(settings, sv.Whisper)
    public = settings.public_arms
    point = (rng.random(), rng.random())
    path = release.partition.find(point)
    policy = release.policies[path]
    ranking = tuple(rng.sample(range(3), 3)) if public and not logged else ()
    if logged:
        arm = rng.randrange(3)
    else:
        arm = min(policy.arms, key=ranking.index) if public else rng.choice(policy.arms)
    outcome = float(rng.random() < means(point, arm))
    cells = sheet(release, population=population, by_arm=logged)
    if question is None:
        kinds = (
            [OUTCOME, COUNT] if logged else [RANKED, MASS] if public else [CONTRAST, LEVEL, MASS]
        )
        kind = rng.choices(kinds, [8, *[1] * (len(kinds) - 1)])[0]
        must_halve = cells is not None and cells.law.halves
        feature = rng.randrange(2) if must_halve or rng.random() < 0.5 else None
        question = number(kind, feature)
    payload = b""
    if cells is not None:
        asked = Question(Kind(question // 3), question % 3 - 1 if question % 3 else None)
        secret = ask.Secret(point, path, arm, logged=logged, ranking=ranking)
        cell, value = ask.answer(release, cells, asked, secret=secret, outcome=outcome)
        payload = whisper(cells.law.mechanism, cell=cell, value=value, draws=Seeded(rng))
    return sv.Report(
        release.experiment.fingerprint,
        release.version,
        population,
        rng.randbytes(16),
        payload,
        question,
        ranking if question // 3 == RANKED else (),
    )


def whispering(**settings: Any) -> sv.Experiment:
    method = {
        key: settings.pop(key) for key in ("guarantee", "delta", "public_arms") & settings.keys()
    }
    auxiliary = [
        sv.Population("clinic-b", 6.0, 100, (0.2, 0.3, 0.5)),
        sv.Population("clinic-c", 1.0, 100),
    ]
    defaults = {"epsilon": 8.0, "release_every": 20, "horizon": 4000, "auxiliary": auxiliary}
    return experiment(**{**defaults, **settings, "method": sv.Whisper(**method)})


def send(
    learner: sv.Learner, rng: random.Random, count: int, *, target_only: bool = False
) -> list[sv.Release]:
    """Let people of all populations report, served ones and logged ones; return all releases."""
    releases = [learner.release()]
    for _ in range(count):
        population = 0 if target_only else rng.choice([0, 0, 0, 1, 2])
        logged = population > 0 and rng.random() < 0.5
        learner.receive(person(rng, learner.release(), population=population, logged=logged))
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
    return releases


@lru_cache
def grown_once(reports: int, *settings: tuple[str, Any]) -> str:
    learner = sv.Learner(whispering(**dict(settings)))
    send(learner, random.Random(1), reports, target_only="guarantee" in dict(settings))
    return learner.to_json()


def grown(*, reports: int = 1507, **settings: Any) -> sv.Learner:
    """A learner that has dropped arms and cut bins, and is in the middle of a batch."""
    return sv.Learner.from_json(grown_once(reports, *settings.items()))


def board_of(learner: sv.Learner) -> Board:
    assert isinstance(learner._book, WhisperBook)
    return learner._book.board


SETTINGS: list[dict[str, Any]] = [
    {},
    {"epsilon": 1.0},
    {"epsilon": 2.0, "guarantee": "certified"},
    {"public_arms": True},
    {"public_arms": True, "epsilon": 2.0},
]
each_setting = pytest.mark.parametrize(
    "settings", SETTINGS, ids=lambda each: " ".join(map(str, each.values())) or "default"
)


def test_the_example_has_dropped_arms_and_cut_bins() -> None:
    learner = grown()
    kinds = {type(dated.event) for dated in learner.history()}
    assert kinds == {Cut, Elimination}
    status = learner.status()
    assert status.contested_cells > 0
    assert 0 < status.settled_bins < status.bins
    assert len(json.loads(learner.to_json())["tallies"]) > 2  # some answers wait for the next step


# --- late reports ---------------------------------------------------------------------------------


def older_release(learner: sv.Learner, rng: random.Random) -> sv.Release:
    """Go on until some bins of an older release stand and some do not; end on a whole batch."""
    while True:
        before = learner.release()
        send(learner, rng, 20)
        now = {policy.path for policy in learner.release().contested}
        standing = [policy.path in now for policy in before.contested]
        if any(standing) and not all(standing):
            return before


@pytest.mark.parametrize("logged", [False, True])
def test_a_late_report_counts_for_the_bins_that_still_stand(logged: bool) -> None:
    learner, rng = sv.Learner(whispering()), random.Random(3)
    older = older_release(learner, rng)
    assert sum(learner.status().reports.values()) % 20 == 0
    now = {policy.path for policy in learner.release().contested}
    gone = [policy for policy in older.contested if policy.path not in now]
    status, board = learner.status(), board_of(learner)
    names = path_of(board)
    grew = {}
    fields = ("logged_info", "count_info") if logged else ("info", "mass_info")
    before = {name: getattr(board, name).copy() for name in fields}
    learner.receive(person(rng, older, population=1, logged=logged))
    assert learner.status().late_reports == status.late_reports + 1
    cells = sum(len(policy.live) if logged else 1 for policy in gone)
    assert learner.status().dropped_cells == status.dropped_cells + cells
    # The rest of the batch tells nothing of rewards or counts in population 1.
    for _ in range(19):
        learner.receive(person(rng, older, population=2))
    board = board_of(learner)
    for node, path in enumerate(names):
        grew[path] = any(
            (getattr(board, name)[node, 1] != before[name][node, 1]).any() for name in fields
        )
    assert {path for path in grew if grew[path]} == {
        policy.path for policy in older.contested if policy.path in now
    }


def path_of(board: Board) -> list[str]:
    """The path of each node, by following children; independent of ``board.paths``."""
    names = {0: ""}
    for node in range(int(board.totals[0])):
        child = int(board.child[node])
        if child != node:
            names |= {child: names[node] + "0", child + 1: names[node] + "1"}
    return [names[node] for node in sorted(names)]


def test_a_late_report_whose_bins_are_all_gone_is_counted_as_dropped() -> None:
    learner, rng = grown(), random.Random(5)
    first = sv.Learner(learner.experiment).release()
    status = learner.status()
    assert status.bins > 1
    learner.receive(person(rng, first))
    learner.receive(person(rng, first, population=1, logged=True))
    after = learner.status()
    assert after.late_reports == status.late_reports + 2
    assert after.dropped_cells == status.dropped_cells + 1 + 3


def test_a_vote_that_comes_late_is_for_the_arms_that_were_compared_then() -> None:
    learner, rng = sv.Learner(whispering(epsilon=2.0, guarantee="certified")), random.Random(2)
    first = learner.release()
    while (now := learner.release()).bins[0].arms == first.bins[0].arms:
        send(learner, rng, 20, target_only=True)
    assert len(now.bins) == 1
    a, b = first.bins[0].arms
    before = board_of(learner).ballots[0].copy()
    votes = {-1: 0, 0: 0, 1: 0}
    for _ in range(20):
        report = person(rng, first, question=number(CONTRAST))
        votes[named_of(first, report)] += 1
        learner.receive(report)
    more = board_of(learner).ballots[0] - before
    assert (more[a, b], more[b, a]) == (votes[1], votes[-1])
    assert more.sum() == votes[1] + votes[-1] > 0


def test_only_the_target_s_people_vote_and_only_on_whole_bins() -> None:
    settings: dict[str, Any] = {"epsilon": 2.0, "guarantee": "certified", "release_every": 40}
    learner, rng = sv.Learner(whispering(**settings)), random.Random(2)
    first = learner.release()
    for _ in range(20):
        learner.receive(person(rng, first, population=1, question=number(CONTRAST)))
    for kind, feature in [(CONTRAST, 0), (CONTRAST, 1), (LEVEL, None), (MASS, None)] * 5:
        learner.receive(person(rng, first, question=number(kind, feature)))
    assert board_of(learner).info[0].any()  # it was looked at
    assert not board_of(learner).ballots.any()


def named_of(release: sv.Release, report: sv.Report) -> int:
    cells = sheet(release, population=0, by_arm=False)
    assert cells is not None
    assert isinstance(report.payload, bytes)
    return unpack(cells.law.mechanism, report.payload)[0]


# --- order and saved states -----------------------------------------------------------------------


@each_setting
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_order_of_reports_between_two_steps_does_not_matter(
    settings: dict[str, Any], seed: int
) -> None:
    rng = random.Random(seed)
    one = sv.Learner(whispering(**settings))
    other = sv.Learner(one.experiment)
    releases = [one.release()]
    for _ in range(12):
        batch = []
        for _ in range(20):
            population = rng.choice([0, 0, 1, 2])
            release = rng.choice(releases) if rng.random() < 0.3 else one.release()
            logged = population > 0 and rng.random() < 0.5
            batch.append(person(rng, release, population=population, logged=logged))
        for report in batch:
            one.receive(report)
        for report in rng.sample(batch, len(batch)):
            other.receive(report)
        assert json.loads(other.to_json()) == json.loads(one.to_json())
        assert other.to_json() == one.to_json()
        releases.append(one.release())


@each_setting
def test_a_resumed_learner_goes_on_bit_for_bit(settings: dict[str, Any]) -> None:
    rng = random.Random(4)
    stays = sv.Learner(whispering(**settings))
    moves = sv.Learner.from_json(stays.to_json())
    releases = [stays.release()]
    for count in range(700):
        release = rng.choice(releases) if rng.random() < 0.2 else stays.release()
        population = rng.choice([0, 0, 0, 1, 2])
        logged = population > 0 and rng.random() < 0.5
        report = person(rng, release, population=population, logged=logged)
        stays.receive(report)
        moves.receive(report)
        if count % 33 == 0:  # stopped in the middle of a batch, too
            moves = sv.Learner.from_json(moves.to_json())
        assert moves.release() == stays.release()
        if releases[-1].version != stays.release().version:
            releases.append(stays.release())
    assert moves.to_json() == stays.to_json()
    assert moves.history() == stays.history()
    assert moves.status() == stays.status()
    assert moves.estimates() == stays.estimates()
    assert moves.certificates() == stays.certificates()
    assert stays.status().late_reports > 50
    assert len(releases) > 1


def test_a_truncated_state_is_refused() -> None:
    text = grown(reports=300).to_json()
    for length in [0, 1, 10, *range(100, len(text), len(text) // 50), len(text) - 1]:
        with pytest.raises(sv.StateError, match="must be whole JSON"):
            sv.Learner.from_json(text[:length])


SAVED = grown().to_json()


def test_the_state_to_be_damaged_is_sound() -> None:
    assert sv.Learner.from_json(SAVED).to_json() == SAVED


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sottovoce", 2, "the version of a saved learner must be 1; got 2"),
        ("kind", "release", "must say so in 'kind'"),
        ("reports", [1], "its counts do not fit its populations"),
        ("reports", [-1, 5, 5], "its counts must not be negative"),
        ("late_reports", -1, "its counts must not be negative"),
        ("history", [{"reports": 1, "kind": "Guess"}], "an event of an unknown kind"),
        ("release", {}, "must be complete and consistent"),
        ("board", {}, "must be complete and consistent"),
        ("board", None, "must be complete and consistent"),
        ("layouts", [], "its last layout is not that of its release"),
        ("layouts", [["", 3, [0, 1], [2]], ["", 2, [], []]], "its layouts are not in order"),
        ("layouts", [["", 1, [0, 1]]], "must be complete and consistent"),
        ("layouts", "x", "must be complete and consistent"),
        ("tallies", None, "must be complete and consistent"),
        ("tallies", [[1, 0, 0]], "must be complete and consistent"),
        ("tallies", [[1, 0, 99, [[1]], [[1]], [[1]]]], "a report's question must be in the list"),
        ("tallies", [[1, 9, 0, [[1]], [[1]], [[1]]]], "must be complete and consistent"),
        ("tallies", [[0, 0, 0, [[1]], [[1]], [[1]]]], "a question that nobody was asked"),
        ("tallies", [[10**6, 0, 0, [[1]], [[1]], [[1]]]], "a question that nobody was asked"),
        ("tallies", [[1, 0, 1, [[1]] * 9, [[1]], [[1]]]], "its answers do not fit their release"),
        ("tallies", [[1, 0, 0, [1], [1], [1]]], "must be complete and consistent"),
        ("tallies", [[1, 0, 0, "x", [[1]], [[1]]]], "must be complete and consistent"),
    ],
)
def test_a_state_of_another_version_or_inconsistent_is_refused(
    key: str, value: object, message: str
) -> None:
    table = json.loads(SAVED)
    table[key] = value
    with pytest.raises(sv.StateError, match=message):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("key", ["release", "layouts", "reports", "board", "tallies", "history"])
def test_a_state_with_a_part_missing_is_refused(key: str) -> None:
    table = json.loads(SAVED)
    del table[key]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("name", sorted(json.loads(SAVED)["board"]))
def test_a_board_with_a_part_missing_or_of_another_shape_is_refused(name: str) -> None:
    damages: list[Any] = [None, "x", [], [[]], {}, lambda rows: rows[:-1], lambda rows: rows * 2]
    for damage in damages:
        table = json.loads(SAVED)
        rows = table["board"].pop(name)
        if damage is not None:
            table["board"][name] = damage(rows) if callable(damage) else damage
        with pytest.raises(sv.StateError, match="must be complete and consistent"):
            sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", '"much"', "null", "1e999"])
@pytest.mark.parametrize("name", ["info", "prior_info", "mass", "experience", "events", "edges"])
def test_a_board_with_numbers_that_are_none_is_refused(name: str, text: str) -> None:
    table = json.loads(SAVED)
    row = table["board"][name]
    while isinstance(row[0], list):
        row = row[0]
    row[0] = "@"
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table).replace('"@"', text))


def cut_node(board: dict[str, Any]) -> int:
    return next(node for node, child in enumerate(board["child"]) if child != node)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("totals", 0, -1),  # nodes
        ("totals", 0, 2**30),
        ("totals", 0, 0),
        ("totals", 1, 10**6),  # contested
        ("totals", 3, 7**7),  # release
        ("child", None, 10**6),
        ("child", None, -1),
        ("child", None, 0),
        ("axis", None, 2),
        ("axis", None, -1),
        ("axis", None, 10**6),
    ],
)
def test_a_board_that_is_no_tree_is_refused(name: str, place: int | None, value: int) -> None:
    table = json.loads(SAVED)
    board = table["board"]
    board[name][cut_node(board) if place is None else place] = value
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("live", [False] * 3),  # an arm on offer that is not live
        ("pair", [1, 1]),
        ("mass", [0.0] * 3),
        ("mass", [-0.1] * 3),
        ("prior_info", [[[0.0] * 3] * 3] * 3),  # no precision: nothing can be estimated
        ("ballots", [[-1] * 3] * 3),
        ("depth", -1),
        ("child", 0.5),
    ],
)
def test_a_board_with_a_bin_that_cannot_be_is_refused(name: str, value: Any) -> None:
    table = json.loads(SAVED)
    board = table["board"]
    node = board["contested"][0]
    board[name][node] = node + value if name == "child" else value
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("node", [10**5, 0, "the last one"])
def test_a_board_lists_just_the_contested_bins_of_its_release(node: Any) -> None:
    table = json.loads(SAVED)
    contested = table["board"]["contested"]
    contested[0] = contested[-1] if isinstance(node, str) else node
    assert len(contested) > 1
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(("column", "value"), [(2, 1e6), (2, -1), (4, 9), (5, -1), (3, 2)])
def test_a_board_with_an_event_that_cannot_be_is_refused(column: int, value: float) -> None:
    table = json.loads(SAVED)
    row = next(row for row in table["board"]["events"] if (row[3] < 0) == (column > 3))
    row[column] = value
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    "damage",
    [
        {"population": -3},
        {"asked": [[-5]]},
        {"sums": [[10**9]]},
        {"columns": 0},
        {"columns": 7},
        {"question": number(CONTRAST)},
    ],
    ids=str,
)
def test_answers_that_wait_and_nobody_gave_are_refused(damage: dict[str, Any]) -> None:
    table = json.loads(SAVED)
    tally = table["tallies"][0]
    for place, key in enumerate(("release", "population", "question", "asked", "sums", "named")):
        if key in damage:
            rows = damage[key]
            tally[place] = rows * len(tally[place]) if isinstance(rows, list) else rows
        elif place > 2 and "columns" in damage:
            tally[place] = [row * damage["columns"] for row in tally[place]]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("columns", [1, 7])
def test_public_arms_have_a_column_of_answers_each(columns: int) -> None:
    table = json.loads(grown(public_arms=True).to_json())
    tally = next(each for each in table["tallies"] if each[2] // 3 == RANKED)
    for place in (3, 4, 5):
        tally[place] = [(row * 3)[:columns] for row in tally[place]]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


# --- bad reports ----------------------------------------------------------------------------------


def refused(learner: sv.Learner, report: sv.Report, reason: str, message: str) -> None:
    before = learner.to_json()
    with pytest.raises(sv.ReportRejected, match=message) as caught:
        learner.receive(report)
    assert caught.value.reason is sv.Rejection[reason]
    assert learner.to_json() == before


def good_report(learner: sv.Learner, *, logged: bool = False) -> sv.Report:
    return person(random.Random(0), learner.release(), logged=logged)


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        ({"experiment": "f" * 16}, "UNKNOWN_EXPERIMENT", "a report's experiment must be"),
        ({"release": 0}, "UNKNOWN_RELEASE", "a report's release must lie between 1 and"),
        ({"release": 10**6}, "UNKNOWN_RELEASE", "got 1000000"),
        ({"population": 3}, "UNKNOWN_POPULATION", "a report's population must be below 3; got 3"),
        ({"population": -1}, "UNKNOWN_POPULATION", "got -1"),
        ({"payload": (0.5,) * 6}, "MALFORMED", "must be a packed set, for its method is whisper"),
        ({"payload": ()}, "MALFORMED", "must be a packed set, for its method is whisper"),
        ({"payload": b""}, "WRONG_LENGTH", r"a packed set must take \d+ bytes; got 0"),
        ({"payload": bytes(50)}, "WRONG_LENGTH", r"a packed set must take \d+ bytes; got 50"),
        ({"question": 18}, "UNKNOWN_QUESTION", "a report's question must be in the list; got 18"),
        ({"question": -1}, "UNKNOWN_QUESTION", "a report's question must be in the list; got -1"),
        ({"question": 65535}, "UNKNOWN_QUESTION", "be in the list; got 65535"),
        (
            {"question": 15},
            "UNKNOWN_QUESTION",
            "be one of its experiment's, whose arms are private",
        ),
        (
            {"question": 17},
            "UNKNOWN_QUESTION",
            "be one of its experiment's, whose arms are private",
        ),
        ({"question": 0}, "UNKNOWN_QUESTION", "be about a feature, as all are in this release"),
        ({"question": 6}, "UNKNOWN_QUESTION", "be about a feature, as all are in this release"),
        ({"ranking": (0, 1, 2)}, "MALFORMED", "ranking must be left out for this question"),
        ({"ranking": (0,)}, "MALFORMED", "ranking must be left out for this question"),
    ],
)
def test_a_bad_report_is_refused_with_its_reason_and_changes_nothing(
    change: dict[str, Any], reason: str, message: str
) -> None:
    learner = grown()
    good = good_report(learner)
    refused(learner, replace(good, **change), reason, message)
    before = learner.to_json()
    learner.receive(good)
    assert learner.to_json() != before


def test_what_is_no_report_is_refused() -> None:
    learner = grown(reports=50)
    report: Any = wire.report_to_bytes(good_report(learner))
    refused(learner, report, "MALFORMED", "must be a Report; got a bytes")


@pytest.mark.parametrize("question", [number(OUTCOME), number(COUNT)])
def test_rows_of_a_log_are_about_a_feature_too_where_halves_are_cells(question: int) -> None:
    learner = grown()
    report = replace(good_report(learner, logged=True), question=question)
    refused(learner, report, "UNKNOWN_QUESTION", "be about a feature")


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        ((), "rank every arm once"),
        ((0, 1), "rank every arm once"),
        ((0, 1, 1), "rank every arm once"),
        ((0, 1, 2, 2), "rank every arm once"),
        ((1, 2, 3), "rank every arm once"),
        ((-1, 0, 1), "rank every arm once"),
    ],
)
def test_a_ranking_has_every_arm_once(ranking: tuple[int, ...], message: str) -> None:
    learner = grown(public_arms=True)
    good = person(random.Random(0), learner.release(), question=number(RANKED, 1))
    refused(learner, replace(good, ranking=ranking), "MALFORMED", message)
    learner.receive(good)
    mass = person(random.Random(0), learner.release(), question=number(MASS, 0))
    refused(learner, replace(mass, ranking=(0, 1, 2)), "MALFORMED", "be left out")
    learner.receive(mass)


@pytest.mark.parametrize("kind", [CONTRAST, LEVEL])
def test_where_arms_are_public_nobody_compares_two(kind: int) -> None:
    learner = grown(public_arms=True)
    report = replace(good_report(learner), question=number(kind, 0), ranking=())
    refused(learner, report, "UNKNOWN_QUESTION", "whose arms are public")


def symbols(cells: int, *numbers: int) -> int:
    """The symbols 2·cell + (1 if plus) in base 2N, the first one lowest."""
    return sum(each * (2 * cells) ** place for place, each in enumerate(numbers))


def uniform(path: str, *arms: int, waiting: tuple[int, ...] = ()) -> BinPolicy:
    return BinPolicy(path, arms, (1 / len(arms),) * len(arms), waiting)


def eight_bins(epsilon: float, *, release_every: int = 10**6) -> sv.Learner:
    """A learner with eight contested bins: a state made by hand, by cutting the root."""
    learner = sv.Learner(whispering(epsilon=epsilon, release_every=release_every))
    table = json.loads(learner.to_json())
    board = table["board"]
    nodes = 15
    for name, rows in board.items():
        if name not in ("totals", "experience", "events", "contested"):
            board[name] = [rows[0]] * nodes
    nodes_of = ["".join(sides) for n in range(4) for sides in itertools.product("01", repeat=n)]
    board["child"] = [2 * node + 1 if node < 7 else node for node in range(nodes)]
    board["depth"] = [len(path) for path in nodes_of]
    lengths = [0.5 ** len(path) for path in nodes_of]
    lows = [int(path or "0", 2) * length for path, length in zip(nodes_of, lengths, strict=True)]
    board["edges"] = [
        [[low, low + length], [0.0, 1.0]] for low, length in zip(lows, lengths, strict=True)
    ]
    board["mass"] = [[length] * 3 for length in lengths]
    board["contested"] = list(range(7, nodes))
    board["totals"][:2] = [nodes, 8]
    paths, cuts = nodes_of[7:], dict.fromkeys(nodes_of[:7], 0)
    bins = [uniform(path, 0, 1, waiting=(2,)) for path in paths]
    table["release"] = sv.Release(learner.experiment, 1, Partition(2, cuts), tuple(bins)).to_table()
    table["layouts"] = [[path, 1, [0, 1], [2]] for path in paths]
    return sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    ("epsilon", "numbers"),
    [
        # ε = 2: 3 of 9 cells, as symbols in base 18
        (2.0, symbols(9, 4, 4, 6)),  # a cell twice
        (2.0, symbols(9, 4, 5, 6)),  # a cell twice with both signs
        (2.0, symbols(9, 6, 4, 8)),  # not increasing
        (2.0, symbols(9, 0, 2)),  # too few cells: the third is cell 0 again
        (2.0, symbols(9, 0, 2, 4, 1)),  # a stray symbol
        # ε = 8: 1 of 17 cells, one symbol below 34
        (8.0, 34),
        (8.0, 255),
    ],
)
def test_what_is_no_set_of_cells_is_refused(epsilon: float, numbers: int) -> None:
    learner = eight_bins(epsilon)
    good = person(random.Random(0), learner.release(), question=number(CONTRAST, 0))
    assert isinstance(good.payload, bytes)
    payload = numbers.to_bytes(len(good.payload), "little")
    refused(learner, replace(good, payload=payload), "MALFORMED", "each once and with a sign")
    learner.receive(good)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("plus", [0, 1])
def test_a_half_that_is_a_cell_tells_of_its_bin_and_of_the_difference(side: int, plus: int) -> None:
    # ε = 8: 17 cells, one of them in the set; bin 3 has the cells 6 (lower half) and 7.
    learner = eight_bins(8.0, release_every=1)
    report = replace(
        person(random.Random(0), learner.release(), question=number(MASS, 1)),
        payload=bytes([2 * (6 + side) + plus]),
    )
    learner.receive(report)
    board = board_of(learner)
    whole, difference = board.mass_lean[7:15, 0, 0], board.mass_lean[7:15, 0, 2]
    sign = 1 if plus else -1
    assert np.sign(whole).tolist() == [0, 0, 0, sign, 0, 0, 0, 0]
    assert difference.tolist() == (whole if side else -whole).tolist()
    assert not board.mass_lean[:, 0, 1].any()
    # Nothing was said of the other bins, and that is worth as much.
    info = board.mass_info[7:15, 0]
    assert (info[:, [0, 2]] == info[0, 0]).all()
    assert info[0, 0] > 0
    assert not info[:, 1].any()
    assert not board.info.any()


def test_stray_bits_are_refused() -> None:
    # ε = 1, logged: every one of 8 × 3 cells, a bit each; served: 8 bits; one bin: 1 bit of 8.
    learner = sv.Learner(whispering(epsilon=1.0))
    good = good_report(learner)
    for bits in (2, 3, 128):
        refused(learner, replace(good, payload=bytes([bits])), "MALFORMED", "hold 1 of 1 cells")
    for bits in (0, 1):
        learner.receive(replace(good, payload=bytes([bits])))


def test_a_report_of_the_other_method_is_refused() -> None:
    mine, theirs = grown(), ldpmab_grown()
    report = good_report(mine)
    numbers = tuple(0.0 for _ in range(2 * len(theirs.release().cells)))
    fingerprint = theirs.experiment.fingerprint
    refused(mine, replace(report, payload=numbers), "MALFORMED", "must be a packed set")
    swapped = sv.Report(fingerprint, 1, 0, bytes(16), b"\0\1\2")
    before = theirs.to_json()
    for payload in (b"", b"\0\1\2", bytes(8 * len(numbers)), bytes(len(numbers))):
        with pytest.raises(sv.ReportRejected) as caught:
            theirs.receive(replace(swapped, payload=payload))
        assert caught.value.reason in (sv.Rejection.MALFORMED, sv.Rejection.WRONG_LENGTH)
    good = replace(swapped, payload=numbers, release=theirs.release().version)
    for change in ({"question": 3}, {"ranking": (0, 1, 2)}):
        with pytest.raises(sv.ReportRejected) as caught:
            theirs.receive(replace(good, **change))
        assert caught.value.reason is sv.Rejection.MALFORMED
    assert theirs.to_json() == before
    theirs.receive(good)


def settled() -> sv.Learner:
    """A learner that has nothing left to ask."""
    learner, rng = (
        sv.Learner(whispering(horizon=300, epsilon=8.0, release_every=10)),
        random.Random(0),
    )
    release = learner.release()
    cells = sheet(release, population=0, by_arm=False)
    for _ in range(4000):
        release = learner.release()
        cells = sheet(release, population=0, by_arm=False)
        if cells is None:
            return learner
        # Everybody says that the first arm is better, wherever they are.
        mechanism, place = cells.law.mechanism, rng.randrange(len(release.contested))
        values = [0] * mechanism.cells
        chosen = [place] if mechanism.size == 1 else range(mechanism.size)
        for cell in chosen:
            values[2 * cell + rng.randrange(2) if cells.law.halves else cell] = 1
        question = number(CONTRAST, rng.randrange(2) if cells.law.halves else None)
        report = sv.Report(
            learner.experiment.fingerprint,
            release.version,
            0,
            bytes(16),
            pack(mechanism, values),
            question,
        )
        learner.receive(report)
    raise AssertionError("nothing was settled")


def test_where_everything_is_settled_reports_are_empty() -> None:
    learner = settled()
    status = learner.status()
    assert (status.contested_cells, status.settled_bins) == (0, status.bins)
    assert learner.estimates() == []
    empty = good_report(learner)
    assert empty.payload == b""
    refused(
        learner, replace(empty, payload=b"\1"), "WRONG_LENGTH", "empty where everything is settled"
    )
    for _ in range(25):
        learner.receive(empty)
    learner.receive(replace(empty, question=number(COUNT)))
    # A late one, from when there was something to tell, is taken and dropped.
    learner.receive(person(random.Random(1), sv.Learner(learner.experiment).release()))
    assert learner.status().late_reports == 1
    assert learner.status().dropped_cells == 1
    assert learner.release().version == status.release
    assert sv.Learner.from_json(learner.to_json()).to_json() == learner.to_json()


# --- what is known --------------------------------------------------------------------------------


@each_setting
def test_every_live_arm_of_a_contested_bin_has_an_estimate(settings: dict[str, Any]) -> None:
    learner = grown(**settings)
    arms = learner.experiment.arms
    expected = [
        (policy.path, arms[arm]) for policy in learner.release().contested for arm in policy.live
    ]
    found = learner.estimates()
    assert [(cell.path, cell.arm) for cell in found] == expected
    assert len(found) == learner.status().contested_cells
    for cell in found:
        assert cell.estimate is not None
        assert cell.radius is not None
        assert 0 < cell.radius < 1
        assert -0.5 < cell.estimate < 1.5


@pytest.mark.parametrize(("epsilon", "reports"), [(8.0, 6000), (2.0, 10_000)])
def test_intervals_hold_the_truth_about_as_often_as_they_say(epsilon: float, reports: int) -> None:
    # The means of truth() over a box are its values at the middle. Seeds are fixed: no flakes.
    held = []
    for seed in range(2):
        learner = sv.Learner(whispering(epsilon=epsilon, horizon=10**6, release_every=500))
        send(learner, random.Random(seed), reports)
        release, arms = learner.release(), list(learner.experiment.arms)
        for cell in learner.estimates():
            middle = tuple((low + high) / 2 for low, high in release.partition.box(cell.path))
            assert cell.estimate is not None
            assert cell.radius is not None
            error = abs(cell.estimate - truth(middle, arms.index(cell.arm)))
            assert error < 2.5 * cell.radius
            held.append(error < cell.radius)
    assert len(held) > 10
    assert np.mean(held) > 0.8


def test_certificates_are_the_eliminations_of_the_history() -> None:
    learner = grown()
    arms = learner.experiment.arms
    certificates = learner.certificates()
    dropped = [
        (dated.event.path, arms[arm])
        for dated in learner.history()
        if isinstance(dated.event, Elimination)
        for arm in dated.event.arms
    ]
    assert [(each.path, each.dropped) for each in certificates] == dropped
    assert dropped
    for each in certificates:
        assert each.statistic >= each.boundary > 0
        assert each.delta is None
        assert each.dropped != each.winner
        assert 1 < each.release <= learner.release().version
    versions = [each.release for each in certificates]
    assert versions == sorted(versions)
    assert ldpmab_grown().certificates() == ()


def test_certified_releases_never_have_halves_for_cells() -> None:
    learner = sv.Learner(whispering(guarantee="certified", epsilon=8.0, horizon=2000))
    releases, rng = [learner.release()], random.Random(0)
    for _ in range(3000):  # where the first feature is small, two arms are worse by far
        report = person(
            rng,
            learner.release(),
            means=lambda point, arm: 0.9 if arm == (point[0] > 0.5) else 0.1,
        )
        learner.receive(report)
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
    for release, population, by_arm in itertools.product(releases, range(3), (False, True)):
        cells = sheet(release, population=population, by_arm=by_arm)
        if cells is not None:
            assert not cells.law.halves
    assert max(len(release.contested) for release in releases) > 1
    certificates = learner.certificates()
    assert certificates
    for each in certificates:
        assert each.delta is not None
        assert 0 < each.delta < 0.05
        assert each.statistic >= each.boundary == pytest.approx(-np.log(each.delta))
    # The same releases would have halves for cells without the guarantee.
    regret = sv.Learner(whispering(epsilon=8.0, horizon=2000)).experiment
    finest = max(releases, key=lambda release: len(release.contested))
    cells = sheet(replace(finest, experiment=regret), population=0, by_arm=False)
    assert cells is not None
    assert cells.law.halves


# --- bad settings and releases --------------------------------------------------------------------


@pytest.mark.parametrize(
    "behaviour",
    [
        (-0.1, 0.6, 0.5),
        (0.5, 0.4, 0.2),
        (0.5, 0.5, 1e-6),
        (float("nan"), 0.5, 0.5),
        (float("inf"), 0.5, 0.5),
        ("0.5", 0.25, 0.25),
        (True, 0, 0),
        (None, 0.5, 0.5),
        (),
        "abc",
        0.5,
        {0: 1.0},
    ],
)
def test_behaviour_that_cannot_be_is_refused(behaviour: Any) -> None:
    with pytest.raises(
        sv.ExperimentError, match="behaviour of population 'b' must be numbers >= 0 that add up"
    ):
        sv.Population("b", 1.0, 10, behaviour)


@pytest.mark.parametrize("behaviour", [(1.0,), (0.5, 0.5), (0.25,) * 4])
def test_behaviour_has_a_chance_for_each_arm(behaviour: tuple[float, ...]) -> None:
    with pytest.raises(sv.ExperimentError, match="must have one chance for each of 3 arms"):
        whispering(auxiliary=[sv.Population("b", 1.0, 10, behaviour)])


def test_behaviour_that_can_be_is_kept() -> None:
    for behaviour in ([0, 0, 1], (0.1, 0.2, 0.7), [1 / 3] * 3):
        kept = whispering(auxiliary=[sv.Population("b", 1.0, 10, behaviour)])
        assert sv.Experiment.from_table(json.loads(json.dumps(kept.to_table()))) == kept
        assert kept.auxiliary[0].behaviour == tuple(behaviour)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"guarantee": "certain"}, "the guarantee of whisper must be 'regret' or 'certified'"),
        ({"guarantee": None}, "the guarantee of whisper must be"),
        ({"delta": 0}, r"delta of whisper must lie in \(0, 1\); got 0"),
        ({"delta": 1}, r"delta of whisper must lie in \(0, 1\); got 1"),
        ({"delta": -0.1}, "delta of whisper must lie in"),
        ({"delta": float("nan")}, "delta of whisper must lie in"),
        ({"delta": "0.1"}, "delta of whisper must lie in"),
        ({"delta": True}, "delta of whisper must lie in"),
        ({"public_arms": 1}, "public_arms of whisper must be true or false; got 1"),
        ({"public_arms": "no"}, "public_arms of whisper must be true or false"),
        ({"public_arms": None}, "public_arms of whisper must be true or false"),
        (
            {"public_arms": True, "guarantee": "certified"},
            "must have private arms for its certified guarantee",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        sv.Whisper(**settings)
    with pytest.raises(sv.ExperimentError, match=message):
        experiment(method={"name": "whisper", **settings})


def test_settings_of_the_other_method_are_refused() -> None:
    for method in ({"name": "whisper", "c": 1.0}, {"name": "ldpmab", "delta": 0.1}):
        with pytest.raises(sv.ExperimentError, match="have only the keys"):
            experiment(method=method)


def wired(bins: list[dict[str, Any]], *, public: bool = False) -> sv.Release:
    """A release of one cut as it comes over the wire."""
    table = sv.Learner(whispering(public_arms=public)).release().to_table()
    table |= {"cuts": {"": 0}, "sottovoce": 1, "kind": "release"}
    table["bins"] = [{"bin": str(side), **entry} for side, entry in enumerate(bins)]
    return wire.release_from_json(json.dumps(table))


GOOD = {"arms": [1], "propensities": [1.0]}


@pytest.mark.parametrize(
    "entry",
    [
        {"arms": [0, 1], "propensities": [0.0, 1.0]},
        {"arms": [0, 1], "propensities": [-0.5, 1.5]},
        {"arms": [0, 1], "propensities": [0.25, 0.75]},
        {"arms": [0, 1], "propensities": [0.5, 0.5 + 1e-10]},
        {"arms": [0, 1], "propensities": [0.5]},
        {"arms": [0, 1], "propensities": ["0.5", "0.5"]},
        {"arms": [0, 1, 2], "propensities": [1 / 3] * 3},
        {"arms": [1, 0], "propensities": [0.5, 0.5]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [1]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [2, 2]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [3]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [-1]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": None},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": "2"},
        {"arms": [1], "propensities": [1.0], "waiting": [2]},
        {"arms": [1], "propensities": [0.5]},
        {"arms": [], "propensities": []},
        {"arms": [], "propensities": [], "waiting": [0, 1]},
        {"arms": [0, 0], "propensities": [0.5, 0.5]},
        {"arms": [0, True], "propensities": [0.5, 0.5]},
    ],
)
def test_a_release_that_no_learner_makes_is_refused(entry: dict[str, Any]) -> None:
    wired([GOOD, {"arms": [0, 2], "propensities": [0.5, 0.5], "waiting": [1]}])
    with pytest.raises(sv.WireError) as caught:
        wired([GOOD, entry])
    assert caught.value.reason is sv.Rejection.MALFORMED


@pytest.mark.parametrize(
    "entry",
    [
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [2]},
        {"arms": [0, 1, 2], "propensities": [0.5, 0.25, 0.25]},
        {"arms": [0, 1, 2], "propensities": [0.0, 0.5, 0.5]},
    ],
)
def test_public_arms_are_all_on_offer_with_equal_chances(entry: dict[str, Any]) -> None:
    wired([GOOD, {"arms": [0, 1, 2], "propensities": [1 / 3] * 3}], public=True)
    with pytest.raises(
        sv.WireError, match=r"offer all live arms, with equal chances|be one for each"
    ):
        wired([GOOD, entry], public=True)


@each_setting
def test_every_release_of_a_learner_survives_the_wire(settings: dict[str, Any]) -> None:
    learner = sv.Learner(whispering(**settings))
    for release in send(learner, random.Random(0), 600, target_only="guarantee" in settings):
        assert wire.release_from_bytes(wire.release_to_bytes(release)) == release
