"""Decisions that wait: they survive restarts, end in one report each, and hold nothing raw."""

import asyncio
import dataclasses
import itertools
import random
import sqlite3
import struct
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, Purse, experiment, four_bins
from sottovoce.device.kept_decisions import OPEN_FOR
from sottovoce.device.outbox import Outbox
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ADD_ARM, PAUSE, RESUME, RETIRE_ARM, STOP
from support.fake_server import FakeClock, FakeServer, async_client_of, client_of
from support.shelf import Shelf, waiting_in

DAY = 86_400.0
OLD = {"age": 80, "bmi": 20}
GONE = "a decision must be open to be reported on"


def minutes(**settings: Any) -> FakeServer:
    """An experiment in which people walk for some minutes within a week."""
    settings = {"method": "whisper", "reward": [0, 60], "reward_window": "7 days", **settings}
    return FakeServer(experiment(**settings))


# --- one report for each -------------------------------------------------------------------------


def test_any_number_are_open_and_are_reported_on_in_any_order_after_restarts(
    tmp_path: Path,
) -> None:
    server, clock = minutes(), FakeClock()
    decisions = []
    for day in range(5):
        clock.now = 1000 + day * DAY
        client = client_of(server, clock, outbox=tmp_path / "outbox")
        decisions.append(client.choose(CONTEXT))
    assert client.open == 5
    assert len({each.id for each in decisions}) == 5
    for each in (decisions[3], decisions[0].id, decisions[4], decisions[1].id, decisions[2]):
        again = client_of(server, clock, outbox=tmp_path / "outbox")
        again.choose(OLD)
        again.report(each, reward=20)
        with pytest.raises(sv.DeviceError, match=GONE):
            again.report(each, reward=20)
    assert (again.open, again.waiting) == (5, 5)


def test_the_same_for_asyncio(tmp_path: Path) -> None:
    server, clock = minutes(), FakeClock()

    async def use() -> None:
        client = async_client_of(server, clock, outbox=tmp_path / "outbox", now=clock)
        first, second = [await client.choose(CONTEXT) for _ in range(2)]
        await client.report(second.id, reward=30)
        with pytest.raises(sv.DeviceError, match=GONE):
            await client.report(second, reward=30)
        again = async_client_of(server, clock, outbox=tmp_path / "outbox", now=clock)
        await again.choose(CONTEXT)
        await again.report(first, reward=None)
        assert (again.open, again.waiting) == (1, 2)
        await again.leave()
        assert (again.open, again.waiting) == (0, 0)

    asyncio.run(use())


def test_what_never_comes_is_answered_when_the_decision_expires(tmp_path: Path) -> None:
    server, clock = minutes(), FakeClock()
    client = client_of(server, clock, outbox=tmp_path / "outbox")
    first = client.choose(CONTEXT)
    assert first.expires == datetime.fromtimestamp(clock.now + 7 * DAY, UTC)
    clock.now += 7 * DAY - 1
    assert (client.open, client.waiting) == (1, 0)
    clock.now += 1
    assert (client.open, client.waiting) == (0, 1)
    assert client.flush()
    assert len(server.bodies) == 1
    with pytest.raises(sv.DeviceError, match=GONE):
        client.report(first, reward=30)


def test_a_reward_for_a_decision_that_has_just_expired_says_so(tmp_path: Path) -> None:
    server, clock = minutes(), FakeClock()
    client = client_of(server, clock, outbox=tmp_path / "outbox")
    decision = client.choose(CONTEXT)
    clock.now += 7 * DAY
    with pytest.raises(sv.DeviceError, match="this one has expired, and its report says nothing"):
        client.report(decision, reward=30)
    assert (client.open, client.waiting) == (0, 1)


