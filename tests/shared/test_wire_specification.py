"""The specification of the wire format says what the package does.

``support/specification.py`` implements docs/reference/wire-format.md without the package. Reports
of real devices, recorded and new, are read by it and compared.
"""

import hashlib
import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import sottovoce as sv
from recordings.cases import LOGS
from recordings.record import HERE
from sottovoce import wire
from sottovoce.device.encode import encode
from sottovoce.server.keys import SigningKey
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.schema import Feature
from sottovoce.shared.signed import SignedRelease, first_link, last_link
from sottovoce.shared.whisper import subset
from sottovoce.shared.whisper.cells import cell_mechanism
from support import specification as spec
from support.paths import ROOT

PAGE = (ROOT / "docs" / "reference" / "wire-format.md").read_text()
EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
# At this ε a report misses the truth less than 2N times in 10^27.
NO_NOISE = 64.0


def releases_of(name: str) -> dict[str, dict[str, Any]]:
    """Return every release that the recorded reports led to, by its id, from its text."""
    learner = sv.Learner(LOGS[name].experiment)
    texts = {1: wire.release_to_json(learner.release())}
    reports, step = recorded(name), LOGS[name].experiment.release_every
    for start in range(0, len(reports), step):
        learner.receive_many(reports[start : start + step])
        texts[learner.release().version] = wire.release_to_json(learner.release())
    return {spec.release_id(text): spec.release_of(text) for text in texts.values()}


def recorded(name: str) -> list[bytes]:
    return spec.read_batch(zlib.decompress((HERE / f"{name}.reports").read_bytes()))


@pytest.mark.parametrize("name", LOGS)
def test_recorded_reports_can_be_read_by_the_specification(name: str) -> None:
    releases = releases_of(name)
    for release in releases.values():
        assert spec.fingerprint(release["experiment"]) == LOGS[name].experiment.fingerprint
    kinds: Counter[str] = Counter()
    for data in recorded(name):
        report = spec.read_report(data)
        theirs = wire.report_from_bytes(data)
        release = releases[report.release]
        assert report[:3] == (theirs.release.hex(), theirs.population, theirs.nonce.hex())
        if report.question is None:
            cells = spec.whole_cells(release, by_arm=True)
            assert report.payload == list(theirs.payload)
            assert len(report.payload) == 2 * len(cells)
            continue
        assert isinstance(report.payload, bytes)
        question = spec.asked(release, report.question, report.population)
        kinds[question.kind] += 1
        ranked = range(len(release["experiment"]["arms"])) if question.kind == "RANKED" else ()
        assert sorted(report.ranking) == list(ranked)
        if question.mechanism is None:
            assert report.payload == b""
        else:
            spec.read_set(report.payload, question.mechanism.cells, question.mechanism.size)
    if name.startswith("whisper"):
        assert len(kinds) >= 2


GAPS: list[Feature] = [
    sv.Numeric("income", 10, 20, optional=True),
    sv.Ordinal("mood", ("low", "middling", "high"), optional=True),
    sv.Categorical("city", ("Rome", "Oslo"), other=True, optional=True),
    sv.Categorical("ward", ("1", "2", "3"), other=True),
    sv.Boolean("smokes"),
    sv.Boolean("drives", optional=True),
]


def experiment(
    *, certified: bool = False, arms: int = 3, more: Sequence[Feature] = ()
) -> sv.Experiment:
    return sv.Experiment(
        arms=[f"arm {k}" for k in range(arms)],
        context=[
            sv.Numeric("age", 18, 90),
            sv.Ordinal("dose", ("none", "low", "high")),
            sv.Categorical("été", ("ä", "ß")),
            *more,
        ],
        epsilon=NO_NOISE,
        auxiliary=[sv.Population("logged", NO_NOISE, 1000)],
        method=sv.Whisper("certified" if certified else "regret"),
    )


CITY = 7  # the axis of the city among those of GAPS: four places without order


