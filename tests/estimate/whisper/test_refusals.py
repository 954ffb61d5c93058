"""Reports that a learner with whisper refuses."""

import itertools
import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import (
    CONTRAST,
    COUNT,
    LEVEL,
    LOGGED_LEVEL,
    MASS,
    OUTCOME,
    RANKED,
    grown_whisper,
    whispering,
)
from factories import grown as ldpmab_grown
from sottovoce.shared import wire
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.whisper.cells import cell_layout
from sottovoce.shared.whisper.subset import pack
from support.insides import whisper_state_of
from support.whispers import number, person, tell_places

# Of three arms that are private, with auxiliary populations; and of three that are public.
LAST = "REWARD, SCALE, LOGGED_SCALE, COUNT, OUTCOME"
ASKED = rf"be one that its experiment asks \(MASS, LEVEL, CONTRAST, BIN_REWARD, BIN_MASS, {LAST}\)"
ASKED_IN_PUBLIC = rf"be one that its experiment asks \(MASS, RANKED, {LAST}\)"


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
        ({"release": bytes(12)}, "UNKNOWN_RELEASE", "a report's release must be the id of one of"),
        ({"release": b""}, "UNKNOWN_RELEASE", "a report's release must be the id of one of"),
        ({"population": 3}, "UNKNOWN_POPULATION", "a report's population must be below 3; got 3"),
        ({"population": -1}, "UNKNOWN_POPULATION", "got -1"),
        ({"payload": (0.5,) * 6}, "MALFORMED", "must be a packed set, for its method is whisper"),
        ({"payload": ()}, "MALFORMED", "must be a packed set, for its method is whisper"),
        ({"payload": b""}, "WRONG_LENGTH", r"a packed set must take \d+ bytes; got 0"),
        ({"payload": bytes(50)}, "WRONG_LENGTH", r"a packed set must take \d+ bytes; got 50"),
        ({"question": 134}, "UNKNOWN_QUESTION", f"a report's question must {ASKED}; got 134"),
        ({"question": -1}, "UNKNOWN_QUESTION", f"a report's question must {ASKED}; got -1"),
        ({"question": 65535}, "UNKNOWN_QUESTION", f"{ASKED}; got 65535"),
        ({"question": 15}, "UNKNOWN_QUESTION", f"{ASKED}; got 15"),  # where arms are public
        ({"question": 17}, "UNKNOWN_QUESTION", f"{ASKED}; got 17"),
        ({"question": 0}, "UNKNOWN_QUESTION", "be about an axis, as all are in this release"),
        ({"question": 6}, "UNKNOWN_QUESTION", "be about an axis, as all are in this release"),
        ({"ranking": (0, 1, 2)}, "MALFORMED", "ranking must be left out for this question"),
        ({"ranking": (0,)}, "MALFORMED", "ranking must be left out for this question"),
    ],
)
def test_a_bad_report_is_refused_with_its_reason_and_changes_nothing(
    change: dict[str, Any], reason: str, message: str
) -> None:
    learner = grown_whisper()
    good = good_report(learner)
    refused(learner, replace(good, **change), reason, message)
    before = learner.to_json()
    learner.receive(good)
    assert learner.to_json() != before


def test_what_is_no_report_is_refused() -> None:
    learner = grown_whisper(reports=50)
    report: Any = wire.report_to_bytes(good_report(learner))
    refused(learner, report, "MALFORMED", "must be a Report; got a bytes")


@pytest.mark.parametrize(
    ("arms", "kind"), [(3, OUTCOME), (3, COUNT), (2, OUTCOME), (2, COUNT), (2, LOGGED_LEVEL)]
)
def test_rows_of_a_log_are_about_a_feature_too_where_halves_are_cells(arms: int, kind: int) -> None:
    learner = grown_whisper(arms=arms)
    good = person(random.Random(0), learner.release(), logged=True, question=number(kind, 0))
    refused(learner, replace(good, question=number(kind)), "UNKNOWN_QUESTION", "be about an axis")
    learner.receive(good)


