"""The page of all experiments, and the status page of each: plain HTML, no script, no other files.

Names of arms, features and populations are whatever the experiment's owner chose: the templates
escape every one. The page also carries a policy by which a browser would run no script and load
nothing.
"""

import base64
import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sottovoce.estimate.figures import LEVEL, ArmEstimate
from sottovoce.estimate.gain_interval import GainEstimate
from sottovoce.estimate.history import Certificate
from sottovoce.server.amendments import document_of
from sottovoce.server.bin_map import map_of
from sottovoce.server.diagnosis import AuditSummary, SourceSummary
from sottovoce.server.extents import extents_of
from sottovoce.server.formatting import (
    Bin,
    bins_of,
    decimal,
    describe_extent,
    describe_path,
    fixed,
    listed,
    odds,
    percent,
    scales,
    worth,
)
from sottovoce.server.gain import gain_words
from sottovoce.server.progress import decided_share
from sottovoce.server.status import Event, ExperimentStatus
from sottovoce.server.store.log import LoggedAmendment
from sottovoce.shared.amendment import ARCHIVED, PAUSED, STOPPED
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.reward import RewardScale

FOLDER = Path(__file__).parent / "templates"
STYLE = (FOLDER / "page.css").read_text(encoding="utf-8")
MOST_DECISIONS = 20
# So many axes that people are asked about are named.
MOST_SUBJECTS = 4

# What the templates use beside the values of a page.
GLOBALS = {
    # The style sheet has as many; with more arms they repeat, and the numbers tell them apart.
    "COLOURS": 8,
    "REFRESH_SECONDS": 3,
    "MANY_BINS": 400,  # with more, lines between them must be thin
    "MOST_BINS": 200,
    "MOST_CONTESTED_BINS": 40,
    "LINKS": (
        ("status", "status"),
        ("estimates", "estimates"),
        ("certificates", "certificates"),
        ("diagnosis", "diagnosis"),
        ("amendments", "amendments"),
        ("releases/current", "release"),
    ),
    "style": Markup(STYLE),  # noqa: S704  ours, and as it is in the hash
    "style_hash": base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode(),
}


