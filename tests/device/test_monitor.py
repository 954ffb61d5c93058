"""A monitor finds two histories, whoever was shown the second one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device.monitor import Finding, Monitor
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.release import BinPolicy
from support.commands import run
from support.fake_server import ADDRESS, History, client_of, on_loopback


def history(until: int, *, like: History | None = None, other_from: int | None = None) -> History:
    """A server with so many releases; with another text from one version on."""
    server = History(experiment(method="whisper"))
    if like is not None:
        server.key = like.key
    while (version := len(server.releases) + 1) <= until:
        release = replace(server.releases[-1], version=version)
        if version == other_from:
            release = replace(release, bins=(BinPolicy("", (0,), (1.0,)),))
        server.publish(release)
    return server


def monitor_of(server: History, folder: Path, *more: str) -> Monitor:
    keys = [server.key.public.hex()]
    return Monitor(
        [ADDRESS, *more], experiment=server.experiment, keys=keys, folder=folder, transport=server
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "releases"


def test_every_release_is_kept_and_one_history_is_no_finding(folder: Path) -> None:
    server = history(5)
    look = monitor_of(server, folder).look()
    assert (look.newest, look.new, look.findings, look.unreachable) == (5, 5, (), ())
    assert [path.name for path in sorted(folder.iterdir())] == [
        f"000000000{version}.json" for version in range(1, 6)
    ]
    server.publish(replace(server.releases[-1], version=6))
    look = monitor_of(server, folder).look()  # after a restart
    assert (look.newest, look.new, look.findings) == (6, 1, ())


@pytest.mark.parametrize("at", [1, 3, 5])
def test_two_texts_under_one_version_are_found(folder: Path, at: int) -> None:
    server = history(5)
    assert not monitor_of(server, folder).look().findings
    other = history(5, like=server, other_from=at) if at > 1 else renamed(server)
    look = monitor_of(other, folder).look()
    (finding,) = look.findings
    assert "there must be one release 5" in finding.what  # its history is another one
    assert look.newest == 5


def test_a_version_that_is_shown_differently_later_is_found(folder: Path) -> None:
    """The newest release is as it was; only an old one has another text now."""
    server = history(5)
    assert not monitor_of(server, folder).look().findings
    other = history(3, like=server, other_from=3)
    changed = other.document(other.releases[2])
    server.instead = lambda request: (
        Response(200, {}, changed) if request.url.endswith("/releases/3") else None
    )
    # It asks again for one version of five, drawn anew each time: missed once in 1e6 at most.
    looks = [monitor_of(server, folder).look() for _ in range(70)]
    found = [finding for look in looks for finding in look.findings]
    assert found
    assert all("there must be one release 3" in each.what for each in found)


def renamed(server: History) -> History:
    """The same but for the first text."""
    other = History(server.learner.experiment)
    other.key = server.key
    other.publish(replace(server.releases[1], bins=(BinPolicy("", (1,), (1.0,)),)))
    while len(other.releases) < 5:
        other.publish(replace(server.releases[1], version=len(other.releases) + 1))
    return other


def test_a_chain_that_breaks_is_found_and_not_kept(folder: Path) -> None:
    server = history(3)
    monitor = monitor_of(server, folder)
    assert not monitor.look().findings
    server.instead = history(5, like=server, other_from=2).answer
    (finding,) = monitor.look().findings
    assert "release 4 must continue release 3" in finding.what
    assert monitor.newest == 3


def test_a_signature_of_somebody_else_is_found(folder: Path) -> None:
    server = history(2)
    monitor = monitor_of(server, folder)
    server.key = history(1).key
    (finding,) = monitor.look().findings
    assert "signed by one of" in finding.what


def test_two_addresses_that_show_different_histories_are_found(folder: Path) -> None:
    server = history(4)
    mirror = history(4, like=server, other_from=3)
    elsewhere = "https://mirror.test"

    def transport(request: Request) -> Response:
        return (mirror if request.url.startswith(elsewhere) else server).answer(request)

    monitor = Monitor(
        [ADDRESS, elsewhere],
        experiment=server.experiment,
        keys=[server.key.public.hex()],
        folder=folder,
        transport=transport,
    )
    (finding,) = monitor.look().findings
    assert (finding.where, "there must be one release 4" in finding.what) == (elsewhere, True)


def test_what_a_device_was_given_is_compared(folder: Path, tmp_path: Path) -> None:
    server = history(4)
    client = client_of(server)
    assert client.document is None
    assert client.refresh()
    good = tmp_path / "mine.json"
    good.write_bytes(client.document or b"")
    assert not monitor_of(server, folder).look([good]).findings
    # A release for one person alone: another text under a version that everybody has.
    alone = history(4, like=server, other_from=4)
    bad = tmp_path / "theirs.json"
    bad.write_bytes(alone.document())
    (finding,) = monitor_of(server, folder).look([good, bad]).findings
    assert (finding.where, finding.version) == (str(bad), 4)
    # Or one that nobody else has.
    beyond = history(9, like=server)
    bad.write_bytes(beyond.document())
    (finding,) = monitor_of(server, folder).look([bad]).findings
    assert "be one of the 4 that the server shows; got version 9" in finding.what


def test_two_monitors_compare_their_folders(tmp_path: Path) -> None:
    server = history(4)
    for name, shown in (("one", server), ("two", history(4, like=server, other_from=2))):
        assert not monitor_of(shown, tmp_path / name).look().findings
    assert not monitor_of(server, tmp_path / "one").look([tmp_path / "one"]).findings
    found = monitor_of(server, tmp_path / "one").look([tmp_path / "two"]).findings
    assert [each.version for each in found] == [2, 3, 4]


def test_what_cannot_be_read_is_said(folder: Path, tmp_path: Path) -> None:
    server, empty = history(1), tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "rubbish.json").write_text("{}")
    seen = [empty, tmp_path / "nowhere.json", tmp_path / "rubbish.json"]
    assert len(monitor_of(server, folder).look(seen).findings) == 3


def test_a_collection_that_somebody_changed_is_refused(folder: Path) -> None:
    server = history(3)
    monitor_of(server, folder).look()
    (folder / "0000000002.json").write_bytes((folder / "0000000003.json").read_bytes())
    with pytest.raises(sv.ForkError, match=r"0000000002\.json must continue"):
        monitor_of(server, folder)


def test_two_monitors_of_one_folder_keep_the_proof(folder: Path) -> None:
    server = history(3)
    one, two = monitor_of(server, folder), monitor_of(server, folder)
    one.look()
    two = monitor_of(server, folder)
    server.publish(replace(server.releases[-1], version=4))
    assert not one.look().findings
    (finding,) = monitor_looks(two, history(4, like=server, other_from=4), server)
    assert "another monitor has kept another one here" in finding.what
    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 5  # both texts of version 4 are there
    assert len([name for name in kept if name.startswith("0000000004")]) == 2
    assert not monitor_of(server, folder).look().findings


def monitor_looks(monitor: Monitor, shown: History, server: History) -> tuple[Finding, ...]:
    server.instead = shown.answer
    try:
        return monitor.look().findings
    finally:
        server.instead = None


def test_a_release_that_is_withheld_is_found(folder: Path) -> None:
    server = history(5)

    def withheld(request: Request) -> Response | None:
        return Response(404, {}, b"{}") if request.url.endswith("/releases/3") else None

    server.instead = withheld
    (finding,) = monitor_of(server, folder).look().findings
    assert "release 3 must be shown, for a newer one is" in finding.what


def test_a_marked_copy_is_found(folder: Path) -> None:
    server = history(1)
    marked = canonical_json({**json.loads(server.document()), "you": "number 7"})
    server.instead = lambda _: Response(200, {}, marked)
    (finding,) = monitor_of(server, folder).look().findings
    assert "canonical form" in finding.what


def test_no_answer_is_no_finding(folder: Path) -> None:
    server = history(2)
    server.online = False
    look = monitor_of(server, folder).look()
    assert (look.newest, look.findings, look.unreachable) == (0, (), (ADDRESS,))


def test_the_command_says_what_it_found_and_ends_with_it(tmp_path: Path) -> None:
    server = history(3)
    with on_loopback(server) as address:
        asked = ["monitor", address, "--experiment", server.experiment]
        asked += ["--key", server.key.public.hex(), "--keep", str(tmp_path / "kept")]
        done = run(*asked)
        assert done.returncode == 0, done.stderr
        assert "3 releases" in done.stdout
        assert "one history" in done.stdout
        bad = tmp_path / "theirs.json"
        bad.write_bytes(history(3, like=server, other_from=3).document())
        done = run(*asked, "--seen", str(bad))
        assert (done.returncode, done.stdout.startswith("WRONG")) == (1, True)
        assert "there must be one release 3" in done.stdout
    assert run(*asked).returncode == 75  # nobody is there any more


def test_a_report_for_a_release_of_ones_own_is_refused_by_the_server() -> None:
    """Who gives a person a release of their own gets reports that nobody else can read."""
    server = history(2)
    alone = history(2, like=server, other_from=2)
    device = sv.Device(alone.releases[-1])
    device.choose({"age": 42, "bmi": 27.5})
    learner = sv.Learner(server.learner.experiment)
    data = wire.report_to_bytes(device.report(reward=1.0))
    assert learner.receive_many([data]) == [sv.Rejection.UNKNOWN_RELEASE]