@pytest.mark.parametrize("delay", [0.0, 3 * DAY, 7 * DAY - 1, None])
def test_the_moment_of_a_report_does_not_tell_when_the_outcome_came(
    tmp_path: Path, delay: float | None
) -> None:
    """Where there is a window, every report is sent after it: also one that says nothing."""
    server, clock = minutes(), FakeClock()
    client = client_of(server, clock, outbox=tmp_path / "outbox")
    begin = clock.now
    decision = client.choose(CONTEXT)
    if delay is not None:
        clock.now += delay
        client.report(decision, reward=30)
    for now, sent in ((begin + 7 * DAY - 0.5, 0), (begin + 7 * DAY, 1)):
        clock.now = now
        assert client.flush()
        assert len(server.bodies) == sent


def test_without_a_window_a_report_may_be_sent_at_once_and_a_decision_waits_a_day() -> None:
    server, clock = FakeServer(experiment(method="whisper")), FakeClock()
    client = client_of(server, clock)
    client.report(client.choose(CONTEXT), reward=1)
    assert client.flush()
    assert len(server.bodies) == 1
    client.choose(CONTEXT)
    clock.now += OPEN_FOR.total_seconds()
    assert (client.open, client.waiting) == (0, 1)


@pytest.mark.parametrize("reward", ["30", "many", float("nan"), float("inf"), True, [30], b"1"])
def test_a_reward_that_cannot_be_leaves_the_decision_open(reward: Any) -> None:
    client = client_of(minutes())
    decision = client.choose(CONTEXT)
    with pytest.raises(sv.RewardError, match="a reward must be a finite number"):
        client.report(decision, reward=reward)
    assert (client.open, client.waiting) == (1, 0)
    client.report(decision, reward=75)  # beyond the bounds counts as the bound
    assert (client.open, client.waiting) == (0, 1)


@pytest.mark.parametrize("number", ["", "0" * 32, "not asked at all", "'; DROP TABLE decision; --"])
def test_a_decision_that_never_was_is_refused(number: str) -> None:
    client = client_of(minutes())
    client.choose(CONTEXT)
    with pytest.raises(sv.DeviceError, match=GONE):
        client.report(number, reward=30)
    assert (client.open, client.waiting) == (1, 0)


def test_of_many_who_report_the_same_decision_one_makes_the_report(tmp_path: Path) -> None:
    server = minutes()
    clients = [client_of(server, outbox=tmp_path / "outbox") for _ in range(8)]
    for each in clients:
        each.refresh()
    decision = clients[0].choose(CONTEXT)

    def report(client: sv.Client) -> bool:
        try:
            client.report(decision, reward=30)
        except sv.DeviceError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(report, clients)) == [False] * 7 + [True]
    assert clients[0].waiting == 1


def test_the_epsilon_of_a_decision_is_spent_when_it_is_made() -> None:
    purse = Purse()
    client = client_of(minutes(), ledger=purse)
    decision = client.choose(CONTEXT)
    assert len(purse.spent) == 1
    client.report(decision, reward=30)
    assert client.waiting == 1
    assert len(purse.spent) == 1


# --- clocks that jump -----------------------------------------------------------------------------


def test_a_clock_that_is_set_back_keeps_nothing_for_longer_than_a_window(tmp_path: Path) -> None:
    server, clock = minutes(), FakeClock()
    clock.now = 1000 + 3650 * DAY
    client = client_of(server, clock, outbox=tmp_path / "outbox")
    client.choose(CONTEXT)
    client.report(client.choose(CONTEXT), reward=30)
    clock.now = 1000
    again = client_of(server, clock, outbox=tmp_path / "outbox")
    again.choose(CONTEXT)
    clock.now += 7 * DAY + 1
    again.choose(CONTEXT)
    assert again.flush()
    assert len(server.bodies) == 3


def test_a_clock_that_is_set_ahead_ends_decisions_and_loses_no_report(tmp_path: Path) -> None:
    server, clock = minutes(), FakeClock()
    client = client_of(server, clock, outbox=tmp_path / "outbox")
    decisions = [client.choose(CONTEXT) for _ in range(3)]
    client.report(decisions[0], reward=30)
    clock.now += 3650 * DAY
    assert (client.open, client.waiting) == (0, 3)
    clock.now -= 3650 * DAY
    with pytest.raises(sv.DeviceError, match=GONE):
        client.report(decisions[1], reward=30)
    clock.now += 7 * DAY
    assert client.flush()
    assert len(server.bodies) == 3


