"""A learner with whisper does not depend on the order of reports, and saves itself whole."""

import itertools
import json
import random
from functools import lru_cache
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTRAST, OUTCOME, RANKED, grown_whisper, whispering
from sottovoce.device.method import Secret
from sottovoce.device.whisper.answer import true_answer
from sottovoce.device.whisper.subset import whisper
from sottovoce.estimate.whisper.state import arrays_of
from sottovoce.shared import wire
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.cells import cell_layout
from sottovoce.shared.whisper.questions import Question, question_of
from support.insides import whisper_state_of
from support.slow import slow_but
from support.states import EVENT, TOTALS
from support.whispers import Seeded, each_setting, number, person


@each_setting
@pytest.mark.parametrize("seed", slow_but([0], [0, 1, 2]))
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
    # What bins learned from each other was saved as well: the tree was smoothed by then.
    assert whisper_state_of(stays).totals[0].smoothed > 33


def test_a_truncated_state_is_refused() -> None:
    text = grown_whisper(reports=300).to_json()
    for length in [0, 1, 10, *range(100, len(text), len(text) // 50), len(text) - 1]:
        with pytest.raises(sv.StateError, match="must be whole JSON"):
            sv.Learner.from_json(text[:length])


SAVED = grown_whisper().to_json()


def test_the_state_to_be_damaged_is_sound() -> None:
    assert sv.Learner.from_json(SAVED).to_json() == SAVED


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sottovoce", 1, "the version of a saved learner must be 10; got 1"),
        ("sottovoce", 2, "the version of a saved learner must be 10; got 2"),
        ("sottovoce", 9, "must be 10; got 9; resume it with the sottovoce that saved it"),
        ("kind", "release", "must say so in 'kind'"),
        ("reports", [1], "its counts do not fit its populations"),
        ("reports", [-1, 5, 5], "its counts must not be negative"),
        ("late_reports", -1, "its counts must not be negative"),
        ("history", [{"reports": 1, "kind": "Guess"}], "an event of an unknown kind"),
        ("release", {}, "must be complete and consistent"),
        ("state", {}, "must be complete and consistent"),
        ("state", None, "must be complete and consistent"),
        ("past", [], "its last release is not the one it has"),
        ("past", [["", 3, [0, 1], [2]], ["", 2, [], []]], "its past releases are not in order"),
        ("past", [["", 1, [0, 1]]], "must be complete and consistent"),
        ("past", "x", "must be complete and consistent"),
        ("target", -1, "its counts of people who were served do not fit"),
        ("target", 10**6, "its counts of people who were served do not fit"),
        ("target", "many", "must be complete and consistent"),
        ("tallies", None, "must be complete and consistent"),
        ("tallies", [[1, 0, 0]], "must be complete and consistent"),
        (
            "tallies",
            [[1, 0, 9999, [[1]], [[1]], [[1]]]],
            "a report's question must be one that its experiment asks",
        ),
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


@pytest.mark.parametrize(
    "key",
    ["release", "past", "reports", "state", "target", "rewards", "tallies", "history"],
)
def test_a_state_with_a_part_missing_is_refused(key: str) -> None:
    table = json.loads(SAVED)
    del table[key]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("name", sorted(json.loads(SAVED)["state"]))
def test_a_state_whose_arrays_have_a_part_missing_or_of_another_shape_is_refused(name: str) -> None:
    damages: list[Any] = [None, "x", [], [[]], {}, lambda rows: rows[:-1], lambda rows: rows * 2]
    for damage in damages:
        table = json.loads(SAVED)
        rows = table["state"].pop(name)
        if damage is not None:
            table["state"][name] = damage(rows) if callable(damage) else damage
        with pytest.raises(sv.StateError, match="must be complete and consistent"):
            sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", '"much"', "null", "1e999"])
@pytest.mark.parametrize(
    "name",
    [
        *(
            "served.precision",
            "prior.precision",
            "shift",
            "effect_variance",
            "mass",
            "nodes",
            "paid",
        ),
        *("events", "tree.edges"),
    ],
)
def test_a_state_with_numbers_that_are_none_is_refused(name: str, text: str) -> None:
    table = json.loads(SAVED)
    row = table["state"]["totals" if name in TOTALS else name]
    while isinstance(row[0], list):
        row = row[0]
    row[TOTALS.index(name) if name in TOTALS else 0] = "@"
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table).replace('"@"', text))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("relevance", [0.0, 1.0]),  # an axis of which nothing can ever be learned
        ("relevance", [1.5, 1.0]),
        ("ask", [0, 512, 511]),  # somebody is asked nothing
        ("ask", [1024, 0, 0]),  # nobody is asked about an axis
        ("ask", [1025, -1, 0]),
    ],
)
def test_a_state_with_axes_that_cannot_be_is_refused(name: str, value: list[float]) -> None:
    table = json.loads(SAVED)
    table["state"][name] = value
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


