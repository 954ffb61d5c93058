"""What is known of one experiment: the page, the JSON answers and the metrics are made from it.

The learner writes a ``Snapshot`` to the database. A worker reads it, and sets beside it what the
worker sees by itself: the newest release and the length of the log (``ExperimentStatus``).
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from sottovoce.estimate.figures import ArmEstimate, BinPeople, Value
from sottovoce.estimate.gain_interval import GainEstimate
from sottovoce.estimate.history import Amended, Certificate, DatedEvent
from sottovoce.estimate.learner import Learner, Status
from sottovoce.estimate.method import CellEstimate
from sottovoce.server.amendments import document_of
from sottovoce.server.diagnosis import DiagnosisSummary
from sottovoce.server.store.log import LoggedAmendment
from sottovoce.shared.amending import restores_of
from sottovoce.shared.errors import StoreDamaged
from sottovoce.shared.experiment import TARGET
from sottovoce.shared.release import Release


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Arms that were dropped in a bin, a bin that was split, an amendment, or a learner begun anew.

    reports: how many the learner had counted by then.
    axis: along which the bin was split; otherwise None.
    anew: whether all bins became one again.
    words: what was amended; otherwise empty.
    """

    reports: int
    path: str
    arms: tuple[int, ...] = ()
    axis: int | None = None
    anew: bool = False
    words: str = ""

    @classmethod
    def of(cls, dated: DatedEvent) -> "Event":
        """Write down what a learner has noted."""
        if isinstance(dated.event, Amended):
            amendment = dated.event.amendment
            return cls(dated.reports, "", words=f"amended by {amendment.by}: {amendment}")
        return cls(dated.reports, **asdict(dated.event))


class Snapshot(msgspec.Struct, frozen=True):
    """What a learner knows and has decided, as of one position of the log.

    An older version of this package may have written it: what it did not write is empty.

    value: of the learner's own release.
    """

    status: Status | None = None
    certificates: tuple[Certificate, ...] = ()
    estimates: tuple[CellEstimate, ...] = ()
    history: tuple[Event, ...] = ()
    bins: tuple[BinPeople, ...] = ()
    arms: tuple[ArmEstimate, ...] = ()
    value: Value | None = None
    diagnosis: DiagnosisSummary | None = None
    gain: GainEstimate | None = None

    @classmethod
    def of(cls, learner: Learner, diagnosis: DiagnosisSummary | None = None) -> "Snapshot":
        """Ask a learner. diagnosis: a recent one, if there is one; else it is worked out."""
        return cls(
            learner.status(),
            learner.certificates(),
            tuple(learner.estimates()),
            tuple(map(Event.of, learner.history())),
            tuple(learner.people()),
            arms := tuple(learner.arms()),
            learner.value(learner.release()) if arms else None,
            diagnosis or DiagnosisSummary.of(learner),
            learner.gain(),
        )

    def to_json(self) -> str:
        """Write it for the database."""
        # The hook gets the numbers of NumPy.
        return json.dumps(msgspec.to_builtins(self, enc_hook=float), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Snapshot":
        """Read what ``to_json`` wrote."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError:
            raise StoreDamaged(
                "a learner's snapshot must be as it was written; it is not"
            ) from None


EMPTY = Snapshot()


@dataclass(frozen=True, slots=True)
class ExperimentStatus:
    """How far one experiment is.

    release: the newest; the snapshot may be of an older one.
    stored: reports in the log. learned: those that the learner has counted.
    amendments: all of them, those that wait for the learner included.
    """

    release: Release
    stored: int
    learned: int = 0
    snapshot: Snapshot = EMPTY
    amendments: tuple[LoggedAmendment, ...] = ()

    @property
    def bins(self) -> int:
        """How many bins the release has."""
        return len(self.release.bins)

    @property
    def restores(self) -> int:
        """How often the server has lost its newest releases, and gone on in a new branch."""
        return len(restores_of(self.release.experiment))

    @property
    def settled_bins(self) -> int:
        """How many of them have one arm left."""
        return self.bins - len(self.release.contested)

    @property
    def counts(self) -> Status:
        """What the learner has counted; nothing before its first snapshot."""
        return self.snapshot.status or Status(0, {}, 0, 0, 0, 0, 0)

    @property
    def people(self) -> int:
        """How many people of the target have reported."""
        return self.counts.reports.get(TARGET, 0)

    @property
    def diagnosis(self) -> DiagnosisSummary:
        """What auxiliary data brings; without sources where there is none, or not yet."""
        return self.snapshot.diagnosis or DiagnosisSummary(self.learned)

    def to_table(self) -> dict[str, Any]:
        """Write the counts, for JSON."""
        experiment, status = self.release.experiment, self.snapshot.status
        return {
            "experiment": experiment.fingerprint,
            "name": experiment.name,
            "state": experiment.state,
            "stored": self.stored,
            "learned": self.learned,
            **(asdict(status) if status else {}),
            "restores": self.restores,
            "retired": [experiment.arms[k] for k in sorted(experiment.retired)],
            "amendments": list(map(entry_of, self.amendments)),
        }


def entry_of(logged: LoggedAmendment) -> dict[str, Any]:
    """Write an amendment with what became of it, for JSON."""
    document = document_of(logged)
    return {
        "number": logged.number,
        "amendment": document.to_table(),
        "words": str(document),
        "position": logged.position,
        "release": logged.version,
    }
