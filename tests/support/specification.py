"""docs/reference/wire-format.md, implemented a second time, from its text alone.

Nothing of the package is imported here: what agrees with the package agrees because the text is
right. Written to be short, not fast.
"""

import hashlib
import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

KINDS = ["CONTRAST", "LEVEL", "MASS", "OUTCOME", "COUNT", "RANKED", "REWARD", "LOGGED_LEVEL"]
PLACES = ["SCALE", "LOGGED_SCALE"]
ALL_BINS = ["BIN_REWARD", "BIN_MASS"]
GROUPS = ["POLICY_REWARD", "BASELINE_REWARD"]
TAIL = [1, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768]
THRESHOLDS = [t / 2048 for t in [*TAIL, 1024, *(2048 - t for t in reversed(TAIL))]]


class Report(NamedTuple):
    release: str
    population: int
    nonce: str
    question: int | None
    ranking: list[int]
    payload: bytes | list[float]


class Mechanism(NamedTuple):
    cells: int
    size: int
    parts: int
    elsewhere: bool


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def read_report(data: bytes) -> Report:
    assert data[:3] == b"sv\x05"
    common = (data[4:16].hex(), number(data[16:18]), data[18:34].hex())
    if data[3] == 1:
        doubles = data[38:]
        assert len(doubles) == 8 * number(data[34:38])
        values = [read_double(doubles[i : i + 8]) for i in range(0, len(doubles), 8)]
        return Report(*common, None, [], values)
    assert data[3] == 3
    ranked = data[36]
    return Report(*common, number(data[34:36]), list(data[37 : 37 + ranked]), data[37 + ranked :])


def read_double(data: bytes) -> float:
    bits = number(data)
    sign, exponent, fraction = bits >> 63, bits >> 52 & 0x7FF, bits & (2**52 - 1)
    assert exponent < 0x7FF
    size = Fraction(fraction + (2**52 if exponent else 0)) * Fraction(2) ** (
        max(exponent, 1) - 1075
    )
    return float(-size if sign else size)


def read_batch(data: bytes) -> list[bytes]:
    assert data[:4] == b"sv\x05\x04"
    count = number(data[4:8])
    lengths = [number(data[8 + 4 * i : 12 + 4 * i]) for i in range(count)]
    starts = [8 + 4 * count + sum(lengths[:i]) for i in range(count + 1)]
    assert starts[-1] == len(data)
    return [data[start : start + length] for start, length in zip(starts, lengths, strict=False)]