def split_node(state: dict[str, Any]) -> int:
    return next(node for node, child in enumerate(state["tree.child"]) if child != node)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodes", -1),
        ("nodes", 2**30),
        ("nodes", 0),
        ("contested", 10**6),
        ("release", 7**7),
        ("tree.child", 10**6),
        ("tree.child", -1),
        ("tree.child", 0),
        ("tree.axis", 2),
        ("tree.axis", -1),
        ("tree.axis", 10**6),
    ],
)
def test_a_state_that_is_no_tree_is_refused(name: str, value: int) -> None:
    table = json.loads(SAVED)
    state = table["state"]
    if name in TOTALS:
        state["totals"][0][TOTALS.index(name)] = value
    else:
        state[name][split_node(state)] = value
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("live", [False] * 3),  # an arm on offer that is not live
        ("pair", [1, 1]),
        ("mass", [0.0] * 3),
        ("mass", [-0.1] * 3),
        ("effect_variance", [-0.01, 0.01]),
        ("level_mass", [[-0.1] * 2] * 3),
        ("level_mass", [[1.1] * 2] * 3),
        ("shift", 2.5),  # further from its parent than a half can be
        ("prior.precision", [[[0.0] * 3] * 3] * 3),  # no precision: nothing can be estimated
        ("votes", [[-1] * 3] * 3),
        ("tree.depth", -1),
        ("tree.child", 0.5),
    ],
)
def test_a_state_with_a_bin_that_cannot_be_is_refused(name: str, value: Any) -> None:
    table = json.loads(SAVED)
    state = table["state"]
    node = state["contested"][0]
    state[name][node] = node + value if name == "tree.child" else value
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("node", [10**5, 0, "the last one"])
def test_a_state_lists_just_the_contested_bins_of_its_release(node: Any) -> None:
    table = json.loads(SAVED)
    contested = table["state"]["contested"]
    contested[0] = contested[-1] if isinstance(node, str) else node
    assert len(contested) > 1
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    ("part", "value"), [("node", 1e6), ("node", -1), ("arm", 9), ("winner", -1), ("axis", 2)]
)
def test_a_state_with_an_event_that_cannot_be_is_refused(part: str, value: float) -> None:
    table = json.loads(SAVED)
    of_an_arm, axis = part in ("arm", "winner"), EVENT.index("axis")
    row = next(row for row in table["state"]["events"] if (row[axis] < 0) == of_an_arm)
    row[EVENT.index(part)] = value
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
    for index, key in enumerate(("release", "population", "question", "asked", "sums", "named")):
        if key in damage:
            rows = damage[key]
            tally[index] = rows * len(tally[index]) if isinstance(rows, list) else rows
        elif index > 2 and "columns" in damage:
            tally[index] = [row * damage["columns"] for row in tally[index]]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("columns", [1, 7])
