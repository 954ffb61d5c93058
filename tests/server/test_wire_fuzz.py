"""Rubbish on the wire: whatever comes is read or refused, and only whole reports are stored.

Everything is drawn from a seed. Inputs are random bytes, and real reports, batches and releases
with something changed: bits, bytes, fields, lengths, parts of others, keys and values of JSON.
"""

import asyncio
import json
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import experiment, whispering
from sottovoce.estimate.gate import Gate
from sottovoce.server.catalogue import Catalogue
from sottovoce.server.ingest import Ingest
from sottovoce.server.keys import SigningKey
from sottovoce.server.store.store import LoggedRelease, Store
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from support.histories import World
from support.spoiled import spoil, verdict
from support.whispers import person, send

AT_ONCE = 2_000
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 255, 256, 65_536, 2**32, 2**64, 10**400, 0.0, -0.0, 1.5, 1e308,
    float("nan"), float("inf"), "", "0", "00", "zz", "0" * 16, "0" * 32, "\ud800", "\0", "é" * 16,
    [], [0], [[]], [1e9] * 6, [0.5, None], [2**63], list(range(256)), {}, {"a": 1}, {"name": []},
    {"set": ""}, [{}],
]  # fmt: skip
KEYS = ["sottovoce", "kind", "experiment", "release", "population", "nonce", "question", "ranking"]
KEYS += ["set", "payload", "reward", "context", "arm", ""]


@dataclass(frozen=True)
class Study:
    """An experiment that has come some way, with reports that fit its releases.

    saved: the learner as it is then.
    """

    saved: str
    releases: list[sv.Release]
    reports: list[bytes]

    @property
    def experiment(self) -> sv.Experiment:
        return self.releases[0].experiment


def whispered(rng: random.Random, **settings: Any) -> Study:
    learner = sv.Learner(whispering(**settings))
    releases = send(learner, rng, 400)
    people = []
    for _ in range(300):
        population = rng.randrange(3)
        release, logged = rng.choice(releases), population > 0 and rng.random() < 0.5
        people.append(person(rng, release, population=population, logged=logged))
    return Study(learner.to_json(), releases, [wire.report_to_bytes(each) for each in people])


def numbered(rng: random.Random) -> Study:
    method, auxiliary = sv.Ldpmab("paper", c=0.1), [sv.Population("clinic-b", 16.0, 100)]
    settings = experiment(
        epsilon=64.0, horizon=300, release_every=20, method=method, auxiliary=auxiliary
    )
    dice = np.random.default_rng(rng.randrange(2**32))
    world, learner = World(settings, dice.beta(0.3, 0.3, (4, 3))), sv.Learner(settings)
    releases = [learner.release()]
    for _ in range(300):
        learner.receive(world.message(dice, learner.release(), rng.randrange(2)).report)
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
    people = [
        world.message(dice, rng.choice(releases), rng.randrange(2)).report for _ in range(300)
    ]
    return Study(learner.to_json(), releases, [wire.report_to_bytes(each) for each in people])


@pytest.fixture(scope="module")
def studies() -> list[Study]:
    rng = random.Random(11)
    return [whispered(rng), whispered(rng, public_arms=True, epsilon=2.0), numbered(rng)]


# Mutations.


