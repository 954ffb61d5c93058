"""What a worker knows: the experiments, their releases, and which reports fit them.

All of it follows from the database. A worker looks there from time to time, and when a report
speaks of something newer than it knows.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sottovoce.estimate.gate import Gate
from sottovoce.server.keys import SigningKey
from sottovoce.server.marks import Mark
from sottovoce.server.store.database import check_published
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.amending import restores_of
from sottovoce.shared.amendment import ARCHIVED
from sottovoce.shared.errors import (
    ExperimentError,
    Refused,
    Rejection,
    StateError,
    StoreBehind,
    StoreDamaged,
    WireError,
    must,
)
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release
from sottovoce.shared.signed import BLOCK, first_link, next_link

logger = logging.getLogger(__name__)


class Chain:
    """The hashes of all releases of an experiment, and the links that follow from them.

    Any thread may read it: it only ever grows.
    """

    def __init__(self, fingerprint: str) -> None:
        self._hashes: list[bytes] = []
        self._links = [first_link(fingerprint)]

    def add(self, text: str) -> None:
        """Add the text of the next release."""
        hashed = wire.release_hash(text)
        self._links.append(next_link(self._links[-1], hashed))
        self._hashes.append(hashed)

    def has(self, version: int, text: str) -> bool:
        """Say whether the release of a version has this text."""
        return self._hashes[version - 1] == wire.release_hash(text)

    def before(self, version: int) -> bytes:
        """Return the link that a release names: that of the version before it."""
        return self._links[version - 1]

    def block(self, number: int) -> list[bytes]:
        """Return the hashes of one block of releases; none where there is no such block."""
        return self._hashes[number * BLOCK : (number + 1) * BLOCK]


@dataclass(frozen=True, slots=True)
class Current:
    """The newest release of an experiment, and the chain up to it.

    signed: the release, ready to be sent.
    """

    release: Release
    signed: bytes
    chain: Chain


@dataclass(frozen=True, slots=True)
class Checked:
    """Reports of one experiment.

    experiment: its fingerprint, empty for reports of no release that is here.
    places: which of the reports that were checked they are.
    refusals: why each cannot be counted, or None.
    """

    experiment: str
    places: Sequence[int]
    refusals: list[Rejection | None]


class Catalogue:
    """The experiments of one database.

    ``current`` may be read from any thread: its entries are replaced, never changed. So may
    ``behind``, an experiment of which the database has lost releases, or nothing. All else belongs
    to the thread that calls ``refresh`` and ``check``.
    """

    def __init__(self, store: Store, key: SigningKey) -> None:
        self.current: dict[str, Current] = {}
        self.behind = self._replaced = ""
        self._store = store
        self._key = key
        self._gates: dict[str, Gate] = {}
        self._chains: dict[str, Chain] = {}
        self._experiment_of: dict[bytes, str] = {}  # by the id of each release
        self._unreadable: set[str] = set()

    def marks(self, progress: Mapping[str, tuple[int, int]]) -> dict[str, Mark]:
        """Return what is published and stored, to be noted. progress: as of ``Store.progress``."""
        found = {}
        for name, current in self.current.items():
            if name in progress:
                restores = restores_of(current.release.experiment)
                branches = tuple(each.branch or "" for each in restores)
                text = wire.release_hash(wire.release_to_json(current.release)).hex()
                version = current.release.version
                found[name] = Mark(version, text, progress[name][0], branches)
        return found

    def newest(self, fingerprint: str) -> int:
        """Return the newest version that is known of an experiment."""
        return self._gates[fingerprint].newest

    def refresh(self) -> None:
        """Look for new experiments and releases; raise StoreBehind if there are fewer than before.

        Then nothing is served: what was published is not in the database any more, and a report for
        it could never be counted.
        """
        newest = self._store.newest_versions()
        self.behind = next(
            (name for name, gate in self._gates.items() if newest.get(name, 0) < gate.newest),
            self._replaced,
        )
        if self._replaced:
            raise StoreBehind("the database must have the releases that it had; it has others")
        if self.behind:
            published = self._gates[self.behind].newest
            check_published(newest.get(self.behind), published=published)
        if newest.keys() - self._gates.keys() - self._unreadable:
            for fingerprint, text in self._store.experiments():
                if fingerprint not in self._gates:
                    with self._others_go_on(fingerprint):
                        self._gates[fingerprint] = Gate(Experiment.from_table(json.loads(text)))
                        self._chains[fingerprint] = Chain(fingerprint)
        for fingerprint, gate in self._gates.items():
            if newest.get(fingerprint, 0) > gate.newest and fingerprint not in self._unreadable:
                with self._others_go_on(fingerprint):
                    self._follow(fingerprint, gate)

    @contextmanager
    def _others_go_on(self, fingerprint: str) -> Iterator[None]:
        """Leave out an experiment that this version cannot read, for example of an older one."""
        try:
            yield
        except (Refused, ExperimentError, StateError, StoreDamaged) as error:
            self._unreadable.add(fingerprint)
            logger.error("experiment %s cannot be served: %s", fingerprint[:16], error)

    def check(self, reports: Sequence[bytes]) -> Iterator[Checked]:
        """Yield the reports of each experiment, with why each cannot be counted, or None.

        A refusal is for good. So before any report is refused for a release that is unknown, the
        database is asked; if it cannot answer, StoreError is raised, and all have to come again.
        """
        ids = [wire.release_of(report) for report in reports]
        different = set(ids)
        if self.behind or not self._experiment_of.keys() >= different:
            self.refresh()
        experiments = {each: self._experiment_of.get(each, "") for each in different}
        for fingerprint in set(experiments.values()):
            at: Sequence[int] = range(len(reports))
            some = reports
            if len(set(experiments.values())) > 1:
                at = [place for place, each in enumerate(ids) if experiments[each] == fingerprint]
                some = [reports[place] for place in at]
            yield Checked(fingerprint, at, self._check(fingerprint, some))

    def _check(self, fingerprint: str, reports: Sequence[bytes]) -> list[Rejection | None]:
        if not fingerprint:
            lost = any(restores_of(each.release.experiment) for each in self.current.values())
            unknown = Rejection.LOST_RELEASE if lost else Rejection.UNKNOWN_RELEASE
            return [_without_gate(report, unknown) for report in reports]
        verdicts = self._gates[fingerprint].check_many(reports)
        if self.current[fingerprint].release.experiment.state == ARCHIVED:
            return self._without_new(fingerprint, reports, verdicts)
        return verdicts

    def _without_new(
        self, fingerprint: str, reports: Sequence[bytes], verdicts: Sequence[Rejection | None]
    ) -> list[Rejection | None]:
        """Refuse the reports that came after the end; who sends an older one again is told so."""
        known = self._store.known(fingerprint, list(map(wire.nonce_of, reports)))
        return [
            verdict or (None if wire.nonce_of(report) in known else Rejection.ARCHIVED)
            for report, verdict in zip(reports, verdicts, strict=True)
        ]

    def _follow(self, fingerprint: str, gate: Gate) -> None:
        release, chain = None, self._chains[fingerprint]
        # The last one that is known, too: a database that has gone back, and then on, has another.
        known = max(gate.newest - 1, 0)
        for logged in self._store.releases(fingerprint, after=known):
            if logged.version <= gate.newest:
                if not chain.has(logged.version, logged.text):
                    self.behind = self._replaced = fingerprint
                    rule = f"have release {logged.version} as it was"
                    raise StoreBehind(must("the database", rule, "another text"))
                continue
            release = wire.release_from_json(logged.text)
            gate.publish(release)
            chain.add(logged.text)
            self._experiment_of[wire.release_id(release)] = fingerprint
        if release is not None:
            before = chain.before(release.version)
            signed = self._key.sign(wire.release_to_json(release), before=before).to_json()
            self.current[fingerprint] = Current(release, signed, chain)


def _without_gate(report: bytes, unknown: Rejection) -> Rejection:
    """Refuse a report for a release that is not here, or bytes that are no report.

    unknown: of a server that was restored, that it may have lost the release: nobody can tell a
        lost release by its hash from one that never was.
    """
    try:
        wire.report_from_bytes(report)
    except WireError as error:
        return error.reason
    return unknown
