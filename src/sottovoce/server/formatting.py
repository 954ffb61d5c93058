"""Bins and numbers as people read them, such as "age 18–54, activity low or middling".

Names are those of the experiment, not escaped: the templates do that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.server.extents import Extent, extents_of
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.scale import Knots, position_at
from sottovoce.shared.schema import (
    MISSING,
    THERE,
    Boolean,
    Categorical,
    Feature,
    Numeric,
    place_names,
)

EVERYONE = "everyone"
# So many levels are named, or so many that are left out; the others are counted.
MOST_LEVELS = 6
# An edge that was halved more often is no midpoint of [0, 1], but one of a scale.
MOST_HALVINGS = 40
# So many ticks, and one more, stand along a number that has a scale.
PIECES = 8


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

    @property
    def subject(self) -> str:
        """What a question is about, or what a bin is split by, along this axis."""
        return f"whether {self.name}" if self.places == (THERE, MISSING) else self.name


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin as people read it.

    extents: who is in it along each axis.
    description: who belongs to it.
    size: its share of all possible contexts, which is not its share of the people.
    """

    policy: BinPolicy
    extents: tuple[Extent, ...]
    description: str
    size: float


def bins_of(release: Release) -> list[Bin]:
    """Describe every bin of a release, in its order; once, for a page is asked for often."""
    found: list[Bin] = release.derived.get(bins_of, [])
    if not found:
        for policy in release.bins:
            extents = extents_of(release, policy.path)
            size = math.prod(each.share for each in extents)
            found.append(Bin(policy, extents, describe(release, extents), size))
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


def describe(release: Release, extents: Sequence[Extent]) -> str:
    """Say who belongs to a bin; a feature that leaves nobody out is not mentioned."""
    axes = zip(scales(release.experiment), extents, strict=True)
    parts = [
        _describe_feature(feature, [next(axes) for _ in feature.axes])
        for feature in release.experiment.context
    ]
    return ", ".join(part for part in parts if part) or EVERYONE


def _describe_feature(feature: Feature, axes: Sequence[tuple[Scale, Extent]]) -> str:
    """Say which values of a feature a bin holds; nothing if it leaves nobody out."""
    (scale, extent), *second = axes
    colon = ":" if isinstance(feature, Boolean | Categorical) else ""
    values = (
        "" if extent.is_everything else f"{feature.name}{colon} {describe_extent(scale, extent)}"
    )
    if not second:
        return values
    (whether, held) = second[0]
    # Those without a value lie at the lower end of the first axis, or at its first place.
    match [whether.places[place] for place in held.places]:
        case [_, _]:
            return f"{values} or {MISSING}" if values and extent.begins_at_zero else values
        case [only] if only == THERE:
            return values or f"{feature.name} is {THERE}"
        case [_] if extent.begins_at_zero:
            return f"{feature.name} is {MISSING}"
    return f"{feature.name} at no value"


def describe_path(release: Release, path: str) -> str:
    """Say who belongs to the bin of a path, which a later release may have split off."""
    known = path
    while known and known[:-1] not in release.partition.cuts:
        known = known[:-1]
    people = describe(release, extents_of(release, known))
    return people if known == path else f"a part of {people}"


def describe_extent(scale: Scale, extent: Extent) -> str:
    """Say which numbers or places a bin holds along an axis."""
    if scale.number is not None:
        ((low, high),) = extent.pieces
        first, last = _edge(scale.number, low), _edge(scale.number, high)
        return f"{first} to {last}" if first.startswith("−") else f"{first}–{last}"
    held = [scale.places[place] for place in extent.places]
    if not held:
        return "at no level"
    if len(held) <= MOST_LEVELS:
        return listed(held, last="or")
    left_out = [name for place, name in enumerate(scale.places) if place not in extent.places]
    if 0 < len(left_out) <= MOST_LEVELS:
        return f"any but {listed(left_out, last='or')}"
    more = len(held) - MOST_LEVELS
    return f"{', '.join(held[:MOST_LEVELS])} or {more} other{'s' if more > 1 else ''}"


def format_number(value: float, *, step: float) -> str:
    """Write a number with the digits that matter if its neighbours are a step away."""
    largest = max(abs(value), step)
    digits = math.ceil(math.log10(largest) - math.log10(step)) + 3
    if largest < 1e9:
        digits = max(digits, len(f"{largest:.0f}"))  # no 1.2e+05 for an income
    return f"{value:.{min(digits, 17)}g}".replace("-", "−")


def ticks(scale: Scale, *, most: int, knots: Knots | None = None) -> list[tuple[float, str]]:
    """Return where ticks stand along an axis, on [0, 1], and what to write there.

    knots: of the scale on which a number is drawn, if it has one of its own.
    """
    if scale.number is not None and knots is not None:
        places = [piece / PIECES for piece in range(PIECES + 1)]
        return [(place, _edge(scale.number, position_at(knots, place))) for place in places]
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
    step = span / halvings
    if halvings > 2**MOST_HALVINGS:  # a few digits of where it lies between the bounds
        step = min(position, 1 - position) * span / 100
    return format_number(feature.low + position * span, step=max(step, 5e-324))


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