def canonical(value: Any) -> str:
    if isinstance(value, dict):
        items = sorted(value.items())
        return "{" + ",".join(f"{canonical(key)}:{canonical(item)}" for key, item in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(map(escaped, value)) + '"'
    return str(value) if isinstance(value, int) else real(value)


def escaped(character: str) -> str:
    known = dict(zip('"\\\b\t\n\f\r', '"\\btnfr', strict=True))
    if character in known:
        return "\\" + known[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be").hex()
    return "".join("\\u" + units[i : i + 4] for i in range(0, len(units), 4))


def real(value: float) -> str:
    if value == 0:
        return "0.0"
    for digits in range(17):  # the fewest that identify the double
        mantissa, _, power = f"{value:.{digits}e}".partition("e")
        if float(f"{mantissa}e{power}") == value:
            break
    exponent = int(power)
    if not -4 <= exponent < 16:
        return f"{mantissa}e{exponent:+03d}"
    written = f"{Decimal(f'{mantissa}e{power}'):f}"
    return written if "." in written else written + ".0"


def fingerprint(experiment: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(experiment).encode("ascii")).hexdigest()


def release_id(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:24]


def signed_bytes(before: str, text: str) -> bytes:
    return b"sottovoce release 2\x0a" + bytes.fromhex(before) + text.encode("ascii")


def links(experiment: str, texts: list[str]) -> list[str]:
    """Return the link before the first release, and the link of each."""
    found = [hashlib.sha256(b"sottovoce chain 1\x0a" + bytes.fromhex(experiment)).digest()]
    for text in texts:
        found.append(hashlib.sha256(found[-1] + hashlib.sha256(text.encode()).digest()).digest())
    return [each.hex() for each in found]


def point_of(experiment: dict[str, Any], context: dict[str, Any]) -> list[float]:
    point = []
    for feature in experiment["context"]:
        value, optional = context.get(feature["name"]), feature.get("optional", False)
        missing = value is None or value != value
        assert optional or not missing
        if "numeric" in feature:
            low, high = feature["numeric"]
            inside = 0 if missing else min(max(value, low), high) - low
            point.append(inside / (high - low))
        elif "ordinal" in feature:
            levels = feature["ordinal"]
            index = 0 if missing else levels.index(value)
            point.append((index + 0.5) / len(levels))
        else:
            places: list[Any] = feature.get("categorical", [False, True])
            other = feature.get("other", False)
            count = len(places) + other + optional
            assert missing or other or value in places
            known = places.index(value) if value in places else len(places)
            index = count - 1 if missing else known
            point.append((index + 0.5) / count)
        if has_second_axis(feature):
            point.append(0.75 if missing else 0.25)
    return point


def has_second_axis(feature: dict[str, Any]) -> bool:
    return feature.get("optional", False) and ("numeric" in feature or "ordinal" in feature)


def levels_of(experiment: dict[str, Any]) -> list[int]:
    """Return the number of levels of each axis without order, and 0 for the other axes."""
    found = []
    for feature in experiment["context"]:
        places = 0
        if "categorical" in feature or "boolean" in feature:
            places = len(feature.get("categorical", "ft")) + feature.get("other", False)
            places += feature.get("optional", False)
        without_order = places >= 3 and experiment["method"]["name"] == "whisper"
        found += [places if without_order else 0] + [0] * has_second_axis(feature)
    return found


def level_of(x: float, levels: int) -> int:
    return min(math.floor(x * levels), levels - 1)


def patterns_of(experiment: dict[str, Any]) -> list[tuple[int | None, int]]:
    """Return the axis and the row of each pattern; the first one is about no axis."""
    found: list[tuple[int | None, int]] = [(None, 0)]
    for axis, levels in enumerate(levels_of(experiment)):
        rows = 1
        while rows < levels:
            rows *= 2
        found += [(axis, row) for row in range(rows)]
    return found


def sign_of(row: int, level: int) -> int:
    return -1 if bin(row & level).count("1") % 2 else 1


def position_of(release: dict[str, Any], axis: int, place: float) -> float:
    """Return where a place on the scale of an axis lies on the axis."""
    knots = release.get("scales", {}).get(str(axis))
    if knots is None:
        return place
    knots = [0.0, *knots, 1.0]
    i = min(math.floor(place * 32), 31)
    start: float = knots[i]
    end: float = knots[i + 1]
    return start + (place * 32 - i) * (end - start)


def bin_of(release: dict[str, Any], point: list[float]) -> tuple[str, list[list[float]]]:
    edges, path = [[0.0, 1.0] for _ in point], ""
    levels = levels_of(release["experiment"])
    while path in release["cuts"]:
        axis = release["cuts"][path]
        if levels[axis]:
            path += "1" if level_of(point[axis], levels[axis]) in release["sets"][path] else "0"
            continue
        low, high = edges[axis]
        middle = (low + high) / 2
        below = point[axis] < position_of(release, axis, middle)
        edges[axis] = [low, middle] if below else [middle, high]
        path += "0" if below else "1"
    return path, edges


@cache
def odds(epsilon: float) -> tuple[int, int]:
    with localcontext(prec=150):
        return int(Decimal(min(epsilon, 64.0)).exp() * 2**64), 2**64


def size_of(epsilon: float, cells: int) -> int:
    a, b = odds(epsilon)
    below = 2 * cells * b // (a - b)
    better = below * (below + 1) * (a - b) ** 2 > (2 * cells * b) ** 2
    return min(cells, below if better else below + 1)


def noises(epsilon: float, cells: int) -> tuple[float, float]:
    a, b = odds(epsilon)
    w = size_of(epsilon, cells)
    t = w * a + (2 * cells - w) * b
    other = float(Fraction((t - a - b) * t, (cells - 1) * w * (a - b) ** 2))
    return other, float(Fraction((a + b) * t, w * (a - b) ** 2))


@cache
def mechanism_for(epsilon: float, whole: int, *, parts: int, certified: bool) -> Mechanism:
    """parts: how many the axis of the question has; 1 if it is about none."""
    a, b = odds(epsilon)
    if a <= 3 * b:
        return Mechanism(whole, size_of(epsilon, whole), 1, elsewhere=False)
    (o, i), (oq, iq) = noises(epsilon, whole + 1), noises(epsilon, parts * whole + 1)
    usual = o + (i - o) / whole
    if parts == 2:
        cheap = 2 * oq + (iq - oq) / whole < 1.3 * usual
    else:
        cheap = parts > 1 and oq + (iq - oq) / (parts * whole) < usual
    if certified or not cheap:
        parts = 1
    cells = parts * whole + 1
    return Mechanism(cells, size_of(epsilon, cells), parts, elsewhere=True)


def live(policy: dict[str, Any]) -> list[int]:
    return sorted(policy["arms"] + policy.get("waiting", []))


def whole_cells(release: dict[str, Any], *, by_arm: bool) -> list[tuple[str, int | None]]:
    contested = [policy for policy in release["bins"] if len(live(policy)) > 1]
    return [(each["bin"], arm) for each in contested for arm in (live(each) if by_arm else [None])]


class Asked(NamedTuple):
    """A question of a release: its kind, axis and row, its whole cells and its mechanism."""

    kind: str
    axis: int | None
    row: int
    by_arm: bool
    cells: list[tuple[str, int | None]]
    mechanism: Mechanism | None


def first_about_all_bins(experiment: dict[str, Any]) -> int:
    places = len(PLACES) * len(THRESHOLDS) * len(levels_of(experiment))
    return len(KINDS) * len(patterns_of(experiment)) + places


def about_all_bins(release: dict[str, Any], kind: int) -> Asked:
    experiment, paths = release["experiment"], [each["bin"] for each in release["bins"]]
    assert len(paths) > 1
    assert not experiment["method"]["public_arms"]
    assert experiment["method"]["guarantee"] == "regret"
    plain = Mechanism(len(paths), size_of(experiment["epsilon"], len(paths)), 1, elsewhere=False)
    return Asked(ALL_BINS[kind], None, 0, False, [(path, None) for path in paths], plain)


def asked(release: dict[str, Any], question: int, population: int) -> Asked:
    experiment = release["experiment"]
    patterns = patterns_of(experiment)
    about = question - len(KINDS) * len(patterns)
    of_group = question - first_about_all_bins(experiment) - len(ALL_BINS)
    if of_group >= 0:
        assert experiment["baseline"]
        assert population == 0
        return Asked(GROUPS[of_group], None, 0, False, [], Mechanism(1, 1, 1, elsewhere=False))
    if question >= first_about_all_bins(experiment):
        assert population == 0
        return about_all_bins(release, question - first_about_all_bins(experiment))
    if about >= 0:
        axes, threshold = divmod(about, len(THRESHOLDS))
        place, along = divmod(axes, len(levels_of(experiment)))
        one = Mechanism(1, 1, 1, elsewhere=False)
        return Asked(PLACES[place], along, threshold, False, [], one)
    place, pattern = divmod(question, len(patterns))
    kind, (axis, row) = KINDS[place], patterns[pattern]
    budgets = [experiment["epsilon"], *(each["epsilon"] for each in experiment["auxiliary"])]
    if kind == "REWARD":
        assert pattern == 0
        return Asked(kind, None, 0, False, [], Mechanism(1, 1, 1, elsewhere=False))
    by_arm = kind == "COUNT" or (kind == "OUTCOME" and len(experiment["arms"]) > 2)
    cells = whole_cells(release, by_arm=by_arm)
    certified = experiment["method"].get("guarantee") == "certified"
    mechanism = None
    if cells:
        parts = 1 if axis is None else levels_of(experiment)[axis] or 2
        budget = budgets[population]
        mechanism = mechanism_for(budget, len(cells), parts=parts, certified=certified)
        assert row == 0 or mechanism.parts == 1
    return Asked(kind, axis, row, by_arm, cells, mechanism)


def bytes_for(numbers: int) -> int:
    return math.ceil((numbers - 1).bit_length() / 8)


def packing(cells: int, size: int) -> tuple[str, int]:
    if size == cells:
        return "bits", bytes_for(2**cells)
    symbols, digits = bytes_for((2 * cells) ** size), bytes_for(3**cells)
    return ("symbols", symbols) if symbols <= digits else ("digits", digits)


def write_set(values: list[int]) -> bytes:
    cells, chosen = len(values), [c for c, value in enumerate(values) if value]
    whole: int
    name, length = packing(cells, len(chosen))
    if name == "bits":
        whole = sum(2**c for c in chosen if values[c] > 0)
    elif name == "symbols":
        whole = sum((2 * c + (values[c] > 0)) * (2 * cells) ** k for k, c in enumerate(chosen))
    else:
        whole = sum((2 if values[c] > 0 else 1) * 3**c for c in chosen)
    return whole.to_bytes(length, "little")


def read_set(data: bytes, cells: int, size: int) -> list[int]:
    name, length = packing(cells, size)
    assert len(data) == length
    whole = number(data)
    if name == "bits":
        values = [1 if whole >> c & 1 else -1 for c in range(cells)]
    elif name == "symbols":
        values = [0] * cells
        for k in range(size):
            symbol = whole // (2 * cells) ** k % (2 * cells)
            values[symbol // 2] = 1 if symbol % 2 else -1
    else:
        values = [(0, -1, 1)[whole // 3**c % 3] for c in range(cells)]
    assert write_set(values) == data
    assert sum(map(abs, values)) == size
    return values


def true_answer(
    release: dict[str, Any], question: Asked, *, context: dict[str, Any], arm: int, outcome: float
) -> tuple[int | None, float]:
    """Return the cell and the value of a person."""
    assert question.mechanism is not None
    value = 1.0 if question.kind in ("MASS", "COUNT", "BIN_MASS") else 2 * outcome - 1
    if question.kind == "REWARD":
        return 0, value
    point = point_of(release["experiment"], context)
    if question.kind in PLACES:
        assert question.axis is not None
        return 0, 1.0 if point[question.axis] >= THRESHOLDS[question.row] else -1.0
    path, edges = bin_of(release, point)
    wanted = (path, arm if question.by_arm else None)
    if wanted not in question.cells:
        return (question.mechanism.cells - 1 if question.mechanism.elsewhere else None), 0.0
    index = question.cells.index(wanted)
    (policy,) = (each for each in release["bins"] if each["bin"] == path)
    compares = question.kind == "CONTRAST" or (question.kind == "OUTCOME" and not question.by_arm)
    if compares and arm != policy["arms"][0]:
        value = -value
    if question.axis is None:
        return index, value
    if levels := levels_of(release["experiment"])[question.axis]:
        part = level_of(point[question.axis], levels)
        sign = sign_of(question.row, part)
    else:
        low, high = edges[question.axis]
        middle = position_of(release, question.axis, (low + high) / 2)
        part = int(point[question.axis] >= middle)
        sign = 1 if part else -1
    if question.mechanism.parts > 1:
        return question.mechanism.parts * index + part, value
    return index, sign * value


def release_of(text: str) -> dict[str, Any]:
    release: dict[str, Any] = json.loads(text)
    assert canonical(release) == text
    return release


def question_shares(
    release: dict[str, Any], *, population: int, logged: bool
) -> dict[int, Fraction]:
    """Return the probability of each question, by its number."""
    experiment = release["experiment"]
    patterns, arms = patterns_of(experiment), len(experiment["arms"])
    levels, ask = levels_of(experiment), release["ask"]
    shares: dict[int, Fraction] = {}
    left = Fraction(1)
    if not logged and population == 0 and "baseline_share" in release:
        for group in range(len(GROUPS)):
            number = first_about_all_bins(experiment) + len(ALL_BINS) + group
            shares[number] = Fraction(release["baseline_share"], 10_000)
            left -= shares[number]
    if not logged and population == 0 and release.get("reward_share", 0):
        told_it = left * Fraction(release["reward_share"], 160)
        left -= told_it
        method, of_reward = experiment["method"], {"REWARD": 160}
        certified = method.get("guarantee") == "certified"
        if len(release["bins"]) > 1 and not method["public_arms"] and not certified:
            of_reward = {"BIN_REWARD": 77, "BIN_MASS": 19, "REWARD": 64}
        for kind, share in of_reward.items():
            if kind in ALL_BINS:
                first = first_about_all_bins(experiment) + ALL_BINS.index(kind)
            else:
                first = KINDS.index(kind) * len(patterns)
            shares[first] = told_it * Fraction(share, 160)
    told = [axis for axis, each in enumerate(release.get("thresholds", [])) if each]
    scale = left * Fraction(release.get("scale_share", 0), 160)
    for axis in told:
        first = len(KINDS) * len(patterns) + (logged * len(levels) + axis) * len(THRESHOLDS)
        shares[first + release["thresholds"][axis] - 1] = scale / len(told)
    left -= scale
    if logged:
        known = population > 0 and "behaviour" in experiment["auxiliary"][population - 1]
        kinds = {"COUNT": 16 if known else 80}
        if arms == 2:
            kinds["LOGGED_LEVEL"] = 32
        kinds["OUTCOME"] = 160 - sum(kinds.values())
    elif experiment["method"]["public_arms"]:
        kinds = {"MASS": 8, "RANKED": 152}
    else:
        kinds = {"MASS": 8, "LEVEL": 5, "CONTRAST": 147}
    for kind, share in kinds.items():
        first, own = KINDS.index(kind) * len(patterns), left * Fraction(share, 160)
        ways = [
            [n for n, (j, _) in enumerate(patterns) if j == axis] for axis in range(len(levels))
        ]
        mechanism = asked(release, first, population).mechanism
        assert mechanism is not None
        known_parts = []  # of the mechanism of each axis
        for numbers in ways:
            along = asked(release, first + numbers[0], population).mechanism
            assert along is not None
            known_parts.append(along.parts)
        mass = ask[0]
        if any(parts == 2 and not count for parts, count in zip(known_parts, levels, strict=True)):
            mass = 0
        elif logged:
            most = (120, 40) if mechanism.elsewhere else (72, 88)
            mass = min(ask[0], (1024 - ask[0]) * most[0] // most[1])
        whole = mass + 1024 - ask[0]
        shares[first] = own * Fraction(mass, whole)
        for axis, numbers in enumerate(ways):
            drawn = numbers[:1] if known_parts[axis] > 1 else numbers
            for each in drawn:
                shares[first + each] = own * Fraction(ask[1 + axis], whole) / len(drawn)
    return {number: share for number, share in shares.items() if share}
