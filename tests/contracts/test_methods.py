"""What every method must do, on the device, in the learner, on the server and in the lab.

The suite runs on every registered method, and on ``one_bit``, which exists in the tests only: new
files and one registration make a method.
"""

import itertools
import json
import logging
import math
import random
import secrets
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.estimate import history
from sottovoce.estimate.diagnosis import Diagnosis, Source
from sottovoce.estimate.history import Certificate
from sottovoce.estimate.learner import Status
from sottovoce.estimate.method import CellEstimate, learner_method
from sottovoce.lab.simulate import Auxiliary, simulate
from sottovoce.shared import wire
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.methods import (
    MethodSettings,
    method_names,
    register,
    settings_from,
    unregister,
)
from support.answering import Purse
from support.examples import experiment
from support.http import get, until
from support.in_process import serving_here
from support.spoiled import cut_at_random, spoil, verdict

ONE_BIT = "contracts.one_bit.{room}"

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "whisper": [{}, {"guarantee": "certified", "delta": 0.1}, {"public_arms": True}],
    "ldpmab": [{}, {"preset": "paper", "c": 0.1}],
    "one_bit": [{}, {"clear": 2.0}],
}
"""Settings of each method that the suite runs with: first its own, then others."""

ADDS_FLOATS = {"ldpmab"}
"""Methods whose sums depend on the order of the reports in their last digits."""

CASES = [(name, settings) for name, listed in SETTINGS.items() for settings in listed]
AUXILIARY = [
    sv.Population("clinic-b", 8.0, 100, (0.2, 0.3, 0.5)),
    sv.Population("clinic-c", 0.5, 100),
]
PLACES = [
    {"age": age, "bmi": bmi} for age, bmi in itertools.product((20, 50, 80), (16, 29.5, 30, 44))
]
# Long enough that no random bytes and no noise spell one by chance.
AGE, BMI, REWARD = 61.73205081, 31.41592654, 0.57721566
RAW = [str(AGE), str(BMI), str(REWARD), repr((AGE - 18) / 72)[:10], repr((BMI - 15) / 30)[:10]]


