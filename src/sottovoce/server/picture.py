"""The partition of one or two features as an SVG.

A settled bin has the colour of its arm; a contested one is grey, with a dot for each live arm.
Numbers say the same as colours. All that is drawn is public: it follows from the release.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sottovoce.server.words import Bin, ticks, visible
from sottovoce.shared.partition import Box
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.schema import Feature, Numeric

# The style sheet has as many colours; with more arms they repeat, and the numbers tell them apart.
COLOURS = 8

# All lengths are those of the picture's own scale; it grows and shrinks with the page.
WIDTH, HEIGHT, STRIP = 760, 440, 96
TOP = 10
LETTER, LINE = 6.8, 15  # about what a letter and a line take
LONGEST_LABEL = 14
# With more live arms than this, dots say less than a number.
MOST_DOTS = 8
# With more bins than this, lines between them must be thin.
MANY_BINS = 400


def colour(arm: int) -> str:
    """Return the class of an arm's colour."""
    return f"k{arm % COLOURS}"


def outline(arm: int) -> str:
    """Return the class of lines in an arm's colour."""
    return f"s{arm % COLOURS}"


def ink(arm: int) -> str:
    """Return the class of letters that can be read on an arm's colour."""
    return f"on{arm % COLOURS}"


def draw(release: Release, bins: Sequence[Bin], *, tips: Mapping[str, str]) -> str:
    """Draw the bins, each with a tip that shows when one points at it."""
    frame = _frame(release.experiment.context)
    names = escape(" and ".join(feature.name for feature in release.experiment.context))
    size = f"0 0 {frame.left + WIDTH + 24:.0f} {frame.height + 58}"
    lines = "bins many" if len(bins) > MANY_BINS else "bins"
    return "".join(
        (
            f'<svg class="map" viewBox="{size}" role="img" aria-label="The bins by {names}">',
            f'<g class="{lines}">',
            *(_bin(each, frame, escape(tips[each.policy.path])) for each in bins if each.size),
            "</g>",
            *_labels(release, frame),
            *_axes(release.experiment.context, frame),
            "</svg>",
        )
    )


@dataclass(frozen=True, slots=True)
class _Rectangle:
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where [0, 1] or its square lies in the picture."""

    left: float
    height: float

    def across(self, position: float) -> float:
        return self.left + position * WIDTH

    def down(self, position: float) -> float:
        return TOP + (1 - position) * self.height

    def rectangle(self, box: Box) -> _Rectangle:
        left, right = box[0]
        low, high = box[1] if len(box) > 1 else (0.0, 1.0)
        return _Rectangle(
            self.across(left), self.down(high), (right - left) * WIDTH, (high - low) * self.height
        )


def _frame(context: Sequence[Feature]) -> _Frame:
    if len(context) == 1:
        return _Frame(24, STRIP)
    longest = max(len(_short(label)) for _, label in ticks(context[1], most=HEIGHT // LINE))
    return _Frame(40 + LETTER * longest, HEIGHT)


def _bin(each: Bin, frame: _Frame, tip: str) -> str:
    policy, box = each.policy, frame.rectangle(each.box)
    kind = colour(policy.arms[0]) if policy.settled else "open"
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.2f}" height="{box.height:.2f}"'
    dots = "" if policy.settled else _dots(policy, box)
    return f'<g><title>{tip}</title><rect class="{kind}" {place}/>{dots}</g>'


def _dots(policy: BinPolicy, box: _Rectangle) -> str:
    """Draw a dot for each live arm: full if it is on offer, a ring if it waits."""
    live, (across, down) = policy.live, box.middle
    if len(live) > MOST_DOTS:
        text = f"{len(live)} arms"
        fits = box.width > LETTER * len(text) and box.height > LINE
        return _text(text, across, down) if fits else ""
    radius = min(9.0, box.width / (2.6 * len(live)), box.height / 2.6)
    if radius < 1:
        return ""
    dots = []
    for i, arm in enumerate(live):
        at = across + (i - (len(live) - 1) / 2) * 2.4 * radius
        waits = arm in policy.waiting
        kind = f"ring {outline(arm)}" if waits else colour(arm)
        dots.append(f'<circle class="{kind}" cx="{at:.1f}" cy="{down:.1f}" r="{radius:.1f}"/>')
        if radius > 6:
            dots.append(
                _text(str(arm + 1), at, down, kind="small" if waits else f"small {ink(arm)}")
            )
    return "".join(dots)


def _labels(release: Release, frame: _Frame) -> list[str]:
    """Write its arm on each region whose bins have all settled on one, where there is room."""
    agreed = {policy.path: policy.arms[0] for policy in release.bins if policy.settled}
    for path in sorted(release.partition.cuts, key=len, reverse=True):
        halves = path + "0", path + "1"
        if (arm := agreed.get(halves[0])) is not None and arm == agreed.get(halves[1]):
            del agreed[halves[0]], agreed[halves[1]]
            agreed[path] = arm
    labels = []
    for path, arm in agreed.items():
        box = frame.rectangle(visible(release, release.partition.box(path)))
        long = f"{arm + 1} {release.experiment.arms[arm]}"
        for text in (long, str(arm + 1)):
            if box.width > LETTER * (len(text) + 1) and box.height > LINE:
                labels.append(
                    _text(escape(text), *box.middle, kind=f"label {ink(arm)} {outline(arm)}")
                )
                break
    return labels


def _axes(context: Sequence[Feature], frame: _Frame) -> list[str]:
    bottom = frame.down(0)
    most = max(2, int(WIDTH / LETTER) // (_longest(context[0]) + 2))
    parts = [
        f'<path class="tick" d="M{frame.across(at):.1f} {bottom:.1f}v5"/>'
        + _text(escape(_short(label)), frame.across(at), bottom + 15)
        for at, label in ticks(context[0], most=most)
    ]
    parts.append(_text(escape(context[0].name), frame.across(0.5), bottom + 38, kind="axis"))
    if len(context) > 1:
        parts += [
            f'<path class="tick" d="M{frame.left:.1f} {frame.down(at):.1f}h-5"/>'
            + _text(escape(_short(label)), frame.left - 9, frame.down(at), kind="end")
            for at, label in ticks(context[1], most=HEIGHT // LINE)
        ]
        name = escape(context[1].name)
        turned = f'transform="translate(12 {frame.down(0.5):.1f}) rotate(-90)"'
        parts.append(f'<text class="axis" {turned}>{name}</text>')
    return parts


def _longest(feature: Feature) -> int:
    levels = ("",) if isinstance(feature, Numeric) else feature.levels
    return max(len(_short(level)) for level in levels)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def _text(text: str, x: float, y: float, *, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{text}</text>'
