import secrets
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, Purse, experiment, grown
from sottovoce.device.ldpmab import laplace
from sottovoce.shared import wire
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy


def release_with(bins: list[BinPolicy], cuts: dict[str, int]) -> sv.Release:
    return sv.Release(experiment(epsilon=1e6), 1, Partition(2, cuts), tuple(bins))


def test_a_report_tells_of_the_bin_and_arm_when_epsilon_is_huge() -> None:
    release = sv.Learner(experiment(epsilon=1e6)).release()
    device = sv.Device(release)
    arm = experiment().arms.index(device.choose(CONTEXT))
    report = device.report(reward=0.25)
    expected = [0.0] * 6
    expected[arm], expected[3 + arm] = 0.25, 1.0
    assert report.payload == pytest.approx(expected, abs=1e-3)
    assert report.release == wire.release_id(release)
    assert (report.population, len(report.nonce)) == (0, 16)


def test_arms_are_drawn_by_the_propensities_of_the_bin() -> None:
    # 4000 draws; each count lies within 5 standard deviations but for 1 run in a million.
    policies = [BinPolicy("0", (0, 2), (0.25, 0.75)), BinPolicy("1", (1,), (1.0,))]
    device = sv.Device(release_with(policies, {"": 0}))
    young = Counter(device.choose({"age": 20, "bmi": 20}) for _ in range(4000))
    old = Counter(device.choose({"age": 80, "bmi": 20}) for _ in range(100))
    assert young["control"] + young["coach"] == 4000
    assert abs(young["coach"] - 3000) < 5 * (4000 * 0.25 * 0.75) ** 0.5
    assert old == {"reminder": 100}


def test_someone_in_a_settled_bin_reports_zeros_and_noise_for_the_contested_cells() -> None:
    policies = [BinPolicy("0", (0, 2), (0.5, 0.5)), BinPolicy("1", (1,), (1.0,))]
    device = sv.Device(release_with(policies, {"": 0}))
    device.choose({"age": 80, "bmi": 20})
    assert device.report(reward=1).payload == pytest.approx([0.0] * 4, abs=1e-3)


def test_where_nothing_is_contested_nothing_is_sent_and_nothing_is_spent(tmp_path: Path) -> None:
    ledger = sv.Ledger(tmp_path / "ledger", budget=1e6)
    device = sv.Device(release_with([BinPolicy("", (1,), (1.0,))], {}), ledger=ledger)
    device.choose(CONTEXT)
    assert device.report(reward=1).payload == ()
    assert ledger.entries() == []


def test_without_a_ledger_a_device_reports_once() -> None:
    device = sv.Device(sv.Learner(experiment()).release())
    device.choose(CONTEXT)
    device.report(reward=1)
    device.choose(CONTEXT)
    with pytest.raises(sv.BudgetSpent, match="must report at most once"):
        device.report(reward=1)


def test_each_report_spends_the_epsilon_of_its_population(tmp_path: Path) -> None:
    with_aux = experiment(auxiliary=[sv.Population("clinic-b", 4, 10)])
    ledger = sv.Ledger(tmp_path / "ledger", budget=10)
    device = sv.Device(sv.Learner(with_aux).release(), population="clinic-b", ledger=ledger)
    report = device.report_logged(CONTEXT, arm="coach", reward=0.5)
    assert report.population == 1
    assert [entry.epsilon for entry in ledger.entries()] == [4.0]
    assert ledger.left == 6


def test_a_logged_row_reports_the_arm_of_the_log() -> None:
    device = sv.Device(sv.Learner(experiment(epsilon=1e6)).release())
    report = device.report_logged(CONTEXT, arm="coach", reward=0.5)
    assert report.payload == pytest.approx([0, 0, 0.5, 0, 0, 1], abs=1e-3)


def test_a_report_belongs_to_the_release_under_which_the_arm_was_chosen() -> None:
    learner = grown()
    first = sv.Learner(learner.experiment).release()
    device = sv.Device(first)
    device.choose(CONTEXT)
    device.follow(learner.release())
    report = device.report(reward=1)
    assert report.release == wire.release_id(first)
    assert len(report.payload) == 2 * len(first.cells)


@pytest.mark.parametrize("reward", [-0.1, 1.1, -1e-12, 1 + 1e-12, float("nan"), float("inf"), "1"])
def test_a_bad_reward_is_refused_and_costs_nothing(reward: Any, tmp_path: Path) -> None:
    ledger = sv.Ledger(tmp_path / "ledger", budget=1)
    device = sv.Device(sv.Learner(experiment()).release(), ledger=ledger)
    device.choose(CONTEXT)
    with pytest.raises(
        sv.RewardError, match=r"a reward must be a number in \[0, 1\]; got"
    ) as caught:
        device.report(reward=reward)
    assert "1.1" not in str(caught.value).replace("[0, 1]", "")
    assert ledger.entries() == []
    device.report(reward=1)  # the choice is still there


