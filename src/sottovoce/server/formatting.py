"""Bins and numbers as people read them, such as "age 18–54, activity low or middling".

Names are those of the experiment, not escaped: the templates do that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.shared.partition import Box
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.schema import Categorical, Feature, Numeric, Ordinal

EVERYONE = "everyone"
# So many levels are named; the others are counted.
MOST_LEVELS = 6


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


def rounded_to_levels(release: Release, box: Box) -> Box:
    """Move the edges of a box, along features with levels, to where one level ends.

    Levels are points on their axis, and splits fall anywhere between them. With rounded edges a box
    covers as much of [0, 1] as it has levels, and one without a level is empty.
    """
    edges = []
    for feature, (low, high) in zip(release.experiment.context, box, strict=True):
        if not isinstance(feature, Numeric):
            count = len(feature.levels)
            low, high = _levels_below(low, count) / count, _levels_below(high, count) / count
        edges.append((low, high))
    return tuple(edges)


def describe(release: Release, box: Box) -> str:
    """Say who belongs to a box; a feature that leaves nobody out is not mentioned."""
    parts = []
    for feature, (low, high) in zip(release.experiment.context, box, strict=True):
        if not _leaves_out_nobody(feature, low, high):
            parts.append(f"{feature.name} {describe_range(feature, low, high)}")
    return ", ".join(parts) or EVERYONE


def describe_path(release: Release, path: str) -> str:
    """Say who belongs to the bin of a path, which a later release may have split off."""
    known = path
    while known and known[:-1] not in release.partition.cuts:
        known = known[:-1]
    people = describe(release, release.partition.box(known))
    return people if known == path else f"a part of {people}"


def describe_range(feature: Feature, low: float, high: float) -> str:
    """Say which values of a feature lie in [low, high) of its axis."""
    if isinstance(feature, Numeric):
        first, last = _edge(feature, low), _edge(feature, high)
        return f"{first} to {last}" if first.startswith("−") else f"{first}–{last}"
    levels = _levels(feature, low, high)
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


def ticks(feature: Feature, *, most: int) -> list[tuple[float, str]]:
    """Return positions along a feature's axis, on [0, 1], and what to write there."""
    if isinstance(feature, Numeric):
        return _round_numbers(feature)
    count = len(feature.levels)
    every = math.ceil(count / most)  # labels must not run into each other
    return [((i + 0.5) / count, feature.levels[i]) for i in range(0, count, every)]


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


def _levels(feature: Ordinal | Categorical, low: float, high: float) -> tuple[str, ...]:
    count = len(feature.levels)
    return feature.levels[_levels_below(low, count) : _levels_below(high, count)]


def _leaves_out_nobody(feature: Feature, low: float, high: float) -> bool:
    if isinstance(feature, Numeric):
        return (low, high) == (0, 1)
    return _levels(feature, low, high) == feature.levels


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