@pytest.mark.parametrize("feature", [None, 0, 1])
@pytest.mark.parametrize("settings", [{}, {"epsilon": 1.0}, {"public_arms": True}], ids=str)
def test_nobody_is_asked_about_both_arms_where_there_are_more(
    settings: dict[str, Any], feature: int | None
) -> None:
    """Such a report would have nowhere to go: it is refused, whatever it says."""
    learner = grown_whisper(**settings)
    assert len(learner.experiment.arms) == 3
    message = ASKED_IN_PUBLIC if "public_arms" in settings else ASKED
    for logged in (False, True):
        report = replace(
            good_report(learner, logged=logged), question=number(LOGGED_LEVEL, feature), ranking=()
        )
        for payload in (report.payload, b"", b"\1"):
            refused(learner, replace(report, payload=payload), "UNKNOWN_QUESTION", message)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_where_there_are_two_arms_a_row_may_tell_of_both(epsilon: float) -> None:
    learner = grown_whisper(arms=2, epsilon=epsilon)
    counted = learner.status().reports["clinic-b"]
    rng, release = random.Random(0), learner.release()
    for feature in (0, 1):
        question = number(LOGGED_LEVEL, feature)
        report = person(rng, release, population=1, logged=True, question=question)
        assert report.payload
        learner.receive(report)
    assert learner.status().reports["clinic-b"] == counted + 2


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
    learner = grown_whisper(public_arms=True)
    good = person(random.Random(0), learner.release(), question=number(RANKED, 1))
    refused(learner, replace(good, ranking=ranking), "MALFORMED", message)
    learner.receive(good)
    mass = person(random.Random(0), learner.release(), question=number(MASS, 0))
    refused(learner, replace(mass, ranking=(0, 1, 2)), "MALFORMED", "be left out")
    learner.receive(mass)


@pytest.mark.parametrize("kind", [CONTRAST, LEVEL])
def test_where_arms_are_public_nobody_compares_two(kind: int) -> None:
    learner = grown_whisper(public_arms=True)
    report = replace(good_report(learner), question=number(kind, 0), ranking=())
    refused(learner, report, "UNKNOWN_QUESTION", ASKED_IN_PUBLIC)


def symbols(cells: int, *numbers: int) -> int:
    """The symbols 2·cell + (1 if plus) in base 2N, the first one lowest."""
    return sum(each * (2 * cells) ** index for index, each in enumerate(numbers))


def uniform(path: str, *arms: int, waiting: tuple[int, ...] = ()) -> BinPolicy:
    return BinPolicy(path, arms, (1 / len(arms),) * len(arms), waiting)


def eight_bins(epsilon: float, *, release_every: int = 10**6) -> sv.Learner:
    """A learner with eight contested bins: a state made by hand, by splitting the root."""
    learner = sv.Learner(whispering(epsilon=epsilon, release_every=release_every))
    table = json.loads(learner.to_json())
    state = table["state"]
    nodes, of_axes = 15, ("relevance", "ask", "promised", "thresholds")
    for name, rows in state.items():
        if name not in ("totals", "events", "contested", *of_axes) and "scale" not in name:
            state[name] = [rows[0]] * nodes
    nodes_of = ["".join(sides) for n in range(4) for sides in itertools.product("01", repeat=n)]
    state["tree.child"] = [2 * node + 1 if node < 7 else node for node in range(nodes)]
    state["tree.depth"] = [len(path) for path in nodes_of]
    lengths = [0.5 ** len(path) for path in nodes_of]
    lows = [int(path or "0", 2) * length for path, length in zip(nodes_of, lengths, strict=True)]
    state["tree.edges"] = [
        [[low, low + length], [0.0, 1.0]] for low, length in zip(lows, lengths, strict=True)
    ]
    state["mass"] = [[length] * 3 for length in lengths]
    state["shift"] = [0.0, *[-1.0, 1.0] * 7]
    state["effect_variance"] = [[0.0, 0.0], *[[0.01, 0.01]] * (nodes - 1)]
    state["contested"] = list(range(7, nodes))
    state["totals"][0][:2] = [nodes, 8]
    paths, cuts = nodes_of[7:], dict.fromkeys(nodes_of[:7], 0)
    bins = [uniform(path, 0, 1, waiting=(2,)) for path in paths]
    release = replace(learner.release(), partition=Partition(2, cuts), bins=tuple(bins))
    table |= {"release": release.to_table(), "ids": [wire.release_id(release).hex()]}
    table["past"] = [[path, 1, [0, 1], [2]] for path in paths]
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
    state = whisper_state_of(learner)
    told = state.mass_told
    whole, difference = told.vector[7:15, 0, 0], told.vector[7:15, 0, 2]
    sign = 1 if plus else -1
    assert np.sign(whole).tolist() == [0, 0, 0, sign, 0, 0, 0, 0]
    assert difference.tolist() == (whole if side else -whole).tolist()
    assert not told.vector[:, 0, 1].any()
    # Nothing was said of the other bins, and that is worth as much.
    precision = told.precision[7:15, 0]
    assert (precision[:, [0, 2]] == precision[0, 0]).all()
    assert precision[0, 0] > 0
    assert not precision[:, 1].any()
    assert not state.served.precision.any()


