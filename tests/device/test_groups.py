"""Who is in a group: a public coin that looks at nobody, and what a report of a group is.

Chances are counted: each test says how often it fails by chance.
"""

import itertools
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import ASK, CONTEXT, Purse, experiment, uniform
from sottovoce.device import groups
from sottovoce.device.coins import FreshCoins, OneChoice, StickyCoins
from sottovoce.device.deciding import DecidingDevice
from sottovoce.device.method import Secret
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import PAUSE
from sottovoce.shared.baseline import BASELINE, NEITHER, POLICY
from sottovoce.shared.partition import Partition
from sottovoce.shared.whisper.cells import one_cell_mechanism
from support.fake_server import FakeClock, FakeServer, client_of
from support.subset import power_of_e
from support.whole_reports import Code, Law, spelled_out, worst_ratio

# The kinds 12 and 13 have one number each, after 8 kinds with 3 patterns, 2 kinds with 27
# thresholds of each of 2 features, and 2 with one number.
POLICY_REWARD, BASELINE_REWARD = 134, 135
GROUPS = {POLICY: POLICY_REWARD, BASELINE: BASELINE_REWARD}
YOUNG, OLD = {"age": 20, "bmi": 20}, {"age": 80, "bmi": 40}


def release_of(
    *,
    epsilon: float = 1.0,
    share: float = 0.2,
    arm: str | None = "c",
    settled: bool = False,
    **settings: Any,
) -> sv.Release:
    """The young compare a and b, and the old have b; the baseline is an arm that neither gets."""
    first = experiment(
        arms=["a", "b", "c"],
        epsilon=epsilon,
        baseline={"arm": arm, "share": share} if arm else {"share": share},
        method=sv.Whisper(**settings),
    )
    young = uniform("0", 0) if settled else uniform("0", 0, 1, waiting=(2,))
    if settings.get("public_arms") and not settled:
        young = uniform("0", 0, 1, 2)
    partition = Partition(2, {"": 0})
    bins = (young, uniform("1", 1))
    return sv.Release(first, 1, partition, bins, 0, ASK, 0, (), first.compared_with.units)  # type: ignore[union-attr]


def group_of(report: sv.Report) -> int:
    return {POLICY_REWARD: POLICY, BASELINE_REWARD: BASELINE}.get(report.question, NEITHER)


@pytest.mark.parametrize("settings", [{}, {"settled": True}, {"public_arms": True}], ids=str)
def test_each_group_has_its_share_and_who_is_in_it_has_the_arm_that_it_says(
    settings: dict[str, Any],
) -> None:
    """800 of 4,000 in each group; off by 150, which is 6 standard deviations, once in 10^8 runs."""
    release = release_of(**settings)
    seen: Counter[tuple[int, str]] = Counter()
    for turn in range(4000):
        device = sv.Device(release, public_arms=True)
        arm = device.choose(YOUNG if turn % 2 else OLD)
        report = device.report(reward=1.0)
        seen[group_of(report), arm] += 1
        if group_of(report) != NEITHER:
            assert len(report.payload) == 1  # also where everything is settled
            assert report.ranking == ()
    for group in (POLICY, BASELINE):
        count = sum(number for (each, _), number in seen.items() if each == group)
        assert count == pytest.approx(800, abs=150)
    assert {arm for group, arm in seen if group == BASELINE} == {"c"}
    offered = {"a", "b", "c"} if settings == {"public_arms": True} else {"a", "b"}
    assert {arm for group, arm in seen if group == POLICY} <= offered


def test_arms_at_random_are_drawn_anew_and_equally_often() -> None:
    """1,000 of 3,000 each; off by 170, 6.6 standard deviations."""
    release = release_of(arm=None)
    counts = Counter(groups.draw_baseline_arm(release) for _ in range(3000))
    assert sorted(counts) == [0, 1, 2]
    assert all(count == pytest.approx(1000, abs=170) for count in counts.values())


