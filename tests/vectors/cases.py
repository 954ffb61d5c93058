"""What a device does with a release, a person and a stream of random bytes."""

import hashlib
import random
import secrets
from collections.abc import Sequence
from typing import Any

import sottovoce as sv
from factories import Purse
from sottovoce.device.coins import FreshCoins, StickyCoins
from sottovoce.device.deciding import DecidingDevice
from sottovoce.device.privatise import finish
from sottovoce.shared import wire
from sottovoce.shared.errors import SottovoceError
from vectors import worlds
from vectors.stream import Stream, given

Case = dict[str, Any]

KINDS = ["report", "report", "report", "decision", "decision", "logged", "logged", "nothing logged"]


def case_of(draws: random.Random, releases: Sequence[sv.Release], seed: str) -> Case:
    """One case, and what Python's device does in it."""
    place = draws.randrange(len(releases))
    experiment = releases[place].experiment
    case: Case = {
        "release": place,
        "kind": draws.choice(KINDS),
        "population": draws.choice(experiment.populations).name,
        "context": worlds.context(draws, experiment),
        "reward": worlds.reward(draws, experiment),
        "seed": seed,
    }
    if case["kind"] == "logged":
        case["arm"] = draws.choice(experiment.arms)
    if case["kind"] == "decision" and draws.random() < 0.6:
        case["key"] = hashlib.sha256(seed.encode()).hexdigest()
    return {**case, "gives": outcome(case, releases[place])}


def outcome(case: Case, release: sv.Release, *, drawing: Any = given) -> dict[str, Any]:
    """Return what a device gives: the arm and the report, or the error."""
    purse = Purse()
    given_to = {"population": case["population"], "ledger": purse, "public_arms": True}
    stream, arm = Stream(case["seed"]), None
    with drawing(stream):
        try:
            if case["kind"] == "decision":
                arm, report = _decided(case, DecidingDevice(release, **given_to), release)
            else:
                device = sv.Device(release, **given_to)
                if case["kind"] == "report":
                    arm = device.choose(case["context"])
                    report = device.report(reward=case["reward"])
                elif case["kind"] == "logged":
                    row = {"arm": case["arm"], "reward": case["reward"]}
                    report = device.report_logged(case["context"], **row)
                else:
                    report = device.report_nothing_logged()
        except SottovoceError as error:
            # OpenDP's noise follows from no stream.
            if release.experiment.settings.name != "whisper" and release.contested:
                return {"error": "DeviceError", "arm": arm}
            return {"error": type(error).__name__, "message": str(error), "arm": arm}
    if isinstance(report, sv.Report) and isinstance(report.payload, tuple) and report.payload:
        return {"error": "DeviceError", "arm": None if case["kind"] == "decision" else arm}
    spent = [cost for cost, *_ in purse.spent]
    told = None if report is None else wire.report_to_bytes(report).hex()
    asked = None if report is None else report.question
    return {"arm": arm, "question": asked, "report": told, "bytes": stream.taken, "spent": spent}


def _decided(
    case: Case, device: DecidingDevice, release: sv.Release
) -> tuple[str, sv.Report | None]:
    coins = StickyCoins(bytes.fromhex(case["key"])) if "key" in case else FreshCoins()
    drawn = device.draw(case["context"], coins=coins)
    if drawn.trouble is not None:
        raise drawn.trouble
    if drawn.prepared is None:
        return drawn.arm, None
    nonce = secrets.token_bytes(16)
    payload = finish(release.experiment, drawn.prepared.kept, reward=case["reward"])
    asked = drawn.prepared
    report = sv.Report(
        drawn.release, drawn.population, nonce, payload, asked.question, asked.ranking
    )
    return drawn.arm, report


def cases(seed: int, *, grown: int, built: int, count: int, reports: int = 400) -> dict[str, Any]:
    """So many cases over releases of so many experiments."""
    draws = random.Random(seed)
    releases = worlds.releases(draws, worlds=grown, built_for=built, reports=reports)
    found = [case_of(draws, releases, f"{seed}/{number}") for number in range(count)]
    return {"releases": [wire.release_to_json(each) for each in releases], "cases": found}
