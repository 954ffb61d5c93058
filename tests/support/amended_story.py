"""A log of real reports that is amended at fixed places, by every kind of amendment.

``story`` is what a learner alone makes of it; ``play`` lets a server's learner live through it.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import sottovoce as sv
from sottovoce.server.amendments import text_of
from sottovoce.server.learning import LearnerPool
from sottovoce.server.replay import replay
from sottovoce.server.store.store import LoggedAmendment, LoggedRelease, Store
from sottovoce.shared import wire
from sottovoce.shared.amending import draft
from sottovoce.shared.amendment import (
    ADD_ARM,
    ARCHIVE,
    EXTEND_HORIZON,
    PAUSE,
    RESUME,
    RETIRE_ARM,
    STOP,
)
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import StoreError
from sottovoce.shared.wire import nonce_of
from support.databases import new_database
from support.senders import walking

NAME = walking().fingerprint
EVERY = walking().release_every

# After how many reports what is amended: between steps, at a step, two at once, before the first.
PLAN: list[tuple[int, str, dict[str, Any]]] = [
    (0, EXTEND_HORIZON, {"horizon": 200_000}),
    (330, ADD_ARM, {"arm": "game", "cap": 0.2}),
    (600, PAUSE, {}),
    (640, RESUME, {}),
    (900, RETIRE_ARM, {"arm": "control"}),
    (900, ADD_ARM, {"arm": "quiz"}),
    (1210, STOP, {}),
    (1250, ARCHIVE, {}),
]


class Story(NamedTuple):
    """What is to be in the database in the end, worked out by a learner alone."""

    log: tuple[bytes, ...]
    amendments: list[LoggedAmendment]
    releases: list[LoggedRelease]
    learner: sv.Learner


@cache
def story() -> Story:
    learner, rng = sv.Learner(walking()), random.Random(0)
    log: list[bytes] = []
    amendments: list[LoggedAmendment] = []
    releases: list[LoggedRelease] = []

    def publish() -> None:
        release = learner.release()
        if not releases or release.version > releases[-1].version:
            text = wire.release_to_json(release)
            releases.append(LoggedRelease(release.version, len(log), text))

    publish()
    followed = learner.release()
    plan = list(PLAN)
    while plan or len(log) < 1300:
        while plan and plan[0][0] == len(log):
            _, kind, about = plan.pop(0)
            made = datetime(2026, 3, 1, 9, len(amendments), tzinfo=UTC)
            document = draft(learner.experiment, kind, by="Ada", made=made, **about)
            learner.amend(document)
            publish()
            version = learner.release().version
            number = len(amendments) + 1
            amendments.append(LoggedAmendment(number, text_of(document), len(log), version))
        if learner.experiment.state == "running" and rng.random() < 0.9:
            followed = learner.release()  # others are late
        log.append(person(followed, rng))
        learner.receive(wire.report_from_bytes(log[-1]))
        publish()
    return Story(tuple(log), amendments, releases, learner)


def person(release: sv.Release, rng: random.Random) -> bytes:
    device = sv.Device(release)
    age = rng.uniform(18, 90)
    arm = device.choose({"age": age, "sleep": rng.uniform(4, 10)})
    share = (age - 18) / 72
    chances = {"control": 0.5, "reminder": 1 - share, "coach": share, "game": 0.9, "quiz": 0.3}
    return wire.report_to_bytes(device.report(reward=float(rng.random() < chances[arm])))


@contextmanager
def store_for(kind: str, folder: Path) -> Iterator[Store]:
    """A store with the experiment and nothing else."""
    with new_database(kind, folder=folder) as url:
        store = Store.open(url)
        store.migrate()
        first = wire.release_to_json(sv.Learner(walking()).release())
        store.add_experiment(NAME, canonical_json(walking().to_table()).decode(), first)
        yield store
        store.close()


def append(store: Store, start: int, end: int) -> None:
    """Within one call reports are put in another order: up to a step, that is the same."""
    while start < end:
        until = min(end, start + EVERY - start % EVERY)
        store.append(NAME, [(nonce_of(each), each) for each in story().log[start:until]])
        start = until


def polled(pool: LearnerPool) -> None:
    """Let a learner do what it can, whatever gets in its way."""
    done = 0
    while done < 2:
        try:
            done = 0 if pool.poll() else done + 1
        except StoreError:
            pool.abandon()


def play(store: Store, pool: LearnerPool, *, anew: Any = lambda: None) -> LearnerPool:
    """Let reports and amendments come as the story has it. anew: called after each."""
    begin = 0
    for each in story().amendments:
        end = each.position or 0
        append(store, begin, end)
        polled(pool)
        assert store.add_amendment(NAME, each.number, each.text)
        polled(pool)
        pool = anew() or pool
        begin = end
    append(store, begin, len(story().log))
    polled(pool)
    return pool


def check(store: Store) -> None:
    assert store.amendments(NAME) == story().amendments
    assert store.releases(NAME) == story().releases
    found = replay(store, NAME)
    assert (found.troubles, found.waiting) == ((), 0)
    assert len(found.amendments) == len(PLAN)
    assert "amendment 2, after " in found.amendments[1]
    assert "add arm 'game', for at most 20 % of a bin's people, by Ada" in found.amendments[1]
