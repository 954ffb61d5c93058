import json
import random
from collections import Counter
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.server.keys import SigningKey
from sottovoce.shared import wire
from sottovoce.shared.policy import policy_to_json
from sottovoce.shared.signed import first_link
from support.policies import contexts, estimates, experiment, released

SCHEMA = sv.Experiment(
    arms=["control", "reminder", "coach"],
    context=[sv.Numeric("age", 18, 90), sv.Boolean("member")],
    epsilon=1.0,
    method="ldpmab",
)


def one_bin(*chances: float) -> sv.Release:
    partition = sv.Partition(SCHEMA.dimension)
    bins = (sv.BinPolicy("", tuple(range(len(chances))), chances),)
    return sv.Release(SCHEMA, 3, partition, bins)


GOOD = {"age": 42, "member": True}


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.create(tmp_path / "my.key")


@pytest.fixture
def document(key: SigningKey) -> bytes:
    rng = random.Random(1)
    release = released(experiment(), rng)
    return key.sign_policy(policy_to_json(release, estimates(release, rng))).to_json()


# Which arm.


@pytest.mark.parametrize(
    ("chances", "known", "arm"),
    [
        ((0.5, 0.5), {}, "control"),
        ((0.3, 0.3, 0.4), {}, "coach"),
        ((0.3, 0.4, 0.3), {0: 0.9}, "reminder"),  # of the others nothing is known
        ((0.5, 0.5), {0: 0.4, 1: 0.6}, "reminder"),
        ((0.9, 0.1), {0: 0.4, 1: 0.6}, "reminder"),
        ((0.4, 0.6), {0: 0.5, 1: 0.5}, "reminder"),
        ((0.5, 0.5), {0: 0.5, 1: 0.5, 2: 0.9}, "control"),  # the last is not on offer
        ((1.0,), {0: -2.0}, "control"),
    ],
)
def test_everybody_of_a_bin_gets_its_best_arm(
    chances: tuple[float, ...], known: dict[int, float], arm: str
) -> None:
    known_of_cells = {("", number): (each, 0.1) for number, each in known.items()}
    policy = sv.Policy(one_bin(*chances), estimates=known_of_cells)
    assert {policy.choose(GOOD) for _ in range(20)} == {arm}


def test_as_released_each_arm_on_offer_comes_with_its_chance() -> None:
    # False alarms: below 1e-9, by the normal law at six standard deviations.
    policy = sv.Policy(one_bin(0.2, 0.7, 0.1))
    drawn = Counter(policy.choose(GOOD, as_released=True) for _ in range(10_000))
    for arm, chance in zip(SCHEMA.arms, (0.2, 0.7, 0.1), strict=True):
        assert abs(drawn[arm] - 10_000 * chance) < 6 * (10_000 * chance * (1 - chance)) ** 0.5


def test_public_arms_are_drawn_without_a_ranking_too() -> None:
    release = sv.Learner(experiment(method=sv.Whisper(public_arms=True))).release()
    policy = sv.Policy(release)
    person = next(contexts(release, random.Random(0), 1))
    drawn = {policy.choose(person, as_released=True) for _ in range(200)}
    assert drawn == set(release.experiment.arms)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"age": 42}, r"it lacks \['member'\] and has 0 unknown"),
        ({**GOOD, "iban": "IT60"}, "it lacks none and has 1 unknown"),
        ({**GOOD, "age": "IT60"}, "feature 'age' must be a finite number; got a str"),
        ({**GOOD, "age": None}, "say optional=True in the schema if it may be missing"),
        ({**GOOD, "member": 1}, "feature 'member' must be True or False; got another number"),
        ("IT60", "a context must map feature names to values; got str"),
    ],
)
def test_a_context_that_does_not_fit_is_refused_as_by_a_device(
    context: dict[str, object], message: str
) -> None:
    with pytest.raises(sv.ContextError, match=message) as raised:
        sv.Policy(one_bin(1.0)).choose(context)
    assert "IT60" not in str(raised.value)


# The file.


def test_a_policy_file_holds_the_whole_policy(
    key: SigningKey, document: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "policy.json"
    path.write_bytes(document)
    rng = random.Random(1)
    release = released(experiment(), rng)
    known = estimates(release, rng)
    for source in (document, path, str(path)):
        policy = sv.Policy.load(source, keys=key.public.hex())
        assert (policy.release, policy.estimates) == (release, known)


def test_a_signed_release_is_a_policy_without_estimates(key: SigningKey) -> None:
    release = released(experiment(), random.Random(2))
    before = first_link(release.experiment.fingerprint)
    signed = key.sign(wire.release_to_json(release), before=before).to_json()
    policy = sv.Policy.load(signed, keys=[key.public.hex()])
    assert (policy.release, policy.estimates) == (release, {})


def test_a_file_that_nobody_trusted_has_signed_is_refused(document: bytes, tmp_path: Path) -> None:
    other = SigningKey.create(tmp_path / "other.key")
    with pytest.raises(sv.SignatureError, match="a policy must be signed by one of"):
        sv.Policy.load(document, keys=[other.public.hex()])
    with pytest.raises(sv.SignatureError, match="at least one public key; got none"):
        sv.Policy.load(document, keys=[])
    with pytest.raises(sv.SignatureError, match="64 hexadecimal digits"):
        sv.Policy.load(document, keys=["abc"])


@pytest.mark.parametrize("signed_release", [False, True])
def test_a_file_that_was_changed_is_refused(
    key: SigningKey, document: bytes, *, signed_release: bool
) -> None:
    inner = "policy"
    if signed_release:
        release = released(experiment(), random.Random(2))
        signed = key.sign(wire.release_to_json(release), before=bytes(32))
        document, inner = signed.to_json(), "release"
    table = json.loads(document)
    for old, new in (('"version":7', '"version":8'), ('"coach"', '"other"')):
        changed = {**table, inner: table[inner].replace(old, new)}
        assert changed != table
        text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
        with pytest.raises(sv.SignatureError, match="must carry a good signature"):
            sv.Policy.load(text.encode(), keys=key.public.hex())


def test_a_signature_of_a_release_is_none_of_a_policy(key: SigningKey, document: bytes) -> None:
    text = json.loads(document)["policy"]
    table = json.loads(document)
    table["signature"] = key.sign(text, before=bytes(32)).signature.hex()
    forged = json.dumps(table, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(sv.SignatureError, match="must carry a good signature"):
        sv.Policy.load(forged, keys=key.public.hex())


def test_a_file_that_is_cut_off_anywhere_is_refused(key: SigningKey, document: bytes) -> None:
    places = [0, 1, 10, len(document) // 2, len(document) - 1]
    for end in places:
        with pytest.raises(sv.WireError):
            sv.Policy.load(document[:end], keys=key.public.hex())


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"{}", b"\xff\xfe", b'{"sottovoce":5,"kind":"report"}', b"[" * 100_000],
)
def test_what_is_no_policy_file_is_refused(key: SigningKey, data: bytes) -> None:
    with pytest.raises(sv.WireError, match="must"):
        sv.Policy.load(data, keys=key.public.hex())


def test_a_file_that_is_not_there_is_told(key: SigningKey, tmp_path: Path) -> None:
    with pytest.raises(sv.PolicyError, match="must be a policy file that can be read"):
        sv.Policy.load(tmp_path / "no-such.json", keys=key.public.hex())