@pytest.mark.parametrize("now", [-1e18, 0.0, 1e18])
def test_a_clock_that_is_wrong_by_ages_does_no_harm(now: float) -> None:
    clock = FakeClock()
    clock.now = now
    client = client_of(minutes(), clock)
    decision = client.choose(CONTEXT)
    with suppress(sv.DeviceError):  # beyond the year 9999, every decision has expired
        client.report(decision, reward=30)
    assert (client.open, client.waiting) == (0, 1)


# --- a full disk ----------------------------------------------------------------------------------


def test_a_full_outbox_takes_no_decision_and_costs_nothing(tmp_path: Path) -> None:
    purse, server = Purse(), minutes()
    client = client_of(server, ledger=purse, outbox=tmp_path / "outbox")
    client.refresh()
    vars(client)["_outbox"]._most = 2
    decisions = [client.choose(CONTEXT) for _ in range(2)]
    with pytest.raises(sv.OutboxError, match="hold at most 2 decisions and reports"):
        client.choose(CONTEXT)
    assert len(purse.spent) == 2
    for each in decisions:
        client.report(each, reward=30)  # there is room for the report of each decision
    assert client.waiting == 2


def test_a_disk_that_fails_at_a_report_leaves_the_decision_open(tmp_path: Path) -> None:
    path, server = tmp_path / "outbox", minutes()
    client = client_of(server, outbox=path)
    decision = client.choose(CONTEXT)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON waiting"
            " BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
        with pytest.raises(sv.OutboxError, match="nothing was written"):
            client.report(decision, reward=30)
        other.execute("DROP TRIGGER full")
    assert (client.open, client.waiting) == (1, 0)
    client.report(decision, reward=30)
    assert (client.open, client.waiting) == (0, 1)


# --- people who come back -------------------------------------------------------------------------


def test_a_person_keeps_an_arm_until_the_policy_for_them_changes(tmp_path: Path) -> None:
    server = Shelf(four_bins())
    arms = set()
    for _ in range(20):
        client = client_of(server, outbox=tmp_path / "outbox")
        arms.add(client.choose({"age": 20, "bmi": 20}).arm)
    # By chance alone, 20 draws of two arms would agree once in 500,000 runs.
    assert len(arms) == 1


def test_each_device_draws_for_itself_and_each_policy_anew(tmp_path: Path) -> None:
    """An arm that stays is drawn as any other: by its chance, and not for everybody alike."""
    server, young = Shelf(four_bins()), {"age": 20, "bmi": 20}
    first = Counter(client_of(server).choose(young).arm for _ in range(200))
    assert set(first) == {"control", "coach"}
    assert abs(first["coach"] - 100) < 40  # 5.6 standard deviations
    changed = 0
    for number in range(60):
        client = client_of(server, outbox=tmp_path / f"outbox {number}")
        before = client.choose(young).arm
        policies = [
            dataclasses.replace(each, arms=(0, 1)) if each.path == "00" else each
            for each in server.current.bins
        ]
        other = Shelf(dataclasses.replace(server.current, version=8, bins=tuple(policies)))
        other.key, other.chain = server.key, server.chain
        vars(client)["_transport"] = other
        assert client.refresh()
        changed += (client.choose(young).arm == "control") != (before == "control")
    assert 10 < changed < 50  # drawn anew, half of them change; 5 standard deviations


def test_without_sticky_arms_each_decision_is_drawn_anew() -> None:
    client = client_of(Shelf(four_bins()), sticky=False)
    assert {client.choose({"age": 20, "bmi": 20}).arm for _ in range(40)} == {"control", "coach"}


