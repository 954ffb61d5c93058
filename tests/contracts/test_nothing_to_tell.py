"""What every method must do for people who have nothing to tell: the same as for all others.

Who sends nothing says so. So a person without an outcome, and a logged row that does not fit, send
a report of the same size at the same price, and it does not depend on who they are.
"""

import random
import secrets
from typing import Any

import pytest

import sottovoce as sv
from contracts.methods import AUXILIARY, PLACES, Make, device_of, grown
from factories import Purse
from sottovoce.device.ldpmab import laplace
from sottovoce.shared import wire


@pytest.fixture
def same_coins(monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Replace all randomness of the payload by a generator that a test can set."""
    rng = random.Random(0)
    monkeypatch.setattr(secrets, "randbelow", rng.randrange)
    monkeypatch.setattr(secrets, "randbits", rng.getrandbits)
    monkeypatch.setattr(laplace, "mechanism", lambda length, *, epsilon: list)
    return rng


def test_with_the_same_coins_all_who_have_no_outcome_send_the_same(
    make: Make, same_coins: random.Random
) -> None:
    release = grown(make, auxiliary=AUXILIARY).release()
    for seed in range(20):
        sent: set[tuple[Any, ...]] = set()
        told: set[tuple[Any, ...]] = set()
        for context in PLACES:
            for reward, seen in ((None, sent), (1.0, told)):
                device = device_of(release)
                device.choose(context)
                same_coins.seed(seed)
                report = device.report(reward=reward)
                seen.add((report.payload, report.question, len(wire.report_to_bytes(report))))
        assert len(sent) == 1
        assert {(each[1], each[2]) for each in sent | told} == {next(iter(sent))[1:]}


def test_a_row_that_does_not_fit_sends_what_a_row_without_a_cell_sends(
    make: Make, same_coins: random.Random
) -> None:
    release = grown(make, auxiliary=AUXILIARY).release()
    for seed in range(20):
        same_coins.seed(seed)
        nothing = device_of(release, population=1).report_nothing_logged()
        same_coins.seed(seed)
        logged = device_of(release, population=1).report_logged(PLACES[0], arm="coach", reward=1.0)
        assert (nothing.question, nothing.population) == (logged.question, logged.population)
        assert len(wire.report_to_bytes(nothing)) == len(wire.report_to_bytes(logged))


def test_nothing_to_tell_costs_what_telling_costs(make: Make) -> None:
    release = sv.Learner(make()).release()
    purse = Purse()
    device = device_of(release, purse)
    device.choose(PLACES[0])
    device.report(reward=None)
    device.report_nothing_logged()
    assert [epsilon for epsilon, *_ in purse.spent] == [release.experiment.epsilon] * 2
    with pytest.raises(sv.DeviceError, match="nothing was chosen"):
        device.report(reward=None)


def test_a_learner_takes_reports_that_tell_nothing(make: Make) -> None:
    learner = sv.Learner(make())
    for _ in range(20):
        device = device_of(learner.release())
        device.choose(PLACES[0])
        learner.receive(device.report(reward=None))
        learner.receive(device.report_nothing_logged())
    assert sum(learner.status().reports.values()) == 40