def split_release(experiment: sv.Experiment) -> sv.Release:
    """Return a release with split bins, one of them settled, and with arms that wait.

    If there are cities, one split is by them.
    """
    table = json.loads(wire.release_to_json(sv.Learner(experiment).release()))
    arms = list(range(len(experiment.arms)))
    contested = {"arms": arms[-2:], "propensities": [0.5, 0.5]}
    if arms[:-2]:
        contested["waiting"] = arms[:-2]
    table["cuts"] = {"": 0, "1": 1, "11": 2}
    if experiment.dimension > CITY:
        table |= {"cuts": {"": 0, "1": CITY, "11": CITY}, "sets": {"1": [0, 2, 3], "11": [3]}}
    table["bins"] = [
        {"bin": "0", **contested},
        {"bin": "10", "arms": [1], "propensities": [1.0]},
        {"bin": "110", "arms": [0, 1], "propensities": [0.5, 0.5]},
        {"bin": "111", **contested},
    ]
    table["reward_share"] = 30
    # Incomes are long-tailed; ages are not, and few people are near the ends.
    numbers = [axis for axis, each in enumerate(experiment.axes) if each.levels == 0]
    table["scale_share"] = 40
    table["thresholds"] = [0] * experiment.dimension
    for axis in numbers:
        table["thresholds"][axis] = 10 + axis
    table["scales"] = {str(numbers[-1]): [0.9 * (i / 32) ** 3 + 0.01 for i in range(1, 32)]}
    return wire.release_from_json(canonical_json(table).decode())


def context_of(draws: random.Random, *, gaps: bool) -> dict[str, Any]:
    """Somebody at random."""
    context: dict[str, Any] = {
        "age": draws.choice([10.0, 18.0, 35.9, 36, 54, 71.5, 90, 100]),
        "dose": draws.choice(["none", "low", "high"]),
        "été": draws.choice(["ä", "ß"]),
    }
    if gaps:
        context |= {
            "income": draws.choice([None, float("nan"), 0.0, 10, 13.7, 99]),
            "mood": draws.choice([None, "low", "middling", "high"]),
            "city": draws.choice([None, "Rome", "Oslo", "Atlantis", ""]),
            "ward": draws.choice(["1", "3", "4"]),
            "smokes": draws.random() < 0.5,
            "drives": draws.choice([None, False, True]),
        }
        if context["mood"] is None:
            del context["mood"]
    return context


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("arms", [2, 3])
@pytest.mark.parametrize("logged", [False, True])
def test_devices_answer_as_the_specification_says(
    arms: int, certified: bool, logged: bool, gaps: bool
) -> None:
    """If the guarantee is certified, no parts are cells: the signs of rows are told, then."""
    more = GAPS if gaps else []
    release = split_release(experiment(certified=certified, arms=arms, more=more))
    table = spec.release_of(wire.release_to_json(release))
    draws = random.Random(0)
    kinds: Counter[str] = Counter()
    parts: set[int] = set()
    rows: set[int] = set()
    for _ in range(600):
        context = context_of(draws, gaps=gaps)
        point = spec.point_of(table["experiment"], context)
        assert point == list(encode(release.experiment, context))
        assert spec.bin_of(table, point)[0] == release.partition.find(point)
        outcome = float(draws.random() < 0.5)
        if logged:
            device = sv.Device(release, population="logged")
            arm = draws.randrange(arms)
            made = device.report_logged(context, arm=f"arm {arm}", reward=outcome)
        else:
            device = sv.Device(release)
            arm = release.experiment.arms.index(device.choose(context))
            made = device.report(reward=outcome)
        report = spec.read_report(wire.report_to_bytes(made))
        assert isinstance(report.payload, bytes)
        assert report.question is not None
        question = spec.asked(table, report.question, report.population)
        kinds[question.kind] += 1
        assert question.mechanism is not None
        cell, value = spec.true_answer(table, question, context=context, arm=arm, outcome=outcome)
        values = spec.read_set(report.payload, question.mechanism.cells, question.mechanism.size)
        assert question.mechanism.size == 1
        assert cell is not None
        # A value of 0 is a sign at random.
        assert values[cell] == value or (value == 0 and values[cell] != 0)
        if question.kind not in (*spec.PLACES, *spec.ALL_BINS):
            parts.add(question.mechanism.parts)
            rows.add(question.row)
    assert parts == ({1} if certified else {1, 2, 3, 4} if gaps else {1, 2}) - (
        {1} if logged and not certified else set()
    )
    assert rows == ({0, 1, 2, 3} if gaps and certified else {0})
    if not logged:
        of_bins = set() if certified else {"BIN_REWARD", "BIN_MASS"}
        assert set(kinds) == {"CONTRAST", "LEVEL", "MASS", "REWARD", "SCALE"} | of_bins
    else:
        assert set(kinds) == {"COUNT", "OUTCOME", "LOGGED_SCALE"} | (
            {"LOGGED_LEVEL"} if arms == 2 else set()
        )


