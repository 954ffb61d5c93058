"""Nothing is lost: a server under load whose processes, and whose database, are killed at random.

The server is ``sottovoce serve`` itself. SIGKILL leaves no time to say goodbye. Afterwards every
report that was acknowledged is in the log, once; and all releases follow from the log.
"""

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from sottovoce.server.replay import replay
from sottovoce.server.store.store import Store
from sottovoce.shared.wire import nonce_of
from support.amenders import Amender
from support.databases import cluster, new_database
from support.postmasters import kill_all, kill_postmaster, stop_at_once
from support.senders import WALKING, Senders, walking
from support.services import COMMAND, FAULTY, TOKEN, Service, wait_until
from support.slow import slow_but
from support.stores import query

# How often something is killed; all of it is the same test, only longer.
ROUNDS = slow_but([6], [6, 70])
AMENDED_ROUNDS = slow_but([6], [6, 50])

Kill = Callable[[], None]


def besiege(senders: Senders, kills: Sequence[Kill], *, rounds: int) -> None:
    """Kill at random, under load; the service has to come back by itself each time."""
    rng = random.Random()
    order = [kills[number % len(kills)] for number in range(rounds)]
    rng.shuffle(order)
    for kill in order:
        time.sleep(rng.uniform(0, 0.4))
        kill()
        if rng.random() < 0.7:  # the others have to come back from two at once
            senders.wait_for(50)
    senders.wait_for(500)


def check_that_nothing_is_lost(store: Store, senders: Senders) -> None:
    rows = query(store, "SELECT position, nonce, body FROM report ORDER BY position")
    assert [position for position, _, _ in rows] == list(range(1, len(rows) + 1))
    log = [bytes(body) for _, _, body in rows]
    assert [bytes(nonce) for _, nonce, _ in rows] == list(map(nonce_of, log))
    times = Counter(map(nonce_of, log))
    assert not [nonce for nonce, count in times.items() if count > 1], "stored twice"
    assert not [nonce for nonce in senders.acknowledged if nonce not in times], "lost"
    assert set(log) <= set(senders.sent.values()), "never sent"


def check_that_all_was_learned(store: Store, database: str) -> None:
    """All releases are out, and each follows from the log."""
    name = walking().fingerprint

    def has_caught_up() -> bool:
        snapshot = store.snapshot(name)
        return snapshot is not None and snapshot[0] == store.length(name)

    wait_until(has_caught_up, told="the learner must catch up")
    found = replay(store, name)
    assert (found.troubles, found.waiting) == ((), 0)
    assert found.releases == len(store.releases(name)) > 3
    done = subprocess.run([*COMMAND, "replay", "--database", database], check=False)
    assert done.returncode == 0


def check_that_every_amendment_is_taken(store: Store, amender: Amender) -> None:
    """Each that was acknowledged is there, as it was, once; and so is each that was asked for."""
    logged = store.amendments(walking().fingerprint)
    told = {each.number: json.loads(each.text) for each in logged}
    assert amender.acknowledged.items() <= told.items()
    assert list(told) == list(range(1, len(told) + 1))
    assert len(told) <= len(amender.acknowledged) + 1  # the last one may have had no answer
    wait_until(
        lambda: not any(each.waits for each in store.amendments(walking().fingerprint)),
        told="each must be taken",
    )
    versions = [each.version for each in store.amendments(walking().fingerprint)]
    assert len(set(versions)) == len(versions)
    print(f"{len(told)} amendments, {amender.repeated} of them sent again")


def tell(service: Service, senders: Senders, store: Store) -> None:
    """For whoever runs the test to see what it did: pytest -rP."""
    print(
        f"{len(senders.sent)} sent, {len(senders.acknowledged)} acknowledged,"
        f" {store.length(walking().fingerprint)} stored; answers {dict(senders.statuses)};"
        f" {len(store.releases(walking().fingerprint))} releases;"
        f" {service.restarts()} processes were started again"
    )


@pytest.mark.parametrize("rounds", ROUNDS)
def test_on_sqlite_nothing_is_lost_whichever_process_is_killed(tmp_path: Path, rounds: int) -> None:
    database = f"sqlite:///{tmp_path}/reports.db"
    store = Store.open(database)
    with Service(tmp_path, WALKING, database=database) as service:
        service.wait_until_ready()
        kills = [
            lambda name=name: service.kill(name) for name in ("watcher", "worker 1", "learner")
        ]
        with Senders(service.url, walking()) as senders:
            besiege(senders, kills, rounds=rounds)
        check_that_nothing_is_lost(store, senders)
        check_that_all_was_learned(store, database)
        tell(service, senders, store)
        assert service.stop() == 0
    assert not senders.troubles


