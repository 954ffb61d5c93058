"""Whether a server can do all that it is there for, and what is wrong if not.

The learner of this machine touches a file while it works, and writes into it which experiments it
cannot learn. The watcher replaces a learner that does not; workers tell of it.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Seconds after which a learner that shows no sign of life is taken to hang, and is replaced.
HANGS_AFTER = 120.0
# Seconds after which a server says that its learner gives no sign, or does not get on.
SILENT_AFTER, LAGS_AFTER = 30.0, 60.0
# Seconds between two signs of life.
BEAT_EVERY = 1.0

NAME = "learner.json"


class Pulse:
    """The learner's signs of life. folder: of this run; None where nobody looks."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / NAME
        self._beaten = -BEAT_EVERY
        self._failed: dict[str, str] = {}

    def beat(self) -> None:
        """Give a sign of life, unless there was one a moment ago."""
        if time.monotonic() - self._beaten >= BEAT_EVERY:
            self._write()

    def failed(self, failed: Mapping[str, str]) -> None:
        """Say which experiments cannot be learned, and why."""
        if failed != self._failed:
            self._failed = dict(failed)
            self._write()

    def _write(self) -> None:
        self._beaten = time.monotonic()
        if self._path is not None:
            half = self._path.with_suffix(".part")
            half.write_text(json.dumps(self._failed), encoding="utf-8")
            half.replace(self._path)


def silence(folder: Path) -> float:
    """Return the seconds since the learner's last sign of life; 0 if it was never asked for any."""
    try:
        return max(0.0, time.time() - (folder / NAME).stat().st_mtime)
    except OSError:
        return 0.0


def frozen(folder: Path) -> dict[str, str]:
    """Return the experiments that the learner of this machine cannot learn, with why."""
    try:
        found: dict[str, str] = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


@dataclass(slots=True)
class Progress:
    """How far the learner is with one experiment, and since when it has been there."""

    learned: int
    since: float


@dataclass(slots=True)
class Health:
    """What one worker knows of how the server is.

    folder: where the learner gives its signs; None where it does not.
    is_full: whether the last commit found no room on the disk.
    """

    folder: Path | None = None
    is_full: bool = False
    _progress: dict[str, Progress] = field(default_factory=dict)
    _lagging: frozenset[str] = frozenset()

    def look(self, progress: Mapping[str, tuple[int, int]]) -> None:
        """Take note of how far experiments are: how many reports are stored, and learned."""
        now, lagging = time.monotonic(), set()
        for name, (stored, learned) in progress.items():
            before = self._progress.get(name)
            if before is None or before.learned != learned or learned >= stored:
                self._progress[name] = Progress(learned, now)
            elif now - before.since > LAGS_AFTER:
                lagging.add(name)
        self._lagging = frozenset(lagging)

    @property
    def frozen(self) -> dict[str, str]:
        """The experiments that cannot be learned, with why."""
        return {} if self.folder is None else frozen(self.folder)

    def troubles(self) -> dict[str, str]:
        """Return what is wrong, by its kind; nothing if all is well."""
        found: dict[str, str] = {}
        for name, why in self.frozen.items():
            found["frozen"] = f"experiment {name[:16]} cannot be learned: {why}"
        for name in sorted(self._lagging - self.frozen.keys()):
            found["lagging"] = f"experiment {name[:16]} has had no learner for a while"
        if self.folder is not None and silence(self.folder) > SILENT_AFTER:
            found["hung"] = "the learner gives no sign of life"
        if self.is_full:
            found["full"] = "the disk of the database is full"
        return found
