"""A store with one experiment to which people come, and whose learner learns."""

import random

import sottovoce as sv
from sottovoce.server.learning import LearnerPool
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.release import Release
from sottovoce.shared.wire import nonce_of
from support.senders import report_of, walking

NAME = walking().fingerprint


def opened(url: str) -> Store:
    store = Store.open(url)
    store.migrate()
    first = wire.release_to_json(sv.Learner(walking()).release())
    store.add_experiment(NAME, canonical_json(walking().to_table()).decode(), first)
    return store


def newest(store: Store) -> Release:
    return wire.release_from_json(store.releases(NAME)[-1].text)


def come(store: Store, reports: int, *, seed: int) -> list[bytes]:
    """People come, and the learner learns: each report is for the newest release."""
    rng, sent = random.Random(seed), []
    pool = LearnerPool(store)
    for _ in range(reports // 100):
        pool.poll()
        some = [report_of(newest(store), rng) for _ in range(100)]
        store.append(NAME, [(nonce_of(each), each) for each in some])
        sent += some
    while pool.poll():
        pass
    pool.close()
    return sent
