import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import sottovoce as sv
from sottovoce.server.keys import SigningKey
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.policy import SignedPolicy, policy_from_json, policy_to_json
from support.policies import estimates, experiment, released


@pytest.fixture
def text() -> str:
    rng = random.Random(3)
    release = released(experiment(), rng)
    return policy_to_json(release, estimates(release, rng))


def test_a_policy_comes_back_as_it_was() -> None:
    rng = random.Random(3)
    release = released(experiment(), rng)
    known = estimates(release, rng)
    assert policy_from_json(policy_to_json(release, known)) == (release, known)
    assert policy_from_json(policy_to_json(release, {})) == (release, {})


def changed(text: str, change: Callable[[Any], object]) -> str:
    table = json.loads(text)
    change(table)
    return canonical_json(table).decode()


CHANGES: dict[str, Callable[[Any], object]] = {
    "another kind": lambda table: table.update(kind="release"),
    "no release": lambda table: table.pop("release"),
    "no estimates": lambda table: table.pop("estimates"),
    "estimates of no list": lambda table: table.update(estimates={}),
    "one more key": lambda table: table.update(more=1),
    "an estimate twice": lambda table: table["estimates"].append(table["estimates"][0]),
    "an estimate of no bin": lambda table: table["estimates"][0].update(bin="0101010101"),
    "an estimate of no arm": lambda table: table["estimates"][0].update(arm=9),
    "an estimate of another kind": lambda table: table["estimates"][0].update(estimate="1"),
    "a whole number": lambda table: table["estimates"][0].update(estimate=1),
    "a radius below 0": lambda table: table["estimates"][0].update(radius=-0.5),
    "an estimate with more": lambda table: table["estimates"][0].update(more=1),
    "estimates in another order": lambda table: table["estimates"].reverse(),
    "a release that cannot be": lambda table: table["release"].update(version=0),
    "a newer version": lambda table: table.update(sottovoce=200),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_policy_of_another_form_is_refused(text: str, what: str) -> None:
    with pytest.raises(sv.WireError):
        policy_from_json(changed(text, CHANGES[what]))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_an_estimate_that_is_no_number_is_refused(text: str, number: str) -> None:
    entry = json.loads(text)["estimates"][0]
    damaged = text.replace(repr(entry["estimate"]), number)
    assert damaged != text
    with pytest.raises(sv.WireError):
        policy_from_json(damaged)


def test_a_text_that_means_the_same_is_refused(text: str) -> None:
    with pytest.raises(sv.WireError, match="canonical form"):
        policy_from_json(json.dumps(json.loads(text)))
    signed = SignedPolicy("00" * 8, bytes(64), text).to_json()
    assert SignedPolicy.from_json(signed).text == text
    with pytest.raises(sv.WireError, match="canonical form"):
        SignedPolicy.from_json(json.dumps(json.loads(signed)).encode())


def test_a_policy_is_signed_as_the_specification_says(text: str, tmp_path: Path) -> None:
    key = SigningKey.create(tmp_path / "my.key")
    signed = json.loads(key.sign_policy(text).to_json())
    public = Ed25519PublicKey.from_public_bytes(key.public)
    said = b"sottovoce policy 1\n" + signed["policy"].encode()
    public.verify(bytes.fromhex(signed["signature"]), said)
    assert set(signed) == {"key", "kind", "policy", "signature", "sottovoce"}