@pytest.fixture(params=CASES, ids=lambda case: " ".join(map(str, (case[0], *case[1].values()))))
def table(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The method as an experiment's file has it."""
    name, settings = request.param
    if name == "one_bit":
        register("one_bit", modules=ONE_BIT)
    yield {"name": name, **settings}
    if name == "one_bit":
        unregister("one_bit")


Make = Callable[..., Experiment]


@pytest.fixture
def make(table: dict[str, Any]) -> Make:
    """Make experiments with the method."""

    def make(**settings: Any) -> Experiment:
        defaults: dict[str, Any] = {
            "method": settings_from(table),
            "auxiliary": AUXILIARY,
            "release_every": 10,
            "horizon": 400,
        }
        return experiment(**{**defaults, **settings})

    return make


def device_of(release: sv.Release, purse: Any = None, *, population: int = 0) -> sv.Device:
    name = release.experiment.populations[population].name
    ledger = Purse() if purse is None else purse
    return sv.Device(release, population=name, ledger=ledger, public_arms=True)


def report_of(
    rng: random.Random, release: sv.Release, *, population: int = 0, logged: bool = False
) -> sv.Report:
    """The report of somebody. Most like the second arm, and some the third."""
    device, context = device_of(release, population=population), rng.choice(PLACES)
    arms = release.experiment.arms
    arm = rng.choice(arms) if logged else device.choose(context)
    reward = [0.1, 0.9, 0.9 if context["age"] > 60 else 0.2][arms.index(arm)]
    if logged:
        return device.report_logged(context, arm=arm, reward=reward)
    return device.report(reward=reward)


def anybody(rng: random.Random, release: sv.Release) -> sv.Report:
    """The report of somebody of any population, served or logged."""
    population = rng.choice([0, 0, 0, 1, 2])
    return report_of(rng, release, population=population, logged=rng.random() < 0.3)


MOST = 20_000
"""Reports after which something ought to have happened, by any method."""


def grown(make: Make, **settings: Any) -> sv.Learner:
    """A learner that has heard people of all populations, and has published a second release."""
    rng, learner = random.Random(0), sv.Learner(make(**{"epsilon": 8.0, **settings}))
    for count in range(MOST):
        if count >= 150 and learner.release().version > 1:
            return learner
        learner.receive(anybody(rng, learner.release()))
    raise AssertionError("people who like different arms must lead to another release")


def settled(make: Make, **settings: Any) -> sv.Learner:
    """A learner of people everywhere who like the second arm alone, until nothing is left."""
    rng = random.Random(0)
    learner = sv.Learner(make(epsilon=64.0, release_every=100, horizon=100_000, **settings))
    for _ in range(MOST):
        if not learner.release().contested:
            return learner
        device = device_of(learner.release())
        arm = device.choose({"age": rng.uniform(18, 90), "bmi": rng.uniform(15, 45)})
        learner.receive(device.report(reward=float(arm == learner.experiment.arms[1])))
    raise AssertionError("people who all like one arm must settle an experiment")


# --- settings -------------------------------------------------------------------------------------


def test_every_registered_method_is_in_the_suite() -> None:
    assert {*method_names(), "one_bit"} == SETTINGS.keys()


def test_one_registration_adds_a_method_and_one_call_removes_it() -> None:
    before = method_names()
    with pytest.raises(sv.ExperimentError, match=r"be one of \['whisper', 'ldpmab'\]"):
        experiment(method="one_bit")
    register("one_bit", modules=ONE_BIT)
    assert method_names() == [*before, "one_bit"]
    assert experiment(method="one_bit").settings.name == "one_bit"
    unregister("one_bit")
    assert method_names() == before
    with pytest.raises(sv.ExperimentError, match="the method's name must be one of"):
        experiment(method="one_bit")


def test_settings_are_the_same_after_a_table(table: dict[str, Any], make: Make) -> None:
    settings = settings_from(table)
    assert isinstance(settings, MethodSettings)
    assert settings.name == table["name"]
    written = settings.to_table()
    assert written.items() >= table.items()
    assert settings_from(written) == settings
    assert settings_from(settings) is settings
    walking = make()
    again = Experiment.from_table(json.loads(json.dumps(walking.to_table())))
    assert again == walking
    assert again.fingerprint == walking.fingerprint
    assert settings_from(table["name"]) == settings_from({"name": table["name"]})


def test_settings_are_the_same_after_a_file(
    tmp_path: Path, table: dict[str, Any], make: Make
) -> None:
    walking = make(auxiliary=[])
    entries = walking.to_table()
    entries["method"] = settings_from(table).to_table()
    path = tmp_path / "experiment.toml"
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in entries.items()))
    read = Experiment.from_toml(path)
    assert read == walking
    assert read.fingerprint == walking.fingerprint


