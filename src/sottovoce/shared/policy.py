"""A policy to use without the service: a release, and what was known of its arms.

A release says which arms a bin offers, and not which of them looks best. So a policy has the
learner's estimates beside it, if its signer knew them. Both are public.

``best_arm`` is the one rule for what a bin's people get. All forms of a policy follow it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import Rejection, WireError, malformed
from sottovoce.shared.release import BinPolicy, Cell, Release
from sottovoce.shared.wire import (
    NOT_CANONICAL,
    WIRE_VERSION,
    hexadecimal,
    release_from_json,
    release_to_json,
    table_from_json,
)

Estimates = Mapping[Cell, tuple[float, float]]
"""Of a bin and an arm, by its number: the mean reward and half the width of its interval."""


def is_estimated(policy: BinPolicy, estimates: Estimates) -> bool:
    """Return whether all arms on offer in a bin have estimates, so that they can be compared."""
    return all((policy.path, arm) in estimates for arm in policy.arms)


def best_arm(policy: BinPolicy, estimates: Estimates) -> int:
    """Return which arm the people of a bin get: one of those on offer, and always the same.

    The one with the highest estimate, if all of them have one. Otherwise, and between equal ones,
    the one with the highest chance. Otherwise the first in the order of the experiment, where the
    usual option tends to be.
    """
    known = is_estimated(policy, estimates)

    def merit(place: int) -> tuple[float, float, int]:
        estimate = estimates[policy.path, policy.arms[place]][0] if known else 0.0
        return estimate, policy.propensities[place], -place

    return policy.arms[max(range(len(policy.arms)), key=merit)]


def policy_to_json(release: Release, estimates: Estimates) -> str:
    """Write a policy as canonical JSON; estimates stand in the order of the bins."""
    entries = [
        {"bin": policy.path, "arm": arm, "estimate": estimate, "radius": radius}
        for policy in release.bins
        for arm in policy.live
        for estimate, radius in [estimates.get((policy.path, arm), (None, None))]
        if estimate is not None
    ]
    # The release as it is on the wire, so that it can be checked as if it had come alone.
    inside = table_from_json(release_to_json(release), kind="release")
    table = {"sottovoce": WIRE_VERSION, "kind": "policy", "release": inside, "estimates": entries}
    return canonical_json(table).decode()


def policy_from_json(text: str) -> tuple[Release, Estimates]:
    """Read a policy from canonical JSON; refuse any other text."""
    table = table_from_json(text, kind="policy")
    release = release_from_json(canonical_json(table.get("release")).decode())
    entries = table.get("estimates")
    if not isinstance(entries, list):
        raise malformed("a policy's estimates", "be a list", type(entries).__name__)
    cells = {(policy.path, arm) for policy in release.bins for arm in policy.live}
    estimates: dict[Cell, tuple[float, float]] = {}
    for entry in entries:
        cell, known = _estimate(entry)
        if cell not in cells or cell in estimates:
            rule = "be of different arms that are live in their bins"
            raise malformed("a policy's estimates", rule, "another")
        estimates[cell] = known
    if policy_to_json(release, estimates) != text:
        raise WireError(Rejection.MALFORMED, NOT_CANONICAL.format("policy"))
    return release, estimates


def _estimate(entry: Any) -> tuple[Cell, tuple[float, float]]:
    keys = {"bin": str, "arm": int, "estimate": float, "radius": float}
    fits = isinstance(entry, dict) and entry.keys() == keys.keys()
    if not fits or not all(type(entry[key]) is kind for key, kind in keys.items()):
        rule = "each have bin, arm, estimate and radius"
        raise malformed("a policy's estimates", rule, "something else")
    estimate, radius = entry["estimate"], entry["radius"]
    if not math.isfinite(estimate) or not math.isfinite(radius) or radius < 0:
        raise malformed("a policy's estimates", "be finite, with radius >= 0", "something else")
    return (entry["bin"], entry["arm"]), (estimate, radius)


@dataclass(frozen=True, slots=True)
class SignedPolicy:
    """A policy file: a policy, and the signature of whoever ran the experiment.

    key: the ``key_id`` of the public key.
    signature: 64 bytes, Ed25519 (RFC 8032) over ``policy_message(text)``.
    text: the policy in canonical JSON, as a string inside of the document: it is verified as it
        came.
    """

    key: str
    signature: bytes
    text: str

    def to_json(self) -> bytes:
        """Return the policy file as canonical JSON."""
        table = {
            "sottovoce": WIRE_VERSION,
            "kind": "signed policy",
            "key": self.key,
            "signature": self.signature.hex(),
            "policy": self.text,
        }
        return canonical_json(table)

    @classmethod
    def from_json(cls, data: bytes) -> "SignedPolicy":
        """Read a policy file in its canonical form, without verifying the signature."""
        what = "a signed policy"
        table = table_from_json(data, kind="signed policy")
        text = table.get("policy")
        if not isinstance(text, str) or not text.isascii():
            raise WireError(Rejection.MALFORMED, f"{what} must hold its policy as ASCII text")
        signed = cls(
            hexadecimal(table, "key", length=8, of=what).hex(),
            hexadecimal(table, "signature", length=64, of=what),
            text,
        )
        if signed.to_json() != data:
            raise WireError(Rejection.MALFORMED, NOT_CANONICAL.format("signed policy"))
        return signed


def policy_message(text: str) -> bytes:
    """Return the bytes to sign; the prefix makes the signature valid for policies only."""
    return b"sottovoce policy 1\n" + text.encode()