def test_a_visit_without_budget_is_served_and_not_reported(tmp_path: Path) -> None:
    server = Shelf(four_bins())
    ledger = sv.Ledger(tmp_path / "ledger", budget=2.0)
    client = client_of(server, ledger=ledger, outbox=tmp_path / "outbox")
    decisions = [client.choose(CONTEXT) for _ in range(5)]
    assert [each.asked for each in decisions] == [True, True, False, False, False]
    assert len({each.arm for each in decisions}) == 1
    for each in decisions:
        client.report(each, reward=1)
    assert client.flush()
    assert len(server.bodies) == 2
    assert ledger.left == 0


def test_a_budget_for_a_time_comes_back(tmp_path: Path) -> None:
    server, clock = Shelf(four_bins()), FakeClock()
    ledger = sv.Ledger(tmp_path / "ledger", budget=2.0, per="30 days", now=clock)
    client = client_of(server, clock, ledger=ledger, outbox=tmp_path / "outbox")
    asked = []
    for day in range(0, 70, 7):
        clock.now = 1000 + day * DAY
        asked.append(client.choose(CONTEXT).asked)
    assert asked == [True, True, False, False, False, True, True, False, False, False]


# --- the first start, and the last ----------------------------------------------------------------


def test_the_default_arm_is_for_those_without_a_release(tmp_path: Path) -> None:
    server, clock = Shelf(four_bins()), FakeClock()
    server.online = False
    client = client_of(server, clock, outbox=tmp_path / "outbox", default="control")
    decision = client.choose(CONTEXT)
    assert (decision.arm, decision.asked) == ("control", False)
    client.report(decision, reward=1)
    assert (client.open, client.waiting) == (0, 0)
    server.online = True
    clock.now += 7200
    assert client.choose(CONTEXT).asked


def test_a_release_that_came_with_the_app_serves_the_first_start(tmp_path: Path) -> None:
    server = Shelf(four_bins())
    shipped = server.document()
    server.online = False
    client = client_of(server, outbox=tmp_path / "outbox", shipped=shipped)
    assert client.choose(OLD).arm == "reminder"
    assert client.release == server.current
    server.online = True
    server.current = dataclasses.replace(server.current, version=8)
    assert client.refresh()
    again = client_of(server, outbox=tmp_path / "outbox", shipped=shipped)
    assert again.release is not None
    assert again.release.version == 8  # what was followed since comes first


@pytest.mark.parametrize("spoil", [b"", b"{}", b"no release"])
def test_a_shipped_release_is_verified_like_any_other(spoil: bytes, tmp_path: Path) -> None:
    server = Shelf(four_bins())
    other = Shelf(four_bins())
    for bad in (spoil, other.document()):
        with pytest.raises(sv.SottovoceError):
            client_of(server, outbox=tmp_path / "outbox", shipped=bad)


def test_no_such_experiment_is_told_from_no_network(tmp_path: Path) -> None:
    server, clock = Shelf(four_bins()), FakeClock()
    client = client_of(server, clock, experiment="0" * 64)
    with pytest.raises(sv.NoSuchExperiment, match="the server must have experiment 0000"):
        client.choose(CONTEXT)
    server.online = False
    clock.now += 7200
    with pytest.raises(sv.TransportError, match="the server must be reachable") as caught:
        client.choose(CONTEXT)
    assert not isinstance(caught.value, sv.NoSuchExperiment)


