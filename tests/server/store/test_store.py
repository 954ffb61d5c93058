import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text

from sottovoce.server.store.store import LoggedRelease, Store
from sottovoce.shared.errors import StoreDamaged, StoreError
from support.databases import KINDS, cluster, new_database
from support.stores import NAME, OTHER, change, is_whole, learning, opened, process, query, reports


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_database(request.param, folder=tmp_path) as url:
        yield url


@pytest.fixture
def postgres_url(tmp_path: Path) -> Iterator[str]:
    with new_database("postgresql", folder=tmp_path) as url:
        yield url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = opened(url)
    yield store
    store.close()


# Experiments and the log.


def test_an_experiment_is_added_once_with_its_first_release(store: Store) -> None:
    assert not store.add_experiment(NAME, "another text", "another release")
    assert store.experiments() == [(n, f'{{"name": "{n}"}}') for n in (NAME, OTHER)]
    assert store.releases(NAME) == [LoggedRelease(1, 0, "first")]
    assert store.newest_versions()[NAME] == 1
    assert (store.length(NAME), store.read(NAME, after=0, limit=10)) == (0, [])
    assert store.snapshot(NAME) is None


def test_reports_are_kept_once_and_in_order(store: Store) -> None:
    assert store.append(NAME, []) == []
    assert store.append(NAME, reports(5, 3)) == [True, True]
    # Known from before, new, twice within one call; the first body that came is kept.
    again = reports(3, 9, 9, 1, 5, body="again")
    assert store.append(NAME, again) == [False, True, False, True, False]
    assert store.append(NAME, again) == [False] * 5
    # In the order of the calls, and within one in that of the nonces.
    expected = [b"body 3", b"body 5", b"again 1", b"again 9"]
    assert store.read(NAME, after=0, limit=10) == expected
    assert store.read(NAME, after=1, limit=2) == expected[1:3]
    assert store.read(NAME, after=4, limit=2) == []
    is_whole(store, length=4)


def test_each_experiment_has_a_log_of_its_own(store: Store) -> None:
    assert store.append(NAME, reports(1, 2)) == [True, True]
    assert store.append(OTHER, reports(2, 3, 4)) == [True, True, True]
    assert (store.length(NAME), store.length(OTHER)) == (2, 3)
    assert store.read(OTHER, after=0, limit=1) == [b"body 2"]


@pytest.mark.parametrize("size", [1, 249, 250, 251, 1000])
def test_a_batch_of_any_size_is_kept_in_order(store: Store, size: int) -> None:
    store.append(NAME, reports(*range(0, size, 3)))
    answers = store.append(NAME, reports(*range(size)))
    assert answers == [number % 3 != 0 for number in range(size)]
    order = [*range(0, size, 3), *(number for number in range(size) if number % 3)]
    assert store.read(NAME, after=0, limit=size) == [body for _, body in reports(*order)]
    is_whole(store, length=size)


def test_threads_that_send_the_same_reports_store_each_once(store: Store) -> None:
    def send(thread: int) -> int:
        # Overlaps with its neighbours, in another order.
        numbers = [(thread * 50 + step * 7) % 400 for step in range(100)]
        cuts = range(0, 100, 10)
        return sum(sum(store.append(NAME, reports(*numbers[cut : cut + 10]))) for cut in cuts)

    everything = {(thread * 50 + step * 7) % 400 for thread in range(8) for step in range(100)}
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(send, range(8))) == len(everything)
    is_whole(store, length=len(everything))


def test_processes_that_send_the_same_reports_store_each_once(store: Store, url: str) -> None:
    script = """
store = Store.open(sys.argv[1])
print("ready", flush=True); sys.stdin.readline()
stored = 0
for start in range(0, 2000, 40):
    numbers = range(start, start + 80)
    stored += sum(store.append(sys.argv[2], [(n.to_bytes(16), b"x") for n in numbers]))
print(stored)
"""
    started = [process(script, url, NAME) for _ in range(2)]
    assert [each.stdout and each.stdout.readline() for each in started] == ["ready\n"] * 2
    outputs = [each.communicate("go\n", timeout=60)[0] for each in started]
    assert sum(map(int, outputs)) == 2040
    is_whole(store, length=2040)


def test_a_reader_never_sees_a_gap(store: Store) -> None:
    seen: list[bytes] = []
    with ThreadPoolExecutor(3) as threads:
        writers = [
            threads.submit(store.append, NAME, reports(*range(start, start + 20)))
            for start in range(0, 600, 20)
        ]
        while len(seen) < 600:
            seen += store.read(NAME, after=len(seen), limit=50)
            assert all(not each.done() or each.exception() is None for each in writers)
    assert seen == store.read(NAME, after=0, limit=1000)
    assert len(set(seen)) == 600


def test_the_log_holds_no_time_and_no_address(store: Store) -> None:
    with store._database.transaction() as connection:
        rows = connection.execute(text("SELECT * FROM report"))
        assert list(rows.keys()) == ["experiment", "position", "nonce", "body"]