@dataclass(frozen=True, slots=True)
class LiveArm:
    """One arm of a contested bin. propensity: None while the arm waits. rewards: their unit."""

    rewards: RewardScale
    index: int
    propensity: float | None
    estimate: float | None
    radius: float | None

    @property
    def is_waiting(self) -> bool:
        """Whether the arm is not on offer in this release."""
        return self.propensity is None

    @property
    def chance(self) -> str:
        """The chance to get it."""
        return "waits" if self.propensity is None else percent(self.propensity)

    @property
    def interval(self) -> str:
        """Its mean reward."""
        if self.estimate is None or self.radius is None:
            return "not known yet"
        return interval(self.rewards, self.estimate, self.radius)

    @property
    def bar(self) -> tuple[float, float, float] | None:
        """The two ends of its interval and the middle, in per cent of what rewards can be."""
        if self.estimate is None or self.radius is None:
            return None
        return bar(self.rewards, self.estimate, self.radius)


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm over all bins, as people read it."""

    rewards: RewardScale
    index: int
    known: ArmEstimate

    @property
    def people(self) -> str:
        """Who gets it, with the interval."""
        return f"{percent(self.known.share)} ± {percent(self.known.share_radius)}"

    @property
    def interval(self) -> str:
        """What it would bring if everybody had it."""
        return interval(self.rewards, self.known.estimate, self.known.radius)

    @property
    def bar(self) -> tuple[float, float, float]:
        """The two ends of that interval and the middle, in per cent of what rewards can be."""
        return bar(self.rewards, self.known.estimate, self.known.radius)


@dataclass(frozen=True, slots=True)
class AmendmentRow:
    """One amendment. release, position: None while it waits for the learner."""

    number: int
    made: str
    by: str
    words: str
    release: int | None
    position: int | None


# What it means for people that an experiment is not running.
NOTES = {
    PAUSED: "Paused: people get arms as before, and nobody reports. Nothing is decided until it"
    " goes on.",
    STOPPED: "Stopped for good: people get arms as before, and nobody reports. Nothing is decided"
    " any more.",
    ARCHIVED: "Archived: it has ended, and reports are refused.",
}


def render_index(statuses: Sequence[ExperimentStatus]) -> str:
    """Write the page of all experiments."""
    return _INDEX.render(statuses=statuses, people=lambda status: status.people)


def render(status: ExperimentStatus) -> str:
    """Write the page of an experiment."""
    release, bins = status.release, bins_of(status.release)
    return _PAGE.render(
        status=status,
        experiment=release.experiment,
        method=release.experiment.settings,
        **_owner(status),
        figures=_figures(status),
        note=NOTES.get(release.experiment.state),
        amendments=[_row_of(each) for each in reversed(status.amendments)],
        diagnosis=status.diagnosis,
        bins=bins,
        bin_map=map_of(release),
        shares=_shares(bins),
        contested=[each for each in bins if not each.policy.settled],
        asked_about=_asked_about(release),
        live_arms=_live_arms(status),
        decisions=_decisions(status),
    )


def interval(rewards: RewardScale, estimate: float, radius: float) -> str:
    """Write a mean reward with as many digits as its scale asks for."""
    digits = max(0, 2 - math.floor(math.log10(rewards.width)))
    return f"{estimate:.{digits}f} ± {radius:.{digits}f}".replace("-", "−")


def bar(rewards: RewardScale, estimate: float, radius: float) -> tuple[float, float, float]:
    """Return the two ends of an interval and its middle, in per cent of what rewards can be."""
    ends = (estimate + side * radius for side in (-1, 0, 1))
    shares = ((end - rewards.low) / rewards.width for end in ends)
    low, middle, high = (100 * min(max(share, 0.0), 1.0) for share in shares)
    return low, middle, high


def _owner(status: ExperimentStatus) -> dict[str, Any]:
    """Return what the owner asks first."""
    experiment, snapshot = status.release.experiment, status.snapshot
    rewards, value, places = experiment.rewards, snapshot.value, experiment.arms.index
    known = [each for each in snapshot.arms if each.arm in experiment.arms]
    return {
        "gain_words": gain_words(snapshot.gain, experiment),
        "gain_bar": _gain_bar(snapshot.gain, rewards.width),
        "gain_scale": rewards.width,
        "decided": decided_share(status),
        "arms": [ArmRow(rewards, places(each.arm), each) for each in known],
        "value": None if value is None else interval(rewards, value.estimate, value.radius),
        "level": LEVEL,
    }


def _gain_bar(gain: GainEstimate | None, width: float) -> tuple[float, float, float] | None:
    """Return the two ends of the gain and its middle, in per cent of what a gain can be."""
    if gain is None or not gain.ever.policy_people or not gain.ever.baseline_people:
        return None
    ends = gain.ever.low, gain.ever.mean, gain.ever.high
    low, middle, high = (50 + 50 * min(max(each / width, -1.0), 1.0) for each in ends)
    return low, middle, high


def _row_of(logged: LoggedAmendment) -> AmendmentRow:
    document = document_of(logged)
    made = document.made.replace("T", " ").removesuffix(":00Z").removesuffix("Z") + " UTC"
    where = logged.version, logged.position
    return AmendmentRow(logged.number, made, document.by, str(document), *where)


def verdict(source: SourceSummary, audit: AuditSummary | None) -> str:
    """Say in a few words whether an auxiliary population helps."""
    if not source.reports:
        return "no reports yet"
    if audit is None:
        return "not checked: nobody is asked for their reward"
    if source.harmful:
        return "seems to mislead"
    if audit.holds:
        return "keeps its promise"
    # The target's people get less than was promised, and others promised it.
    return "promises little itself" if audit.falls_short else "too early to say"


def _figures(status: ExperimentStatus) -> list[tuple[str, str, str]]:
    """Return the tiles on top: a name, a number, and a note on it."""
    release, lag = status.release, max(status.stored - status.learned, 0)
    settled = status.settled_bins
    return [
        ("release", f"{release.version:,}", f"every {release.experiment.release_every:,} reports"),
        ("reports stored", f"{status.stored:,}", "all randomised"),
        ("the learner's lag", f"{lag:,}", f"{status.learned:,} learned" if lag else "up to date"),
        ("bins", f"{status.bins:,}", f"{status.bins - settled:,} still compared"),
        ("settled bins", f"{settled:,}", f"{settled / status.bins:.0%} of all"),
    ]


def _shares(bins: Sequence[Bin]) -> dict[int | None, float]:
    """Return the share of contexts that has settled on each arm; under None, that of the rest."""
    shares: dict[int | None, float] = defaultdict(float)
    for each in bins:
        shares[each.policy.arms[0] if each.policy.settled else None] += each.size
    return shares


def _asked_about(release: Release) -> list[tuple[str, float]]:
    """Return what people are asked about most, and the share of each; nothing if nobody is."""
    if not release.ask or not release.contested:
        return []
    subjects = [each.subject for each in scales(release.experiment)]
    of_axes = sorted(zip(release.ask[1:], subjects, strict=True), key=lambda each: -each[0])
    named = [*of_axes[:MOST_SUBJECTS], (release.ask[0], "no feature")]
    shares = sorted(named, key=lambda each: -each[0])
    shares.append((sum(count for count, _ in of_axes[MOST_SUBJECTS:]), "the rest"))
    return [(subject, count / sum(release.ask)) for count, subject in shares if count]


def _live_arms(status: ExperimentStatus) -> Callable[[BinPolicy], list[LiveArm]]:
    estimates = status.snapshot.estimates
    known = {(each.path, each.arm): (each.estimate, each.radius) for each in estimates}
    arms, rewards = status.release.experiment.arms, status.release.experiment.rewards

    def live_arms(policy: BinPolicy) -> list[LiveArm]:
        propensities = dict(zip(policy.arms, policy.propensities, strict=True))
        unknown = (None, None)
        cells = [(arm, known.get((policy.path, arms[arm]), unknown)) for arm in policy.live]
        return [LiveArm(rewards, arm, propensities.get(arm), *numbers) for arm, numbers in cells]

    return live_arms


def _decisions(status: ExperimentStatus) -> list[tuple[str, str]]:
    """Return when and what the learner decided last, newest first.

    Bins from before it last began anew are not those of its release, and are left out.
    """
    release, certificates = status.release, status.snapshot.certificates
    history = status.snapshot.history
    began = max((index for index, each in enumerate(history) if each.anew), default=0)
    history = history[began:][: -MOST_DECISIONS - 1 : -1]
    if not history:
        return [
            (f"release {each.release:,}", _dropped(release, each.path, [each.dropped], [each]))
            for each in certificates[: -MOST_DECISIONS - 1 : -1]
        ]
    return [
        (f"after {each.reports:,} reports", _event(release, each, certificates)) for each in history
    ]


def _event(release: Release, event: Event, certificates: Sequence[Certificate]) -> str:
    if event.words:
        return event.words
    if event.anew:
        return "began anew, with one bin and all options: what had been learned misled people"
    if event.axis is not None:
        return _split(release, event.path, event.axis)
    arms = [release.experiment.arms[arm] for arm in event.arms]
    why = [each for each in certificates if each.path == event.path and each.dropped in arms]
    return _dropped(release, event.path, arms, why)


def _dropped(
    release: Release, path: str, arms: Sequence[str], certificates: Sequence[Certificate]
) -> str:
    text = f"{describe_path(release, path)}: dropped {listed(arms)}"
    for each in certificates:
        text += f"; {each.winner} is better, {each.statistic:.3g} ≥ {each.boundary:.3g}"
        if each.delta is not None:
            text += f", wrong with chance at most {each.delta:.2g}"
    return text


def _split(release: Release, path: str, axis: int) -> str:
    scale = scales(release.experiment)[axis]
    text = f"{describe_path(release, path)}: split by {scale.subject}"
    if path not in release.partition.cuts:
        return text
    lower, upper = (extents_of(release, path + side)[axis] for side in "01")
    comma = "," if max(len(lower.places), len(upper.places)) > 1 else ""
    halves = describe_extent(scale, lower), describe_extent(scale, upper)
    return f"{text} into {halves[0]}{comma} and {halves[1]}"


def largest(bins: Sequence[Bin], most: int) -> list[Bin]:
    """Choose the bins with most contexts, and leave them in their order."""
    ranked = sorted(range(len(bins)), key=lambda i: -bins[i].size)[:most]
    return [bins[i] for i in sorted(ranked)]


_TEMPLATES = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= GLOBALS | {"verdict": verdict}
_TEMPLATES.filters |= {"thousands": "{:,}".format} | {
    each.__name__: each for each in (decimal, fixed, largest, odds, percent, worth)
}
_PAGE = _TEMPLATES.get_template("page.html")
_INDEX = _TEMPLATES.get_template("index.html")
