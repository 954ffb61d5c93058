"""``sottovoce amend``: what an operator types, and what comes of it on a real server."""

import json
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from factories import experiment
from sottovoce.cli import administrator
from sottovoce.cli.amend import _share
from sottovoce.device.transport import send
from sottovoce.lab.local_server import LocalServer
from sottovoce.shared.amendment import state_after
from sottovoce.shared.errors import TransportError
from support.commands import Done, run
from support.http import TOKEN, ask, get, release_of, serving, until

WALKING = experiment(name="walking", method="whisper")
TWINS = [experiment(name="twin", method="whisper", seed=seed) for seed in (1, 2)]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    monkeypatch.setenv("SOTTOVOCE_ADMIN_TOKEN", TOKEN)
    monkeypatch.setattr(administrator, "PAUSE", 0.01)
    with serving(tmp_path, [WALKING, *TWINS]) as local:
        yield local


def amend(server: LocalServer, *arguments: str, by: str = "Ada") -> Done:
    return run("amend", "walking", *arguments, "--server", server.url, "--by", by)


def made(server: LocalServer, of: Any = WALKING) -> list[str]:
    answer = get(server, f"/experiments/{of.fingerprint}/amendments").json()
    return [each["words"] for each in answer["amendments"]]


def test_a_whole_life(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    done = amend(server, "add-arm", "game", "--cap", "10%")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "walking: amendment 1, in release 2, after 0 reports: add arm 'game', for at most 10 % of"
        " a bin's people",
        "Devices follow within about an hour; from then on some people get 'game'.",
    ]
    assert release_of(server, WALKING).experiment.caps == {3: 0.1}
    assert amend(server, "extend-horizon", "20,000").returncode == 0
    assert amend(server, "pause").returncode == 0
    assert amend(server, "resume").returncode == 0
    for refused in ("n\n", ""):
        monkeypatch.setattr(sys, "stdin", StringIO(refused))
        done = amend(server, "retire-arm", "coach")
        assert done.returncode == 1
        told = "walking: Nobody will get 'coach' any more, and it cannot come back. Go on? [y/N]"
        assert told in done.stderr
        assert done.stdout.strip() == ""
    assert len(made(server)) == 4
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))
    assert amend(server, "retire-arm", "coach").returncode == 0
    done = amend(server, "stop", "--yes", "--json", by="Bea")
    assert json.loads(done.stdout)["amendment"]["by"] == "Bea"
    assert amend(server, "archive", "--yes").returncode == 0
    done = amend(server, "resume")
    assert done.returncode == 2
    assert "the server refused (409): the experiment is archived" in done.stderr
    listed = run("amend", WALKING.fingerprint, "--list", "--server", server.url)
    lines = listed.stdout.splitlines()
    assert lines[0] == f"walking ({WALKING.short}) is archived."
    assert len(lines) == 8
    assert "amendment 6, in release 7, after 0 reports: stop  [Bea, 20" in lines[6]
    as_json = run("amend", "walking", "--server", server.url, "--json")
    assert [each["number"] for each in json.loads(as_json.stdout)["amendments"]] == [*range(1, 8)]
    until(lambda: len(release_of(server, WALKING).experiment.amendments) == 7)
    assert state_after(release_of(server, WALKING).experiment.amendments) == "archived"


MISTAKES = [
    (("restart",), "the change must be one of ['add-arm'"),
    (("add-arm",), "add-arm must say which arm; got None"),
    (("pause", "coach"), "pause must say nothing more; got 'coach'"),
    (("extend-horizon", "many"), "the horizon must be a whole number; got 'many'"),
    (("extend-horizon", "²"), "the horizon must be a whole number; got '²'"),
    (("extend-horizon", "10"), "the server refused (422): an extended horizon must be more than"),
    (("add-arm", "game", "--cap", "much"), "the cap must be a share such as 10%; got 'much'"),
    (("add-arm", "game", "--cap", "nan"), "the server refused (422): the cap"),
    (("add-arm", "game", "--cap", "60%"), "the server refused (422): the cap of an amendment"),
    (("add-arm", "coach"), "the server refused (422): an added arm must have a new name"),
    (("retire-arm", "nobody", "--yes"), "the server refused (422): a retired arm must be one of"),
    (("pause", "--token", "wrong"), "the server refused (403): this is not the administrator's"),
]


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with serving(tmp_path_factory.mktemp("server"), [WALKING, *TWINS]) as local:
        yield local


@pytest.mark.parametrize(("typed", "told"), MISTAKES)
def test_a_mistake_is_one_line_and_changes_nothing(
    lasting: LocalServer, typed: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOTTOVOCE_ADMIN_TOKEN", TOKEN)
    done = amend(lasting, *typed)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert made(lasting) == []


def test_who_and_which_must_be_said(lasting: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOTTOVOCE_ADMIN_TOKEN", raising=False)
    here = ("--server", lasting.url)
    done = run("amend", "walking", "pause", *here)
    assert (done.returncode, "say --by whom it is made" in done.stderr) == (2, True)
    done = run("amend", "walking", "pause", "--by", "Ada", *here)
    assert (done.returncode, "be in the variable SOTTOVOCE_ADMIN_TOKEN" in done.stderr) == (2, True)
    # What was amended is for everybody.
    assert run("amend", "walking", *here).stdout == f"walking ({WALKING.short}) is running.\n"
    for name, which in (("twin", "which 2 have"), ("nobody", "which none have")):
        done = run("amend", name, *here)
        assert (done.returncode, which in done.stderr) == (2, True)
    done = run("amend", "0" * 64, *here)
    assert "the server refused (404): there is no such experiment here" in done.stderr


def test_no_server_is_another_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administrator, "PAUSE", 0.01)
    done = run("amend", "walking", "--server", "http://127.0.0.1:9")
    assert (done.returncode, "the server must be reachable" in done.stderr) == (75, True)


def test_an_answer_that_got_lost_is_asked_for_again(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    posts = [0]

    def lossy(request: Any) -> Any:
        answer = send(request)
        if request.method == "POST":
            posts[0] += 1
            if posts[0] < 3:
                raise TransportError("as a test has it")
        return answer

    monkeypatch.setattr(administrator, "send", lossy)
    done = amend(server, "pause")
    assert (done.returncode, posts[0]) == (0, 3)
    assert "amendment 1, in release 2" in done.stdout
    assert made(server) == ["pause"]


@pytest.mark.parametrize(
    ("text", "share"), [("10%", 0.1), ("7.5 %", 0.075), ("0.2", 0.2), ("3%", 0.03), (".5", 0.5)]
)
def test_shares_are_the_nearest_doubles(text: str, share: float) -> None:
    assert _share(text) == share


def test_the_original_file_of_an_amended_experiment_goes_on(server: LocalServer) -> None:
    """``serve`` begins what is in its files: that changes nothing in what is there already."""
    assert amend(server, "extend-horizon", "5000").returncode == 0
    body = json.dumps(WALKING.to_table())
    admin = {"Authorization": f"Bearer {TOKEN}"}
    kind = "application/json"
    again = ask(server, "POST", "/experiments", body=body, kind=kind, headers=admin)
    assert again.status == 200
    assert again.json()["populations"][0]["users"] == 5000
    assert release_of(server, WALKING).experiment.horizon == 5000