def test_contexts_with_gaps_and_their_questions_are_as_the_specification_says() -> None:
    release = split_release(experiment(more=GAPS))
    table = spec.release_of(wire.release_to_json(release))
    levels = spec.levels_of(table["experiment"])
    assert levels == [0, 0, 0, 0, 0, 0, 0, 4, 4, 0, 3]
    assert len(levels) == release.experiment.dimension
    draws, asked = random.Random(1), set()
    for _ in range(400):
        context = context_of(draws, gaps=True)
        point = spec.point_of(table["experiment"], context)
        assert point == list(encode(release.experiment, context))
        device = sv.Device(release)
        device.choose(context)
        report = spec.read_report(wire.report_to_bytes(device.report(reward=1.0)))
        assert report.question is not None
        asked.add(spec.asked(table, report.question, report.population).kind)
    assert asked - {"BIN_MASS"} == {"CONTRAST", "LEVEL", "MASS", "REWARD", "SCALE", "BIN_REWARD"}


def test_a_release_that_spells_out_a_flag_is_not_the_one_form() -> None:
    text = wire.release_to_json(sv.Learner(experiment(more=GAPS)).release())
    assert wire.release_to_json(wire.release_from_json(text)) == text
    table = json.loads(text)
    table["experiment"]["context"][0]["optional"] = False
    with pytest.raises(sv.WireError):
        wire.release_from_json(canonical_json(table).decode())