def test_the_coin_is_drawn_by_the_release_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same coin puts everybody in the same group, whatever they are, get or bring."""
    release = release_of()
    for coin, group in ((0, POLICY), (1999, POLICY), (2000, BASELINE), (3999, BASELINE)):
        monkeypatch.setattr(groups, "draw_coin", lambda coin=coin: coin)
        for context, reward in itertools.product((YOUNG, OLD), (0.0, 1.0, None)):
            device = sv.Device(release)
            device.choose(context)
            assert group_of(device.report(reward=reward)) == group
    monkeypatch.setattr(groups, "draw_coin", lambda: 4000)
    device = sv.Device(release)
    device.choose(YOUNG)
    assert group_of(device.report(reward=1.0)) == NEITHER


def test_only_people_of_the_target_are_in_groups() -> None:
    first = experiment(
        method="whisper",
        baseline={"share": 0.49},
        auxiliary=[sv.Population("clinic", 1.0, 100)],
    )
    release = sv.Learner(first).release()
    for _ in range(40):  # each would be in no group with probability 0.02
        device = sv.Device(release, population="clinic")
        device.choose(CONTEXT)
        assert group_of(device.report(reward=1.0)) == NEITHER
        report = sv.Device(release).report_logged(CONTEXT, arm="coach", reward=1.0)
        assert group_of(report) == NEITHER


def test_while_it_is_paused_everybody_gets_the_arm_of_the_policy() -> None:
    release = release_of(share=0.49)
    made = draft(release.experiment, PAUSE, by="we", made=datetime(2026, 3, 1, tzinfo=UTC))
    paused = replace(release, experiment=amended(release.experiment, made))
    assert {sv.Device(paused).choose(YOUNG) for _ in range(60)} == {"a", "b"}


# --- what a report tells --------------------------------------------------------------------------


def people(release: sv.Release, group: int) -> list[Any]:
    """Everybody in a group: bin, arm and outcome. The baseline group's arm is public."""
    arms = (2,) if group == BASELINE else (0, 1)
    return [
        (Secret(point, path, arm, group=group), outcome)
        for point, path in (((0.2, 0.7), "0"), ((0.8, 0.3), "1"))
        for arm, outcome in itertools.product(arms, (0.0, 0.3, 1.0, None))
    ]


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_no_two_people_of_a_group_differ_by_more_than_e_to_the_epsilon(
    epsilon: float, settled: bool
) -> None:
    release = release_of(epsilon=epsilon, settled=settled)
    a = one_cell_mechanism(release.experiment, 0).ratio
    for group, number in GROUPS.items():
        laws = [Code().law(release, person) for person in people(release, group)]
        assert worst_ratio(laws) == a <= power_of_e(epsilon)[0]
        assert all(list(law) == [(number, ())] for law in laws)


def value_of(law: Law, a: Fraction) -> Fraction:
    """The mean of sign/β of a report."""
    (payloads,) = law.values()
    said = spelled_out(payloads)
    mean = (said[b"\1"] - said[b"\0"]) / (said[b"\1"] + said[b"\0"])
    return mean * (a + 1) / (a - 1)


@pytest.mark.parametrize("group", [POLICY, BASELINE])
def test_people_of_a_group_tell_their_outcome_without_bias_and_nothing_else(group: int) -> None:
    release = release_of(epsilon=2.0)
    a = one_cell_mechanism(release.experiment, 0).ratio
    for secret, outcome in people(release, group):
        law = Code().law(release, (secret, outcome))
        told = Fraction(0) if outcome is None else 2 * Fraction(outcome) - 1
        assert value_of(law, a) == told
        later = Code().finished(release, (secret, outcome))
        ((coins, law_later),) = later.items()
        assert coins == (GROUPS[group], ())
        assert law_later == spelled_out(law[coins])


def test_a_report_of_a_group_costs_what_any_other_does() -> None:
    for settled, share in ((False, 0.49), (True, 0.49)):
        release = release_of(share=share, settled=settled)
        for _ in range(30):
            purse = Purse()
            device = sv.Device(release, ledger=purse)
            device.choose(YOUNG)
            group = group_of(device.report(reward=1.0))
            free = settled and group == NEITHER
            assert [each[0] for each in purse.spent] == ([] if free else [1.0])


