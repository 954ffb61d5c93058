"""The questions of ``whisper``: what a report may be about, and how its cells are laid out.

Every person answers one question. Which one is a public coin: it is drawn without a look at the
data, and is named in the report. The answer is one (cell, value), value in [-1, 1], through signed
subset selection. With y the outcome, p the share of people in a bin and f the mean rewards there:

    kind       cells          value                            mean of the value/β of a cell
    CONTRAST   bins           ±(2y-1), + for the first arm     p·(f_first - f_second)
    LEVEL      bins           2y-1                             p·(f_first + f_second - 1)
    MASS       bins           1                                p
    OUTCOME    bins × arms    2y-1                             p·π_k·(2f_k - 1)
      of two   bins           ±(2y-1), + for the first arm     p·(π_1·(2f_1 - 1) - π_2·(2f_2 - 1))
    TONE       bins           2y-1                             p·(π_1·(2f_1 - 1) + π_2·(2f_2 - 1))
    COUNT      bins × arms    1                                p·π_k
    RANKED     bins           2y-1                             p·(2f_k - 1), k the first live arm
    REWARD     everybody      2y-1                             2r - 1, r the mean reward

The first three are for people who were served one of the two arms on offer; OUTCOME, TONE and COUNT
for logged rows, whose arm some other policy chose with chance π_k; RANKED and MASS where arms are
public (k is then the first live arm of the bin in the person's public ranking). In an experiment
with two arms one cell tells how they differ, with half the noise of two; how good they are is then
a question of its own, TONE.

REWARD is for some of the target's people where there are auxiliary populations, whether or not
anything is contested: does the policy do for them what those others promise? It has one cell, and
everyone is in it. How many are asked so is said by each release.

A question may also be about one feature j: which half of the bin along j? At a large ε each half
is a cell of its own, and everybody is asked about some feature. At a small ε more cells would be
more noise: there the value changes its sign in the lower half, so that the answers tell the
difference of the halves, and only some people are asked so (of logged rows, more than half).

People with no cell of their own (their bin is settled, or their logged arm was dropped) answer
too. At a small ε they send noise (the mechanism's null); at a larger one they are in one cell
more, "elsewhere", which nobody reads: nothing is noisier than a crowd that has no cell to name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache

from sottovoce.shared.errors import Rejection, ReportRejected, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.method import Whisper
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.shares import FEATURE_SHARE, LOGGED_FEATURE_SHARE, SHARES
from sottovoce.shared.subset import SignedSubset, signed_subset


class Kind(IntEnum):
    """What is asked."""

    CONTRAST = 0
    LEVEL = 1
    MASS = 2
    OUTCOME = 3
    COUNT = 4
    RANKED = 5
    REWARD = 6
    TONE = 7


LOGGED = frozenset({Kind.OUTCOME, Kind.COUNT, Kind.TONE})

# Halves become cells when the variance of a whole bin with 1/N of the people grows by less.
_HALVES_WORTH = 1.3


@dataclass(frozen=True, slots=True)
class Question:
    """One question: its kind, and the feature along which bins are halved, if any."""

    kind: Kind
    feature: int | None = None

    def number(self, dimension: int) -> int:
        """Return the question's place in the list of all questions."""
        return self.kind * (1 + dimension) + (0 if self.feature is None else 1 + self.feature)


@dataclass(frozen=True, slots=True)
class Law:
    """The mechanism for some cells, with or without halves and "elsewhere"."""

    mechanism: SignedSubset
    halves: bool
    elsewhere: bool


@lru_cache(maxsize=65536)
def law(epsilon: float, cells: int, *, may_halve: bool) -> Law:
    """Return the mechanism for so many whole cells: bins, or (bin, arm) pairs."""
    plain = signed_subset(epsilon, cells)
    # Up to a = 3 the best sets hold every cell; beyond, "elsewhere" is worth its place.
    if plain.told <= 3 * plain.other:
        return Law(plain, halves=False, elsewhere=False)
    whole, halved = signed_subset(epsilon, cells + 1), signed_subset(epsilon, 2 * cells + 1)
    usual = whole.noise + (whole.inside - whole.noise) / cells
    as_halves = 2 * halved.noise + (halved.inside - halved.noise) / cells
    if may_halve and as_halves < _HALVES_WORTH * usual:
        return Law(halved, halves=True, elsewhere=True)
    return Law(whole, halves=False, elsewhere=True)