def toml(value: Any) -> str:
    """Write a value as TOML: JSON, but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def test_unknown_keys_are_refused(table: dict[str, Any]) -> None:
    known = sorted(settings_from(table).to_table().keys() - {"name"})
    with pytest.raises(sv.ExperimentError) as caught:
        experiment(method={**table, "colour": "red"})
    assert f"method {table['name']} must have only the keys" in str(caught.value)
    assert "got ['colour']" in str(caught.value)
    assert all(repr(key) in str(caught.value) for key in known)


def test_each_setting_changes_the_fingerprint(table: dict[str, Any], make: Make) -> None:
    others = [each for each in SETTINGS[table["name"]] if {"name": table["name"], **each} != table]
    assert others
    for other in others:
        changed = experiment(method={"name": table["name"], **other})
        assert changed.fingerprint != experiment(method=table).fingerprint
    for name in method_names():
        if name != table["name"]:
            assert experiment(method=name).fingerprint != experiment(method=table).fingerprint


def test_settings_say_what_they_are_in_words(table: dict[str, Any]) -> None:
    settings = settings_from(table)
    assert settings.name in settings.summary
    assert "ε-LDP" in settings.promise
    assert settings.decision_rule.endswith(".")
    assert settings.arms_are_public is bool(table.get("public_arms", False))


# --- the device -----------------------------------------------------------------------------------


def test_a_device_chooses_only_arms_that_are_on_offer_and_each_of_them(make: Make) -> None:
    for learner in (sv.Learner(make()), grown(make), settled(make)):
        release = learner.release()
        for context in (PLACES[0], PLACES[-1]):
            point = [(context["age"] - 18) / 72, (context["bmi"] - 15) / 30]
            policy = release.policies[release.partition.find(point)]
            # Of 200 people one in 12 or more gets each arm: none does with chance below 1e-7.
            assert all(chance > 1 / 12 for chance in policy.propensities)
            device = device_of(release)
            chosen = {release.experiment.arms.index(device.choose(context)) for _ in range(200)}
            assert chosen == set(policy.arms)


def test_a_report_is_the_same_after_the_wire(make: Make) -> None:
    rng = random.Random(1)
    for learner in (sv.Learner(make()), grown(make), settled(make)):
        for _ in range(30):
            report = anybody(rng, learner.release())
            data = wire.report_to_bytes(report)
            assert wire.report_from_bytes(data) == report
            assert wire.report_from_json(wire.report_to_json(report)) == report
            assert learner.receive_many([data]) == [None]


def test_each_report_spends_the_epsilon_of_its_population_once(make: Make) -> None:
    rng, release = random.Random(2), sv.Learner(make()).release()
    about = (release.experiment.fingerprint, release.experiment.name, release.version)
    for m, population in enumerate(release.experiment.populations):
        purse = Purse()
        device = device_of(release, purse, population=m)
        for count in range(1, 21):
            if rng.random() < 0.5:
                device.report_logged(rng.choice(PLACES), arm="coach", reward=0.5)
            else:
                device.choose(rng.choice(PLACES))
                assert len(purse.spent) == count - 1  # a choice costs nothing
                device.report(reward=0.5)
            assert purse.spent == [(population.epsilon, *about)] * count


def test_a_ledger_that_refuses_stops_the_report(make: Make) -> None:
    class Empty:
        def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
            raise sv.BudgetSpent("nothing is left")

    device = device_of(sv.Learner(make()).release(), Empty())
    device.choose(PLACES[0])
    with pytest.raises(sv.BudgetSpent, match="nothing is left"):
        device.report(reward=1.0)
    with pytest.raises(sv.BudgetSpent):
        device.report_logged(PLACES[0], arm="coach", reward=1.0)


@pytest.mark.parametrize("reward", [-0.1, 1.1, math.nan, "1", None, True])
def test_a_bad_reward_is_refused_and_costs_nothing(make: Make, reward: Any) -> None:
    purse = Purse()
    device = device_of(sv.Learner(make()).release(), purse)
    device.choose(PLACES[0])
    with pytest.raises(sv.RewardError, match=r"a reward must be a number in \[0, 1\]"):
        device.report(reward=reward)
    assert purse.spent == []


@pytest.mark.parametrize("auxiliary", [[], AUXILIARY], ids=["alone", "with auxiliary data"])
def test_where_all_is_settled_nothing_costs_but_what_the_release_asks_for(
    make: Make, auxiliary: list[sv.Population]
) -> None:
    learner = settled(make, auxiliary=auxiliary)
    release = learner.release()
    assert auxiliary or not release.reward_share
    purse = Purse()
    device = device_of(release, purse)
    told = 0
    for context in PLACES * 10:
        device.choose(context)
        report = device.report(reward=1.0)
        told += len(report.payload) > 0
        assert len(purse.spent) == told
        assert len(device.report_logged(context, arm="coach", reward=1.0).payload) == 0
        assert len(purse.spent) == told
        learner.receive(report)
    # Some people may be asked for their reward, and nothing else: then the release says how many.
    assert told == 0 or release.reward_share > 0


def test_the_nonce_is_new_in_each_report_and_the_public_part_tells_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = sv.Learner(make()).release()
    rng = random.Random(3)
    reports = [report_of(rng, release) for _ in range(50)]
    assert len({report.nonce for report in reports}) == 50
    assert len({(r.experiment, r.release, r.population, type(r.payload)) for r in reports}) == 1
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    assert report_of(rng, release).nonce == bytes(16)


# --- the learner ----------------------------------------------------------------------------------


def test_a_learner_counts_the_reports_of_real_devices(make: Make) -> None:
    rng, learner = random.Random(4), sv.Learner(make())
    expected = {"target": 0, "clinic-b": 0, "clinic-c": 0}
    for m, logged in itertools.product(range(3), (False, True)):
        for _ in range(17):
            learner.receive(report_of(rng, learner.release(), population=m, logged=logged))
            expected[learner.experiment.populations[m].name] += 1
            assert learner.status().reports == expected


def wrong_reports(report: sv.Report, newest: int) -> list[tuple[sv.Rejection, sv.Report]]:
    """Reports with one thing wrong, each with why it is refused."""
    because = sv.Rejection
    longer: Any = report.payload + (b"\0" if isinstance(report.payload, bytes) else (0.0,))
    wrong = [
        (because.UNKNOWN_EXPERIMENT, replace(report, experiment="0" * 16)),
        (because.UNKNOWN_RELEASE, replace(report, release=0)),
        (because.UNKNOWN_RELEASE, replace(report, release=newest + 1)),
        (because.UNKNOWN_POPULATION, replace(report, population=3)),
        (because.WRONG_LENGTH, replace(report, payload=longer)),
        (because.WRONG_LENGTH, replace(report, payload=report.payload[:-1])),
    ]
    if isinstance(report.payload, bytes):
        garbage = b"\xff" * len(report.payload)
        return [
            *wrong,
            (because.UNKNOWN_QUESTION, replace(report, question=2**16 - 1)),
            (because.MALFORMED, replace(report, payload=garbage)),
            (because.MALFORMED, replace(report, payload=(0.5, 0.5))),
        ]
    return [
        *wrong,
        (because.MALFORMED, replace(report, question=1)),
        (because.MALFORMED, replace(report, payload=b"\1")),
        (because.NOT_FINITE, replace(report, payload=(math.nan, *report.payload[1:]))),
        (because.IMPLAUSIBLE, replace(report, payload=(1e9, *report.payload[1:]))),
    ]


def test_what_is_wrong_is_refused_with_its_reason_and_changes_nothing(make: Make) -> None:
    learner = sv.Learner(make())
    rng = random.Random(5)
    for _ in range(3):
        learner.receive(anybody(rng, learner.release()))
    before = learner.to_json()
    report = report_of(rng, learner.release())
    for reason, wrong in wrong_reports(report, newest=1):
        with pytest.raises(sv.ReportRejected) as caught:
            learner.receive(wrong)
        assert caught.value.reason is reason
        if isinstance(wrong.payload, bytes) or not wrong.question:  # it has a compact form
            assert learner.receive_many([wire.report_to_bytes(wrong)]) == [reason]
        assert learner.to_json() == before
    for thing in ("a report", b"sv", None, {"payload": []}):
        with pytest.raises(sv.ReportRejected) as caught:
            learner.receive(thing)  # type: ignore[arg-type]
        assert caught.value.reason is sv.Rejection.MALFORMED
    garbage = [b"", b"sv", b"some other bytes", wire.report_to_bytes(report)[:-1] + b"??"]
    assert None not in learner.receive_many(garbage)
    assert learner.to_json() == before
    learner.receive(report)
    assert learner.to_json() != before


def history_of(make: Make, rng: random.Random, count: int, **settings: Any) -> list[bytes]:
    """Reports for all releases so far, some of them late and some of them spoiled."""
    learner = sv.Learner(make(**settings))
    releases: list[sv.Release] = [learner.release()]
    reports: list[bytes] = []
    after = 0  # reports since the second release
    while len(reports) < count or (after < 100 and len(reports) < MOST):
        after += len(releases) > 1
        release = rng.choice(releases) if rng.random() < 0.5 else learner.release()
        data = wire.report_to_bytes(anybody(rng, release))
        if rng.random() < 0.2:
            data = spoil(rng, data, newest=learner.release().version)
        reports.append(data)
        verdict(learner.receive, data)
        if releases[-1].version != learner.release().version:
            releases.append(learner.release())
    assert len(releases) > 1
    return reports


def test_many_reports_at_once_are_as_one_by_one_bit_for_bit(make: Make) -> None:
    rng = random.Random(6)
    reports = history_of(make, rng, 300, epsilon=16.0)
    one_by_one, at_once = (sv.Learner(make(epsilon=16.0)) for _ in range(2))
    seen: set[sv.Rejection | None] = set()
    for piece in cut_at_random(rng, reports, most=60):
        verdicts = [verdict(one_by_one.receive, data) for data in piece]
        assert at_once.receive_many(piece) == verdicts
        assert at_once.to_json() == one_by_one.to_json()
        seen |= set(verdicts)
    assert None in seen
    assert len(seen) > 3
    assert one_by_one.status().late_reports > 0


def test_the_order_of_reports_between_two_steps_does_not_matter(
    make: Make, table: dict[str, Any]
) -> None:
    rng = random.Random(7)
    learners = [sv.Learner(make(epsilon=16.0)) for _ in range(2)]
    for step in range(MOST // 10):
        release = learners[0].release()
        assert learners[1].release() == release
        if step >= 30 and release.version > 1:
            break
        reports = [anybody(rng, release) for _ in range(10)]  # until the next step
        for learner in learners:
            for report in reports:
                learner.receive(report)
            rng.shuffle(reports)
    first, second = (json.loads(learner.to_json()) for learner in learners)
    assert release.version > 1
    if table["name"] in ADDS_FLOATS:
        assert_close(first, second)
    else:
        assert first == second


def assert_close(one: Any, other: Any) -> None:
    """The same, but for the rounding of floats."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_close(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for each, another in zip(one, other, strict=True):
            assert_close(each, another)
    else:
        assert one == (pytest.approx(other, rel=1e-9, abs=1e-9) if type(one) is float else other)