# --- coins that stay, and budgets -----------------------------------------------------------------


def test_a_device_that_chooses_again_stays_in_its_group_until_it_reports() -> None:
    """Each choice would have a group of its own with probability 1 - 0.36."""
    release = release_of(share=0.4)
    for _ in range(20):
        device = sv.Device(release, ledger=Purse())
        arms = [device.choose(YOUNG) for _ in range(30)]
        group = group_of(device.report(reward=1.0))
        assert (set(arms) == {"c"}) == (group == BASELINE)
        assert group == BASELINE or "c" not in arms


def test_after_a_report_there_is_a_new_coin() -> None:
    device = sv.Device(release_of(share=0.3), ledger=Purse())
    seen: Counter[int] = Counter()
    for _ in range(60):  # all in one group with probability 0.4^60
        device.choose(YOUNG)
        seen[group_of(device.report(reward=1.0))] += 1
    assert set(seen) == {POLICY, BASELINE, NEITHER}


def test_a_coin_that_was_drawn_is_read_by_the_share_of_the_newest_release() -> None:
    coins, release = OneChoice(), release_of(share=0.2)
    coins.group(lambda: 2500)
    assert groups.draw_group(release, coins, population=0) == BASELINE
    less = replace(release, baseline_share=1000)
    assert groups.draw_group(less, coins, population=0) == NEITHER


def test_whoever_comes_back_has_a_new_coin_whatever_key_keeps_their_arm() -> None:
    """By chance all 60 are in one group with probability 0.4^60; the arm stays the same."""
    release = release_of(share=0.3)
    for coins in (StickyCoins(bytes(32)), FreshCoins()):
        drawn = [groups.draw_group(release, coins, population=0) for _ in range(60)]
        assert set(drawn) == {POLICY, BASELINE, NEITHER}


class Empty:
    """A ledger without any budget."""

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        raise sv.BudgetSpent("nothing is left")


def test_who_has_no_budget_left_is_served_by_the_policy() -> None:
    """Without the rule, nobody of 60 would get the baseline's arm with probability 0.51^60."""
    server = FakeServer(
        experiment(
            arms=["control", "coach"],
            method=sv.Whisper(public_arms=True),
            baseline={"arm": "control", "share": 0.49},
            release_every=1,
        )
    )
    release = server.learner.release()
    (policy,) = release.bins
    only_coach = replace(release, bins=(replace(policy, arms=(1,), propensities=(1.0,)),))
    for ledger, arms in ((Empty(), {"coach"}), (Purse(), {"control", "coach"})):
        device = DecidingDevice(only_coach, ledger=ledger, public_arms=True)
        drawn = [device.draw(CONTEXT, coins=FreshCoins()) for _ in range(60)]
        assert {each.arm for each in drawn} == arms
        told = [each for each in drawn if each.prepared is not None]
        if isinstance(ledger, Empty):  # whoever is in no group tells nothing here, which is free
            assert all(each.prepared and not each.prepared.kept for each in told)
        else:
            assert len(told) == len(drawn)


def test_decisions_that_wait_keep_their_group_and_end_in_its_report(tmp_path: Path) -> None:
    server = FakeServer(
        experiment(
            arms=["control", "coach"],
            method="whisper",
            baseline={"arm": "control", "share": 0.4},
            reward_window="7 days",
        )
    )
    clock = FakeClock()
    client = client_of(server, clock, outbox=tmp_path / "outbox", now=clock)
    decisions = [client.choose(CONTEXT) for _ in range(30)]
    for each in decisions[:20]:
        client.report(each, reward=1.0)
    clock.now += 8 * 86_400.0
    assert client.flush()
    status = server.learner.status()
    assert status.reports["target"] == 30
    groups_of = server.learner._estimator._groups  # type: ignore[attr-defined]
    assert groups_of._others < 30
