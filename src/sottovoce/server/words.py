"""Bins and decisions in words, such as "age 18–54, activity low or middling".

Names are those of the experiment, not escaped: whoever writes HTML must do that.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sottovoce.shared.partition import Box
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.schema import Categorical, Feature, Numeric, Ordinal

EVERYONE = "everyone"
# Levels that are spelled out; of more, the rest is counted.
MOST_LEVELS = 6


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin as people read it.

    box: as ``visible`` has it.
    size: its share of all possible contexts, which is not its share of the people.
    """

    policy: BinPolicy
    box: Box
    words: str
    size: float


def bins_of(release: Release) -> list[Bin]:
    """Spell out every bin of a release, in its order; once, for a page is asked for often."""
    if bins_of not in release.derived:
        release.derived[bins_of] = _spelled_out(release)
    bins: list[Bin] = release.derived[bins_of]
    return bins


def _spelled_out(release: Release) -> list[Bin]:
    bins = []
    for policy in release.bins:
        box = release.partition.box(policy.path)
        seen = visible(release, box)
        size = math.prod(high - low for low, high in seen)
        bins.append(Bin(policy, seen, describe(release, box), size))
    return bins


def visible(release: Release, box: Box) -> Box:
    """Move the edges of a box, along features with levels, to where one level ends.

    Levels are points on their axis, and cuts fall anywhere between them: seen so, a box covers as
    much of [0, 1] as it has levels, and one that holds none is empty.
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
            parts.append(f"{feature.name} {spell(feature, low, high)}")
    return ", ".join(parts) or EVERYONE


def place(release: Release, path: str) -> str:
    """Say where a bin is or was, also one that this release does not have yet."""
    known = path
    while known and known[:-1] not in release.partition.cuts:
        known = known[:-1]
    words = describe(release, release.partition.box(known))
    return words if known == path else f"a part of {words}"


def decisions(release: Release, standing: Mapping[str, Any], *, most: int) -> list[tuple[str, str]]:
    """Return when and what the learner decided last, newest first."""
    certificates = standing.get("certificates") or ()
    history = standing.get("history") or ()
    if not history:
        return [
            (
                f"release {each['release']:,}",
                _dropped(release, each["path"], [each["dropped"]], [each]),
            )
            for each in certificates[: -most - 1 : -1]
        ]
    told = []
    for event in history[: -most - 1 : -1]:
        if "axis" in event:
            what = _cut(release, event["path"], event["axis"])
        else:
            arms = [release.experiment.arms[arm] for arm in event["arms"]]
            why = [c for c in certificates if c["path"] == event["path"] and c["dropped"] in arms]
            what = _dropped(release, event["path"], arms, why)
        told.append((f"after {event['reports']:,} reports", what))
    return told


def _dropped(
    release: Release, path: str, arms: Sequence[str], certificates: Sequence[Mapping[str, Any]]
) -> str:
    words = f"{place(release, path)}: dropped {_listed(arms)}"
    for each in certificates:
        words += f"; {each['winner']} is better, {each['statistic']:.3g} ≥ {each['boundary']:.3g}"
        if each["delta"] is not None:
            words += f", wrong with chance at most {each['delta']:.2g}"
    return words


def _cut(release: Release, path: str, axis: int) -> str:
    feature = release.experiment.context[axis]
    words = f"{place(release, path)}: cut by {feature.name}"
    if path not in release.partition.cuts:
        return words
    low, high = release.partition.box(path)[axis]
    middle = (low + high) / 2
    return f"{words} into {spell(feature, low, middle)} and {spell(feature, middle, high)}"


def spell(feature: Feature, low: float, high: float) -> str:
    """Say which values of a feature lie in [low, high) of its axis."""
    if isinstance(feature, Numeric):
        first, last = _edge(feature, low), _edge(feature, high)
        return f"{first} to {last}" if first.startswith("−") else f"{first}–{last}"
    levels = _levels(feature, low, high)
    if not levels:
        return "at no level"
    if len(levels) > MOST_LEVELS:
        return f"{', '.join(levels[:MOST_LEVELS])} or {len(levels) - MOST_LEVELS} others"
    return _listed(levels, last="or")


def number(value: float, *, step: float) -> str:
    """Write a number with the digits that matter if its neighbours are a step away."""
    largest = max(abs(value), step)
    digits = math.ceil(math.log10(largest) - math.log10(step)) + 3
    if largest < 1e9:
        digits = max(digits, len(f"{largest:.0f}"))  # no 1.2e+05 for an income
    return f"{value:.{min(digits, 17)}g}".replace("-", "−")


def ticks(feature: Feature, *, most: int) -> list[tuple[float, str]]:
    """Return places along a feature's axis, on [0, 1], and what to write there."""
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
    places = [((value - feature.low) / span, number(value, step=step)) for value in values]
    return [(min(max(place, 0.0), 1.0), label) for place, label in places]


def _edge(feature: Numeric, position: float) -> str:
    """Write the edge of a bin on a number's own scale, the same for all bins that have it."""
    span = feature.high - feature.low
    halvings = position.as_integer_ratio()[1]
    return number(feature.low + position * span, step=max(span / halvings, 5e-324))


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


def _listed(names: Sequence[str], *, last: str = "and") -> str:
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]
