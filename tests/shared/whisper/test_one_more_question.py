"""A new kind of question is one entry of the table.

Nothing else is changed here. Devices and the lab's crowd ask it, and the learner understands it.
"""

import random
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import whispering
from sottovoce.device.whisper.draw import draw_question
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.measurement import estimate
from sottovoce.lab.environments import Floats
from sottovoce.lab.simulation import simulate
from sottovoce.shared import wire
from sottovoce.shared.whisper import questions
from sottovoce.shared.whisper.cells import CellMechanism, cell_layout, cell_mechanism
from sottovoce.shared.whisper.questions import BINS, OUTCOME, REWARDS, Entry
from sottovoce.shared.whisper.subset import unpack
from support.insides import whisper_state_of
from support.whispers import each_setting

# How good the two arms on offer are, of people who are served and whose arms are private: the sum
# of both mean rewards, as LEVEL asks for it, too.
SECOND = Entry(
    kind=14,
    name="SECOND",
    logged=False,
    cells=BINS,
    value=OUTCOME,
    measures=REWARDS,
    first=1.0,
    second=1.0,
    share=10,
    public=False,
)
OLD_KINDS = set(range(12))
# Its numbers on the wire, with two features: after 8 kinds with 3 patterns each, 2 kinds with 27
# thresholds of each feature, and 2 kinds with one number.
WHOLE, ALONG_AGE, ALONG_BMI = range(134, 137)
NO_NOISE = 64.0  # at this ε a report misses the truth less than 2N times in 10^27