def test_whoever_leaves_sends_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    server = Shelf(four_bins())
    ledger = sv.Ledger(tmp_path / "ledger", budget=10.0)
    client = client_of(
        server, ledger=ledger, outbox=tmp_path / "outbox", default="control", refresh_every=0
    )
    first, _ = [client.choose(CONTEXT) for _ in range(2)]
    client.report(first, reward=1)
    assert (client.open, client.waiting) == (1, 1)
    server.seen.clear()
    client.leave()
    for each in (client, client_of(server, outbox=tmp_path / "outbox", default="control")):
        assert (each.open, each.waiting, each.release) == (0, 0, None)
        decision = each.choose(CONTEXT)
        assert (decision.arm, decision.asked) == ("control", False)
        each.report(decision, reward=1)
        assert each.flush()
        assert not each.refresh()
    assert server.seen == []
    assert len(ledger.entries()) == 2  # what was spent stays counted
    with closing(sqlite3.connect(tmp_path / "outbox")) as database:
        counts = {
            table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in ("waiting", "decision", "kept", "sticky", "departed")
        }
    assert counts == {"waiting": 0, "decision": 0, "kept": 0, "sticky": 0, "departed": 1}
    bare = client_of(server, outbox=tmp_path / "outbox")
    with pytest.raises(sv.DeviceError, match="this person has left the experiment"):
        bare.choose(CONTEXT)


# --- amendments -----------------------------------------------------------------------------------


def amend(release: sv.Release, kind: str, **about: Any) -> sv.Release:
    """The next release, after an amendment; a retired arm is gone, an added one is there."""
    now = release.experiment
    now = amended(
        now, draft(now, kind, by="operator", made=datetime(2026, 3, 1, tzinfo=UTC), **about)
    )
    bins = []
    for each in release.bins:
        arms = tuple(arm for arm in each.arms if arm not in now.retired) or (0, 1)
        waiting = tuple(arm for arm in each.waiting if arm not in now.retired)
        if kind == ADD_ARM and each.settled:
            arms = (*arms, len(now.arms) - 1)
        elif kind == ADD_ARM:
            waiting = (*waiting, len(now.arms) - 1)
        bins.append(sv.BinPolicy(each.path, arms, (1 / len(arms),) * len(arms), waiting))
    version = release.version + 1
    return dataclasses.replace(release, experiment=now, version=version, bins=tuple(bins))


TWO_EACH = four_bins(arms=2)


def test_a_device_follows_amendments_and_serves_nobody_a_retired_arm(tmp_path: Path) -> None:
    server = Shelf(TWO_EACH)
    client = client_of(server, outbox=tmp_path / "outbox", sticky=False)
    open_decision = client.choose(CONTEXT)
    server.current = amend(TWO_EACH, ADD_ARM, arm="coach")
    assert server.current.experiment.arms == ("control", "reminder", "coach")
    assert client.refresh()
    # The old and light had one arm left; now the new one is compared with it.
    assert {client.choose(OLD).arm for _ in range(40)} == {"reminder", "coach"}
    server.current = amend(server.current, RETIRE_ARM, arm="coach")
    again = client_of(server, outbox=tmp_path / "outbox", sticky=False)
    assert again.refresh()
    arms = {again.choose({"age": age, "bmi": 20}).arm for age in range(18, 90)}
    assert "coach" not in arms
    again.report(open_decision, reward=1)  # made before both amendments
    assert again.waiting == 1


@pytest.mark.parametrize("kind", [PAUSE, STOP])
def test_while_an_experiment_is_not_running_people_are_served_and_not_asked(
    tmp_path: Path, kind: str
) -> None:
    server, purse = Shelf(four_bins()), Purse()
    client = client_of(server, ledger=purse, outbox=tmp_path / "outbox")
    waiting = client.choose(CONTEXT)
    server.current = dataclasses.replace(
        server.current, version=8, experiment=server.current.experiment
    )
    now = server.current.experiment
    halted = amended(now, draft(now, kind, by="operator", made=datetime(2026, 3, 1, tzinfo=UTC)))
    server.current = dataclasses.replace(server.current, experiment=halted)
    assert client.refresh()
    decision = client.choose(CONTEXT)
    assert (decision.asked, len(purse.spent)) == (False, 1)
    client.report(decision, reward=1)
    client.report(waiting, reward=1)  # made before, and finished as any other
    assert client.flush()
    assert len(server.bodies) == 1
    device = sv.Device(server.current, ledger=purse)
    device.choose(CONTEXT)
    with pytest.raises(sv.DeviceError, match="an experiment must be running to be reported to"):
        device.report(reward=1)
    with pytest.raises(sv.DeviceError, match="an experiment must be running to be reported to"):
        device.report_logged(CONTEXT, arm="coach", reward=1)
    assert len(purse.spent) == 1