def test_public_arms_have_a_column_of_answers_each(columns: int) -> None:
    table = json.loads(grown_whisper(public_arms=True).to_json())
    tally = next(each for each in table["tallies"] if each[2] // 3 == RANKED)
    for index in (3, 4, 5):
        tally[index] = [(row * 3)[:columns] for row in tally[index]]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


def test_a_tree_that_was_smoothed_after_the_last_report_is_refused() -> None:
    table = json.loads(SAVED)
    (totals,) = table["state"]["totals"]
    totals[TOTALS.index("smoothed")] = totals[TOTALS.index("reports")] + 1
    with pytest.raises(sv.StateError, match="after its last report"):
        sv.Learner.from_json(json.dumps(table))


# --- levels without order -------------------------------------------------------------------------


CITIES = 6  # four that are known, others, and none


@lru_cache
def grown_with_levels(epsilon: float) -> sv.Learner:
    """A learner with features of every kind; at a large ε, one that has split bins by levels.

    Of three arms the first is best in every other city, and nobody can tell the others apart.
    """
    experiment = sv.Experiment(
        arms=["a", "b", "c"],
        context=[
            sv.Categorical("city", ("Bern", "Rome", "Oslo", "Lima"), optional=True, other=True),
            sv.Boolean("new"),
            sv.Numeric("age", 18, 90, optional=True),
        ],
        epsilon=epsilon,
        horizon=4000,
        release_every=50,
        auxiliary=[sv.Population("log", 8.0, 300, (0.4, 0.3, 0.3))],
    )
    rng, learner = random.Random(1), sv.Learner(experiment)
    for count in itertools.count():
        split_often = len(learner.release().partition.sets) > 1 or epsilon < 2
        if count > 300 and count % 50 == 30 and split_often:
            return learner
        assert count < 5000
        city = rng.randrange(CITIES)
        point = ((city + 0.5) / CITIES, rng.choice([0.25, 0.75]), rng.random(), 0.25)
        logged = rng.random() < 0.3
        learner.receive(whispered(rng, learner.release(), point, good=city % 2 == 0, logged=logged))
    raise AssertionError


def whispered(
    rng: random.Random, release: sv.Release, point: tuple[float, ...], *, good: bool, logged: bool
) -> sv.Report:
    """The report of someone at a point, on any question about an axis."""
    path = release.partition.find(point)
    arm = rng.randrange(3) if logged else rng.choice(release.policies[path].arms)
    outcome = float(rng.random() < (0.95 if (arm == 0) == good else 0.05))
    kind, population = (OUTCOME, 1) if logged else (CONTRAST, 0)
    layout = cell_layout(release, population=population, by_arm=logged)
    assert layout is not None
    axis = rng.choice([0, 0, 1, 2, 3])
    cells = layout.mechanism(axis)
    rows = slots_of(release.experiment).patterns
    row = 0 if cells.parts > 1 else rng.randrange(rows[axis + 1] - rows[axis])
    question = Question(kind, axis, row)
    secret = Secret(point, path, arm, logged=logged, ranking=())
    cell, value = true_answer(release, layout, question, secret=secret, outcome=outcome)
    payload = whisper(cells.mechanism, cell=cell, value=value, draws=Seeded(rng))
    number_on_wire = question.number(release.experiment)
    return sv.Report(
        wire.release_id(release), population, rng.randbytes(16), payload, number_on_wire
    )


SMALL, LARGE = 1.0, 8.0


def test_the_states_with_levels_are_of_both_kinds() -> None:
    """At a small ε answers about levels are rows of signs, at a large one levels are cells."""
    for epsilon, rows, sets in ((SMALL, {0, 1, 2, 3, 4, 5, 6, 7}, 0), (LARGE, {0}, 2)):
        learner = grown_with_levels(epsilon)
        tallies = json.loads(learner.to_json())["tallies"]
        asked = [question_of(each[2], learner.experiment) for each in tallies if each[1] == 0]
        assert {each.row for each in asked if each.axis == 0} <= rows
        assert len({each.row for each in asked}) > (epsilon == SMALL)
        assert {each.axis for each in asked} == {0, 1, 2, 3}
        assert len(learner.release().partition.sets) >= sets


@pytest.mark.parametrize("epsilon", [SMALL, LARGE])
def test_a_learner_with_levels_comes_back_as_it_was(epsilon: float) -> None:
    learner = grown_with_levels(epsilon)
    text = learner.to_json()
    again = sv.Learner.from_json(text)
    assert again.to_json() == text
    assert again.release() == learner.release()
    assert again.estimates() == learner.estimates()
    assert again.status() == learner.status()
    ours, theirs = whisper_state_of(learner), whisper_state_of(again)
    totals = ours.totals[0]
    rows = {"contested": totals.contested, "relevance": 4, "ask": 5, "events": totals.events}
    for (name, one), (_, other) in zip(arrays_of(ours), arrays_of(theirs), strict=True):
        used = rows.get(name, 1 if name == "totals" else totals.nodes)
        assert (one[:used] == other[:used]).all(), name
    # Both go on alike.
    rng = random.Random(7)
    for _ in range(60):
        point = ((rng.randrange(CITIES) + 0.5) / CITIES, 0.25, rng.random(), 0.75)
        report = whispered(rng, learner.release(), point, good=True, logged=rng.random() < 0.5)
        for each in (learner, again):
            each.receive(report)
    assert again.to_json() == learner.to_json() != text
    grown_with_levels.cache_clear()


@pytest.mark.parametrize("damage", ["none up", "all up", "another level up", "a level too many"])
def test_a_state_with_sets_that_are_not_those_of_its_release_is_refused(damage: str) -> None:
    table = json.loads(grown_with_levels(LARGE).to_json())
    state = table["state"]
    node = next(node for node, row in enumerate(state["upper"]) if any(row))
    row = state["upper"][node]
    cities = slice(0, CITIES)
    if damage == "none up":
        row[cities] = [False] * CITIES
    elif damage == "all up":
        row[cities] = [True] * CITIES
    elif damage == "another level up":
        row[cities] = [not each for each in row[cities]]
    else:
        row.append(True)
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("slot", [0, 3, CITIES, CITIES + 1])
def test_a_state_in_which_people_differ_as_they_cannot_is_refused(slot: int) -> None:
    """Otherwise a bin might be split into all of its levels and none."""
    table = json.loads(grown_with_levels(LARGE).to_json())
    state = table["state"]
    for node in (0, state["contested"][-1]):
        damaged = json.loads(json.dumps(table))
        damaged["state"]["holds"][node][slot] ^= True
        with pytest.raises(sv.StateError, match="people cannot differ as it says"):
            sv.Learner.from_json(json.dumps(damaged))


@pytest.mark.parametrize("name", ["holds", "upper", "level_mass", "effect_variance", "tallies"])
def test_a_state_with_too_few_slots_is_refused(name: str) -> None:
    table = json.loads(grown_with_levels(LARGE).to_json())
    if name == "tallies":
        table["tallies"][0][4] = table["tallies"][0][4][:-1]
    else:
        rows = table["state"][name]
        table["state"][name] = [
            [each[:-1] for each in row] if name == "level_mass" else row[:-1] for row in rows
        ]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))
