"""A third device, from docs/reference/wire-format.md alone, without anything of the package.

What does not change from one person to the next is in ``support/specification.py``. This module
draws from a given stream and writes whole reports, for experiments that were not amended.
"""

import hashlib
import hmac
from fractions import Fraction
from typing import Any

from support import specification as spec

Table = dict[str, Any]


class Stream:
    def __init__(self, seed: str) -> None:
        self.seed, self.ready, self.blocks, self.taken = seed, b"", 0, 0

    def bytes(self, count: int) -> bytes:
        while len(self.ready) < count:
            self.ready += hashlib.sha256(f"{self.seed} {self.blocks}".encode()).digest()
            self.blocks += 1
        self.taken += count
        found, self.ready = self.ready[:count], self.ready[count:]
        return found

    def bits(self, count: int) -> int:
        length = -(-count // 8)
        return int.from_bytes(self.bytes(length), "big") >> 8 * length - count

    def below(self, limit: int) -> int:
        while (drawn := self.bits(len(bin(limit)) - 2)) >= limit:
            pass
        return drawn


def drawn_arm(policy: Table, coin: int) -> int:
    total, sums = 0.0, []
    for chance in policy["propensities"]:
        total += chance
        sums.append(total)
    for arm, each in zip(policy["arms"], sums[:-1], strict=False):
        if coin < round(2**53 * (each / total)):
            return int(arm)
    return int(policy["arms"][-1])


def drawn_ranking(stream: Stream, arms: int) -> list[int]:
    left = list(range(arms))
    return [left.pop(stream.below(len(left))) for _ in range(arms)]


def drawn_question(stream: Stream, release: Table, population: int, *, logged: bool) -> int:
    """Return the number of a question."""
    experiment = release["experiment"]
    patterns = spec.patterns_of(experiment)
    d, method, ask = len(spec.levels_of(experiment)), experiment["method"], release["ask"]
    if population == 0 and not logged and stream.below(160) < release.get("reward_share", 0):
        certified = method["guarantee"] == "certified"
        if len(release["bins"]) > 1 and not method["public_arms"] and not certified:
            coin = stream.below(160)
            if coin < 96:
                return spec.first_about_all_bins(experiment) + (coin >= 77)
        elif len(release["bins"]) > 1:
            stream.below(160)
        return 6 * len(patterns)
    if stream.below(160) < release.get("scale_share", 0):
        axes = [axis for axis, each in enumerate(release["thresholds"]) if each]
        axis = axes[stream.below(len(axes))]
        place = release["thresholds"][axis] - 1
        return int(8 * len(patterns) + 27 * (d * logged + axis) + place)
    first = spec.KINDS.index(drawn_kind(stream, experiment, population, logged=logged))
    first *= len(patterns)
    if not (whole := spec.asked(release, first, population)).cells:
        return first
    known = {axis: first + n for n, (axis, row) in enumerate(patterns) if row == 0}
    parts = {axis: spec.asked(release, known[axis], population).mechanism for axis in range(d)}
    ordered = [axis for axis, count in enumerate(spec.levels_of(experiment)) if not count]
    assert whole.mechanism is not None
    mass = ask[0]
    if any(each.parts == 2 for axis in ordered if (each := parts[axis])):
        mass = 0
    elif logged:
        most = (120, 40) if whole.mechanism.elsewhere else (72, 88)
        mass = min(ask[0], (1024 - ask[0]) * most[0] // most[1])
    coin = stream.below(mass + 1024 - ask[0]) - mass
    if coin < 0:
        return first
    asked: int = 0
    while coin >= ask[1 + asked]:
        coin -= ask[1 + asked]
        asked += 1
    rows = sum(each == asked for each, _ in patterns)
    along = parts[asked]
    return known[asked] + stream.below(1 if along and along.parts > 1 else rows)


def drawn_kind(stream: Stream, experiment: Table, population: int, *, logged: bool) -> str:
    coin, two = stream.below(160), len(experiment["arms"]) == 2
    if not logged:
        if coin < 8:
            return "MASS"
        if experiment["method"]["public_arms"]:
            return "RANKED"
        return "LEVEL" if coin < 13 else "CONTRAST"
    known = population > 0 and "behaviour" in experiment["auxiliary"][population - 1]
    share = 16 if known else 80
    if coin < share:
        return "COUNT"
    return "LOGGED_LEVEL" if two and coin < share + 32 else "OUTCOME"


def drawn_set(
    stream: Stream, epsilon: float, cells: int, size: int, cell: int | None, value: float
) -> list[int]:
    a, b = spec.odds(epsilon)
    sign = 1 if stream.bits(1127) < Fraction(2) ** 1126 * (1 + Fraction(value)) else -1
    told = stream.below(size * a + (2 * cells - size) * b) < size * a
    turned = stream.below(2 * cells - size) < size
    few, order = min(size, cells - size), list(range(cells))
    picks = few + 1 if few else 0
    for start in range(0, picks, 64):
        stop, ways = min(start + 64, picks), 1
        for i in range(start, stop):
            ways *= cells - i
        number = stream.below(ways)
        for i in range(start, stop):
            number, p = divmod(number, cells - i)
            order[i], order[i + p] = order[i + p], order[i]
    small = size == few
    members = order[:few] if small else order[few:]
    leaver, joiner = (order[0], order[few]) if small else (order[few], order[0])
    signs, values = stream.bits(size), [0] * cells
    for place, member in enumerate(members):
        values[member] = 1 if signs >> size - 1 - place & 1 else -1
    if cell is None:
        return values
    wanted = sign if told else -sign if turned else 0
    if wanted and not values[cell]:
        values[leaver] = 0
    elif not wanted and values[cell]:
        values[joiner] = values[cell]
    values[cell] = wanted
    return values


def scaled(experiment: Table, reward: Any) -> float | None:
    if reward is None:
        return None
    counted = experiment.get("reward", "yes/no")
    low, high = (0.0, 1.0) if counted == "yes/no" else counted
    return float((min(max(reward, low), high) - low) / (high - low))


def told(stream: Stream, release: Table, case: Table, number: int, arm: int, y: Any) -> list[int]:
    """Return the set that answers a question; y: the outcome, or None for nothing to tell."""
    experiment = release["experiment"]
    budgets = [experiment["epsilon"], *(each["epsilon"] for each in experiment["auxiliary"])]
    population = population_of(experiment, case)
    question = spec.asked(release, number, population)
    if question.mechanism is None:
        return []
    cells, size, _, elsewhere = question.mechanism
    about = question.kind in ("REWARD", *spec.PLACES)
    cell, value = (cells - 1 if elsewhere and not about else None), 0.0
    if y is not None:
        cell, value = spec.true_answer(
            release, question, context=case["context"], arm=arm, outcome=y
        )
    return drawn_set(stream, budgets[population], cells, size, cell, value)


def population_of(experiment: Table, case: Table) -> int:
    names = ["target", *(each["name"] for each in experiment["auxiliary"])]
    return names.index(case["population"])


def outcome(case: Table, text: str) -> dict[str, Any]:
    """Return what the device gives: arm, question, report and how many bytes were taken."""
    release, stream = spec.release_of(text), Stream(case["seed"])
    experiment = release["experiment"]
    population, logged = population_of(experiment, case), "logged" in case["kind"]
    arm, ranking, y = 0, [], scaled(experiment, case["reward"])
    if case["kind"] == "nothing logged":
        y = None
    elif logged:
        arm = experiment["arms"].index(case["arm"])
    else:
        path, _ = spec.bin_of(release, spec.point_of(experiment, case["context"]))
        (policy,) = (each for each in release["bins"] if each["bin"] == path)
        if experiment["method"]["public_arms"]:
            ranking = drawn_ranking(stream, len(experiment["arms"]))
            arm = next(each for each in ranking if each in policy["arms"])
        else:
            arm = drawn_arm(policy, coin_of(stream, case, policy))
    number = drawn_question(stream, release, population, logged=logged)
    if case["kind"] == "decision":
        good = told(stream, release, case, number, arm, 1.0)
        none = told(stream, release, case, number, arm, None)
        nonce = stream.bytes(16)
        up = stream.bits(1127) < Fraction(2) ** 1126 * (1 + Fraction(0 if y is None else 2 * y - 1))
        kind = spec.asked(release, number, population).kind
        turns = kind not in ("MASS", "COUNT", "BIN_MASS", *spec.PLACES)
        values = none if y is None else good if up or not turns else [-each for each in good]
    else:
        values = told(stream, release, case, number, arm, y)
        nonce = stream.bytes(16)
    ranked = spec.asked(release, number, population).kind == "RANKED"
    report = bytes((0x73, 0x76, 5, 3)) + bytes.fromhex(spec.release_id(text))
    report += population.to_bytes(2, "little") + nonce + number.to_bytes(2, "little")
    report += bytes((len(ranking), *ranking)) if ranked else b"\0"
    report += spec.write_set(values) if values else b""
    name = None if logged else experiment["arms"][arm]
    return {"arm": name, "question": number, "report": report.hex(), "bytes": stream.taken}


def coin_of(stream: Stream, case: Table, policy: Table) -> int:
    if "key" not in case:
        return stream.bits(53)

    def written(values: list[Any]) -> str:
        return f"({', '.join(map(repr, values))}{',' * (len(values) == 1)})"

    arms, chances = written(policy["arms"]), written(policy["propensities"])
    text = f"('{policy['bin']}', {arms}, {chances})"
    digest = hmac.digest(bytes.fromhex(case["key"]), text.encode(), "sha256")
    return int.from_bytes(digest, "big") >> 256 - 53