def test_after_a_pause_people_are_asked_again(tmp_path: Path) -> None:
    server = Shelf(four_bins())
    client = client_of(server, outbox=tmp_path / "outbox")
    for kind, asked in ((PAUSE, False), (RESUME, True)):
        now = server.current.experiment
        moment = datetime(2026, 3, 1, tzinfo=UTC)
        now = amended(now, draft(now, kind, by="operator", made=moment))
        version = server.current.version + 1
        server.current = dataclasses.replace(server.current, version=version, experiment=now)
        client.refresh()
        assert client.choose(CONTEXT).asked is asked


def weakened() -> dict[str, sv.Release]:
    """Releases that a device which has seen one amendment must refuse."""
    seen = amend(TWO_EACH, ADD_ARM, arm="coach")
    first, now = TWO_EACH.experiment, seen.experiment
    later = dataclasses.replace(seen, version=20)

    def form(**changes: Any) -> sv.Release:
        """The same amendments to another first form."""
        other = dataclasses.replace(first, **changes)
        made = datetime(2026, 3, 1, tzinfo=UTC)
        amendment = draft(other, ADD_ARM, by="operator", made=made, arm="coach")
        return dataclasses.replace(later, experiment=amended(other, amendment))

    def forged(**changes: Any) -> sv.Release:
        """What holds now is changed, and no amendment says so: the text says the first form."""
        return dataclasses.replace(later, experiment=dataclasses.replace(now, **changes))

    age, bmi = first.context
    more = sv.Population("clinic-d", 1.0, 10)
    other = amended(
        first,
        draft(first, ADD_ARM, by="other", made=datetime(2026, 3, 1, tzinfo=UTC), arm="coach"),
    )
    return {
        "ε raised": form(epsilon=2.0),
        "a population's ε raised": form(
            auxiliary=[dataclasses.replace(first.auxiliary[0], epsilon=9.0), first.auxiliary[1]]
        ),
        "populations changed": form(auxiliary=[*first.auxiliary, more]),
        "features changed": form(context=[age, sv.Numeric("bmi", 15, 50)]),
        "a feature added": form(context=[age, bmi, sv.Boolean("smokes")]),
        "arms made public": form(method=sv.Whisper(public_arms=True)),
        "the reward's unit changed": form(reward=[0, 60]),
        "the window changed": form(reward_window="1 day"),
        "the name changed": form(name="running"),
        "a replay of an older state": dataclasses.replace(TWO_EACH, version=20),
        "a fork of the amendments": dataclasses.replace(later, experiment=other),
        "amendments in another order": forged(amendments=tuple(reversed((*now.amendments,)))[1:]),
    }


@pytest.mark.parametrize("what", list(weakened()))
def test_a_device_refuses_what_weakens_it(what: str, tmp_path: Path) -> None:
    """All of these are signed by the server's key, and continue its chain."""
    server = Shelf(TWO_EACH)
    client = client_of(server, outbox=tmp_path / "outbox")
    client.choose(CONTEXT)
    server.current = amend(TWO_EACH, ADD_ARM, arm="coach")
    assert client.refresh()
    good = client.document
    server.current = weakened()[what]
    for each in (client, client_of(server, outbox=tmp_path / "outbox")):
        with pytest.raises((sv.DeviceError, sv.ForkError, sv.WireError)):
            each.refresh()
        assert each.document == good


# --- what lies on the disk ------------------------------------------------------------------------

AGE, BMI, REWARD = 61.73205081, 31.41592654, 0.57721566