def test_a_learner_that_was_saved_goes_on_bit_for_bit(make: Make) -> None:
    rng = random.Random(8)
    reports = history_of(make, rng, 150, epsilon=16.0)
    learner = resumed = sv.Learner(make(epsilon=16.0))
    for start in range(0, len(reports), 7):  # at steps and between them
        resumed = sv.Learner.from_json(resumed.to_json())
        assert resumed.release() == learner.release()
        learner.receive_many(reports[start : start + 7])
        if resumed is not learner:
            resumed.receive_many(reports[start : start + 7])
        assert resumed.to_json() == learner.to_json()
        assert resumed.status() == learner.status()
        assert resumed.history() == learner.history()


def test_a_saved_learner_that_is_damaged_is_refused(make: Make) -> None:
    text = grown(make).to_json()
    state = json.loads(text)
    own = learner_method(make()).begin(make()).to_table().keys()
    for key in own:
        without = {name: value for name, value in state.items() if name != key}
        with pytest.raises(sv.StateError, match="a saved learner must be complete"):
            sv.Learner.from_json(json.dumps(without))
    with pytest.raises(sv.StateError, match="cut off or damaged"):
        sv.Learner.from_json(text[:-10])


def test_late_reports_are_taken(make: Make) -> None:
    learner = grown(make, epsilon=64.0, release_every=5)
    first = sv.Learner(learner.experiment).release()
    rng, late = random.Random(9), learner.status().late_reports
    for count in range(1, 31):
        release = first if count % 2 else sv.Learner.from_json(learner.to_json()).release()
        was_late = release.version < learner.release().version
        learner.receive(anybody(rng, release))
        late += was_late
        assert learner.status().late_reports == late
    assert late >= 15


