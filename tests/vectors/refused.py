"""Documents, contexts and rewards that a device refuses, with the error; a few it takes."""

import copy
import hashlib
import json
import random
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sottovoce as sv
from factories import Purse
from sottovoce.device.encode import encode
from sottovoce.device.privatise import outcome_of
from sottovoce.device.releases import Releases
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.signed import (
    SignedRelease,
    block_from_json,
    block_to_json,
    first_link,
    key_id,
    message,
)
from vectors import worlds

Case = dict[str, Any]

STRANGE: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 1.0, 0.5, -0.0, 1e400, 2**53 + 1, 10**30, "", "x", "Ω\n"),
    *([], {}, [1], ["a"], ["a", "a"], [0.5, 0.5], {"a": 1}, "2026-03-01T09:30:00Z", "7 days"),
]
KEY = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"vectors").digest())
PUBLIC = KEY.public_key().public_bytes_raw()
SERVER = "https://sottovoce.test"


def judged(kind: str, given: dict[str, Any]) -> Case:
    """Return a case with what Python's device says of it."""
    try:
        gives: dict[str, Any] = {"takes": READERS[kind](**given)}
    except SottovoceError as error:
        reason = error.reason.value if isinstance(error, sv.Refused) else None
        gives = {"error": type(error).__name__, "reason": reason, "message": str(error)}
    return {"kind": kind, **given, "gives": gives}


def _read(text: str) -> str:
    return wire.release_id(wire.release_from_json(text)).hex()


def _follow(text: str, before: str) -> str:
    device = sv.Device(wire.release_from_json(before), ledger=Purse(), public_arms=True)
    device.follow(wire.release_from_json(text))
    return "followed"


def _verify(text: str, experiment: str, keys: list[str]) -> str:
    return (
        Releases(SERVER, experiment=experiment, keys=keys).verify(text.encode()).signed.link.hex()
    )


def _block(text: str) -> int:
    return len(block_from_json(text.encode()))


def _encode(text: str, context: dict[str, Any]) -> list[str]:
    return [each.hex() for each in encode(wire.release_from_json(text).experiment, context)]


def _outcome(text: str, reward: Any) -> str:
    return float(outcome_of(wire.release_from_json(text).experiment, reward) or 0).hex()


READERS: dict[str, Any] = {
    "release": _read,
    "follow": _follow,
    "signed release": _verify,
    "chain": _block,
    "context": _encode,
    "reward": _outcome,
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, key))


def spoiled(draws: random.Random, text: str) -> str:
    """A document with one thing that is wrong, or perhaps not.

    Which characters can be printed depends on the version of Unicode, so that one that has no
    meaning yet is not used.
    """
    while has_unassigned(made := _spoiled(draws, text)):
        pass
    return made


def has_unassigned(text: str) -> bool:
    """Say whether a document of JSON has a character that Unicode has not assigned yet."""
    try:
        letters = json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return False
    return any(unicodedata.category(letter) == "Cn" for letter in letters)


def _spoiled(draws: random.Random, text: str) -> str:
    table = json.loads(text)
    way = draws.randrange(8)
    if way == 7:  # in the text itself
        at = draws.randrange(len(text))
        piece = draws.choice(
            ["", " ", "0", '"', "\\u0041", ",", "1.0", "é", "[", "NaN", text[at] * 2]
        )
        return text[:at] + piece + text[at + 1 :]
    path = draws.choice(list(places(table)))
    inside = table
    for key in path[:-1]:
        inside = inside[key]
    if way in (0, 1) and isinstance(inside, dict):
        del inside[path[-1]]
    elif way == 2 and isinstance(inside, dict):
        inside[draws.choice(["more", "", "name", "cap", "sets", "waiting"])] = draws.choice(STRANGE)
    elif way == 3 and isinstance(inside, list):
        inside.insert(path[-1], inside[path[-1]])
    elif way == 4 and isinstance(inside[path[-1]], int | float):
        inside[path[-1]] += draws.choice([1, -1, 0.5, 1e-12, 1024])
    else:
        other = draws.choice(list(places(table)))
        found = table
        for key in other:
            found = found[key]
        inside[path[-1]] = draws.choice([*STRANGE, copy.deepcopy(found)])
    try:
        return canonical_json(table).decode()
    except ValueError:  # an infinite number
        return json.dumps(table, sort_keys=True, separators=(",", ":"))


def signed(text: str, before: bytes, *, key: Ed25519PrivateKey = KEY) -> str:
    """A signed release."""
    public = key.public_key().public_bytes_raw()
    made = SignedRelease(before, key_id(public), key.sign(message(before, text)), text)
    return made.to_json().decode()


