"""A device follows a server that was restored, and only where it says so and the chain agrees.

What was sent stays spent, and waits; what was never sent is erased, and its ε given back.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device.monitor import Look, Monitor
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import PAUSE, RESTORE, RESUME
from sottovoce.shared.release import BinPolicy
from support.fake_server import ADDRESS, FakeClock, FakeServer, History, answer, client_of

CONTEXT = {"age": 42, "bmi": 27.5}
OTHER = (BinPolicy("", (0,), (1.0,)),)


def history(until: int, *, like: FakeServer | None = None) -> History:
    server = History(experiment(method="whisper"))
    if like is not None:
        server.key = like.key
    while len(server.releases) < until:
        server.publish(replace(server.releases[-1], version=len(server.releases) + 1))
    return server


def restored(lost: FakeServer, *, at: int, until: int, number: int = 1, **about: Any) -> History:
    """The server as it is after a restore to a release, with what it published since."""
    server = history(0, like=lost)
    for release in lost.releases[1:at]:
        server.publish(release)
    now = server.releases[-1].experiment
    said = {"release": at, "link": server.chain.before(at + 1).hex(), "branch": f"{number:032x}"}
    made = datetime(2026, 3, number, tzinfo=UTC)
    restore = draft(now, RESTORE, by="operator", made=made, **{**said, **about})
    now = amended(now, restore)
    first = replace(server.releases[-1], version=at + 1, experiment=now)
    server.publish(first)
    while len(server.releases) < until:
        server.publish(replace(first, version=len(server.releases) + 1))
    return server


def version_of(client: sv.Client) -> int:
    assert client.release is not None
    return client.release.version


@pytest.mark.parametrize("until", [17, 20, 39, 45, 600])
@pytest.mark.parametrize("before", [[39], [5, 39], [16, 39], [10, 16, 30, 39], [1, 17]])
def test_a_branch_that_is_declared_is_followed(
    tmp_path: Path, before: list[int], until: int, caplog: pytest.LogCaptureFixture
) -> None:
    server, client = history(1), None
    for version in before:
        server = history(version, like=server)
        client = client_of(server, outbox=tmp_path / "outbox")
        assert client.refresh()
    assert client is not None
    now = restored(server, at=16, until=until)
    client = client_of(now, outbox=tmp_path / "outbox")  # after a restart
    second = client_of(now, outbox=tmp_path / "outbox")  # another process of the same person
    assert client.refresh()
    assert version_of(client) == until
    assert "goes on from release 16" in caplog.text
    assert second.choose(CONTEXT).arm in now.releases[-1].experiment.arms
    assert version_of(second) == until
    now.publish(replace(now.releases[-1], version=until + 1))
    assert client.refresh()


def test_a_device_that_was_behind_the_backup_sees_one_history(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = history(9)
    assert client_of(server, outbox=tmp_path / "outbox").refresh()
    client = client_of(
        restored(history(39, like=server), at=16, until=20), outbox=tmp_path / "outbox"
    )
    assert client.refresh()
    assert version_of(client) == 20
    assert "restored" not in caplog.text


@pytest.mark.parametrize(
    ("at", "about"),
    [
        (16, {"link": "ab" * 32}),  # not the release that was published
        (16, {"release": 15}),  # not where it goes on
        (16, {"release": 17}),
    ],
)
def test_a_branch_from_elsewhere_is_refused(tmp_path: Path, at: int, about: dict[str, Any]) -> None:
    server = history(39)
    client = client_of(server, outbox=tmp_path / "outbox")
    assert client.refresh()
    server.instead = restored(server, at=at, until=20, **about).answer
    with pytest.raises(sv.ForkError):
        client.refresh()
    assert version_of(client) == 39


def test_a_branch_of_another_history_is_refused(tmp_path: Path) -> None:
    """The named link fits what the server now says was published, and not what this device had."""
    server = history(12)
    client = client_of(server, outbox=tmp_path / "outbox")
    assert client.refresh()
    server.publish(replace(server.releases[-1], version=13))
    assert client.refresh()
    other = history(10, like=server)
    other.publish(replace(other.releases[-1], version=11, bins=OTHER))  # not what the device had
    other.publish(replace(other.releases[-1], version=12))
    server.instead = restored(other, at=12, until=20).answer
    with pytest.raises(sv.ForkError, match="its history is another one"):
        client.refresh()


def test_a_branch_whose_chain_does_not_lead_to_its_release_is_refused(tmp_path: Path) -> None:
    server = history(39)
    client = client_of(server, outbox=tmp_path / "outbox")
    assert client.refresh()
    other = restored(server, at=16, until=20)
    last = wire.release_to_json(other.releases[-1])

    def instead(request: Request) -> Response:
        if "/chain/" in request.url:
            return other.answer(request)
        return Response(200, {}, server.key.sign(last, bytes(32)))

    server.instead = instead
    with pytest.raises(sv.ForkError, match="must continue release 16, from which"):
        client.refresh()


def test_an_undeclared_branch_is_refused(tmp_path: Path) -> None:
    server = history(39)
    client = client_of(server, outbox=tmp_path / "outbox")
    assert client.refresh()
    other = history(16, like=server)
    other.publish(replace(other.releases[-1], version=17, bins=OTHER))
    while len(other.releases) < 45:
        other.publish(replace(other.releases[-1], version=len(other.releases) + 1))
    server.instead = other.answer
    with pytest.raises(sv.ForkError):
        client.refresh()


def test_a_branch_that_was_left_is_never_followed_again(tmp_path: Path) -> None:
    """Else a server could lead one person to and fro between two histories."""
    server = history(39)
    client = client_of(server, outbox=tmp_path / "outbox")
    assert client.refresh()
    first = restored(server, at=16, until=25, number=1)
    second = restored(server, at=20, until=30, number=2)
    server.instead = first.answer
    assert client.refresh()
    server.instead = None
    assert not client.refresh()  # a cache that has not heard of it yet
    assert version_of(client) == 25
    server.instead = second.answer  # the same backup again, or a later one
    assert client.refresh()
    server.instead = first.answer
    with pytest.raises(sv.ForkError, match="a branch that was left"):
        client.refresh()
    assert version_of(client) == 30


def test_amendments_that_were_lost_are_forgotten_and_others_are_not(tmp_path: Path) -> None:
    server = history(16)
    now, moment = server.releases[-1].experiment, datetime(2026, 1, 1, tzinfo=UTC)
    for kind in (PAUSE, RESUME):
        now = amended(now, draft(now, kind, by="operator", made=moment))
        server.publish(
            replace(server.releases[-1], version=len(server.releases) + 1, experiment=now)
        )
    client = client_of(server, outbox=tmp_path / "outbox")
    assert client.refresh()
    server.instead = restored(server, at=16, until=20).answer
    assert client.refresh()
    assert client.release is not None
    assert [each.kind for each in client.release.experiment.amendments] == [RESTORE]


def test_what_was_never_sent_is_given_back_and_what_was_sent_stays_spent(tmp_path: Path) -> None:
    server, clock = history(39), FakeClock()
    ledger = sv.Ledger(tmp_path / "ledger", budget=100, now=clock)
    client = client_of(
        server, clock, outbox=tmp_path / "outbox", ledger=ledger, refresh_every=10**9
    )
    assert client.refresh()
    decisions = [client.choose(CONTEXT) for _ in range(6)]
    server.online = False
    for each in decisions[:2]:
        client.report(each, reward=1.0)
    assert client.send() == 0  # given to the network, and no answer came
    for each in decisions[2:4]:
        client.report(each, reward=0.0)
    assert len(ledger.entries()) == 6
    sent = {each.report for each in vars(client)["_outbox"].oldest(9, experiment=server.experiment)}
    now = restored(server, at=16, until=20)
    server.online, server.instead = True, now.answer
    clock.now += 3600
    assert client.refresh()
    # Two reports and two open decisions were never sent.
    assert (client.waiting, client.open) == (2, 0)
    assert len(ledger.entries()) == 2
    assert "given back" in ledger.receipt()
    kept = vars(client)["_outbox"].oldest(9, experiment=server.experiment)
    assert {each.report for each in kept} < sent
    with pytest.raises(sv.DeviceError, match="a decision must be open"):
        client.report(decisions[5], reward=1.0)
    decision = client.choose(CONTEXT)  # the person is asked anew, on the new branch
    client.report(decision, reward=1.0)
    assert len(ledger.entries()) == 3
    clock.now += 3600
    new = wire.release_id(now.releases[-1])

    def judge(request: Request) -> Response | None:
        if request.method == "GET":
            return now.answer(request)
        releases = list(map(wire.release_of, wire.batch_from_bytes(request.body or b"")))
        lost = [place for place, each in enumerate(releases) if each != new]
        refused = [{"index": place, "reason": "lost release"} for place in lost]
        return answer(200, {"stored": len(releases) - len(lost), "repeated": 0, "refused": refused})

    server.instead = judge
    # That of the new branch is taken; those for the lost release stay, and are offered again.
    assert client.send() == 1
    assert client.waiting == 2
    assert not client.refused


def test_a_person_without_a_ledger_may_report_once_after_all(tmp_path: Path) -> None:
    server, clock = history(39), FakeClock()
    client = client_of(server, clock, outbox=tmp_path / "outbox", ledger=None)
    assert client.refresh()
    assert client.choose(CONTEXT).asked
    assert not client.choose(CONTEXT).asked
    server.instead = restored(server, at=16, until=20).answer
    assert client.refresh()
    assert client.choose(CONTEXT).asked
    assert not client.choose(CONTEXT).asked


def test_of_reports_on_one_release_the_oldest_costs_are_given_back(tmp_path: Path) -> None:
    """So that what stays counted is in every stretch of time that what was sent is in."""
    now = 0.0
    ledger = sv.Ledger(tmp_path / "ledger", budget=2, per="10 days", now=lambda: now)
    for day in (0, 5):
        now = 86400.0 * day
        ledger.spend(1.0, experiment="walking", name="walking", release=7)
    ledger.give_back(experiment="walking", release=7, count=1)
    (left,) = ledger.entries()
    assert left.moment.startswith("1970-01-06")
    now = 86400.0 * 11
    assert ledger.left == 1.0


def look(server: History, folder: Path, *seen: Path) -> Look:
    keys = [server.key.public.hex()]
    following = Monitor(
        [ADDRESS], experiment=server.experiment, keys=keys, folder=folder, transport=server
    )
    return following.look(seen)


def test_a_monitor_tells_of_a_declared_branch_and_does_not_cry_fork(tmp_path: Path) -> None:
    folder, server = tmp_path / "releases", history(39)
    assert not look(server, folder).restores
    now = restored(server, at=16, until=20)
    for _ in range(2):  # and again, from what it has kept
        found = look(now, folder)
        assert found.findings == ()
        assert found.newest == 20
        (told,) = found.restores
        assert "goes on from release 16" in told
    again = restored(now, at=18, until=22, number=2)
    found = look(again, folder)
    assert (found.findings, found.newest, len(found.restores)) == ((), 22, 2)
    # What others were shown before is known, too; and so is what they are shown now.
    (tmp_path / "old.json").write_bytes(server.document(server.releases[38]))
    (tmp_path / "new.json").write_bytes(again.document(again.releases[20]))
    assert look(again, folder, tmp_path / "old.json", tmp_path / "new.json").findings == ()


def test_a_monitor_still_finds_an_undeclared_branch(tmp_path: Path) -> None:
    folder, server = tmp_path / "releases", history(39)
    assert not look(server, folder).findings
    other = history(16, like=server)
    while len(other.releases) < 45:
        version = len(other.releases) + 1
        other.publish(replace(other.releases[-1], version=version, bins=OTHER))
    (finding,) = look(other, folder).findings
    assert "must continue release 39" in finding.what
    wrong = restored(server, at=16, until=20, link="cd" * 32)
    (finding,) = look(wrong, folder).findings
    assert "is another one than was kept" in finding.what


def test_a_monitor_finds_a_branch_that_only_one_person_was_shown(tmp_path: Path) -> None:
    folder, server = tmp_path / "releases", history(20)
    assert not look(server, folder).findings
    own = restored(server, at=10, until=15)
    (tmp_path / "own.json").write_bytes(own.document(own.releases[12]))
    (finding,) = look(server, folder, tmp_path / "own.json").findings
    assert "there must be one release 13" in finding.what


def test_reports_name_no_release_of_another_branch() -> None:
    server = history(39)
    first, second = (restored(server, at=16, until=30, number=n) for n in (1, 2))
    ids = [{wire.release_id(each) for each in one.releases[16:]} for one in (server, first, second)]
    assert not ids[0] & ids[1]
    assert not ids[0] & ids[2]
    assert not ids[1] & ids[2]