@pytest.mark.parametrize(
    ("who", "arms", "epsilon", "gaps"),
    [
        ("target", 3, 1.0, False),
        ("four bins", 3, 1.0, False),
        ("four bins", 2, 8.0, True),
        ("known", 2, 1.0, False),
        ("unknown", 3, 1.0, False),
        ("unknown", 2, 2.0, False),
        ("logged target", 2, 64.0, False),
        ("public arms", 3, 2.0, False),
        ("target", 3, 1.0, True),
        ("unknown", 2, 1.0, True),
        ("known", 3, 2.0, True),
        ("public arms", 3, 8.0, True),
        ("groups", 3, 1.0, False),
        ("groups", 2, 8.0, True),
    ],
)
def test_questions_are_drawn_as_the_specification_says(
    who: str, arms: int, epsilon: float, gaps: bool
) -> None:
    """Kinds and patterns, each to 5 standard deviations: a false alarm in 20,000 runs."""
    public = who == "public arms"
    a_log = replace(
        experiment(arms=arms, more=GAPS if gaps else []),
        epsilon=epsilon,
        auxiliary=[
            sv.Population("known", epsilon, 100, [1 / arms] * arms),
            sv.Population("unknown", epsilon, 100),
        ],
        method=sv.Whisper(public_arms=public),
        baseline={"arm": "arm 1", "share": 0.125} if who == "groups" else None,
    )
    release = split_release(a_log) if who == "four bins" else sv.Learner(a_log).release()
    # Some axes more often than others, and one not at all.
    about = [0, 100, 200, *[30] * (a_log.dimension - 3)]
    release = replace(release, ask=(1024 - sum(about), *about))
    assert min(release.ask) == release.ask[1] == 0
    table = spec.release_of(wire.release_to_json(release))
    population = {"known": 1, "unknown": 2}.get(who, 0)
    logged = who in ("logged target", "known", "unknown")
    shares = spec.question_shares(table, population=population, logged=logged)
    assert sum(shares.values()) == 1
    people, context = 6000, context_of(random.Random(2), gaps=gaps)
    counts: Counter[int] = Counter()
    for _ in range(people):
        name = a_log.populations[population].name
        device = sv.Device(release, population=name, public_arms=public)
        if logged:
            made = device.report_logged(context, arm="arm 0", reward=1.0)
        else:
            device.choose(context)
            made = device.report(reward=1.0)
        counts[made.question] += 1
    assert set(counts) <= set(shares)
    count = len(spec.patterns_of(table["experiment"]))
    assert count == (1 + 8 + 4 + 4 + 4 if gaps else 1 + 3)
    beyond = spec.first_about_all_bins(table["experiment"])
    about_bins = {number for number in shares if number >= beyond}
    assert len(about_bins) == (2 if who in ("four bins", "groups") else 0)
    about_places = {number for number in shares if number >= 8 * count} - about_bins
    assert len(about_places) == len(release.thresholds) - release.thresholds.count(0) > 0
    others = shares.keys() - about_places - about_bins
    kinds = [{number for number in others if number // count == kind} for kind in range(8)]
    kinds += [about_places, *({number} for number in (*about_places, *about_bins))]
    patterns = [{number for number in others if number % count == each} for each in range(count)]
    for numbers in (*kinds, *patterns):
        share = float(sum(shares[number] for number in numbers))
        came = sum(counts[number] for number in numbers)
        assert abs(came - people * share) <= 5 * (people * share * (1 - share)) ** 0.5


def test_a_set_is_packed_as_the_specification_says() -> None:
    draws = random.Random(1)
    for epsilon in (0.3, 1.0, 1.0986, 1.1, 2.0, 3.0, 5.0, 9.0, 64.0, 80.0):
        for whole in (1, 2, 3, 7, 40, 200):
            parts, certified = draws.choice([1, 2, 3, 5]), draws.random() < 0.3
            mechanism = spec.mechanism_for(epsilon, whole, parts=parts, certified=certified)
            cells = cell_mechanism(epsilon, whole, parts=1 if certified else parts)
            assert (cells.parts, cells.elsewhere) == (mechanism.parts, mechanism.elsewhere)
            values = [0] * mechanism.cells
            for cell in draws.sample(range(mechanism.cells), mechanism.size):
                values[cell] = draws.choice([-1, 1])
            packed = spec.write_set(values)
            theirs = package_mechanism(epsilon, mechanism)
            assert theirs == cells.mechanism
            assert subset.pack(theirs, values) == packed
            assert subset.unpack(theirs, packed) == values


def package_mechanism(epsilon: float, mechanism: spec.Mechanism) -> subset.SignedSubset:
    theirs = subset.signed_subset(epsilon, mechanism.cells)
    assert (theirs.size, theirs.told, theirs.other) == (mechanism.size, *spec.odds(epsilon))
    return theirs


def test_the_examples_on_the_page_are_right() -> None:
    with_set, with_numbers, an_experiment, a_release, *_ = EXAMPLES
    for example in (with_set, with_numbers):
        report = wire.report_from_json(json.dumps(example))
        assert json.loads(wire.report_to_json(report)) == example
    assert f"`{spec.fingerprint(an_experiment)}`" in PAGE
    assert sv.Experiment.from_table(an_experiment).fingerprint == spec.fingerprint(an_experiment)
    assert spec.canonical(a_release) in PAGE
    for epsilon, weight in re.findall(r"^\| ([\d.]+)(?: and above)? \| (\d{15,}) \|$", PAGE, re.M):
        assert spec.odds(float(epsilon))[0] == int(weight)
    signs = {"0": 0, "+": 1, "−": -1}
    rows = re.findall(r"^\| 12 \| \d+ \| ([0+− ]+) \| \w+ \| `(\w+)` \|$", PAGE, re.M)
    assert len(rows) == 2
    for values, packed in rows:
        assert spec.write_set([signs[each] for each in values.split()]).hex() == packed
    assert spec.write_set([0, 0, 0, 1, 0, 0, 0, 0, 0, -1, 0, 0]).hex() == "b701"
    assert "| `b701` |" in PAGE


@pytest.mark.parametrize(
    "value",
    [1.0, 0.05, 1e-05, 0.0001, 1e16, 1.5e16, 9007199254740993.0, 1e15, 1 / 3, 1e-9, 1e6, 5e-324],
)
def test_real_numbers_are_written_as_the_specification_says(value: float) -> None:
    assert spec.real(value) == json.dumps(value)
    assert spec.real(-value) == json.dumps(-value)


def test_a_signed_release_is_verified_as_the_specification_says(tmp_path: Path) -> None:
    key = SigningKey.create(tmp_path / "key")
    text = wire.release_to_json(split_release(experiment()))
    before = first_link(experiment().fingerprint)
    signed = json.loads(key.sign(text, before=before).to_json())
    assert signed["key"] == hashlib.sha256(key.public).hexdigest()[:16]
    Ed25519PublicKey.from_public_bytes(key.public).verify(
        bytes.fromhex(signed["signature"]), spec.signed_bytes(signed["before"], signed["release"])
    )
    assert SignedRelease.from_json(spec.canonical(signed).encode()).text == text


def test_links_are_as_the_specification_says() -> None:
    texts = ["first", "second", "third"]
    links = spec.links(experiment().fingerprint, texts)
    for count in range(len(texts) + 1):
        hashes = [wire.release_hash(text) for text in texts[:count]]
        found = last_link(first_link(experiment().fingerprint), hashes)
        assert found.hex() == links[count]


def test_every_reason_to_refuse_is_on_the_page() -> None:
    table = PAGE[PAGE.index("## What a server refuses") :]
    assert set(re.findall(r"^\| `([\w ]+)` \|", table, re.M)) == {
        reason.value for reason in sv.Rejection
    }