def flip(rng: random.Random, data: bytes, _: bytes) -> bytes:
    changed = bytearray(data)
    for _n in range(rng.choice([1, 1, 2, 8])):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(rng: random.Random, data: bytes, _: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def extend(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data + rng.choice([rng.randbytes(rng.randrange(1, 20)), other, data, b"\0"])


def splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """The beginning of one and the end of another, perhaps each at its own place."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[rng.choice([at, rng.randrange(len(other) + 1)]) :]


def drop_or_double(rng: random.Random, data: bytes, _: bytes) -> bytes:
    begin, end = sorted(rng.randrange(len(data) + 1) for _n in range(2))
    return data[:begin] + rng.choice([b"", data[begin:end] * 2]) + data[end:]


def put(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """A number of one, two, four or eight bytes somewhere in the first forty."""
    form = rng.choice(["<B", "<H", "<I", "<Q"])
    size = struct.calcsize(form)
    number = rng.choice([0, 1, 2, 3, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), rng.randrange(256)])
    at = rng.randrange(40)
    return data[:at] + struct.pack(form, number) + data[at + size :]


def rename(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """The same report of somebody else: it is as good as it was."""
    return data[:18] + rng.randbytes(16) + data[34:]


def head_of_another(rng: random.Random, data: bytes, other: bytes) -> bytes:
    at = rng.choice([4, 12, 16, 18, 34, 36, 37])
    return other[:at] + data[at:]


MUTATIONS: list[Callable[[random.Random, bytes, bytes], bytes]] = [
    flip, cut, extend, splice, drop_or_double, put, rename, head_of_another,
]  # fmt: skip


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        data = rng.choice(MUTATIONS)(rng, data, other)
    return data


def mutated_json(rng: random.Random, text: str, other: str) -> bytes:
    if rng.random() < 0.4:
        return mutated(rng, text.encode(), other.encode())
    table = json.loads(text)
    for _ in range(rng.choice([0, 1, 1, 2])):
        key = rng.choice([*KEYS, *table])
        way = rng.randrange(4)
        if way == 0:
            table.pop(key, None)
        elif way == 1:
            table[key] = json.loads(other).get(key)
        else:
            table[key] = rng.choice(ODD)
    changed = json.dumps(table)
    if rng.random() < 0.1:  # a key twice
        changed = changed[:-1] + f', "{rng.choice(KEYS)}": {json.dumps(rng.choice(ODD))}}}'
    return changed.encode()


def release_table(rng: random.Random, release: sv.Release) -> bytes:
    """A release in JSON with values put somewhere within it."""
    table = json.loads(wire.release_to_json(release))
    for _ in range(rng.choice([1, 1, 2])):
        inside: Any = table
        while True:
            keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            if not keys:
                break
            key = rng.choice(keys)
            if not isinstance(inside[key], dict | list) or rng.random() < 0.3:
                inside[key] = deepcopy(rng.choice(ODD))
                break
            inside = inside[key]
    return json.dumps(table).encode()


class Fuzzer:
    """Makes inputs, hands each to whoever reads it, and keeps those that are to be stored."""

    def __init__(self, studies: Sequence[Study], *, seed: int) -> None:
        self._rng = random.Random(seed)
        self._studies = studies
        self._pool = [report for study in studies for report in study.reports]
        self._releases = [release for study in studies for release in study.releases]
        self._texts = [wire.release_to_json(release).encode() for release in self._releases]
        self.refused: Counter[str] = Counter()

    def reports(self, count: int) -> Iterator[bytes]:
        """Compact reports from so many inputs: one from most, several from a batch, or none."""
        for _ in range(count):
            yield from self._next()

    def _next(self) -> Sequence[bytes]:
        rng = self._rng
        one, other = rng.choice(self._pool), rng.choice(self._pool)
        way = rng.random()
        if way < 0.55:
            return [mutated(rng, one, other)]
        if way < 0.65:
            return [spoil(rng, one)]
        if way < 0.72:
            return [
                rng.choice([b"", b"sv\x05\x01", b"sv\x05\x03"]) + rng.randbytes(rng.randrange(99))
            ]
        if way < 0.90:
            return self._from_json(one, other)
        if way < 0.96:
            return self._from_batch()
        self._release()
        return []

    def _from_json(self, one: bytes, other: bytes) -> list[bytes]:
        texts = [wire.report_to_json(wire.report_from_bytes(each)) for each in (one, other)]
        report = self._read(wire.report_from_json, mutated_json(self._rng, *texts))
        return [] if report is None else [wire.report_to_bytes(report)]

    def _from_batch(self) -> list[bytes]:
        rng = self._rng
        some = [rng.choice(self._pool) for _ in range(rng.randrange(5))]
        batch = wire.batch_to_bytes([rename(rng, each, b"") for each in some])
        changed = rng.choice(
            [mutated(rng, batch, rng.choice(self._pool)), batch, rng.randbytes(50)]
        )
        return self._read(wire.batch_from_bytes, changed) or []

    def _release(self) -> None:
        rng = self._rng
        if rng.random() < 0.5:
            one, other = rng.choice(self._texts), rng.choice(self._texts)
            text = mutated(rng, one, other)
        else:
            text = release_table(rng, rng.choice(self._releases[:6]))
        read = self._read(lambda data: wire.release_from_json(data.decode("latin-1")), text)
        assert read is None or wire.release_to_json(read).encode() == text

    def _read(self, read: Callable[[bytes], Any], data: bytes) -> Any:
        """Read, or refuse with a WireError; any other error ends the test."""
        try:
            return read(data)
        except sv.WireError as error:
            self.refused[error.reason.value] += 1
            return None


# The test.


def set_up(store: Store, studies: Sequence[Study]) -> None:
    store.migrate()
    for study in studies:
        name = study.experiment.fingerprint
        texts = [wire.release_to_json(release) for release in study.releases]
        store.add_experiment(name, canonical_json(study.experiment.to_table()).decode(), texts[0])
        session = store.learner_session(name)
        assert session is not None
        session.publish([LoggedRelease(n, 0, text) for n, text in enumerate(texts[1:], 2)])
        session.close()


def gates_of(studies: Sequence[Study]) -> list[Gate]:
    gates = []
    for study in studies:
        gates.append(Gate(study.experiment))
        for release in study.releases:
            gates[-1].publish(release)
    return gates


async def feed(
    store: Store, key: SigningKey, fuzzer: Fuzzer, *, inputs: int, studies: Sequence[Study]
) -> tuple[Counter[str], dict[bytes, None]]:
    """Put all that is read through the way in; return what became of it, and all that was sent."""
    catalogue = Catalogue(store, key)
    ingest = Ingest(store, catalogue, most_waiting=2**30)
    await ingest.refresh()
    running = asyncio.create_task(ingest.run())
    outcomes: Counter[str] = Counter()
    refused: dict[bytes, None] = {}
    gates = gates_of(studies)
    try:
        for turn in range(inputs // AT_ONCE):
            reports = list(fuzzer.reports(AT_ONCE))
            verdicts = gates[turn % len(gates)].check_many(reports)
            assert len(verdicts) == len(reports)
            receipt = await ingest.put(reports)
            outcomes.update({"stored": receipt.stored, "repeated": receipt.repeated})
            outcomes.update(each.reason.value for each in receipt.refused)
            assert receipt.stored + receipt.repeated + len(receipt.refused) == len(reports)
            refused.update((reports[each.index], None) for each in receipt.refused)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        ingest.close()
    return outcomes, refused


def fuzz(tmp_path: Path, studies: Sequence[Study], *, inputs: int, seed: int) -> Counter[str]:
    store = Store.open(f"sqlite:///{tmp_path}/store.db")
    set_up(store, studies)
    fuzzer = Fuzzer(studies, seed=seed)
    key = SigningKey.create(tmp_path / "key.pem")
    with closing(store):
        outcomes, refused = asyncio.run(feed(store, key, fuzzer, inputs=inputs, studies=studies))
        stored = {
            study.experiment.fingerprint: store.read(
                study.experiment.fingerprint, after=0, limit=inputs
            )
            for study in studies
        }
    assert sum(map(len, stored.values())) == outcomes["stored"]
    for study in studies:
        is_whole(study, stored[study.experiment.fingerprint])
    is_rightly_refused(studies, list(refused)[:50_000])
    return outcomes + fuzzer.refused


def is_whole(study: Study, stored: list[bytes]) -> None:
    """Each was counted by a learner of its own experiment, one by one, and is no other bytes."""
    learner = sv.Learner.from_json(study.saved)
    nonces, ids = set(), {wire.release_id(release) for release in study.releases}
    for data in stored:
        report = wire.report_from_bytes(data)
        learner.receive(report)  # or raise
        assert wire.report_to_bytes(report) == data
        assert report.release in ids
        nonces.add(report.nonce)
    assert len(nonces) == len(stored) > 0


def is_rightly_refused(studies: Sequence[Study], refused: list[bytes]) -> None:
    """A learner would not have counted it either."""
    learners = [(study, sv.Learner.from_json(study.saved)) for study in studies]
    by_release = {
        wire.release_id(release): learner
        for study, learner in learners
        for release in study.releases
    }
    for data in refused:
        learner = by_release.get(wire.release_of(data))
        if learner is not None:
            assert verdict(learner.receive, data) is not None, data.hex()


def test_rubbish_is_refused_and_the_rest_is_whole(tmp_path: Path, studies: list[Study]) -> None:
    outcomes = fuzz(tmp_path, studies, inputs=40_000, seed=1)
    # No experiment is archived here, and no server was restored.
    reasons = set(sv.Rejection) - {sv.Rejection.ARCHIVED, sv.Rejection.LOST_RELEASE}
    assert {reason.value for reason in reasons} <= outcomes.keys()
    assert min(outcomes["stored"], outcomes["repeated"]) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_million_inputs(tmp_path: Path, studies: list[Study], seed: int) -> None:
    outcomes = fuzz(tmp_path, studies, inputs=100_000, seed=100 + seed)
    print(dict(outcomes))
    assert min(outcomes["stored"], outcomes["repeated"]) > 100
