"""What every method must do: on the device."""

import logging
import math
import random
import secrets
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from contracts.methods import AUXILIARY, PLACES, Make, anybody, device_of, grown, report_of, settled
from factories import Purse
from sottovoce.shared import wire

# Long enough that no random bytes and no noise spell one by chance.
AGE, BMI, REWARD = 61.73205081, 31.41592654, 0.57721566
RAW = [str(AGE), str(BMI), str(REWARD), repr((AGE - 18) / 72)[:10], repr((BMI - 15) / 30)[:10]]


def test_a_device_chooses_only_arms_that_are_on_offer_and_each_of_them(make: Make) -> None:
    for learner in (sv.Learner(make()), grown(make), settled(make)):
        release = learner.release()
        for context in (PLACES[0], PLACES[-1]):
            point = [(context["age"] - 18) / 72, (context["bmi"] - 15) / 30]
            policy = release.policies[release.partition.find(point)]
            # Of 200 people one in 12 or more gets each arm: none does with chance below 1e-7.
            assert all(chance > 1 / 12 for chance in policy.propensities)
            # A device for each: where arms are public, one keeps its ranking until it reports.
            devices = [device_of(release) for _ in range(200)]
            chosen = {release.experiment.arms.index(each.choose(context)) for each in devices}
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


@pytest.mark.parametrize("reward", [-0.1, 1.1, math.nan, "1"])
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
    assert len({(r.release, r.population, type(r.payload)) for r in reports}) == 1
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    assert report_of(rng, release).nonce == bytes(16)


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
