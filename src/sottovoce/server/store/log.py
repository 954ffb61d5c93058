"""The queries that both databases understand. Texts that may be large are packed with zlib."""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sqlalchemy import Connection, CursorResult, text

from sottovoce.server.store.chained import (
    Chained,
    first_hash,
    hash_after,
    hash_at,
    nothing_chained,
)
from sottovoce.shared.errors import StoreDamaged, StoreError, must

# The tables that hold the newest text of each experiment only: the saved learner, the snapshot,
# and the learner at the end of the last fold.
LatestText = Literal["saved", "standing", "checkpoint"]


@dataclass(frozen=True, slots=True)
class LoggedRelease:
    """One published release.

    position: how many reports of the log it follows from. text: the release in canonical JSON.
    """

    version: int
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class LoggedAmendment:
    """One amendment of an experiment.

    text: the document in canonical JSON.
    position, version: how many reports the learner had counted when it took the amendment, and the
        release that carries it first; None while it waits for the learner.
    """

    number: int
    text: str
    position: int | None = None
    version: int | None = None

    @property
    def waits(self) -> bool:
        """Whether no learner has taken it yet."""
        return self.position is None


@dataclass(frozen=True, slots=True)
class Story:
    """What the learner has made of the reports up to a position."""

    releases: tuple[LoggedRelease, ...]
    amendments: tuple[LoggedAmendment, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Reports that were folded into the learner's sums.

    position: of the last of them; the first one follows the fold before.
    reports, learner: hashes of their bodies, and of the learner after them, which is kept.
    hash: of this fold and all before (``retention.py``).
    erased: up to which position the bodies are gone.
    """

    number: int
    position: int
    reports: str
    learner: str
    hash: str
    erased: int


@dataclass(frozen=True, slots=True)
class ExperimentLog:
    """The log of one experiment and what was made of it, on a connection in a transaction.

    experiment: its number.
    """

    connection: Connection
    experiment: int

    @classmethod
    def of(cls, connection: Connection, fingerprint: str) -> "ExperimentLog":
        """Look for the experiment with a fingerprint."""
        query = text("SELECT id FROM experiment WHERE fingerprint = :fingerprint")
        number = connection.execute(query, {"fingerprint": fingerprint}).scalar()
        return cls(connection, must_exist(number, fingerprint))

    def length(self) -> int:
        """Return the last position of the log."""
        query = "SELECT max(position) FROM report WHERE experiment = :experiment"
        return self._execute(query).scalar() or 0

    def chained(self, fingerprint: str) -> Chained:
        """Return the hash of the log; that of an empty one, if there is none yet."""
        query = "SELECT begins, before, position, hash FROM chained WHERE experiment = :experiment"
        row = self._execute(query).one_or_none()
        return nothing_chained(fingerprint) if row is None else Chained(*row)

    def put_chained(self, chained: Chained) -> None:
        """Write the hash of the log."""
        query = "INSERT INTO chained (experiment, begins, before, position, hash)"
        query += " VALUES (:experiment, :begins, :before, :position, :hash)"
        query += " ON CONFLICT (experiment) DO UPDATE SET begins = excluded.begins,"
        query += " before = excluded.before, position = excluded.position, hash = excluded.hash"
        self._execute(query, **asdict(chained))

    def extend_chain(self, fingerprint: str, *, after: int, bodies: Sequence[bytes]) -> None:
        """Chain reports that follow a position, which has to be where the log ended until now."""
        known = self.chained(fingerprint)
        now = hash_at(known, after, read=lambda at, most: self.read(after=at, limit=most))
        end = after + len(bodies)
        self.put_chained(replace(known, position=end, hash=hash_after(now, bodies)))

    def catch_up_chain(self, fingerprint: str) -> None:
        """Chain a log of before there were chains; what was erased is stood for by its folds."""
        query = "SELECT count(*) FROM chained WHERE experiment = :experiment"
        if self._execute(query).scalar():
            return
        for fold in self.folds()[-1:]:
            before = hash_after(first_hash(fingerprint), [bytes.fromhex(fold.hash)])
            self.put_chained(Chained(fold.position, before, fold.position, before))
        self.extend_chain(fingerprint, after=self.length(), bodies=())

    def strangers(self) -> int:
        """Return how many rows of the log have a nonce that is not their report's."""
        # A report's nonce is 16 bytes after the first 18.
        query = "SELECT count(*) FROM report WHERE experiment = :experiment"
        query += " AND length(body) > 0 AND nonce <> substr(body, 19, 16)"
        return int(self._execute(query).scalar() or 0)

    def read(self, *, after: int, limit: int) -> list[bytes]:
        """Return the bodies at the positions after + 1, after + 2, … in order."""
        query = "SELECT body FROM report WHERE experiment = :experiment AND position > :after"
        query += " ORDER BY position LIMIT :limit"
        return list(self._execute(query, after=after, limit=limit).scalars())

    def releases_until(self, position: int, *, after: int) -> list[LoggedRelease]:
        """Return the releases of later versions that follow from the log up to a position."""
        query = "SELECT max(version) FROM release WHERE experiment = :experiment"
        query += " AND position <= :position"
        last = self._execute(query, position=position).scalar() or 0
        return self.releases(after=after, until=last)

    def newest(self) -> int:
        """Return the newest version."""
        query = "SELECT max(version) FROM release WHERE experiment = :experiment"
        return self._execute(query).scalar() or 0

    def releases(self, *, after: int, until: int | None = None) -> list[LoggedRelease]:
        """Return the releases of the versions after + 1, …, until; by default, the newest."""
        query = "SELECT version, position, text FROM release WHERE experiment = :experiment"
        query += " AND version > :after" + ("" if until is None else " AND version <= :until")
        rows = self._execute(query + " ORDER BY version", after=after, until=until)
        return [LoggedRelease(version, at, _unpack(packed)) for version, at, packed in rows]

    def add_release(self, release: LoggedRelease) -> None:
        """Write the next release; it has to follow the newest."""
        after = self.newest()
        if release.version != after + 1:
            raise StoreError(must("the version of a release", f"be {after + 1}", release.version))
        query = "INSERT INTO release (experiment, version, position, text)"
        query += " VALUES (:experiment, :version, :position, :text)"
        self._execute(query, **asdict(release) | {"text": _pack(release.text)})

    def amendments(self, *, after: int = 0) -> list[LoggedAmendment]:
        """Return the amendments of higher numbers, in order."""
        query = "SELECT number, text, position, version FROM amendment"
        query += " WHERE experiment = :experiment AND number > :after ORDER BY number"
        return [LoggedAmendment(*row) for row in self._execute(query, after=after)]

    def add_amendment(self, number: int, document: str) -> bool:
        """Write an amendment that waits for the learner; return False if the number is taken."""
        query = "INSERT INTO amendment (experiment, number, text)"
        query += " VALUES (:experiment, :number, :document)"
        query += " ON CONFLICT (experiment, number) DO NOTHING"
        return self._execute(query, number=number, document=document).rowcount == 1

    def note_amendment(self, amendment: LoggedAmendment) -> None:
        """Write where the learner took an amendment, which has to wait until then."""
        query = "UPDATE amendment SET position = :position, version = :version"
        query += " WHERE experiment = :experiment AND number = :number AND text = :text"
        query += " AND position IS NULL"
        if self._execute(query, **asdict(amendment)).rowcount != 1:
            raise StoreDamaged(
                must("an amendment", "wait as it was read until it is taken", "another")
            )

    def drop_waiting(self) -> None:
        """Forget the amendments that wait."""
        query = "DELETE FROM amendment WHERE experiment = :experiment AND position IS NULL"
        self._execute(query)

    def story(self, *, until: int) -> "Story":
        """Return the releases up to a position, and the amendments that are in them."""
        releases = self.releases_until(until, after=0)
        last = releases[-1].version if releases else 0
        taken = [each for each in self.amendments() if (each.version or last + 1) <= last]
        return Story(tuple(releases), tuple(taken))

    def catch_up(self, story: "Story") -> None:
        """Add what is new in a story, and the places of amendments that still wait here."""
        newest = self.newest()
        for release in story.releases:
            if release.version > newest:
                self.add_release(release)
        taken = {each.number for each in self.amendments() if not each.waits}
        for amendment in story.amendments:
            if amendment.number not in taken:
                self.add_amendment(amendment.number, amendment.text)
                self.note_amendment(amendment)

    def latest(self, table: LatestText) -> tuple[int, str] | None:
        """Return the newest text of a kind, and the position of the log that it follows from."""
        # A table's name cannot be a parameter; LatestText has those that there are.
        query = f"SELECT position, text FROM {table} WHERE experiment = :experiment"  # noqa: S608
        row = self._execute(query).one_or_none()
        return None if row is None else (row[0], _unpack(row[1]))

    def replace_latest(self, table: LatestText, position: int, new: str) -> None:
        """Put a text in the place of the one before."""
        query = (
            f"INSERT INTO {table} (experiment, position, text)"  # noqa: S608  as in ``latest``
            " VALUES (:experiment, :position, :text) ON CONFLICT (experiment)"
            " DO UPDATE SET position = excluded.position, text = excluded.text"
        )
        self._execute(query, position=position, text=_pack(new))

    def note_day(self, day: str) -> None:
        """Note how long the log is on a day, unless it was as long on an earlier one."""
        query = "SELECT max(position) FROM arrival WHERE experiment = :experiment"
        noted, length = self._execute(query).scalar() or 0, self.length()
        if length > noted:
            query = "INSERT INTO arrival (experiment, day, position)"
            query += " VALUES (:experiment, :day, :position) ON CONFLICT DO NOTHING"
            self._execute(query, day=day, position=length)

    def arrived_by(self, day: str) -> int:
        """Return the last position that was there on a day, as far as anybody knows."""
        query = "SELECT max(position) FROM arrival WHERE experiment = :experiment AND day <= :day"
        return self._execute(query, day=day).scalar() or 0

    def folds(self) -> list[Fold]:
        """Return all folds, in order."""
        query = "SELECT number, position, reports, learner, hash, erased FROM fold"
        rows = self._execute(query + " WHERE experiment = :experiment ORDER BY number")
        return [Fold(*row) for row in rows]

    def add_fold(self, fold: Fold, learner: str, *, chained: str) -> None:
        """Write a fold with the learner at its end; when its reports came is forgotten.

        chained: the hash of the log up to there.
        """
        query = "UPDATE chained SET begins = :position, before = :chained"
        query += " WHERE experiment = :experiment"
        self._execute(query, position=fold.position, chained=chained)
        query = "INSERT INTO fold (experiment, number, position, reports, learner, hash, erased)"
        query += " VALUES (:experiment, :number, :position, :reports, :learner, :hash, :erased)"
        self._execute(query, **asdict(fold))
        self.replace_latest("checkpoint", fold.position, learner)
        query = "DELETE FROM arrival WHERE experiment = :experiment AND position <= :position"
        self._execute(query, position=fold.position)

    def erase(self, fold: Fold, *, until: int) -> None:
        """Empty the bodies of a fold up to a position. Nonces stay: no report is counted twice."""
        query = "UPDATE report SET body = :nothing WHERE experiment = :experiment"
        query += " AND position > :erased AND position <= :until"
        self._execute(query, nothing=b"", erased=fold.erased, until=until)
        query = "UPDATE fold SET erased = :until WHERE experiment = :experiment"
        self._execute(query + " AND number = :number", until=until, number=fold.number)

    def _execute(self, query: str, **values: Any) -> "CursorResult[*tuple[Any, ...]]":
        return self.connection.execute(text(query), {"experiment": self.experiment, **values})


def must_exist(number: int | None, fingerprint: str) -> int:
    """Return the number of an experiment, if there is one."""
    if number is None:
        raise StoreError(must("an experiment", "be in the database", repr(fingerprint)))
    return number


def _pack(text: str) -> bytes:
    return zlib.compress(text.encode())


def _unpack(packed: bytes) -> str:
    try:
        return zlib.decompress(packed).decode()
    except (zlib.error, UnicodeDecodeError, TypeError):
        raise StoreDamaged("a text in the database must be as it was written; it is not") from None
