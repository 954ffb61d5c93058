"""A policy as rules for people to read, in Markdown.

Each rule says who gets which arm, and whether that is settled. Names of features, levels and arms
are escaped: they mean nothing to Markdown.
"""

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

from sottovoce.device.policy.held import Held, Numbers, everybody, names_of, place_of
from sottovoce.device.policy.policy import Policy
from sottovoce.device.policy.tree import Leaf, Question, Tree, tree_of
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.schema import MISSING, OTHER, Boolean, Categorical, Feature, Numeric

DIGITS = 4
"""So many digits of the distance between its bounds a cut has; more where two look the same."""

People = dict[Feature, Held]
"""What people have of each feature."""


def rules_text(policy: Policy) -> str:
    """Write a policy as Markdown."""
    release = policy.release
    experiment = release.experiment
    tree = tree_of(policy, alike=_same_and_settled)
    words = _Words(tree, experiment.context)
    people: People = {feature: everybody(feature) for feature in experiment.context}
    rules = [
        f"- People with {who}: **{_escaped(experiment.arms[leaf.arm])}**{_doubt(policy, leaf)}"
        if (who := words.people(held))
        else f"- Everyone: **{_escaped(experiment.arms[leaf.arm])}**{_doubt(policy, leaf)}"
        for leaf, held in _leaves(tree, people)
    ]
    undecided = sum("not settled" in rule.rpartition("**")[2] for rule in rules)
    lines = [
        f"# Which arm for whom: {_escaped(experiment.name)}",
        "",
        f"What release {release.version} has learned. The fingerprint of the experiment is"
        f" `{experiment.fingerprint}`.",
        _how_sure(len(rules), undecided),
        "",
        *rules,
        "",
        "## How to read the rules",
        "",
        *_notes(experiment.context),
    ]
    if exact := list(words.exact()):
        lines += ["", "Some cuts are rounded above. Exactly, they are:", "", *exact]
    return "\n".join(lines) + "\n"


def _same_and_settled(one: Leaf, other: Leaf) -> bool:
    """Tell neighbours as one if all is known of both, and they get the same arm."""
    return one.arm == other.arm and all(each.settled for each in (*one.bins, *other.bins))


def _leaves(tree: Tree, people: People) -> Iterator[tuple[Leaf, People]]:
    """Yield those who get one arm, and what they have of each feature."""
    if isinstance(tree, Leaf):
        yield tree, people
    else:
        yield from _leaves(tree.down, {**people, tree.feature: tree.lower})
        yield from _leaves(tree.up, {**people, tree.feature: tree.upper})


# --- how sure -------------------------------------------------------------------------------------


def _how_sure(rules: int, undecided: int) -> str:
    if not undecided:
        return "All of it is settled: in every bin one arm is left."
    return (
        f"{undecided} of {rules} rules {'is' if undecided == 1 else 'are'} not settled: more than"
        " one arm is still compared there."
    )


def _doubt(policy: Policy, leaf: Leaf) -> str:
    """Say which arms are still compared, and why this one stands in the rule."""
    if all(each.settled for each in leaf.bins):
        return ""
    (undecided,) = leaf.bins  # no other bin was added to one that is not settled
    arms = policy.release.experiment.arms
    live = _listed([_escaped(arms[arm]) for arm in undecided.live], last="and")
    return f", not settled between {live}: {_reason(policy, undecided, leaf.arm)}"


def _reason(policy: Policy, undecided: BinPolicy, best: int) -> str:
    known = {arm: policy.estimates.get((undecided.path, arm)) for arm in undecided.arms}
    estimates = {arm: each for arm, each in known.items() if each is not None}
    if len(estimates) == len(known):
        names = policy.release.experiment.arms
        others = [
            f"{_escaped(names[arm])} {_estimate(each)}"
            for arm, each in estimates.items()
            if arm != best
        ]
        mine = _estimate(estimates[best])
        return f"its estimated reward is highest, {mine}; {_listed(others, last='and')}"
    if len(set(undecided.propensities)) > 1:
        return "the release gives it most often"
    return "it comes first in the experiment"


def _estimate(known: tuple[float, float]) -> str:
    return f"{known[0]:.3f} ± {known[1]:.3f}"


# --- who ------------------------------------------------------------------------------------------


