"""Bins and numbers as people read them, such as "age 18–54, activity low or middling".

Names are those of the experiment, not escaped: the templates do that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Box
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.schema import MISSING, THERE, Boolean, Feature, Numeric, place_names

EVERYONE = "everyone"
Edge = tuple[float, float]
"""Where a box begins and ends along an axis."""

# So many levels are named; the others are counted.
MOST_LEVELS = 6


@dataclass(frozen=True, slots=True)
class Scale:
    """What people read along an axis.

    name: that of the axis.
    places: the names of its places; none along a number.
    number: the feature whose numbers lie along it; None for places.
    """

    name: str
    places: tuple[str, ...] = ()
    number: Numeric | None = None


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin as people read it.

    box: with the edges that ``rounded_to_levels`` gives it.
    description: who belongs to it.
    size: its share of all possible contexts, which is not its share of the people.
    """

    policy: BinPolicy
    box: Box
    description: str
    size: float


def bins_of(release: Release) -> list[Bin]:
    """Describe every bin of a release, in its order; once, for a page is asked for often."""
    found: list[Bin] = release.derived.get(bins_of, [])
    if not found:
        for policy in release.bins:
            box = release.partition.box(policy.path)
            rounded = rounded_to_levels(release, box)
            size = math.prod(high - low for low, high in rounded)
            found.append(Bin(policy, rounded, describe(release, box), size))
        release.derived[bins_of] = found
    return found


def scales_of(feature: Feature) -> list[Scale]:
    """Return the scale of each axis of a feature."""
    number = feature if isinstance(feature, Numeric) else None
    return [
        Scale(axis.name, places, None if places else number)
        for axis, places in zip(feature.axes, place_names(feature), strict=True)
    ]


def scales(experiment: Experiment) -> list[Scale]:
    """Return the scale of each axis of a context; once, for every bin is described by them."""
    found: list[Scale] = experiment.derived.get(scales, [])
    if not found:
        found = [scale for feature in experiment.context for scale in scales_of(feature)]
        experiment.derived[scales] = found
    return found


def rounded_to_levels(release: Release, box: Box) -> Box:
    """Move the edges of a box, along axes with places, to where the share of a place ends.

    Levels are points on their axis, and splits fall anywhere between them. With rounded edges a box
    covers as much of [0, 1] as it has levels, and one without a level is empty.
    """
    edges = []
    for axis, (low, high) in zip(release.experiment.axes, box, strict=True):
        if count := axis.levels:
            low, high = _levels_below(low, count) / count, _levels_below(high, count) / count
        edges.append((low, high))
    return tuple(edges)


def describe(release: Release, box: Box) -> str:
    """Say who belongs to a box; a feature that leaves nobody out is not mentioned."""
    ranges = zip(scales(release.experiment), box, strict=True)
    parts = [
        _describe_feature(feature, [next(ranges) for _ in feature.axes])
        for feature in release.experiment.context
    ]
    return ", ".join(part for part in parts if part) or EVERYONE


def _describe_feature(feature: Feature, ranges: Sequence[tuple[Scale, Edge]]) -> str:
    """Say which values of a feature lie in a box; nothing if it leaves nobody out."""
    (scale, (low, high)), *second = ranges
    everything = _leaves_out_nobody(scale, low, high)
    colon = ":" if isinstance(feature, Boolean) else ""
    values = "" if everything else f"{feature.name}{colon} {describe_range(scale, low, high)}"
    if not second:
        return values
    (whether, (first, last)) = second[0]
    # Those without a value lie at the lower end of the first axis, or at its first place.
    places = _places(scale, low, high)
    holds_missing = low == 0 if scale.number is not None else places[:1] == scale.places[:1]
    match _places(whether, first, last):
        case [_, _]:
            return f"{values} or {MISSING}" if values and holds_missing else values
        case [only] if only == THERE:
            return values or f"{feature.name} is {THERE}"
        case [_] if holds_missing:
            return f"{feature.name} is {MISSING}"
    return f"{feature.name} at no value"


