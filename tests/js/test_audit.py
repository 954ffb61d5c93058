"""The audit runs on the TypeScript device, and catches one that is broken."""

import shutil
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.lab.audit.cases import LOW, experiment_of
from sottovoce.lab.audit.claims import Person, Scene
from sottovoce.lab.audit.external import LineCommand
from sottovoce.lab.audit.run import Length, audit, external_tasks
from sottovoce.lab.audit.tasks import Attack
from sottovoce.shared import wire
from sottovoce.shared.whisper import Whisper
from support.node import JS, built

SHORT = Length((300, 700), (300, 700), (300, 700), (1, 1))
PEOPLE = [
    Person(LOW, None, 1.0),
    Person(LOW, None, None),
    Person(LOW, "a", 0.3, logged=True),
    Person(None, logged=True),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(tmp_path_factory.getbasetemp().parent)


@pytest.mark.parametrize("way", ["", " decisions"])
def test_the_command_sends_reports_that_a_learner_takes(node: str, way: str) -> None:
    experiment = experiment_of(Whisper(), 1.0, sources=True)
    learner = sv.Learner(experiment)
    scene = Scene(learner.release(), population=0)
    command = LineCommand(f"{node} {JS / 'audit.js'}{way}")
    for person in PEOPLE:
        answers = command.reports(scene, person, 20)
        for each in answers:
            assert isinstance(each, bytes)
            learner.receive(wire.report_from_bytes(each))
        assert len(set(answers)) == 20


def flagged(command: LineCommand) -> bool:
    (task, *_) = [
        task
        for task in external_tasks(command, "whisper", [1.0], length=SHORT)
        if isinstance(task, Attack) and task.pair.name == "logged: arm a or b"
    ]
    (found,) = audit([task], error_rate=1e-6, workers=1)
    return not found.kept


def test_a_device_that_always_tells_the_truth_is_caught(node: str, tmp_path: Path) -> None:
    """A device that is right is flagged once in a million runs."""
    assert not flagged(LineCommand(f"{node} {JS / 'audit.js'}"))
    shutil.copytree(JS / "dist", tmp_path / "dist")
    shutil.copy(JS / "package.json", tmp_path)
    shutil.copy(JS / "audit.js", tmp_path)
    right, wrong = "chance(truth, truth + rest)", "chance(truth + rest, truth + rest)"
    modules = [each for each in (tmp_path / "dist").glob("*.js") if right in each.read_text()]
    (module,) = modules
    module.write_text(module.read_text().replace(right, wrong))
    assert flagged(LineCommand(f"{node} {tmp_path / 'audit.js'}"))