def test_an_unknown_experiment_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="an experiment must be in the database; got 'nobody'"):
        store.append("nobody", reports(1))
    for call in (store.length, store.releases, store.snapshot, store.learner_session):
        with pytest.raises(StoreError, match="must be in the database"):
            call("nobody")


# The learner.


def test_a_learner_publishes_and_everybody_reads(store: Store) -> None:
    session = learning(store)
    store.append(NAME, reports(1, 2, 3))
    large = "é{}" * 100_000
    new = [LoggedRelease(2, 1, large), LoggedRelease(3, 3, "third")]
    assert session.saved() is None
    session.publish(new, snapshot=(3, "so far"), saved=(2, large))
    session.publish([], snapshot=(4, "further"))
    assert (session.length(), session.read(after=2, limit=9)) == (3, [b"body 3"])
    assert session.releases(after=1) == store.releases(NAME, after=1) == new
    assert session.saved() == (2, large)
    assert store.snapshot(NAME) == (4, "further")
    assert store.snapshot(OTHER) is None
    assert store.newest_versions()[NAME] == 3
    assert store.newest_versions() == {NAME: 3, OTHER: 1}
    assert (store.release(NAME, 2), store.release(NAME, 4)) == (new[0], None)
    [(size,)] = query(store, "SELECT length(text) FROM release WHERE version = 2")
    assert size < len(large) / 10
    session.close()


@pytest.mark.parametrize("versions", [(1,), (3,), (2, 2), (2, 4), (0,)])
def test_a_release_that_does_not_follow_is_refused_with_all_else(
    store: Store, versions: tuple[int, ...]
) -> None:
    session = learning(store)
    new = [LoggedRelease(version, 1, "next") for version in versions]
    with pytest.raises(StoreError, match=r"the version of a release must be [23]; got"):
        session.publish(new, snapshot=(1, "so far"), saved=(1, "state"))
    assert (store.newest_versions()[NAME], store.snapshot(NAME), session.saved()) == (1, None, None)
    session.publish([LoggedRelease(2, 1, "next")])
    session.close()


def test_one_learner_at_a_time_for_each_experiment(store: Store, url: str) -> None:
    session = learning(store)
    another = Store.open(url)
    assert store.learner_session(NAME) is None
    assert another.learner_session(NAME) is None
    other = another.learner_session(OTHER)
    assert other is not None
    session.close()
    session.close()
    with pytest.raises(StoreError, match="must hold its lock; it was closed or lost"):
        session.publish([LoggedRelease(2, 1, "next")])
    successor = another.learner_session(NAME)
    assert successor is not None
    successor.close()
    other.close()
    another.close()


def test_one_process_may_learn_many_experiments(store: Store) -> None:
    names = [f"{number:016x}" for number in range(20)]
    assert all(store.add_experiment(name, "{}", "first") for name in names)
    sessions = [store.learner_session(name) for name in names]
    assert store.append(names[0], reports(1)) == [True]
    for session in sessions:
        assert session is not None
        session.publish([LoggedRelease(2, 0, "second")])
        session.close()
    assert all(store.newest_versions()[name] == 2 for name in names)


def test_when_a_learner_is_killed_another_takes_over(store: Store, url: str) -> None:
    script = """
session = Store.open(sys.argv[1]).learner_session(sys.argv[2])
session.publish([LoggedRelease(2, 0, "second")])
print("ready", flush=True); time.sleep(600)
"""
    holder = process(script, url, NAME)
    try:
        assert holder.stdout
        assert holder.stdout.readline() == "ready\n"
        assert store.learner_session(NAME) is None
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    session = learning(store)
    session.publish([LoggedRelease(3, 0, "third")])
    assert store.newest_versions()[NAME] == 3
    session.close()


def test_a_learner_that_lost_its_session_cannot_write(postgres_url: str) -> None:
    store = opened(postgres_url)
    old = learning(store)
    ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
    assert cluster().execute(ended) == [(True,)]
    # Another can take over at once, whatever the old one believes.
    new = store.learner_session(NAME)
    assert new is not None
    for _ in range(3):
        with pytest.raises(StoreError):
            old.publish([LoggedRelease(2, 1, "old")], saved=(1, "old"))
    with pytest.raises(StoreError, match="it was closed or lost"):
        old.read(after=0, limit=1)
    assert (store.newest_versions()[NAME], new.saved()) == (1, None)
    new.publish([LoggedRelease(2, 1, "new")])
    old.close()
    assert store.learner_session(NAME) is None
    new.publish([LoggedRelease(3, 1, "newer")])
    assert [each.text for each in store.releases(NAME)] == ["first", "new", "newer"]
    new.close()
    store.close()


def test_a_text_that_was_changed_by_hand_is_not_believed(store: Store) -> None:
    change(store, "UPDATE release SET text = 'nonsense'")
    with pytest.raises(StoreDamaged, match="must be as it was written"):
        store.releases(NAME)
