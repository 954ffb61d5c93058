"""A monitor: follows an experiment from outside, keeps every release, and compares.

A device sees one history and cannot know whether others see another. A monitor keeps what it was
shown, as signed documents, one file for each version. Whoever compares two such collections, or a
device's release with a collection, finds out whether the holder of the key has told two histories.
And then holds the proof: two documents with a good signature that cannot both be true.

A server that was restored from a backup has lost its newest releases, and says so in all that it
signs from then on (a RESTORE). That is no second history, for everybody is told the same. The
monitor keeps what follows in a folder of its own, and says what was lost.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from sottovoce.device.releases import Releases, Verified
from sottovoce.device.transport import Request, Response, Result, Steps, Transport, run, send
from sottovoce.shared.amending import restores_of
from sottovoce.shared.amendment import Amendment
from sottovoce.shared.errors import ForkError, SottovoceError, TransportError, must
from sottovoce.shared.release import Release
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
    restores: where the server says that it was restored, and what cannot be compared since then,
        in sentences.
    """

    newest: int
    new: int
    findings: tuple[Finding, ...]
    unreachable: tuple[str, ...]
    restores: tuple[str, ...] = ()


@dataclass(slots=True)
class Branch:
    """One history: links[v] is that of version v. What is its own is kept in its folder.

    restores: those in its newest release.
    """

    folder: Path
    links: list[bytes]
    restores: tuple[Amendment, ...] = ()

    @property
    def newest(self) -> int:
        """Its newest version."""
        return len(self.links) - 1

    def has(self, found: Verified) -> bool:
        """Whether a release is one of this history."""
        version = found.release.version
        return version <= self.newest and self.links[version] == found.signed.link


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
        first = Branch(folder, [first_link(experiment)])
        self._branches = [first]
        self._extend(first)
        for path in sorted(folder.glob("branch-*")):
            self._read_branch(path)
        self._told: list[str] = []

    @property
    def newest(self) -> int:
        """The newest version that is kept; 0 before the first look."""
        return self._now.newest

    @property
    def _now(self) -> Branch:
        return self._branches[-1]

    def look(self, seen: Sequence[Path] = ()) -> Look:
        """Ask every address, keep what is new, and compare it with what is kept.

        seen: what others were shown: signed releases, or folders of other monitors.
        """
        new = -sum(map(_kept_in, self._branches))
        findings: list[Finding] = []
        unreachable: list[str] = []
        self._told = []
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
        new += sum(map(_kept_in, self._branches))
        last = [_in_words(each) for each in self._now.restores]
        told = tuple(dict.fromkeys((*last, *self._told)))
        return Look(self.newest, new, tuple(findings), tuple(unreachable), told)

    def _follow(self, shown: Releases) -> None:
        """Keep every version up to the newest that an address shows."""
        current = self._run(shown.current())
        self._enter(current.release)
        now = self._now
        for version in range(now.newest + 1, current.release.version + 1):
            found = self._run(self._version(shown, version))
            if found.signed.before != now.links[-1]:
                raise ForkError(
                    f"release {version} must continue release {version - 1}; it names another"
                    f" history: see {self._keep_beside(found)}"
                )
            self._keep(found)
            now.links.append(found.signed.link)
            now.restores = restores_of(found.release.experiment)
        self._check(current)

    def _enter(self, current: Release) -> None:
        """Begin a branch where a release says that the server was restored, if it leaves ours."""
        ours, theirs = self._now.restores, restores_of(current.experiment)
        news = next((one for one, mine in zip_longest(theirs, ours) if one and one != mine), None)
        if news is None or (news.release or 0) >= self.newest:
            return
        last = news.release or 0
        for known in self._branches:
            if last <= known.newest and known.links[last].hex() == news.link:
                path = self._folder / f"branch-{len(self._branches):04d}-{(news.branch or '')[:8]}"
                path.mkdir(exist_ok=True)
                before = tuple(one for one in known.restores if (one.release or 0) < last)
                self._branches.append(Branch(path, known.links[: last + 1], before))
                return
        raise ForkError(
            f"a restored server must go on from a release that was published; release {last}, which"
            " it names, is another one than was kept"
        )

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
        if any(each.has(found) for each in self._branches):
            return
        version = found.release.version
        if self._is_lost(found):
            self._told.append(f"release {version} of before a restore was never seen here")
        elif version <= self.newest:
            raise ForkError(
                f"there must be one release {version}; there are two, with different texts or"
                " different histories, both with a good signature: compare"
                f" {self._path(version)} and {self._keep_beside(found)}"
            )

    def _is_lost(self, found: Verified) -> bool:
        """Say whether a release is from before a restore, and newer than what was kept then."""
        version = found.release.version
        theirs = restores_of(found.release.experiment)
        later = self._now.restores[len(theirs) :]
        is_before = self._now.restores[: len(theirs)] == theirs and bool(later)
        kept = [each.newest for each in self._branches if each.restores == theirs]
        return is_before and version > max([later[0].release or 0, *kept])

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
                is_known = any(each.has(found) for each in self._branches)
                if version > self.newest and not is_known and not self._is_lost(found):
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
        """Return where a version of the history of now is kept, or is to be."""
        name = f"{version:010d}.json"
        for each in reversed(self._branches):
            path, link = each.folder / name, self._now.links[version : version + 1]
            if path.exists() and [self._shown[0].verify(path.read_bytes()).signed.link] == link:
                return path
        return self._now.folder / name

    def _read_branch(self, path: Path) -> None:
        """Read a branch that was begun in an earlier run; the history of one of the others."""
        files = sorted(path.glob("[0-9]*.json"))
        if not files:
            return
        begins = self._shown[0].verify(files[0].read_bytes())
        last = begins.release.version - 1
        for each in self._branches:
            if last <= each.newest and each.links[last] == begins.signed.before:
                self._branches.append(Branch(path, each.links[: last + 1]))
                self._extend(self._now)
                return
        raise ForkError(f"{files[0]} must continue a release that is kept; it does not")

    def _extend(self, branch: Branch) -> None:
        """Verify what is kept: every document, and that each continues the one before."""
        while (path := branch.folder / f"{len(branch.links):010d}.json").exists():
            found = self._shown[0].verify(path.read_bytes())
            if found.release.version != len(branch.links) or (
                found.signed.before != branch.links[-1]
            ):
                raise ForkError(f"{path} must continue the release before it; it does not")
            branch.links.append(found.signed.link)
            branch.restores = restores_of(found.release.experiment)

    def _run(self, steps: Steps[Result]) -> Result:
        return run(steps, self._answer)

    def _answer(self, request: Request) -> Response | None:
        try:
            return self._transport(request)
        except (TransportError, OSError):
            return None


def _kept_in(branch: Branch) -> int:
    return len(list(branch.folder.glob("[0-9]" * 10 + ".json")))


def _in_words(restore: Amendment) -> str:
    return (
        f"restored by {restore.by} on {restore.made}: it goes on from release {restore.release}, as"
        f" branch {(restore.branch or '')[:8]}; what was published after that one is lost"
    )


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