def chained(release: sv.Release, change: Any) -> str:
    """The release with other amendments, each of which names the one before."""
    table = json.loads(wire.release_to_json(release))
    change(table)
    before = sv.Experiment.from_table(table["experiment"]).fingerprint
    for each in table.get("amendments", []):
        each["before"] = before
        before = hashlib.sha256(canonical_json(each)).hexdigest()
    return canonical_json(table).decode()


AMENDMENTS: list[dict[str, Any]] = [
    {"kind": "add arm", "arm": "new"},
    {"kind": "add arm", "arm": "new", "cap": 0.25},
    {"kind": "add arm", "arm": "new", "cap": 0.75},
    {"kind": "add arm", "arm": "control"},
    {"kind": "add arm"},
    {"kind": "retire arm", "arm": "coach"},
    {"kind": "retire arm", "arm": "nobody"},
    {"kind": "retire arm", "arm": "control", "cap": 0.1},
    {"kind": "extend horizon", "horizon": 10**6},
    {"kind": "extend horizon", "horizon": 3},
    {"kind": "extend horizon", "horizon": 1.5},
    {"kind": "pause"},
    {"kind": "resume"},
    {"kind": "stop"},
    {"kind": "archive"},
    {"kind": "more ε", "epsilon": 9.0},
    {"kind": "stop", "by": ""},
    {"kind": "stop", "made": "2026-02-30T09:30:00Z"},
    {"kind": "stop", "made": "1999-12-31T23:59:59Z"},
    {"kind": "pause", "horizon": 3},
]


def _amendments(draws: random.Random, releases: Sequence[sv.Release], count: int) -> Iterator[Case]:
    """What may and may not follow what a device has seen."""
    amended = [each for each in releases if each.experiment.amendments]
    for release in amended[:count]:
        before = wire.release_to_json(release)

        def more(table: dict[str, Any], about: dict[str, Any]) -> None:
            table["amendments"].append({"by": "Eve", "made": "2026-03-01T10:00:00Z", **about})

        def less(table: dict[str, Any]) -> None:
            table["amendments"].pop()

        def without_one(table: dict[str, Any]) -> None:
            table["amendments"].pop(draws.randrange(len(table["amendments"])))

        for about in AMENDMENTS:
            text = chained(release, lambda table, about=about: more(table, about))
            yield judged("follow", {"text": text, "before": before})
        for change in (
            less,
            without_one,
            lambda table: table.pop("amendments"),
            lambda table: table["experiment"].update(epsilon=9.0),
            lambda table: table["amendments"].reverse(),
            lambda table: table["amendments"][0].update(by="Eve"),
            lambda table: None,
        ):
            yield judged("follow", {"text": chained(release, change), "before": before})


def _signatures(draws: random.Random, releases: Sequence[sv.Release], count: int) -> Iterator[Case]:
    """Signed releases, and what passes itself off as one."""
    other = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    for release in draws.sample(list(releases), count):
        text, experiment = wire.release_to_json(release), release.experiment.fingerprint
        good = signed(text, first_link(experiment))
        digits = json.loads(good)["signature"]
        turned = f"{int(digits[0], 16) ^ 1:x}{digits[1:]}"
        order = 2**252 + 27742317777372353535851937790883648493
        scalar = int.from_bytes(bytes.fromhex(digits[64:]), "little") + order
        for each in (
            good,
            good.replace(digits, turned),
            good.replace(digits, digits[:64] + scalar.to_bytes(32, "little").hex()),
            good.replace(digits, digits.upper()),
            good.replace('"key"', ' "key"'),
            signed(text, first_link(experiment), key=other),
            signed(text + " ", first_link(experiment)),
            signed(text.replace('"version"', '"Version"'), first_link(experiment)),
            good.replace('"sottovoce":5', '"sottovoce":6'),
            good.replace('"sottovoce":5', '"sottovoce":4'),
            good.replace("signed release", "release"),
            "<html>log in</html>",
            "",
        ):
            about = {"text": each, "experiment": experiment, "keys": [PUBLIC.hex()]}
            yield judged("signed release", about)
        for keys in ([], ["00" * 32], ["01" + "00" * 31], [PUBLIC.hex()[:-1]], [other_key(other)]):
            yield judged("signed release", {"text": good, "experiment": experiment, "keys": keys})
        about = {"text": good, "experiment": "0" * 64, "keys": [PUBLIC.hex()]}
        yield judged("signed release", about)