def test_stray_bits_are_refused() -> None:
    # ε = 1, logged: every one of 8 × 3 cells, a bit each; served: 8 bits; one bin: 1 bit of 8.
    learner = sv.Learner(whispering(epsilon=1.0))
    good = good_report(learner)
    for bits in (2, 3, 128):
        refused(learner, replace(good, payload=bytes([bits])), "MALFORMED", "holds 1 of 1 cells")
    for bits in (0, 1):
        learner.receive(replace(good, payload=bytes([bits])))


def test_a_report_of_the_other_method_is_refused() -> None:
    mine, theirs = grown_whisper(), ldpmab_grown()
    report = good_report(mine)
    numbers = tuple(0.0 for _ in range(2 * len(theirs.release().cells)))
    refused(mine, replace(report, payload=numbers), "MALFORMED", "must be a packed set")
    swapped = sv.Report(wire.release_id(theirs.release()), 0, bytes(16), b"\0\1\2")
    before = theirs.to_json()
    for payload in (b"", b"\0\1\2", bytes(8 * len(numbers)), bytes(len(numbers))):
        with pytest.raises(sv.ReportRejected) as caught:
            theirs.receive(replace(swapped, payload=payload))
        assert caught.value.reason in (sv.Rejection.MALFORMED, sv.Rejection.WRONG_LENGTH)
    good = replace(swapped, payload=numbers)
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
    tell_places(learner, rng)
    for _ in range(4000):
        release = learner.release()
        layout = cell_layout(release, population=0, by_arm=False)
        if layout is None:
            return learner
        # Everybody says that the first arm is better, wherever they are.
        mechanism, halves = layout.halves.mechanism, layout.halves.parts == 2
        index = rng.randrange(len(release.contested))
        values = [0] * mechanism.cells
        chosen = [index] if mechanism.size == 1 else range(mechanism.size)
        for cell in chosen:
            values[2 * cell + rng.randrange(2) if halves else cell] = 1
        question = number(CONTRAST, rng.randrange(2) if halves else None)
        report = sv.Report(
            wire.release_id(release),
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
    live = [each.live for each in learner.estimates()]  # of the arms that were dropped, too
    assert (sum(live), len(live)) == (status.bins, status.bins * len(learner.experiment.arms))
    empty = good_report(learner)
    assert empty.payload == b""
    refused(
        learner, replace(empty, payload=b"\1"), "WRONG_LENGTH", "empty where everything is settled"
    )
    for _ in range(25):
        learner.receive(empty)
    learner.receive(replace(empty, question=number(COUNT)))
    # A late one, from when there was something to tell, is taken and dropped.
    first = sv.Learner(learner.experiment).release()
    learner.receive(person(random.Random(1), first, question=number(CONTRAST, 0)))
    assert learner.status().late_reports == 1
    assert learner.status().dropped_cells == 1
    assert learner.release().version == status.release
    assert sv.Learner.from_json(learner.to_json()).to_json() == learner.to_json()
