"""Where the bins of one or two axes lie in a drawing; ``templates/map.html`` draws it.

A settled bin has the colour of its arm; a contested one is grey, with a dot for each live arm.
Numbers say the same as colours. All that is drawn is public: it follows from the release.

Along levels without order, a bin may hold some that are not neighbours: it is then drawn as several
rectangles.

An axis that has a scale is drawn on it: else the bins of a long tail would all be at one end.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sottovoce.server.extents import Edge, Extent, extents_of, place_at
from sottovoce.server.formatting import Scale, bins_of, scales, ticks
from sottovoce.shared.release import BinPolicy, Release

# All lengths are those of the drawing's own scale; it grows and shrinks with the page.
WIDTH, HEIGHT, STRIP = 760, 440, 96
TOP = 10
LETTER, LINE = 6.8, 15  # about the width of a letter and the height of a line
LONGEST_LABEL = 14
# With more live arms than this, their number is written instead of dots.
MOST_DOTS = 8
# With more rectangles than this, they are too small to see, and the page is too large to send.
MOST_RECTANGLES = 10_000

Tick = tuple[float, str]
"""Where a tick lies in the drawing, and what stands beside it."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Where a bin lies, or a piece of it."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        """The centre."""
        return self.x + self.width / 2, self.y + self.height / 2

    def has_room_for(self, text: str) -> bool:
        """Say whether a text fits inside."""
        return self.width > LETTER * len(text) and self.height > LINE


@dataclass(frozen=True, slots=True)
class Dot:
    """A live arm of a contested bin. is_waiting: it is not on offer in this release."""

    arm: int
    is_waiting: bool
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class BinMap:
    """The drawing of a release whose contexts have one axis, or two."""

    release: Release

    @cached_property
    def scales(self) -> list[Scale]:
        """What stands along the axes: across, then up."""
        return scales(self.release.experiment)

    @cached_property
    def left(self) -> float:
        """Where the bins begin: beside the labels of the vertical axis."""
        longest = max((len(label) for _, label in self.ticks_up), default=None)
        return 24 if longest is None else 40 + LETTER * longest

    @cached_property
    def height(self) -> float:
        """The height of all bins together."""
        return STRIP if len(self.scales) == 1 else HEIGHT

    @property
    def area(self) -> Rectangle:
        """Where all bins lie."""
        return Rectangle(self.left, TOP, WIDTH, self.height)

    @cached_property
    def ticks_across(self) -> list[Tick]:
        """The ticks of the first axis."""
        scale = self.scales[0]
        longest = max((len(_short(place)) for place in scale.places), default=0)
        most = max(2, int(WIDTH / LETTER) // (longest + 2))
        return [(self.left + at * WIDTH, _short(label)) for at, label in self._ticks(0, most=most)]

    @cached_property
    def ticks_up(self) -> list[Tick]:
        """The ticks of the second axis, if there is one."""
        return [
            (self._down(at), _short(label))
            for axis in range(1, len(self.scales))
            for at, label in self._ticks(axis, most=HEIGHT // LINE)
        ]

    def rectangles(self, extents: Sequence[Extent]) -> Iterator[Rectangle]:
        """Yield where the pieces of a bin lie."""
        pieces_up = extents[1].pieces if len(extents) > 1 else ((0.0, 1.0),)
        for left, right in self._drawn(0, extents[0].pieces):
            for low, high in self._drawn(1, pieces_up):
                x, y = self.left + left * WIDTH, self._down(high)
                yield Rectangle(x, y, (right - left) * WIDTH, (high - low) * self.height)

    def dots(self, policy: BinPolicy, box: Rectangle) -> list[Dot]:
        """Place a dot for each live arm side by side; none where they are too many or too small."""
        live, (middle, y) = policy.live, box.middle
        radius = min(9.0, box.width / (2.6 * len(live)), box.height / 2.6)
        if radius < 1 or len(live) > MOST_DOTS:
            return []
        first = middle - (len(live) - 1) / 2 * 2.4 * radius
        return [
            Dot(arm, arm in policy.waiting, first + i * 2.4 * radius, y, radius)
            for i, arm in enumerate(live)
        ]

    def number_of_arms(self, policy: BinPolicy, box: Rectangle) -> str:
        """Say how many arms are live where they are too many for dots, and where it fits."""
        text = f"{len(policy.live)} arms"
        return text if len(policy.live) > MOST_DOTS and box.has_room_for(text) else ""

    def labels(self) -> Iterator[tuple[int, str, float, float]]:
        """Name the arm of each region whose bins have all settled on one, where there is room.

        Yield the arm, what is written, and where: x, y.
        """
        release = self.release
        agreed = {policy.path: policy.arms[0] for policy in release.bins if policy.settled}
        for path in sorted(release.partition.cuts, key=len, reverse=True):
            halves = path + "0", path + "1"
            if (arm := agreed.get(halves[0])) is not None and arm == agreed.get(halves[1]):
                del agreed[halves[0]], agreed[halves[1]]
                agreed[path] = arm
        for path, arm in agreed.items():
            for box in self.rectangles(extents_of(release, path)):
                for text in (f"{arm + 1} {release.experiment.arms[arm]}", str(arm + 1)):
                    if box.has_room_for(text + " "):
                        yield arm, text, *box.middle
                        break

    def _ticks(self, axis: int, *, most: int) -> list[tuple[float, str]]:
        return ticks(self.scales[axis], most=most, knots=self.release.partition.scales.get(axis))

    def _drawn(self, axis: int, pieces: Sequence[Edge]) -> Iterator[Edge]:
        """Yield where pieces of an axis lie in the drawing, on [0, 1]."""
        knots = self.release.partition.scales.get(axis)
        for low, high in pieces:
            yield (low, high) if knots is None else (place_at(knots, low), place_at(knots, high))

    def _down(self, position: float) -> float:
        return TOP + (1 - position) * self.height


def map_of(release: Release) -> BinMap | None:
    """Return the drawing of a release; None if it has too many axes or rectangles."""
    if release.experiment.dimension > 2:
        return None
    pieces = ((len(each.pieces) for each in found.extents) for found in bins_of(release))
    return BinMap(release) if sum(map(math.prod, pieces)) <= MOST_RECTANGLES else None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
