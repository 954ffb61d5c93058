"""What the policy brings over a baseline, as a real server and the command line tell it."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.lab.local_server import LocalServer, running
from sottovoce.server.gain import gain_words
from sottovoce.shared import wire
from support.commands import run
from support.http import get, post, until

COMPARED = sv.Experiment(
    arms=["control", "coach"],
    context=[sv.Numeric("age", 18, 90)],
    epsilon=8.0,
    horizon=400,
    release_every=50,
    reward=[0, 60],
    baseline={"arm": "control", "share": 0.25},
    name="compared",
)
ALONE = experiment(name="alone", method="whisper")
PEOPLE = 200


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('gain')}/reports.db"


@pytest.fixture(scope="module")
def server(url: str) -> Iterator[LocalServer]:
    with running([COMPARED, ALONE], database=url) as local:
        yield local


@pytest.fixture(scope="module")
def learner(server: LocalServer) -> sv.Learner:
    """The same learner, beside the server's, with the reports that were sent."""
    learner, chance = sv.Learner(COMPARED), random.Random(0)
    sent = []
    for _ in range(PEOPLE):
        device = sv.Device(learner.release())
        good = chance.random() < (0.9 if device.choose({"age": 40}) == "coach" else 0.2)
        sent.append(wire.report_to_bytes(device.report(reward=60.0 * good)))
        learner.receive(wire.report_from_bytes(sent[-1]))
    for start in range(0, PEOPLE, 50):  # each step makes the release of the next
        until(lambda at=start: told(server)["learned"] == at)
        batch = wire.batch_to_bytes(sent[start : start + 50])
        assert post(server, batch, batch=True).json()["stored"] == 50
        until(lambda at=start: told(server)["learned"] == at + 50)
    return learner


def told(server: LocalServer, of: sv.Experiment = COMPARED) -> dict[str, object]:
    found: dict[str, object] = get(server, f"/experiments/{of.fingerprint}/gain").json()
    return found


def test_the_gain_follows_the_reports_in_the_owner_s_unit(
    server: LocalServer, learner: sv.Learner
) -> None:
    found, gain = told(server), learner.gain()
    assert gain is not None
    assert found["learned"] == PEOPLE
    table = found["gain"]
    assert isinstance(table, dict)
    assert (table["baseline"], table["level"], table["share"]) == ("control", 0.95, gain.share)
    for key, brought in (("ever", gain.ever), ("present", gain.present)):
        assert brought is not None
        assert table[key] == {
            "since": brought.since,
            "people": brought.people,
            "mean": brought.mean,
            "low": brought.low,
            "high": brought.high,
            "total": brought.total,
            "policy_people": brought.policy_people,
            "baseline_people": brought.baseline_people,
            "balanced": brought.balanced,
        }
    assert -60 <= gain.ever.low < gain.ever.mean < gain.ever.high <= 60
    assert found["words"] == gain_words(gain, COMPARED)


def test_without_a_baseline_there_is_none(server: LocalServer) -> None:
    until(lambda: get(server, f"/experiments/{ALONE.fingerprint}/status").json().get("release"))
    assert told(server, ALONE) == {"learned": 0, "gain": None, "words": []}


def test_the_command_says_what_the_server_says(
    server: LocalServer, learner: sv.Learner, url: str
) -> None:
    plain = run("gain", "compared", "--database", url)
    words = told(server)["words"]
    assert isinstance(words, list)
    assert plain.stdout.splitlines() == words
    assert words[0].startswith("The policy has brought +")
    assert "over control" in words[0]
    figures = json.loads(run("gain", "compared", "--database", url, "--json").stdout)
    assert figures == told(server)


def test_the_command_says_what_is_wrong(server: LocalServer, learner: sv.Learner, url: str) -> None:
    alone = run("gain", "alone", "--database", url)
    assert alone.returncode != 0
    assert "must have a baseline" in alone.stderr
    other = run("gain", "nobody", "--database", url)
    assert other.returncode != 0
    assert "the experiment must name one of the database" in other.stderr


def test_words_say_when_too_few_have_come_and_when_reports_get_lost() -> None:
    empty = sv.Learner(COMPARED).gain()
    assert gain_words(empty, COMPARED) == [
        "Too few people have come to compare the policy with control."
    ]
    assert gain_words(None, ALONE) == []
    assert empty is not None
    lost = sv.Brought(0, 900, 6.0, -3.0, 15.0, 150, 60)
    gain = sv.GainEstimate(0.95, 0.1, lost, None)
    words = gain_words(gain, replace(COMPARED, baseline={"share": 0.1}))
    assert words == [
        "The policy has brought +6 per person over arms at random, between -3 and +15 (95 %,"
        " whenever one looks): +5,400 for 900 people.",
        "The groups are not equally large (150 and 60 people): reports of one of them get lost,"
        " and the figures cannot be trusted.",
    ]
