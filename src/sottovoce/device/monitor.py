"""A monitor: follows an experiment from outside, keeps every release, and compares.

A device sees one history and cannot know whether others see another. A monitor keeps what it was
shown, as signed documents, one file for each version. Whoever compares two such collections, or a
device's release with a collection, finds out whether the holder of the key has told two histories.
And then holds the proof: two documents with a good signature that cannot both be true.
"""

import os
import secrets
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from sottovoce.device.releases import Releases, Verified
from sottovoce.device.transport import Request, Response, Transport, send
from sottovoce.shared.errors import ForkError, SottovoceError, TransportError, must
from sottovoce.shared.signed import first_link

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an honest server does not do.

    where: the address or the file that showed it. version: of the release, 0 if none is known.
    """

    where: str
    version: int
    what: str


@dataclass(frozen=True, slots=True)
class Look:
    """What one look has found.

    newest: the newest version that is kept. new: how many were kept in this look.
    unreachable: the addresses that gave no answer; that alone proves nothing.
    """

    newest: int
    new: int
    findings: tuple[Finding, ...]
    unreachable: tuple[str, ...]


class Monitor:
    """The releases of one experiment, as one or several addresses show them.

    servers: the address of the server, and others that should show the same: a mirror, a cache, or
        the same server through another network.
    keys: the public keys that may sign.
    folder: where the signed releases are kept; made on the first use.
    """

    def __init__(
        self,
        servers: Sequence[str],
        *,
        experiment: str,
        keys: Sequence[str],
        folder: Path,
        transport: Transport = send,
    ) -> None:
        self._shown = [Releases(each, experiment=experiment, keys=keys) for each in servers]
        self._experiment = experiment
        self._folder = folder
        self._transport = transport
        folder.mkdir(parents=True, exist_ok=True)
        self._links = [first_link(experiment), *self._kept_links()]

    @property
    def newest(self) -> int:
        """The newest version that is kept; 0 before the first look."""
        return len(self._links) - 1

    def look(self, seen: Sequence[Path] = ()) -> Look:
        """Ask every address, keep what is new, and compare it with what is kept.

        seen: what others were shown: signed releases, or folders of other monitors.
        """
        before = self.newest
        findings: list[Finding] = []
        unreachable: list[str] = []
        for shown in self._shown:
            try:
                self._follow(shown)
                self._look_again(shown)
            except TransportError:
                unreachable.append(shown.server)
            except SottovoceError as error:
                findings.append(Finding(shown.server, self.newest + 1, str(error)))
        if len(unreachable) < len(self._shown):
            findings += [found for path in seen for found in self._compare(path)]
        return Look(self.newest, self.newest - before, tuple(findings), tuple(unreachable))

    def _follow(self, shown: Releases) -> None:
        """Keep every version up to the newest that an address shows."""
        current = self._run(shown.current())
        for version in range(self.newest + 1, current.release.version + 1):
            found = self._run(shown.version(version))
            if found.signed.before != self._links[-1]:
                raise ForkError(
                    f"release {version} must continue release {version - 1}; it names another"
                    " history: the chain is broken"
                )
            _write(self._path(version), found.document)
            self._links.append(found.signed.link)
        self._check(current)

    def _look_again(self, shown: Releases) -> None:
        """Ask again for a version that is kept, any one, to see whether it is still the same."""
        if self.newest:
            self._check(self._run(shown.version(1 + secrets.randbelow(self.newest))))

    def _check(self, found: Verified) -> None:
        version = found.release.version
        if version <= self.newest and found.signed.link != self._links[version]:
            raise ForkError(
                f"there must be one release {version}; there are two, with different texts or"
                f" different histories, both with a good signature: compare {self._path(version)}"
            )

    def _compare(self, path: Path) -> Iterator[Finding]:
        """Compare with what somebody else was shown."""
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not files:
            yield Finding(str(path), 0, "there must be signed releases here; there are none")
        for file in files:
            version = 0
            try:
                found = self._shown[0].verify(file.read_bytes())
                version = found.release.version
                self._check(found)
                if version > self.newest:
                    rule = f"be one of the {self.newest} that the server shows"
                    raise ForkError(must("a release that somebody has", rule, f"version {version}"))
            except (OSError, SottovoceError) as error:
                yield Finding(str(file), version, str(error))

    def _path(self, version: int) -> Path:
        return self._folder / f"{version:010d}.json"

    def _kept_links(self) -> list[bytes]:
        """Verify what is kept: every document, and that each continues the one before."""
        links: list[bytes] = []
        link = first_link(self._experiment)
        while (path := self._path(len(links) + 1)).exists():
            found = self._shown[0].verify(path.read_bytes())
            if found.release.version != len(links) + 1 or found.signed.before != link:
                raise ForkError(f"{path} must continue the release before it; it does not")
            link = found.signed.link
            links.append(link)
        return links

    def _run(self, steps: Generator[Request, Response | None, Result]) -> Result:
        response: Response | None = None
        while True:
            try:
                request = steps.send(response)
            except StopIteration as stop:
                return cast(Result, stop.value)
            try:
                response = self._transport(request)
            except (TransportError, OSError):
                response = None


def _write(path: Path, document: bytes) -> None:
    """Write a file as a whole or not at all, and never over another one."""
    half = path.with_suffix(".part")
    with half.open("wb") as file:
        file.write(document)
        file.flush()
        os.fsync(file.fileno())
    half.rename(path)