def add_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "TABLE", (*questions.TABLE, SECOND))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry is in the table."""
    add_entry(monkeypatch)


# --- devices --------------------------------------------------------------------------------------

DRAWS = 8000


def drawn(release: sv.Release, *, population: int = 0, logged: bool = False) -> Counter[int]:
    draw = partial(draw_question, release, population=population, logged=logged)
    return Counter(int(draw().kind) for _ in range(DRAWS))


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("settings", [{}, {"epsilon": 1.0}, {"arms": 2}], ids=str)
def test_people_who_are_served_are_asked_in_its_share(settings: dict[str, Any]) -> None:
    """Ten of 160, so 500 of 8000; by chance it is off by 150 less than once in 10^10 runs."""
    release = sv.Learner(whispering(**settings)).release()
    release = replace(release, reward_share=0, scale_share=0, thresholds=())
    for population in (0, 1):
        count = drawn(release, population=population)
        assert count[14] == pytest.approx(500, abs=150)
        assert count[0] == pytest.approx(DRAWS * (160 - 8 - 5 - 10) / 160, abs=220)  # the rest
        assert set(count) == {0, 1, 2, 14}
        assert 14 not in drawn(release, population=population, logged=True)


@pytest.mark.usefixtures("asked")
def test_nobody_is_asked_whom_the_entry_leaves_out() -> None:
    public = sv.Learner(whispering(public_arms=True)).release()
    for logged in (False, True):
        assert set(drawn(public, logged=logged)) <= OLD_KINDS


@each_setting
def test_without_the_entry_nobody_is_asked(settings: dict[str, Any]) -> None:
    release = sv.Learner(whispering(**settings)).release()
    for logged in (False, True):
        assert set(drawn(release, logged=logged)) <= OLD_KINDS


@dataclass(frozen=True)
class Answered:
    """What a device sent, and of whom."""

    upper: tuple[bool, bool]  # the upper half of the one bin, along each feature
    good: bool
    report: sv.Report


def answered(rng: random.Random, release: sv.Release, count: int) -> list[Answered]:
    """People with real devices, until so many of them were asked the new question.

    Four in five have a good outcome.
    """
    found: list[Answered] = []
    while len(found) < count:
        upper, good = (rng.random() < 0.5, rng.random() < 0.5), rng.random() < 0.8
        device = sv.Device(release)
        device.choose({"age": 80 if upper[0] else 20, "bmi": 40 if upper[1] else 20})
        report = device.report(reward=float(good))
        if report.question in (WHOLE, ALONG_AGE, ALONG_BMI):
            found.append(Answered(upper, good, report))
    return found


def sign(each: Answered) -> int:
    return 1 if each.good else -1


@pytest.mark.usefixtures("asked")
def test_a_device_tells_its_outcome_in_its_half_of_the_bin() -> None:
    release = sv.Learner(whispering(epsilon=NO_NOISE)).release()
    layout = cell_layout(release, population=0, by_arm=False)
    assert layout is not None
    cells = layout.mechanism(0)
    assert cells.parts == 2
    for each in answered(random.Random(0), release, 40):
        feature = each.report.question - ALONG_AGE
        assert isinstance(each.report.payload, bytes)
        values = unpack(cells.mechanism, each.report.payload)
        assert np.flatnonzero(values).tolist() == [int(each.upper[feature])]
        assert sum(values) == sign(each)
        assert each.report.ranking == ()
        assert wire.report_from_bytes(wire.report_to_bytes(each.report)) == each.report


# --- the learner ----------------------------------------------------------------------------------


def variance_of(cells: CellMechanism) -> float:
    """The mean of (value/β)² over the halves of a bin that holds everybody, if they are cells."""
    assert cells.parts == 2
    return cells.mechanism.inside + cells.mechanism.noise


@pytest.mark.usefixtures("asked")
def test_the_learner_adds_it_to_what_it_knows_by_its_coefficients() -> None:
    people = 120
    learner = sv.Learner(whispering(epsilon=NO_NOISE, release_every=people))
    release = learner.release()
    told = answered(random.Random(1), release, people)
    for each in told[:50]:
        learner.receive(each.report)
    saved = learner.to_json()
    learner = sv.Learner.from_json(saved)
    assert learner.to_json() == saved
    compact = [wire.report_to_bytes(each.report) for each in told[50:]]
    assert learner.receive_many(compact) == [None] * (people - 50)

    cells = cell_mechanism(NO_NOISE, 1, parts=2)
    variance, signal = variance_of(cells), cells.mechanism.signal
    state, both = whisper_state_of(learner), np.array([1.0, 1.0, 0.0])  # the arms on offer
    assert release.bins[0].arms == (0, 1)
    along = {
        index: [each for each in told if each.report.question == WHOLE + index] for index in (1, 2)
    }
    sums = {0: sum(map(sign, told))}
    counts = {0: people, **{index: len(some) for index, some in along.items()}}
    for index, some in along.items():
        sums[index] = sum(sign(each) * (1 if each.upper[index - 1] else -1) for each in some)
    for index in range(3):
        precision, vector = counts[index] / variance, sums[index] / (signal * variance)
        found = state.served.precision[0, 0, index], state.served.vector[0, 0, index]
        assert found[0] == pytest.approx(precision * np.outer(both, both))
        assert found[1] == pytest.approx(vector * both)
    assert not state.served.precision[0, 1:].any()
    for other in (state.logged, state.mass_told, state.rows_told):
        assert not other.precision.any()
    # Before, the sum of both was thought to be 1, with a variance of 2/16; it is 1.6 or so.
    mean, noise = sums[0] / (signal * people), variance / people
    known = estimate(state, constants(learner.experiment), 0).mean
    assert known[0] + known[1] == pytest.approx(mean * (2 / 16) / (2 / 16 + noise))
    assert mean > 0


@pytest.mark.parametrize("number", [WHOLE, ALONG_AGE, ALONG_BMI])
def test_where_it_is_not_asked_a_report_on_it_is_refused(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = sv.Learner(whispering(epsilon=1.0))
    add_entry(monkeypatch)
    asking = sv.Learner(whispering(epsilon=1.0))
    public = sv.Learner(whispering(epsilon=1.0, public_arms=True))
    asks = r"a report's question must be one that its experiment asks \({}\); got {}"
    old = "MASS, LEVEL, CONTRAST, BIN_REWARD, BIN_MASS, REWARD, SCALE, LOGGED_SCALE, COUNT, OUTCOME"
    report = sv.Report(wire.release_id(asking.release()), 0, bytes(16), b"\1", number)
    for learner, names in (
        (without, old),
        (public, "MASS, RANKED, REWARD, SCALE, LOGGED_SCALE, COUNT, OUTCOME"),
    ):
        before = learner.to_json()
        sent = replace(report, release=wire.release_id(learner.release()))
        with pytest.raises(sv.ReportRejected, match=asks.format(names, number)) as caught:
            learner.receive(sent)
        assert caught.value.reason is sv.Rejection.UNKNOWN_QUESTION
        assert learner.receive_many([wire.report_to_bytes(sent)]) == [caught.value.reason]
        assert learner.to_json() == before
    asking.receive(report)
    assert asking.status().reports["target"] == 1
    # The kind after it is one that nobody asks.
    with pytest.raises(sv.ReportRejected, match=asks.format(f"{old}, SECOND", number + 3)):
        asking.receive(replace(report, question=number + 3))


# --- the crowd ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoGoodArms:
    """One arm brings 0.9 and the other 0.7, wherever one is."""

    arms: int = 2
    dimension: int = 1

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random((n, 1))

    def means(self, contexts: Floats) -> Floats:
        return np.tile([0.9, 0.7], (len(contexts), 1))


def test_the_crowd_asks_it_in_its_share_and_the_same_learner_adds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n, epsilon = 16_000, 8.0
    cells = cell_mechanism(epsilon, 1, parts=2)
    variance = variance_of(cells)

    def answers() -> tuple[float, float, float]:
        """How many told of both arms together, and of their difference; what the first told."""
        result = simulate(TwoGoodArms(), epsilon=epsilon, n=n, seed=7, release_every=n)
        known = whisper_state_of(result).served
        precision, vector = known.precision[0, 0, 0], known.vector[0, 0, 0]
        # A contrast adds (1, -1; -1, 1), and the others (1, 1; 1, 1): they do not mix.
        together, apart = precision[0].sum(), precision[0] @ [1, -1]
        return together * variance / 2, apart * variance / 2, vector.sum() / together

    level, contrast, mean = answers()
    asked = n * (160 - 48) // 160  # the others are asked where they are
    assert level == pytest.approx(asked * 5 / 160, abs=110)  # five standard deviations
    assert contrast == pytest.approx(asked * 147 / 160, abs=310)
    assert mean == pytest.approx(0.6, abs=0.3)
    add_entry(monkeypatch)
    both, contrast, mean = answers()
    assert both == pytest.approx(round(both), abs=1e-6)
    assert both == pytest.approx(asked * (5 + 10) / 160, abs=185)
    assert contrast == pytest.approx(asked * 137 / 160, abs=330)
    assert mean == pytest.approx(0.6, abs=0.15)  # 0.9 + 0.7 - 1; the difference would be 0.2