def test_a_device_refuses_what_is_out_of_order() -> None:
    release = sv.Learner(experiment()).release()
    device = sv.Device(release)
    with pytest.raises(sv.DeviceError, match="choose must come before each report"):
        device.report(reward=1)
    with pytest.raises(sv.DeviceError, match="a release to follow must be of experiment"):
        device.follow(sv.Learner(experiment(seed=9)).release())
    with pytest.raises(sv.DeviceError, match=r"a logged arm must be one of .*; got another name"):
        device.report_logged(CONTEXT, arm="placebo", reward=1)
    with pytest.raises(sv.ExperimentError, match=r"population must be one of \['target'\]"):
        sv.Device(release, population="clinic-b")


def test_after_a_context_that_is_refused_nothing_can_be_reported() -> None:
    device = sv.Device(sv.Learner(experiment()).release())
    device.choose(CONTEXT)
    with pytest.raises(sv.ContextError):
        device.choose({"age": "forty-two", "bmi": 27.5})
    with pytest.raises(sv.DeviceError, match="choose must come before each report"):
        device.report(reward=1)


def test_who_has_no_usable_context_can_say_that_there_is_nothing_to_tell() -> None:
    """Whether a context fits is private, too: leaving the report out would tell it."""
    release, purse = sv.Learner(experiment(method="whisper")).release(), Purse()
    device = sv.Device(release, ledger=purse)
    with pytest.raises(sv.ContextError):
        device.choose({"age": "forty-two", "bmi": 27.5})
    with pytest.raises(sv.DeviceError, match="the last context was refused"):
        device.report(reward=1)
    assert purse.spent == []
    nothing = device.report(reward=None)
    device.choose(CONTEXT)
    told = device.report(reward=1)
    assert len(purse.spent) == 2
    assert (nothing.release, nothing.population) == (told.release, told.population)
    sv.Learner(release.experiment).receive(nothing)
    with pytest.raises(sv.DeviceError, match="nothing was chosen since"):
        device.report(reward=None)


def test_a_logged_row_has_nothing_to_do_with_a_choice_that_waits(tmp_path: Path) -> None:
    learner = grown(epsilon=1e6)
    first = sv.Learner(learner.experiment).release()
    ledger = sv.Ledger(tmp_path / "ledger", budget=1e6)
    device = sv.Device(first, population="clinic-b", ledger=ledger)
    device.choose(CONTEXT)
    device.follow(learner.release())
    newest = wire.release_id(learner.release())
    assert device.report_logged(CONTEXT, arm="coach", reward=1).release == newest
    assert device.report(reward=1).release == wire.release_id(first)


def test_everyone_spends_the_same_and_the_ledger_says_on_what(tmp_path: Path) -> None:
    """Also who is in a settled bin, who got nothing out of it, and whose arm is gone."""
    policies = [BinPolicy("0", (0, 2), (0.5, 0.5)), BinPolicy("1", (1,), (1.0,))]
    release = sv.Release(experiment(name="walking"), 7, Partition(2, {"": 0}), tuple(policies))
    ledger = sv.Ledger(tmp_path / "ledger", budget=8)
    device = sv.Device(release, ledger=ledger)
    young, old = {"age": 20, "bmi": 20}, {"age": 80, "bmi": 20}
    rows = [(young, "coach", 1), (young, "coach", 0), (young, "reminder", 1), (old, "reminder", 1)]
    for context, arm, reward in rows:
        device.report_logged(context, arm=arm, reward=reward)
    fingerprint = release.experiment.fingerprint
    for entry in ledger.entries():
        assert (entry.epsilon, entry.release, entry.name) == (1.0, 7, "walking")
        assert entry.experiment == fingerprint
    assert len(ledger.entries()) == len(rows)


def test_the_nonce_is_the_operating_system_s_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(secrets, "token_bytes", lambda length: bytes(range(length)))
    device = sv.Device(sv.Learner(experiment()).release())
    assert device.report_logged(CONTEXT, arm="coach", reward=1).nonce == bytes(range(16))


def test_a_crash_after_the_ledger_was_written_loses_budget_and_sends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def crash(values: list[float]) -> list[float]:
        raise SystemError("power cut")

    monkeypatch.setattr(laplace, "mechanism", lambda length, *, epsilon: crash)
    ledger = sv.Ledger(tmp_path / "ledger", budget=1)
    device = sv.Device(sv.Learner(experiment()).release(), ledger=ledger)
    device.choose(CONTEXT)
    with pytest.raises(SystemError):
        device.report(reward=1)
    assert ledger.left == 0


def test_a_device_refuses_a_release_that_asks_for_too_much() -> None:
    release = sv.Learner(experiment(epsilon=4)).release()
    sv.Device(release, most_epsilon=4)
    with pytest.raises(sv.DeviceError, match="ask for at most epsilon = 2 a report; got 4"):
        sv.Device(release, most_epsilon=2)


def test_without_opendp_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    laplace.mechanism.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    ledger = sv.Ledger(tmp_path / "ledger", budget=1)
    device = sv.Device(sv.Learner(experiment()).release(), ledger=ledger)
    device.choose(CONTEXT)
    with pytest.raises(sv.DeviceError, match=r"pip install 'sottovoce\[laplace\]'"):
        device.report(reward=1)
    assert ledger.entries() == []
