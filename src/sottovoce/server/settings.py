"""What a server is told when it starts; each worker and the learner get the same."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sottovoce.shared.experiment import Experiment

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of one server.

    database: ``sqlite:///…`` or ``postgresql://…``
    key: the PEM file with the signing key.
    token: what an administrator has to show.
    experiments: those that begin when the server does.
    new_key: whether the key may be another one than has signed so far.
    folder: of this run, where the learner gives signs of life; None where nobody looks.
    answer_within: seconds after which a request is told to come later, if the database does not
        answer; the time that a body takes to arrive does not count.
    keep_reports: for how long reports are kept, in whole days; None to keep all.
    most_waiting: how many bytes of reports may wait for the database before others have to come
        later.
    most_bytes: the largest body.
    most_reports: the largest batch.
    patience: seconds within which a request has to arrive in full.
    measured: also answer POST /nothing, which reads a body and does nothing, to compare with.
    """

    database: str
    key: Path
    token: str
    experiments: tuple[Experiment, ...] = ()
    new_key: bool = False
    folder: Path | None = None
    answer_within: float = 8.0
    keep_reports: timedelta | None = None
    most_waiting: int = 32 * MEBIBYTE
    most_bytes: int = 8 * MEBIBYTE
    most_reports: int = 10_000
    patience: float = 30.0
    measured: bool = False