class _Words:
    """Says who people are, with cuts that have as few digits as tell them apart."""

    def __init__(self, tree: Tree, context: Sequence[Feature]) -> None:
        self._context = context
        self._cuts: dict[Feature, dict[float, str]] = {}
        for feature in context:
            cuts = sorted({cut for each, cut in _cuts(tree) if each == feature})
            if cuts:
                self._cuts[feature] = dict(zip(cuts, _rounded(feature, cuts), strict=True))

    def people(self, people: People) -> str:
        """Say who people are; a feature that leaves nobody out is not mentioned."""
        parts = [
            self._feature(feature, people[feature])
            for feature in self._context
            if people[feature] != everybody(feature)
        ]
        return "; ".join(parts)

    def exact(self) -> Iterator[str]:
        """Yield what each cut is that was rounded."""
        for feature, cuts in self._cuts.items():
            for cut, text in cuts.items():
                if Decimal(text.replace(",", "")) != Decimal(repr(cut)):
                    yield f"- {_escaped(feature.name)}: {text} is `{cut!r}`"

    def _feature(self, feature: Feature, held: Held) -> str:
        name = _escaped(feature.name)
        if isinstance(held, Numbers):
            return self._numbers(feature, name, held)
        every = names_of(feature)
        named = [each for each in range(len(every)) if each in held.held]
        left_out = [each for each in range(len(every)) if each not in held.held]
        colon = ":" if isinstance(feature, Boolean) else ""
        if isinstance(feature, Boolean) or len(named) <= max(len(left_out), 1):
            return f"{name}{colon} {_listed(_names(feature, named), last='or')}"
        but = _listed(_names(feature, left_out), last="or")
        return f"{name} anything but {but}"

    def _numbers(self, feature: Feature, name: str, held: Numbers) -> str:
        if not held.there:
            return f"{name} missing"
        cuts = self._cuts.get(feature, {})
        least, below = cuts.get(held.least), cuts.get(held.below)
        if least is None and below is None:
            return f"{name} not missing"
        if least is None:
            told = f"{name} under {below}"
        elif below is None:
            told = f"{name} {least} or more"
        else:
            told = f"{name} from {least} to under {below}"
        return f"{told} or missing" if held.missing else told


def _cuts(tree: Tree) -> Iterator[tuple[Feature, float]]:
    if isinstance(tree, Question):
        if tree.cut is not None:
            yield tree.feature, tree.cut
        yield from _cuts(tree.down)
        yield from _cuts(tree.up)


def _rounded(feature: Feature, cuts: list[float]) -> list[str]:
    """Round the cuts of a number as the space between its bounds allows, and keep them apart.

    A cut that needs two digits more, at most, is written exactly.
    """
    assert isinstance(feature, Numeric)  # noqa: S101  nothing else has cuts
    span = feature.high - feature.low
    if not 1e-6 < span < 1e15:
        return [repr(cut) for cut in cuts]
    fewest = max(DIGITS - math.ceil(math.log10(span)), 0)
    for digits in range(fewest, 18):
        if all(round(one, digits) < round(other, digits) for one, other in pairwise(cuts)):
            break
    few = (round(cut, digits + 2) for cut in cuts)
    return [
        _plain(exact if exact == cut else round(cut, digits))
        for cut, exact in zip(cuts, few, strict=True)
    ]


def _plain(number: float) -> str:
    """Write a number without an exponent, unless it is too long then."""
    if number and not 1e-6 < abs(number) < 1e15:
        return repr(number)
    whole, _, fraction = f"{Decimal(repr(number)):f}".partition(".")
    grouped = f"{int(whole):,}" if abs(number) >= 10_000 else whole
    told = f"{grouped}.{fraction}".rstrip("0").rstrip(".")
    return "0" if told == "-0" else told


def _names(feature: Feature, places: Sequence[int]) -> list[str]:
    """Name places of a feature; those that are no level are set in italics."""
    special = {place_of(feature, OTHER): "*another level*", place_of(feature, MISSING): "*missing*"}
    return [special.get(each) or _escaped(names_of(feature)[each]) for each in places]


# --- notes ----------------------------------------------------------------------------------------


def _notes(context: Sequence[Feature]) -> Iterator[str]:
    yield "- An arm is one of the options that were compared. A rule holds for all who fit it."
    for feature in context:
        name = _escaped(feature.name)
        match feature:
            case Numeric():
                low, high = _plain(feature.low), _plain(feature.high)
                note = f"a number below {low} counts as {low}, and one above {high} as {high}"
            case Categorical() if feature.other:
                known = _listed([_escaped(each) for each in feature.levels], last="and")
                note = f"*another level* is any but {known}"
            case Boolean():
                note = "true or false"
            case _:
                levels = _listed([_escaped(each) for each in feature.levels], last="or")
                note = f"one of {levels}"
        yield f"- {name}: {note}{'; it may be missing' if feature.optional else ''}."


def _listed(names: Sequence[str], *, last: str) -> str:
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def _escaped(text: str) -> str:
    """Escape what Markdown, or HTML inside of it, could read as more than the name it is."""
    return (
        re.sub(r"([!-&*+.:<-@\[-`{-~])", r"\\\1", text)
        .replace("\\<", "&lt;")
        .replace("\\&", "&amp;")
    )