@pytest.mark.parametrize("rounds", AMENDED_ROUNDS)
def test_on_sqlite_no_amendment_is_lost_or_made_twice(tmp_path: Path, rounds: int) -> None:
    database = f"sqlite:///{tmp_path}/reports.db"
    store = Store.open(database)
    with Service(tmp_path, WALKING, database=database) as service:
        service.wait_until_ready()
        kills = [
            lambda name=name: service.kill(name) for name in ("watcher", "worker 1", "learner")
        ]
        amend_under_siege(service, store, kills, rounds=rounds)
        check_that_all_was_learned(store, database)
        assert service.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [6, 50])
def test_on_postgres_no_amendment_is_lost_or_made_twice(tmp_path: Path, rounds: int) -> None:
    with new_database("postgresql", folder=tmp_path) as database:
        store = Store.open(database)
        with Service(tmp_path, WALKING, database=database, workers=2) as service:
            service.wait_until_ready()
            kills = [
                *(partial(service.kill, name) for name in ("watcher", "learner", "worker 2")),
                partial(crash, kill_all),
                partial(crash, stop_at_once),
            ]
            amend_under_siege(service, store, kills, rounds=rounds)
            check_that_all_was_learned(store, database)
            assert service.stop() == 0
        store.close()


def amend_under_siege(
    service: Service, store: Store, kills: Sequence[Kill], *, rounds: int
) -> None:
    with (
        Senders(service.url, walking()) as senders,
        Amender(service.url, walking(), token=TOKEN) as amender,
    ):
        besiege(senders, kills, rounds=rounds)
    assert not amender.troubles
    assert not senders.troubles
    assert len(amender.acknowledged) > rounds
    check_that_nothing_is_lost(store, senders)
    check_that_every_amendment_is_taken(store, amender)
    tell(service, senders, store)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [6, 70])
def test_on_postgres_nothing_is_lost_whoever_is_killed(tmp_path: Path, rounds: int) -> None:
    with new_database("postgresql", folder=tmp_path) as database:
        store = Store.open(database)
        with Service(tmp_path, WALKING, database=database, workers=2) as service:
            service.wait_until_ready()
            kills = [
                *(
                    lambda name=name: service.kill(name)
                    for name in ("watcher", "worker 2", "learner")
                ),
                *(lambda die=die: crash(die) for die in (kill_postmaster, kill_all, stop_at_once)),
            ]
            kills.append(partial(power_cut, service))
            with Senders(service.url, walking()) as senders:
                besiege(senders, kills, rounds=rounds)
            check_that_nothing_is_lost(store, senders)
            check_that_all_was_learned(store, database)
            tell(service, senders, store)
            assert service.stop() == 0
        store.close()
    assert not senders.troubles


def crash(die: Kill) -> None:
    """Let the database die, and bring it back a moment later."""
    die()
    time.sleep(random.uniform(0, 0.5))
    cluster().start()


def power_cut(service: Service) -> None:
    """Kill everything at once; the server is back before its database."""
    kill_all()
    service.kill("watcher")
    wait_until(lambda: len(service.processes()) == 3, told="the server must start")
    time.sleep(random.uniform(0.5, 1.5))
    cluster().start()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "again", "found"),
    [("acknowledge_before_storing", 0.0, "lost"), ("forget_nonces", 0.1, "stored twice")],
)
def test_this_would_find_a_server_that_is_hasty_or_forgetful(
    tmp_path: Path, mistake: str, again: float, found: str
) -> None:
    database = f"sqlite:///{tmp_path}/reports.db"
    store = Store.open(database)
    command = [*FAULTY, mistake]
    with Service(tmp_path, WALKING, database=database, command=command) as service:
        service.wait_until_ready()

        def run() -> None:
            with Senders(service.url, walking(), again=again) as senders:
                besiege(senders, [partial(service.kill, "worker 1")], rounds=4)
            check_that_nothing_is_lost(store, senders)

        with pytest.raises(AssertionError, match=found):
            run()


@pytest.mark.slow
def test_this_would_find_a_commit_that_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    with new_database("postgresql", folder=tmp_path) as database:
        store = Store.open(database)
        command = [*FAULTY, "commit_without_waiting_for_the_disk"]
        with Service(tmp_path, WALKING, database=database, command=command) as service:
            service.wait_until_ready()
            with Senders(service.url, walking(), again=0.0) as senders:
                besiege(senders, [partial(crash, kill_all)], rounds=4)
            with pytest.raises(AssertionError, match="lost"):
                check_that_nothing_is_lost(store, senders)
        store.close()