def other_key(key: Ed25519PrivateKey) -> str:
    """Its public digits."""
    return key.public_key().public_bytes_raw().hex()


PIECES = [
    ("[0.5,0.5]", "[0.5,0.4]"),
    ("[0.5,0.5]", "[0.5,0.5000000001]"),
    ("[0.5,0.5]", "[0.25,0.75]"),
    ("[0.5,0.5]", "[1.0,0.0]"),
    ("[0.5,0.5]", "[1,0.5]"),
    ("[0.5,0.5]", "[0.5]"),
    ("[1.0]", "[0.9]"),
    ('"arms":[0,1]', '"arms":[1,0]'),
    ('"arms":[0,1]', '"arms":[0,0]'),
    ('"arms":[0,1]', '"arms":[0,7]'),
    ('"version":1', '"version":0'),
    ('"version":1', '"version":1.0'),
    ('"version":1', '"version":4294967296'),
    ('"kind":"release"', '"kind":"policy"'),
    ('"delta":0.05', '"delta":1.0'),
    ('"delta":0.05', '"delta":5e-2'),
    ('"numeric":[', '"numeric":[-0.0,'),
    ('"horizon":', '"horizon":0'),
    ('"reward_window":"', '"reward_window":"0 days'),
    ('"bin":""', '"bin":"0"'),
    ('"cuts":{', '"cuts":{"2":0,'),
    ('"ask":[', '"ask":[1,'),
    ('"scale_share":', '"scale_share":1'),
    ('"thresholds":[', '"thresholds":[28,'),
]


def _pieces(draws: random.Random, releases: Sequence[sv.Release], count: int) -> Iterator[Case]:
    """Releases in which one piece is another."""
    texts = [wire.release_to_json(each) for each in releases]
    for old, new in PIECES:
        for text in [text for text in texts if old in text][:count]:
            yield judged("release", {"text": text.replace(old, new, 1)})


def _people(draws: random.Random, releases: Sequence[sv.Release], count: int) -> Iterator[Case]:
    """Contexts and rewards, most of which do not fit."""
    values: list[Any] = [None, True, 0, 1, -0.5, 0.5, 10**9, "low", "x", "", [1], {}, "é🙂"]
    for release in draws.sample(list(releases), min(count, len(releases))):
        text = wire.release_to_json(release)
        for _ in range(4):
            context = worlds.context(draws, release.experiment)
            name = draws.choice(release.experiment.context).name
            if draws.random() < 0.2:
                context.pop(name, None)
            elif draws.random() < 0.2:
                context["strange"] = 1
            else:
                context[name] = draws.choice(values)
            yield judged("context", {"text": text, "context": context})
            yield judged("reward", {"text": text, "reward": draws.choice([*values, 61])})


def refused(seed: int, releases: Sequence[sv.Release], *, count: int, of_each: int) -> list[Case]:
    """So many spoiled releases, and some of everything else: by so many releases of each kind."""
    draws = random.Random(seed)
    texts = [wire.release_to_json(each) for each in releases]
    short = [text for text in texts if len(text) < 2500]
    some = [each for each, text in zip(releases, texts, strict=True) if text in short]
    found = [judged("release", {"text": spoiled(draws, draws.choice(short))}) for _ in range(count)]
    hashes = [wire.release_hash(text) for text in texts[:3]]
    for text in [block_to_json(hashes).decode()] * 12:
        found.append(judged("chain", {"text": spoiled(draws, text)}))
    found.append(judged("chain", {"text": block_to_json(hashes[:1] * 257).decode()}))
    for kind, each in ((_amendments, 1), (_signatures, 1), (_pieces, 2), (_people, 8)):
        found += kind(draws, some, each * of_each)
    return found


def numbers(seed: int, *, count: int) -> list[list[str]]:
    """Doubles, as ``float.hex`` and 64 bits write them, and their canonical text."""
    draws = random.Random(seed)
    plain = [0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 1.5e16, 123456789012345680.0, 1e-4, 1e-5, 5e-324]
    plain += [1e21, 1e22, 1.7976931348623157e308, 2.0**53, 2.0**53 + 2, 1 / 3, 0.30000000000000004]
    some = [draws.uniform(-1, 1) * 10.0 ** draws.randint(-30, 30) for _ in range(count)]
    whole = [float(draws.randrange(10**6)) for _ in range(count // 4)]
    return [[each.hex(), repr(each), f"{abs(each):g}"] for each in (*plain, *some, *whole)]