def test_every_release_is_valid_on_the_wire_and_follows_the_last(make: Make) -> None:
    rng, learner = random.Random(10), sv.Learner(make(epsilon=64.0))
    releases = [learner.release()]
    for count in range(MOST):
        if count >= 400 and len(releases) > 1:
            break
        learner.receive(anybody(rng, learner.release()))
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
    assert [release.version for release in releases] == list(range(1, len(releases) + 1))
    assert len(releases) > 1
    for release in releases:
        assert wire.release_from_json(wire.release_to_json(release)) == release
        assert wire.release_from_bytes(wire.release_to_bytes(release)) == release
        assert release.experiment == learner.experiment
        assert [policy.path for policy in release.bins] == list(release.partition.leaves())


def test_what_a_learner_says_is_of_the_documented_types(make: Make) -> None:
    for learner in (sv.Learner(make()), grown(make, epsilon=64.0), settled(make)):
        check_status(learner)
        arms, paths = learner.experiment.arms, set(learner.release().policies)
        estimates = learner.estimates()
        assert isinstance(estimates, list)
        assert len(estimates) == learner.status().contested_cells
        for estimate in estimates:
            assert isinstance(estimate, CellEstimate)
            assert estimate.arm in arms
            assert estimate.path in paths
            known = [each for each in (estimate.estimate, estimate.radius) if each is not None]
            assert all(type(each) is float and math.isfinite(each) for each in known)
            assert len(known) in (0, 2)
        check_history(learner)
        diagnosis = learner.diagnosis()
        assert isinstance(diagnosis, Diagnosis)
        assert all(isinstance(each, Source) for each in diagnosis.sources)
        names = [population.name for population in learner.experiment.auxiliary]
        assert [each.population for each in diagnosis.sources] == names
        assert sorted(diagnosis.best_first()) == sorted(names)
        assert all(isinstance(each, str) for each in diagnosis.warnings)
        for each in (*estimates, *learner.certificates(), *diagnosis.sources, learner.status()):
            assert json.loads(json.dumps(asdict(each), allow_nan=False)) is not None


