"""A policy: which arm a person gets by a release, without a server and without a report.

It finds the bin as a device does, by the same code.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sottovoce.device import signature
from sottovoce.device.coins import FreshCoins
from sottovoce.device.encode import encode
from sottovoce.device.method import draw_arm
from sottovoce.device.trust import bad_signature, trusted_key, trusted_keys
from sottovoce.shared.errors import PolicyError, must
from sottovoce.shared.policy import (
    Estimates,
    SignedPolicy,
    best_arm,
    policy_from_json,
    policy_message,
)
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.signed import SignedRelease, message
from sottovoce.shared.walk import walk_of
from sottovoce.shared.wire import parsed, release_from_json


class Policy:
    """What was learned, without the service: a context in, an arm out, and nothing is reported.

    release: what was learned.
    estimates: of a bin's path and an arm's number, the mean reward and half the width of its
        interval. They decide between the arms of a bin that is not settled.
    """

    def __init__(self, release: Release, *, estimates: Estimates | None = None) -> None:
        self.release = release
        self.estimates: Estimates = dict(estimates or {})
        self._best = {policy.path: best_arm(policy, self.estimates) for policy in release.bins}

    @classmethod
    def load(cls, source: str | PathLike[str] | bytes, *, keys: Sequence[str] | str) -> "Policy":
        """Read a policy file, or a signed release, and verify its signature.

        source: the path of the file, or what is in it.
        keys: the public keys that are trusted, in hexadecimal digits.
        """
        trusted = trusted_keys(keys)
        document = source if isinstance(source, bytes) else read_document(Path(source))
        table = parsed(document, kind="policy file")
        if isinstance(table, dict) and table.get("kind") == "signed release":
            return cls(_verified_release(document, trusted))
        signed = SignedPolicy.from_json(document)
        public = trusted_key(trusted, signed.key, of="a policy")
        if not signature.verify(public, signed.signature, policy_message(signed.text)):
            raise bad_signature(signed.key, of="a policy")
        release, estimates = policy_from_json(signed.text)
        return cls(release, estimates=estimates)

    def choose(self, context: Mapping[str, Any], *, as_released: bool = False) -> str:
        """Return the arm for a person.

        It is always the same for the same context: the best arm of the person's bin. By the
        estimates, if all arms that are still compared there have one; otherwise the one that the
        release gives most often, and of equal ones the first of the experiment.

        as_released: draw one of the arms on offer in the bin, with the chances of the release, by
            the operating system's randomness.
        """
        release = self.release
        found = walk_of(release).find(encode(release.experiment, context))
        arm = draw_arm(release, found, FreshCoins()) if as_released else self.best(found)
        return release.experiment.arms[arm]

    def best(self, policy: BinPolicy) -> int:
        """Return the number of the arm that the people of a bin get."""
        return self._best[policy.path]


def _verified_release(document: bytes, trusted: Mapping[str, bytes]) -> Release:
    signed = SignedRelease.from_json(document)
    public = trusted_key(trusted, signed.key, of="a release")
    if not signature.verify(public, signed.signature, message(signed.before, signed.text)):
        raise bad_signature(signed.key, of="a release")
    return release_from_json(signed.text)


def read_document(path: Path) -> bytes:
    """Read a policy file, without verifying it."""
    try:
        return path.read_bytes()
    except OSError as error:
        rule = "be a policy file that can be read"
        raise PolicyError(must(str(path), rule, type(error).__name__)) from None
