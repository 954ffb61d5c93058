"""A monitor: follows an experiment from outside, keeps every release, and compares.

A device sees one history and cannot know whether others see another. A monitor keeps what it was
shown, as signed documents, one file for each version. Whoever compares two such collections, or a
device's release with a collection, finds out whether the holder of the key has told two histories.
And then holds the proof: two documents with a good signature that cannot both be true.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sottovoce.device.releases import Releases, Verified
from sottovoce.device.transport import Request, Response, Result, Steps, Transport, run, send
from sottovoce.shared.errors import ForkError, SottovoceError, TransportError, must
from sottovoce.shared.signed import first_link


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
            found = self._run(self._version(shown, version))
            if found.signed.before != self._links[-1]:
                raise ForkError(
                    f"release {version} must continue release {version - 1}; it names another"
                    f" history: see {self._keep_beside(found)}"
                )
            self._keep(found)
            self._links.append(found.signed.link)
        self._check(current)

    def _version(self, shown: Releases, version: int) -> Steps[Verified]:
        """Ask for a version that there must be, because a newer one is shown."""
        try:
            return (yield from shown.version(version))
        except TransportError:
            if shown.answer is not None and shown.answer.status == 404:
                trouble = f"release {version} must be shown, for a newer one is; it is withheld"
                raise ForkError(trouble) from None
            raise

    def _look_again(self, shown: Releases) -> None:
        """Ask again for a version that is kept, any one, to see whether it is still the same."""
        if self.newest:
            version = 1 + secrets.randbelow(self.newest)
            self._check(self._run(self._version(shown, version)))

    def _check(self, found: Verified) -> None:
        version = found.release.version
        if version <= self.newest and found.signed.link != self._links[version]:
            raise ForkError(
                f"there must be one release {version}; there are two, with different texts or"
                " different histories, both with a good signature: compare"
                f" {self._path(version)} and {self._keep_beside(found)}"
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

    def _keep(self, found: Verified) -> None:
        """Keep a release under its version; another one that is there already is a finding."""
        path = self._path(found.release.version)
        if not _write(path, found.document):
            other = self._shown[0].verify(path.read_bytes())
            if other.signed.link != found.signed.link:
                raise ForkError(
                    f"there must be one release {found.release.version}; another monitor has kept"
                    f" another one here: compare {path} and {self._keep_beside(found)}"
                )

    def _keep_beside(self, found: Verified) -> Path:
        """Keep a release that must not be, as evidence."""
        name = f"{found.release.version:010d}-{found.signed.link.hex()[:16]}.json"
        _write(self._folder / name, found.document)
        return self._folder / name

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

    def _run(self, steps: Steps[Result]) -> Result:
        return run(steps, self._answer)

    def _answer(self, request: Request) -> Response | None:
        try:
            return self._transport(request)
        except (TransportError, OSError):
            return None


def _write(path: Path, document: bytes) -> bool:
    """Write a new file as a whole or not at all; return False if there is one already."""
    half = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    with half.open("wb") as file:
        file.write(document)
        file.flush()
        os.fsync(file.fileno())
    try:
        # A link, unlike a rename, never takes the place of another file.
        os.link(half, path)
    except FileExistsError:
        return False
    finally:
        half.unlink()
    return True