def check_status(learner: sv.Learner) -> None:
    status, release = learner.status(), learner.release()
    assert isinstance(status, Status)
    assert status.reports.keys() == {each.name for each in learner.experiment.populations}
    counts = [getattr(status, each.name) for each in fields(Status) if each.name != "reports"]
    assert all(type(each) is int and each >= 0 for each in (*counts, *status.reports.values()))
    assert status.release == release.version
    assert status.bins == len(release.bins)
    assert status.settled_bins == sum(len(each.arms) == 1 for each in release.bins)


def check_history(learner: sv.Learner) -> None:
    arms = range(len(learner.experiment.arms))
    dated = learner.history()
    assert isinstance(dated, tuple)
    times = [each.reports for each in dated]
    assert times == sorted(times)
    assert all(each % learner.experiment.release_every == 0 for each in times)
    for each in dated:
        assert isinstance(each.event, history.Event)
        if isinstance(each.event, history.Elimination):
            assert set(each.event.arms) <= set(arms)
    certificates = learner.certificates()
    assert isinstance(certificates, tuple)
    for certificate in certificates:
        assert isinstance(certificate, Certificate)
        assert {certificate.dropped, certificate.winner} <= set(learner.experiment.arms)
        assert certificate.statistic >= certificate.boundary
        assert 1 < certificate.release <= learner.release().version


def test_people_who_all_like_one_arm_get_it_in_the_end(make: Make) -> None:
    learner = settled(make)
    best = learner.experiment.arms[1]
    assert {device_of(learner.release()).choose(context) for context in PLACES} == {best}
    dropped = [
        arm
        for dated in learner.history()
        if isinstance(dated.event, history.Elimination)
        for arm in dated.event.arms
    ]
    assert set(dropped) == {0, 2}
    assert learner.status().contested_cells == 0


# --- raw values -----------------------------------------------------------------------------------


