"""Other mechanisms: callables and commands, good ones, bad ones, and ones that die."""

import sys
import textwrap
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.lab.audit import external
from sottovoce.lab.audit.cases import LOW, experiment_of, release_of
from sottovoce.lab.audit.claims import Person, Scene
from sottovoce.lab.audit.external import LineCommand, PythonCallable, answer_of, request_of
from sottovoce.lab.audit.run import Length, audit, external_tasks
from sottovoce.lab.audit.tasks import Attack
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.wire import release_from_json

SCENE = Scene(release_of(experiment_of(Whisper(), 1.0), cuts={}, contested=""))
ROW = Person(LOW, "a", 1.0, logged=True)
SHORT = Length((300, 700), (300, 700), (300, 700), (1, 1))

LEAKS = """
    def leaks(request):
        return [float(request["reward"] or 0), 1.0]

    def silent(request):
        return b"nothing"

    def wrong(request):
        return {"a": 1}

    number = 3
"""


@pytest.fixture(autouse=True)
def _mechanisms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_mechanism.py").write_text(textwrap.dedent(LEAKS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_mechanism", raising=False)


def command(tmp_path: Path, body: str) -> LineCommand:
    program = tmp_path / "device.py"
    program.write_text(textwrap.dedent(body))
    return LineCommand(f"{sys.executable} {program}")


def flagged(mechanism: external.PythonCallable | LineCommand) -> set[str]:
    tasks = [
        task
        for task in external_tasks(mechanism, "whisper", [1.0], length=SHORT)
        if isinstance(task, Attack)
    ]
    return {each.case for each in audit(tasks, error_rate=1e-4, workers=1) if not each.kept}


def test_a_request_says_all_that_a_device_needs() -> None:
    request = request_of(SCENE, ROW)
    assert release_from_json(request.pop("release")) == SCENE.release
    assert request == {
        "population": 0,
        "epsilon": 1.0,
        "context": {"x": 0.0},
        "arm": "a",
        "reward": 1.0,
        "logged": True,
    }


def test_a_callable_that_tells_the_outcome_is_caught() -> None:
    assert "logged: a row or one that does not fit" in flagged(
        PythonCallable("own_mechanism:leaks")
    )


def test_a_callable_that_tells_nothing_is_not_flagged() -> None:
    silent = PythonCallable("own_mechanism:silent")
    assert flagged(silent) == set()
    *_, alike = external_tasks(silent, "whisper", [1.0])
    assert alike.find(error_rate=1e-4, seed=0).kept


@pytest.mark.parametrize(
    "name", ["own_mechanism", "own_mechanism:", "own_mechanism:missing", "no_such:thing", ":"]
)
def test_a_callable_that_cannot_be_found_is_refused(name: str) -> None:
    with pytest.raises(sv.ExperimentError, match="a callable must be module:function"):
        PythonCallable(name).found()


def test_what_is_no_function_or_sends_no_report_is_refused() -> None:
    with pytest.raises(sv.ExperimentError, match="a callable must be a function"):
        PythonCallable("own_mechanism:number").found()
    with pytest.raises(sv.ExperimentError, match="must send bytes or finite numbers; got a dict"):
        PythonCallable("own_mechanism:wrong").reports(SCENE, ROW, 1)
    with pytest.raises(sv.ExperimentError, match="must send bytes or finite numbers"):
        answer_of([1.0, float("nan")], of="it")


REAL = """
    import json, sys
    import sottovoce as sv
    for line in sys.stdin:
        asked = json.loads(line)
        release = sv.wire.release_from_json(asked["release"])
        name = release.experiment.populations[asked["population"]].name
        device = sv.Device(release, population=name, public_arms=True)
        if not asked["logged"]:
            device.choose(asked["context"])
            report = device.report(reward=asked["reward"])
        elif asked["context"] is None:
            report = device.report_nothing_logged()
        else:
            report = device.report_logged(
                asked["context"], arm=asked["arm"], reward=asked["reward"])
        print(sv.wire.report_to_bytes(report).hex(), flush=True)
"""


@pytest.mark.slow
def test_a_command_with_the_real_device_is_not_flagged(tmp_path: Path) -> None:
    assert flagged(command(tmp_path, REAL)) == set()


def test_a_command_may_send_numbers(tmp_path: Path) -> None:
    numbers = command(
        tmp_path,
        """
        import sys
        for line in sys.stdin:
            print("[1, 2.5]", flush=True)
        """,
    )
    assert numbers.reports(SCENE, ROW, 20) == [(1.0, 2.5)] * 20


BAD = {
    "it ends at once": ("", "it has (ended|stopped reading)"),
    "it ends on the way": ("print('00', flush=True)", "it has (ended|stopped reading)"),
    "it writes words": (
        "import sys\nfor line in sys.stdin: print('hi', flush=True)",
        "another line",
    ),
    "it writes half a list": (
        "import sys\nfor line in sys.stdin: print('[1,', flush=True)",
        "another line",
    ),
    "it never answers": ("import time\ntime.sleep(60)", "none came in 0.5 seconds"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_command_is_told_so(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, said = BAD[what]
    if "seconds" in said:
        monkeypatch.setattr(external, "PATIENCE", 0.5)
    with pytest.raises(sv.ExperimentError, match=f"must answer each line .* got {said}"):
        command(tmp_path, body).reports(SCENE, ROW, 20)


def test_a_command_that_cannot_be_started_is_refused() -> None:
    for text in ("no-such-command-at-all", "'", ""):
        with pytest.raises(sv.ExperimentError, match="a command must be one that can be started"):
            LineCommand(text).reports(SCENE, ROW, 1)