def test_nothing_raw_lies_on_the_disk_after_any_step(tmp_path: Path) -> None:
    """Neither the context, nor the arm, nor the outcome, as text or as numbers of the machine."""
    server, clock = FakeServer(experiment(method="whisper", reward_window="7 days")), FakeClock()
    ledger = sv.Ledger(tmp_path / "ledger", budget=1000, now=clock)
    numbers = [AGE, BMI, REWARD, (AGE - 18) / 72, (BMI - 15) / 30, 2 * REWARD - 1]
    hidden = [
        *(repr(number)[:10].encode() for number in numbers),
        *(struct.pack(form, number) for number in numbers for form in ("<d", ">d")),
    ]
    steps = 0

    def look() -> None:
        nonlocal steps
        steps += 1
        for path in tmp_path.iterdir():
            text = path.read_bytes()
            assert not [each for each in hidden if each in text]
        with closing(sqlite3.connect(tmp_path / "outbox")) as database:
            for row in database.execute("SELECT * FROM decision"):
                arms = server.learner.experiment.arms
                assert not [arm for arm in arms if arm.encode() in repr(row).encode()]

    client = client_of(server, clock, ledger=ledger, outbox=tmp_path / "outbox")
    for day in range(12):
        clock.now = 1000 + day * DAY
        decision = client.choose({"age": AGE, "bmi": BMI})
        look()
        if day % 3:
            client.report(decision, reward=REWARD)
            look()
        client.flush()
        look()
    client.leave()
    look()
    assert steps == 12 + 8 + 12 + 1


def test_what_is_kept_of_a_decision_is_as_long_for_everybody(tmp_path: Path) -> None:
    """Three sets of one size, whoever it is; ``whisper/test_prepared_privacy.py`` has their law."""
    release = four_bins(epsilon=1.0)
    lengths: dict[int, set[int]] = {}
    for context, number in itertools.product(({"age": 20, "bmi": 20}, OLD), range(40)):
        path = tmp_path / f"outbox {number} {context['age']}"
        client = client_of(Shelf(release), outbox=path)
        client.choose(context)
        with closing(sqlite3.connect(path)) as database:
            ((question, kept),) = database.execute("SELECT question, kept FROM decision").fetchall()
        assert len(kept) > 0
        assert len(kept) % 3 == 0
        lengths.setdefault(question, set()).add(len(kept))
    assert {len(each) for each in lengths.values()} == {1}


# --- everything at once ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_each_decision_ends_in_one_report(tmp_path: Path, seed: int) -> None:
    """A phone for 30 days: restarts, days offline, late rewards and none, several open at once."""
    rng, server, clock = random.Random(seed), minutes(), FakeClock()
    ledger = sv.Ledger(tmp_path / "ledger", budget=12, per="14 days", now=clock)
    made: list[sv.Decision] = []
    due: list[tuple[float, sv.Decision]] = []

    def start() -> sv.Client:
        return client_of(server, clock, ledger=ledger, outbox=tmp_path / "outbox")

    client = start()
    for hour in range(0, 24 * 40, 6):
        clock.now = 1000 + 3600 * hour
        server.online = rng.random() > 0.3 or hour == 0
        if rng.random() < 0.2:
            client = start()
        if hour < 24 * 30 and rng.random() < 0.4:
            made.append(client.choose(CONTEXT))
            if rng.random() > 0.1:
                due.append((clock.now + rng.uniform(0, 6.5) * DAY, made[-1]))
        for moment, decision in list(due):
            if moment <= clock.now:
                due.remove((moment, decision))
                client.report(decision, reward=rng.uniform(-5, 70))
        client.send()
    server.online = True
    assert client.flush(timeout=1e6)
    assert due == []
    asked = sum(each.asked for each in made)
    assert 0 < asked < len(made)
    assert (client.open, client.waiting) == (0, 0)
    assert len(server.bodies) == asked == len(ledger.entries())
    assert Outbox(tmp_path / "outbox").oldest(1, experiment=server.experiment) == []
    assert waiting_in(tmp_path / "outbox", server.experiment) == []