def test_no_raw_value_is_in_anything_that_is_shown_or_kept(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    learner = sv.Learner(make())
    ledger = sv.Ledger(tmp_path / "ledger", budget=1000)
    shown = []
    for _ in range(60):
        device = device_of(learner.release(), ledger)
        device.choose({"age": AGE, "bmi": BMI})
        shown += [repr(device), repr(vars(device))]
        report = device.report(reward=REWARD)
        logged = device.report_logged({"age": AGE, "bmi": BMI}, arm="coach", reward=REWARD)
        for each in (report, logged):
            shown += [repr(each), wire.report_to_json(each)]
            learner.receive(each)
    shown += [learner.to_json(), wire.release_to_json(learner.release()), caplog.text]
    shown += [ledger.receipt(), repr(learner.estimates()), repr(learner.history())]
    assert not [text for text in shown for raw in RAW if raw in text]


def test_no_raw_value_is_in_an_error(make: Make) -> None:
    device = device_of(sv.Learner(make()).release())
    good = {"age": AGE, "bmi": BMI}
    device.choose(good)
    mistakes: list[Callable[[], object]] = [
        lambda: device.report(reward=AGE),
        lambda: device.report_logged(good, arm="Lindqvist", reward=REWARD),
        lambda: device.report_logged(good, arm="coach", reward=-REWARD),
        lambda: device.report_logged({"age": str(AGE), "bmi": BMI}, arm="coach", reward=REWARD),
        lambda: device.choose({**good, "passport": "Lindqvist"}),
        lambda: device.choose({"age": AGE}),
    ]
    for mistake in mistakes:
        with pytest.raises(sv.SottovoceError) as caught:
            mistake()
        chain, error = "", caught.value
        while error is not None:
            chain += "".join(traceback.format_exception_only(error))
            error = error.__cause__ or error.__context__  # type: ignore[assignment]
        assert not [raw for raw in (*RAW, "Lindqvist", "passport") if raw in chain]


# --- the server and the lab -----------------------------------------------------------------------


def test_the_service_runs_it_from_end_to_end(make: Make, tmp_path: Path) -> None:
    rng, walking = random.Random(11), make(epsilon=64.0, release_every=20, name="walking")
    fingerprint = walking.fingerprint
    with serving_here(tmp_path, [walking]) as server:
        client = sv.Client(
            server.url,
            experiment=fingerprint,
            keys=[server.key],
            ledger=Purse(),
            outbox=tmp_path / "outbox",
            public_arms=True,
            refresh_every=0.001,
        )
        for count in range(60):
            arm = client.choose(rng.choice(PLACES))
            client.report(reward=float(arm == "reminder"))
            if count % 20 == 19:
                assert client.flush(timeout=60)
                server.wait_until_learned(walking)
        assert client.refused == {}
        # What the server has learned follows from its log, and reaches the device.
        learner = sv.Learner(walking)
        log = server.store.read(fingerprint, after=0, limit=100)
        assert learner.receive_many(log) == [None] * 60
        until(lambda: [client.refresh(), client.release == learner.release()][1])
        status = get(server, f"/experiments/{fingerprint}/status").json()
        page = get(server, f"/experiments/{fingerprint}")
        told = [
            get(server, f"/experiments/{fingerprint}/{part}")
            for part in ("estimates", "certificates", "diagnosis", "releases")
        ]
    assert "walking" in page.body.decode()
    assert walking.settings.summary in page.body.decode()
    assert [page.status, *(each.status for each in told)] == [200] * 5
    assert all(each.json() is not None for each in told)
    assert (status["stored"], status["learned"], status["reports"]["target"]) == (60, 60, 60)


class OneIsBest:
    """A world in which the second of three arms is best, everywhere."""

    arms, dimension = 3, 2

    def contexts(self, rng: np.random.Generator, n: int) -> Any:
        return rng.random((n, 2))

    def means(self, contexts: Any) -> Any:
        return np.tile([0.05, 0.95, 0.05], (len(contexts), 1))


def test_the_lab_simulates_it(table: dict[str, Any]) -> None:
    def play(**settings: Any) -> Any:
        chosen = {"method": table, "epsilon": 32.0, "n": 4000, "seed": 1, **settings}
        return simulate(OneIsBest(), points=[(0.1, 0.1), (0.9, 0.9)], **chosen)

    result = play()
    assert result.method == table["name"]
    assert result.people[-1] == 4000
    assert (np.diff(result.regret) >= 0).all()
    # Arms at random would lose 0.6 a person.
    assert result.regret[-1] < 0.75 * 0.6 * 4000
    assert result.release.experiment.settings == settings_from(table)
    assert wire.release_from_json(wire.release_to_json(result.release)) == result.release
    chosen = {device_of(result.release).choose({"x1": x, "x2": x}) for x in (0.1, 0.9)}
    assert chosen == {"arm 1"}
    assert result.regret.tolist() == play().regret.tolist()
    assert result.regret.tolist() != play(seed=2).regret.tolist()
    # Rows of a log come first.
    jumped = play(auxiliary=[Auxiliary(4000, 32.0)])
    assert jumped.reports == (4000, 4000)
    assert jumped.people[-1] == 4000
    assert jumped.regret[-1] < 0.75 * 0.6 * 4000
    assert jumped.diagnosis is None or len(jumped.diagnosis.sources) == 1