def describe_path(release: Release, path: str) -> str:
    """Say who belongs to the bin of a path, which a later release may have split off."""
    known = path
    while known and known[:-1] not in release.partition.cuts:
        known = known[:-1]
    people = describe(release, release.partition.box(known))
    return people if known == path else f"a part of {people}"


def describe_range(scale: Scale, low: float, high: float) -> str:
    """Say what lies in [low, high) of an axis."""
    if scale.number is not None:
        first, last = _edge(scale.number, low), _edge(scale.number, high)
        return f"{first} to {last}" if first.startswith("−") else f"{first}–{last}"
    levels = _places(scale, low, high)
    if not levels:
        return "at no level"
    if len(levels) > MOST_LEVELS:
        return f"{', '.join(levels[:MOST_LEVELS])} or {len(levels) - MOST_LEVELS} others"
    return listed(levels, last="or")


def format_number(value: float, *, step: float) -> str:
    """Write a number with the digits that matter if its neighbours are a step away."""
    largest = max(abs(value), step)
    digits = math.ceil(math.log10(largest) - math.log10(step)) + 3
    if largest < 1e9:
        digits = max(digits, len(f"{largest:.0f}"))  # no 1.2e+05 for an income
    return f"{value:.{min(digits, 17)}g}".replace("-", "−")


def ticks(scale: Scale, *, most: int) -> list[tuple[float, str]]:
    """Return positions along an axis, on [0, 1], and what to write there."""
    if scale.number is not None:
        return _round_numbers(scale.number)
    count = len(scale.places)
    every = math.ceil(count / most)  # labels must not run into each other
    return [((i + 0.5) / count, scale.places[i]) for i in range(0, count, every)]


def _round_numbers(feature: Numeric) -> list[tuple[float, str]]:
    span = feature.high - feature.low
    if span < 1e-300:  # steps of it would vanish
        return [(end, _edge(feature, end)) for end in (0.0, 1.0)]
    rough = span / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough * 0.999)
    first, last = math.ceil(feature.low / step - 1e-9), math.floor(feature.high / step + 1e-9)
    values = [count * step for count in range(first, last + 1)]
    positions = [(min(max((value - feature.low) / span, 0.0), 1.0), value) for value in values]
    return [(position, format_number(value, step=step)) for position, value in positions]


def _edge(feature: Numeric, position: float) -> str:
    """Write the edge of a bin on a number's own scale, the same for all bins that have it."""
    span = feature.high - feature.low
    halvings = position.as_integer_ratio()[1]
    return format_number(feature.low + position * span, step=max(span / halvings, 5e-324))


def _levels_below(position: float, count: int) -> int:
    """Return how many of the levels, at (i + 1/2)/count, lie below a position."""
    return max(math.ceil(position * count - 0.5), 0)


def _places(scale: Scale, low: float, high: float) -> tuple[str, ...]:
    count = len(scale.places)
    return scale.places[_levels_below(low, count) : _levels_below(high, count)]


def _leaves_out_nobody(scale: Scale, low: float, high: float) -> bool:
    if scale.number is not None:
        return (low, high) == (0, 1)
    return _places(scale, low, high) == scale.places


def listed(names: Sequence[str], *, last: str = "and") -> str:
    """Write names one after the other, such as ``a, b and c``."""
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def fixed(value: float, digits: int = 0) -> str:
    """Write a number with so many digits after the point."""
    return f"{value:.{digits}f}"


def percent(share: float) -> str:
    """Write a share; of a tiny one, two digits."""
    return f"{share:.0%}" if share >= 0.01 or share == 0 else f"{100 * share:.2g}%"


def decimal(value: float | None, spec: str = ".2f") -> str:
    """Write a number that may not be known."""
    return "not known" if value is None else f"{value:{spec}}".replace("-", "−")


def worth(value: float | None) -> str:
    """Write what a report is worth; of less than 1, two digits."""
    return decimal(value, ".2g" if value is not None and value < 1 else ".2f")


def odds(epsilon: float) -> str:
    """Write e^ε, the largest factor by which one report can change anybody's odds."""
    if epsilon > 20:
        return f"e^{epsilon:g}"
    factor = math.exp(epsilon)
    return f"{factor:.3g}" if factor < 100 else f"{factor:,.0f}"
