"""Releases from a server that nobody has to trust: verified, and never older than before.

The server, a cache or the network may be hostile. So the device limits the size of a release, also
when it unpacks it, verifies the signature, and only then reads the release. It refuses a release of
another experiment, and ignores one that is older than the release in use.

A newer release must continue the one in use: the chain of hashes (``shared/signed.py``) has to lead
from one to the other. A server that tells this device another history than before is found out.

A server that was restored from a backup has lost releases, perhaps the one in use. It says so in an
amendment that every release carries from then on: a RESTORE names the last release that is left,
and its link. The device then goes back to a release that it knows from before that one, and the
chain has to lead from there over the named link to the new release. A branch that was left is never
followed again.

No request carries anything that somebody else chose. The device sends no ETag, and asks for the
chain in blocks that are the same for everyone.
"""

import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.device import signature
from sottovoce.device.trail import Followed, Trail
from sottovoce.device.transport import Request, Response, Steps
from sottovoce.device.trust import bad_signature, trusted_key, trusted_keys
from sottovoce.shared import wire
from sottovoce.shared.amending import first_news, restores_of
from sottovoce.shared.amendment import RESTORE, Amendment
from sottovoce.shared.errors import (
    DeviceError,
    ExperimentError,
    ForkError,
    NoSuchExperiment,
    Rejection,
    TransportError,
    WireError,
    must,
)
from sottovoce.shared.release import Release
from sottovoce.shared.signed import (
    BLOCK,
    Point,
    SignedRelease,
    block_from_json,
    block_of,
    first_link,
    last_link,
    links_after,
    message,
)

LARGEST_RELEASE = 64 * 1024 * 1024
"""The most bytes of a signed release, unpacked: far more than one of 4,096 bins takes."""

LARGEST_BLOCK = 64 * 1024
"""The most bytes of a block of the chain, unpacked; 256 hashes take a quarter of it."""

MOST_BLOCKS = 4096
"""The most blocks of the chain that a device asks for at once: a million releases."""

HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "User-Agent": "sottovoce",
}
"""Of every request for something: the same for every device."""


NOTHING_FOLLOWED = Trail()


@dataclass(frozen=True, slots=True)
class Verified:
    """A release with a signature by a trusted key."""

    release: Release
    signed: SignedRelease

    @property
    def point(self) -> Point:
        """Its place in the chain."""
        return Point(self.release.version, self.signed.link)

    @property
    def followed(self) -> Followed:
        """It as a device notes that it follows it."""
        return Followed(self.point, wire.release_id(self.release))

    @property
    def document(self) -> bytes:
        """The signed release in its one form, so that it can be kept and verified again."""
        return self.signed.to_json()


