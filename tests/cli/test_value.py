"""``sottovoce value``: what a policy would bring, from the database alone."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment, whispering
from sottovoce.server.keys import SigningKey
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.policy import policy_to_json
from support.commands import Done, run
from support.whispers import person

PEOPLE = 400
NAMED: dict[str, Any] = {"auxiliary": [], "release_every": 50, "horizon": 1000, "name": "walking"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with reports, and with an experiment that has none."""
    found = f"sqlite:///{tmp_path_factory.mktemp('value')}/reports.db"
    store = Store.open(found)
    store.migrate()
    paper = experiment(name="paper", method="ldpmab")
    for each in (whispering(**NAMED), experiment(name="empty", method="whisper"), paper):
        first = wire.release_to_json(sv.Learner(each).release())
        store.add_experiment(each.fingerprint, json.dumps(each.to_table()), first)
    learner, rng = sv.Learner(whispering(**NAMED)), random.Random(4)
    for number in range(PEOPLE):
        before = learner.release().version
        report = person(rng, learner.release())
        body = wire.report_to_bytes(report)
        store.append(learner.experiment.fingerprint, [(number.to_bytes(16), body)])
        learner.receive(report)
        if learner.release().version != before:
            session = store.learner_session(learner.experiment.fingerprint)
            assert session is not None
            from sottovoce.server.store.store import LoggedRelease

            text = wire.release_to_json(learner.release())
            session.publish([LoggedRelease(learner.release().version, number + 1, text)])
            session.close()
    KEPT.append(learner)
    yield found
    store.close()


KEPT: list[sv.Learner] = []


def value(url: str, *arguments: str) -> Done:
    return run("value", *arguments, "--database", url)


def test_the_figures_are_those_of_a_learner_that_has_counted_the_same_reports(url: str) -> None:
    done = value(url, "walking", "--policy", "always:coach", "--policy", "release:1", "--json")
    assert done.returncode == 0, done.stderr
    told, learner = json.loads(done.stdout), KEPT[0]
    assert (told["experiment"], told["name"]) == (learner.experiment.fingerprint, "walking")
    first = sv.Learner(learner.experiment).release()
    for entry, policy in zip(told["values"], ("always:coach", first), strict=True):
        expected = learner.value(policy)
        assert entry["policy"] == expected.policy
        assert entry["estimate"] == expected.estimate
        assert (entry["radius"], entry["level"]) == (expected.radius, 0.95)
        assert entry["reports"] == expected.reports == PEOPLE


def test_without_a_policy_it_is_the_newest_release_and_each_arm(url: str) -> None:
    done = value(url, "walking")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    newest = KEPT[0].release().version
    expected = [f"release {newest}", "always:control", "always:reminder", "always:coach"]
    assert [line.rsplit(": ", 1)[0] for line in lines] == expected
    assert all("95% interval)" in line for line in lines)


def test_a_policy_file_has_the_value_of_its_best_arms(url: str, tmp_path: Path) -> None:
    learner, path = KEPT[0], tmp_path / "policy.json"
    estimates = {
        (each.path, arm): (0.5, 0.1) for each in learner.release().bins for arm in each.live
    }
    text = policy_to_json(learner.release(), estimates)
    key = SigningKey.read_or_create(tmp_path / "key")
    path.write_bytes(key.sign_policy(text).to_json())
    done = value(url, "walking", "--policy", str(path), "--json")
    assert done.returncode == 0, done.stderr
    policy = sv.Policy(learner.release(), estimates=estimates)
    assert json.loads(done.stdout)["values"][0]["estimate"] == learner.value(policy).estimate


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("walking", "--policy", "always:tea"), "must be one of control, reminder, coach"),
        (("walking", "--policy", "release:99"), "must name one of release:1 to release:"),
        (("walking", "--policy", "release:x"), "must name one of release:1 to release:"),
        (("walking", "--policy", "nowhere.json"), "a policy file that can be read"),
        (("empty",), "must have reports; got none: nothing is known yet"),
        (("paper",), "must be of method whisper, which measures all arms together; got ldpmab"),
        (("other",), "must name one of the database"),
        ((), "must name one of the database"),
    ],
)
def test_what_cannot_be_valued_is_told_in_words(
    url: str, arguments: tuple[str, ...], told: str
) -> None:
    done = value(url, *arguments)
    assert done.returncode != 0
    assert told in " ".join(done.stderr.split())


@pytest.mark.parametrize("text", ["", "{}", "no policy", '{"kind": "signed policy"}'])
def test_a_file_that_is_no_policy_is_refused(url: str, tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    done = value(url, "walking", "--policy", str(path))
    assert done.returncode != 0
    assert "must be a policy file" in " ".join(done.stderr.split())