def may_halve(experiment: Experiment) -> bool:
    """Say whether halves may be cells: a certificate counts answers about whole bins only."""
    settings = experiment.settings
    return isinstance(settings, Whisper) and settings.guarantee != "certified"


def is_by_arm(kind: Kind, *, arms: int) -> bool:
    """Say whether each arm of a bin has a cell of its own in such a question."""
    return kind == Kind.COUNT or (kind == Kind.OUTCOME and arms > 2)


def reward_mechanism(experiment: Experiment) -> SignedSubset:
    """Return the mechanism for the one cell of REWARD, in which every person of the target is."""
    return signed_subset(experiment.epsilon, 1)


def feature_share(law: Law, *, logged: bool) -> int:
    """Return how many people of SHARES are asked about a feature.

    In a jump-start nobody waits for the arms to be told apart, and bins are cut by what is seen of
    features: at a small ε, where such a question costs another, most logged rows are asked so.
    """
    if law.halves:
        return SHARES
    return LOGGED_FEATURE_SHARE if logged and not law.elsewhere else FEATURE_SHARE


@dataclass(frozen=True)
class Sheet:
    """The cells of one group of questions in one release, in order."""

    bins: tuple[BinPolicy, ...]
    by_arm: bool
    law: Law

    @cached_property
    def places(self) -> Mapping[tuple[str, int | None], int]:
        """The whole cell of each bin, or of each (bin, live arm)."""
        cells: list[tuple[str, int | None]] = []
        for policy in self.bins:
            arms = policy.live if self.by_arm else (None,)
            cells += [(policy.path, arm) for arm in arms]
        return {cell: place for place, cell in enumerate(cells)}


def sheet(release: Release, *, population: int, by_arm: bool) -> Sheet | None:
    """Lay out the cells for a population; None where everything is settled."""
    key = (Sheet, population, by_arm)
    if key not in release.derived:
        release.derived[key] = lay_out(
            release.contested,
            epsilon=release.experiment.populations[population].epsilon,
            by_arm=by_arm,
            may_halve=may_halve(release.experiment),
        )
    found: Sheet | None = release.derived[key]
    return found


def lay_out(
    bins: tuple[BinPolicy, ...], *, epsilon: float, by_arm: bool, may_halve: bool
) -> Sheet | None:
    """Lay out the cells of some contested bins."""
    cells = sum(len(policy.live) if by_arm else 1 for policy in bins)
    if cells == 0:
        return None
    return Sheet(bins, by_arm, law(epsilon, cells, may_halve=may_halve))


def question_of(number: int, experiment: Experiment) -> Question:
    """Read a question's number, and refuse one that nobody asks there."""
    kind, slot = divmod(number, 1 + experiment.dimension)
    if not 0 <= kind < len(Kind):
        raise ReportRejected(
            Rejection.UNKNOWN_QUESTION, must("a report's question", "be in the list", number)
        )
    question = Question(Kind(kind), slot - 1 if slot else None)
    if question.kind == Kind.REWARD and (slot or not experiment.audited):
        rule = "be about everybody, in an experiment with auxiliary populations"
        raise ReportRejected(Rejection.UNKNOWN_QUESTION, must("a report's question", rule, number))
    if question.kind == Kind.TONE and len(experiment.arms) > 2:
        rule = "be asked where there are two arms, if it is about both"
        raise ReportRejected(Rejection.UNKNOWN_QUESTION, must("a report's question", rule, number))
    settings = experiment.settings
    public = isinstance(settings, Whisper) and settings.public_arms
    private_only = question.kind in (Kind.CONTRAST, Kind.LEVEL)
    if (public and private_only) or (not public and question.kind == Kind.RANKED):
        rule = "be one of its experiment's, whose arms are " + ("public" if public else "private")
        raise ReportRejected(Rejection.UNKNOWN_QUESTION, must("a report's question", rule, number))
    return question