class Releases:
    """The releases of one experiment on one server.

    experiment: its fingerprint.
    keys: the public keys that are trusted, in hexadecimal digits.
    answer: the last answer of the server, or None if none came.
    """

    def __init__(self, server: str, *, experiment: str, keys: Sequence[str]) -> None:
        if not server.startswith(("http://", "https://")):
            raise TransportError("a server's address must begin with http:// or https://")
        if not isinstance(experiment, str) or not re.fullmatch("[0-9a-f]{64}", experiment):
            rule = "be the 64 hexadecimal digits of its fingerprint"
            raise ExperimentError(must("experiment", rule, repr(experiment)))
        self.server, self.experiment = server.rstrip("/"), experiment
        self._keys = trusted_keys(keys)
        self.answer: Response | None = None

    def newest(
        self, known: Verified | None, trail: Trail = NOTHING_FOLLOWED
    ) -> "Steps[Verified | None]":
        """Ask for the current release; return it if it continues what was followed so far.

        known: the release that is followed, if any. trail: those that were followed before it.
        It returns None for an older release: a cache may have one.
        """
        found = yield from self.current()
        followed = None if known is None else known.point
        if known is not None and (restore := left_at(found.release, known.release)):
            yield from self._check_branch(found, restore, trail)
            return found
        if known is not None and is_from_before(found.release, known.release):
            return None
        if followed is None:
            if found.release.version == 1 and found.signed.before != first_link(self.experiment):
                raise ForkError("the first release must begin the chain; it names another history")
            return found
        before, now = followed.version, found.release.version
        if now < before:
            return None
        if now == before:
            if found.signed.link != followed.link:
                raise ForkError(
                    f"there must be one release {now}; the server sent a second one, with another"
                    " text or another history: the last good one is kept"
                )
            return found
        hashes = yield from self._hashes(after=before, until=now - 1)
        if last_link(followed.link, hashes) != found.signed.before:
            raise ForkError(
                f"release {now} must continue release {before}, which is in use; its history is"
                f" another one: release {before} is kept"
            )
        return found

    def _check_branch(self, found: Verified, restore: Amendment, trail: Trail) -> Steps[None]:
        """Check that a release goes on from where a RESTORE says, on a branch that was never left.

        The chain is checked from the newest release that was followed before it, if there is one.
        """
        last = restore.release or 0
        begins = Point(0, first_link(self.experiment))
        base = max(each for each in (begins, *trail.points) if each.version <= last)
        hashes = yield from self._hashes(after=base.version, until=found.release.version - 1)
        links = dict(enumerate(links_after(base.link, hashes), start=base.version))
        named = [
            each
            for each in restores_of(found.release.experiment)
            if (each.release or 0) >= base.version
        ]
        if any(links.get(each.release or 0, b"").hex() != each.link for each in named):
            raise ForkError(
                f"a restored server must go on from release {last} as it was; its history is"
                " another one: the last good one is kept"
            )
        if found.signed.before != links.get(found.release.version - 1):
            raise ForkError(
                f"release {found.release.version} must continue release {last}, from which the"
                " server says that it was restored; its history is another one"
            )
        if trail.lost.intersection((*links.values(), found.signed.link)):
            raise ForkError("a restored server must not go back to a branch that was left; it does")

    def current(self) -> "Steps[Verified]":
        """Ask for the current release, and return it verified."""
        return self.verify((yield from self._ask("releases/current", most=LARGEST_RELEASE)))

    def version(self, version: int) -> "Steps[Verified]":
        """Ask for any release by its version, and return it verified."""
        found = self.verify((yield from self._ask(f"releases/{version}", most=LARGEST_RELEASE)))
        if found.release.version != version:
            raise ForkError(must("a release", f"be version {version}", found.release.version))
        return found

    def _hashes(self, *, after: int, until: int) -> Steps[list[bytes]]:
        """Ask for the hashes of the releases between two."""
        if until <= after:
            return []
        first, last = block_of(after + 1), block_of(until)
        if last - first >= MOST_BLOCKS:
            rule = f"take at most {MOST_BLOCKS * BLOCK} releases at once"
            raise ForkError(must("a newer release", rule, until - after))
        hashes: list[bytes] = []
        for block in range(first, last + 1):
            body = yield from self._ask(f"chain/{block}", most=LARGEST_BLOCK)
            try:
                hashes += block_from_json(body)
            except WireError as error:
                raise ForkError(f"the server must send its chain of releases; {error}") from None
            if len(hashes) < min(until, (block + 1) * BLOCK) - first * BLOCK:
                # Perhaps a cache or another worker is behind: ask again later.
                came = f"release {first * BLOCK + len(hashes)} only"
                raise TransportError(must("the chain", f"go up to release {until}", came))
        return hashes[after - first * BLOCK : until - first * BLOCK]

    def _ask(self, what: str, *, most: int) -> Steps[bytes]:
        url = f"{self.server}/experiments/{self.experiment}/{what}"
        self.answer = response = yield Request("GET", url, dict(HEADERS))
        if response is None:
            raise TransportError("the server must be reachable; no answer came")
        if response.status == 404 and _says_that_there_is_none(response.body):
            came = "the answer that there is none"
            raise NoSuchExperiment(must("the server", f"have experiment {self.experiment}", came))
        if response.status != 200:
            came = f"status {response.status}"
            raise TransportError(must("the server", f"send {what}", came))
        return _unpacked(response.body, most=most)

    def verify(self, document: bytes) -> Verified:
        """Return the release, or raise; no part of an unsigned release is used.

        What does not even claim to be a signed release is a TransportError, as if no answer had
        come.
        """
        try:
            signed = SignedRelease.from_json(document)
        except WireError as error:
            if error.reason == Rejection.NEWER_WIRE or _claims_to_be_signed(document):
                raise
            # For example the login page of a hotel network, which answers every request.
            trouble = "the server must send a signed release; got something else"
            raise TransportError(trouble) from None
        public = trusted_key(self._keys, signed.key, of="a release")
        if not signature.verify(public, signed.signature, message(signed.before, signed.text)):
            raise bad_signature(signed.key, of="a release")
        release = wire.release_from_json(signed.text)
        if release.experiment.fingerprint != self.experiment:
            rule = f"be of experiment {self.experiment}"
            raise DeviceError(must("a release", rule, release.experiment.fingerprint))
        return Verified(release, signed)


def left_at(now: Release, before: Release) -> Amendment | None:
    """Return the RESTORE by which a release leaves the history of another one, if it does."""
    news = first_news(now.experiment, before.experiment)
    is_restore = news is not None and news.kind == RESTORE
    return news if is_restore and news and (news.release or 0) < before.version else None


def is_from_before(found: Release, known: Release) -> bool:
    """Say whether a release does not know yet of the last RESTORE: a cache may have an old one."""
    news = first_news(known.experiment, found.experiment)
    return news is not None and news.kind == RESTORE


def _says_that_there_is_none(body: bytes) -> bool:
    """Say whether a Sottovoce server says so, and not somebody's proxy."""
    try:
        table = json.loads(_unpacked(body, most=LARGEST_BLOCK))
    except (ValueError, RecursionError):
        return False
    return isinstance(table, dict) and table.get("reason") == "no such experiment"


def _claims_to_be_signed(document: bytes) -> bool:
    try:
        table = json.loads(document)
    except (ValueError, RecursionError):
        return False
    return isinstance(table, dict) and table.get("kind") == "signed release"


def _unpacked(body: bytes, *, most: int) -> bytes:
    # Judged by the bytes: some HTTP libraries unpack the body and leave the header that says gzip.
    if body.startswith(b"\x1f\x8b"):  # gzip
        unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            body = unpacker.decompress(body, most + 1)
        except zlib.error:
            raise TransportError("a packed answer must be gzip data; it is damaged") from None
    if len(body) > most:
        raise TransportError(f"an answer must have at most {most} bytes; got more")
    return body
