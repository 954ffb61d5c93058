"""Releases from a server that nobody has to trust: verified, and never older than before.

The server, a cache or the network may be hostile. So the device limits the size of a release, also
when it unpacks it, verifies the signature, and only then reads the release. It refuses a release of
another experiment, and ignores one that is older than the release in use.

The device never sends an ETag of the server back to it: by an ETag made for a single device the
server could recognise that device. The device computes the tag of its release itself.
"""

import hashlib
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.device import signature
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.errors import (
    DeviceError,
    ExperimentError,
    Rejection,
    SignatureError,
    TransportError,
    WireError,
    must,
)
from sottovoce.shared.release import Release
from sottovoce.shared.wire import SignedRelease, key_id, message

LARGEST_RELEASE = 64 * 1024 * 1024
"""The most bytes of a signed release, unpacked: enough for about a hundred thousand bins."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A release with a signature by a trusted key.

    document: the signed release as it came, unpacked, so that it can be verified again.
    """

    release: Release
    document: bytes

    @property
    def tag(self) -> str:
        """The ETag of the release, computed from its bytes alone."""
        return f'"{hashlib.sha256(self.document).hexdigest()[:32]}"'


class Releases:
    """The releases of one experiment on one server.

    experiment: its fingerprint.
    keys: the public keys that are trusted, in hexadecimal digits.
    known: the release in use, once there is one.
    """

    def __init__(self, server: str, *, experiment: str, keys: Sequence[str]) -> None:
        if not server.startswith(("http://", "https://")):
            raise TransportError("a server's address must begin with http:// or https://")
        if not isinstance(experiment, str) or not re.fullmatch("[0-9a-f]{16}", experiment):
            rule = "be the 16 hexadecimal digits of its fingerprint"
            raise ExperimentError(must("experiment", rule, repr(experiment)))
        trusted = [_key(each) for each in ([keys] if isinstance(keys, str) else keys)]
        if not trusted:
            raise SignatureError("keys must hold at least one public key; got none")
        self.server, self.experiment = server.rstrip("/"), experiment
        self._keys = {key_id(public): public for public in trusted}
        self.known: Verified | None = None

    def request(self) -> Request:
        """Return the request for the current release."""
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        headers["User-Agent"] = "sottovoce"
        if self.known is not None:
            headers["If-None-Match"] = self.known.tag
        url = f"{self.server}/experiments/{self.experiment}/releases/current"
        return Request("GET", url, headers)

    def newest(self, response: Response | None) -> Verified:
        """Return the release in an answer, verified, or the known one if that is not older."""
        if response is None:
            raise TransportError("the server must be reachable; no answer came")
        if response.status == 304 and self.known is not None:
            return self.known
        if response.status != 200:
            came = f"status {response.status}"
            raise TransportError(must("the server", "send its release", came))
        found = self.verify(_unpacked(response.body))
        if self.known is not None and found.release.version <= self.known.release.version:
            return self.known
        return found

    def verify(self, document: bytes) -> Verified:
        """Return the release, or raise; no part of an unsigned release is used.

        What is no signed release at all is a TransportError, as if no answer had come.
        """
        try:
            signed = SignedRelease.from_json(document)
        except WireError as error:
            if error.reason == Rejection.NEWER_WIRE:
                raise
            # For example the login page of a hotel network, which answers every request.
            trouble = "the server must send a signed release; got something else"
            raise TransportError(trouble) from None
        public = self._keys.get(signed.key)
        if public is None:
            rule = f"be signed by one of {sorted(self._keys)}"
            raise SignatureError(must("a release", rule, signed.key))
        try:
            signed_bytes = message(signed.text)
        except UnicodeEncodeError:
            raise SignatureError("a release must be Unicode text; got half a character") from None
        if not signature.verify(public, signed.signature, signed_bytes):
            raise SignatureError(
                f"a release must carry a good signature; that of {signed.key} is not"
            )
        release = wire.release_from_json(signed.text)
        if release.experiment.fingerprint != self.experiment:
            rule = f"be of experiment {self.experiment}"
            raise DeviceError(must("a release", rule, release.experiment.fingerprint))
        return Verified(release, document)


def _unpacked(body: bytes) -> bytes:
    # Judged by the bytes: some HTTP libraries unpack the body and leave the header that says gzip.
    if body.startswith(b"\x1f\x8b"):  # gzip
        unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            body = unpacker.decompress(body, LARGEST_RELEASE + 1)
        except zlib.error:
            raise TransportError("a packed answer must be gzip data; it is damaged") from None
    if len(body) > LARGEST_RELEASE:
        raise TransportError(f"a release must have at most {LARGEST_RELEASE} bytes; got more")
    return body


def _key(digits: str) -> bytes:
    try:
        public = bytes.fromhex(digits)
    except (TypeError, ValueError):
        public = b""
    if not signature.is_key(public):
        rule = "be the 64 hexadecimal digits of an Ed25519 public key"
        raise SignatureError(must("a key", rule, repr(digits)))
    return public
