"""The questions of ``whisper``: one table, which the device, the learner and the lab all read.

Every person answers one question. Which one is a public coin: the device draws it without looking
at the data, and the report names it. The answer is one (cell, value), value in [-1, 1]. The device
sends it through signed subset selection. With y the outcome, p the share of people in a bin, π_k
the chance of arm k in a log and f the mean rewards in the bin, the value/β of a cell has the mean
of the last column:

    kind             asked of      cells        value                  mean of value/β
    CONTRAST         served        bins         ±(2y-1), + for first   p·(f_first - f_second)
    LEVEL            served        bins         2y-1                   p·(f_first + f_second - 1)
    MASS             served        bins         1                      p
    RANKED           served        bins         2y-1                   p·(2f_k - 1)
    REWARD           served        everybody    2y-1                   2r - 1, r the mean reward
    BIN_REWARD       served        all bins     2y-1                   p·(2·Σ_k s_k·f_k - 1)
    BIN_MASS         served        all bins     1                      p
    POLICY_REWARD    policy group  everybody    2y-1                   2r - 1, r of the policy
    BASELINE_REWARD  baseline gr.  everybody    2y-1                   2r - 1, r of the baseline
    SCALE            served        everybody    ±1, + at or above t    1 - 2F(t)
    LOGGED_SCALE     logged rows   everybody    ±1, + at or above t    1 - 2F(t)
    OUTCOME          logged rows   bins × arms  2y-1                   p·π_k·(2f_k - 1)
    OUTCOME of two   logged rows   bins         ±(2y-1), + for first   Σ_k ±p·π_k·(2f_k - 1)
    LOGGED_LEVEL     logged rows   bins         2y-1                   Σ_k p·π_k·(2f_k - 1)
    COUNT            logged rows   bins × arms  1                      p·π_k

People who are served get one of the two arms on offer. RANKED replaces CONTRAST and LEVEL where
arms are public: k is then the first live arm of the bin in the person's public ranking. In an
experiment with two arms one cell measures how they differ, with half the noise of two cells. A
question of its own, LOGGED_LEVEL, measures how good both are.

Where there are auxiliary populations, some of the target's people are asked for REWARD, whether or
not their bin is contested: does the policy bring them what those populations promise? The release
says how many are asked. A further public coin divides them. Most tell in which bin they are, too:
BIN_REWARD, with s_k the chance of an arm on offer, and BIN_MASS. Settled bins have cells there, so
that everybody has one: the mechanism is the plain one for as many cells as there are bins, without
"elsewhere". Where there is one bin, where arms are public and where learners are certified, all of
them are asked for REWARD.

Where an experiment has a baseline, a coin that is drawn before the arm puts some of the target's
people in one of two groups (``shared/baseline.py``). They are asked for their outcome alone, and
the question names the group.

At first, some people and rows are asked where they are along an axis of numbers: is their position
below a public threshold t, or not (``thresholds.py``)? F(t) is the share of people below it. The
release says how many are asked, and about which threshold of each axis; the question names both.

A question may also be about one axis of the contexts (``axes.py``, ``cells.py``).
"""

from bisect import bisect_right
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple, cast

from sottovoce.shared.baseline import BASELINE, POLICY
from sottovoce.shared.errors import Rejection, ReportRejected, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.thresholds import THRESHOLDS
from sottovoce.shared.whisper.tuning import (
    BIN_MASS_SHARE,
    BIN_REWARD_SHARE,
    COUNT_SHARE,
    COUNT_SHARE_UNKNOWN,
    LEVEL_SHARE,
    LOGGED_LEVEL_SHARE,
    MASS_SHARE,
    SHARES,
)


class Kind(IntEnum):
    """What is asked; the number is the one on the wire."""

    CONTRAST = 0
    LEVEL = 1
    MASS = 2
    OUTCOME = 3
    COUNT = 4
    RANKED = 5
    REWARD = 6
    LOGGED_LEVEL = 7
    SCALE = 8
    LOGGED_SCALE = 9
    BIN_REWARD = 10
    BIN_MASS = 11
    POLICY_REWARD = 12
    BASELINE_REWARD = 13


# What follows are plain numbers, so that the lab can compile what reads the table.
# cells: one for all; of each contested bin; of each arm in each of those; of each bin there is
EVERYBODY, BINS, BIN_ARMS, ALL_BINS = range(4)
# value: 1; 2y-1; that with a minus for the second arm; whether a position is at or above t
ONE, OUTCOME, SIGNED_OUTCOME, POSITION = range(4)
# measured: p; p·π_k; a linear function of the rewards; where people are
PEOPLE, ROWS, REWARDS, PLACES = range(4)
ANY, TWO, MORE = range(3)  # arms of the experiment: two or more; just two; more than two
REST = -1  # share: all who are asked nothing else
BY_RELEASE = -2  # share: as many as each release says


class Entry(NamedTuple):
    """One kind of question.

    kind: its number. name: what people call it.
    logged: who is asked: rows of a log, or people who are served.
    cells: EVERYBODY, BINS, BIN_ARMS or ALL_BINS.
    value: ONE, OUTCOME, SIGNED_OUTCOME or POSITION.
    measures: PEOPLE, ROWS, REWARDS or PLACES.
    first, second: the linear function of g = f - 1/2 that a cell measures, but for the share of
        the people in it: first·g_first + second·g_second; of logged rows, twice that. The one cell
        of REWARD has everybody: there it is the mean reward, whatever the arm. Where a cap makes
        the chances s of the two unequal, and nobody is thinned, it is 2·s times that.
    share: how many people of SHARES are asked, or REST, or BY_RELEASE.
    share_unknown: the same, of a log whose behaviour is not known; None for no difference.
    arms: which experiments ask it, by their number of arms: ANY, TWO or MORE.
    public: whether it is asked where arms are public; None for both.
    certified: whether it is asked where arms are dropped with proof; None for both.
    audits: whether it is asked of those alone who are asked for their reward (``reward_share`` of a
        release); share is then of them.
    group: of which group it is the question (``shared/baseline.py``), if of one.
    """

    kind: int
    name: str
    logged: bool
    cells: int
    value: int
    measures: int
    first: float
    second: float
    share: int
    share_unknown: int | None = None
    arms: int = ANY
    public: bool | None = None
    certified: bool | None = None
    audits: bool = False
    group: int | None = None

    @property
    def ranked(self) -> bool:
        """Whether its report carries the public ranking that chose the arm."""
        return self.public is True

    @property
    def thinned(self) -> bool:
        """Whether some who have a capped arm's rival tell of no outcome (``caps.py``)."""
        about_pair = self.cells == BINS and self.measures == REWARDS
        return about_pair and not self.logged and not self.ranked

    @property
    def by_arm(self) -> bool:
        """Whether each arm of a bin has a cell of its own."""
        return self.cells == BIN_ARMS

    @property
    def settled(self) -> bool:
        """Whether settled bins have a cell, too."""
        return self.cells == ALL_BINS


def _served(kind: Kind, cells: int, value: int, measures: int, share: int, **more: Any) -> Entry:
    more = {"first": 0.0, "second": 0.0, **more}
    return Entry(kind, kind.name, False, cells, value, measures, share=share, **more)


def _logged(kind: Kind, cells: int, value: int, measures: int, share: int, **more: Any) -> Entry:
    return _served(kind, cells, value, measures, share, **more)._replace(logged=True)


def _of_all_bins(kind: Kind, value: int, measures: int, share: int, **more: Any) -> Entry:
    more = {"public": False, "certified": False, "audits": True, **more}
    return _served(kind, ALL_BINS, value, measures, share, **more)


def _of_group(kind: Kind, group: int) -> Entry:
    return _served(kind, EVERYBODY, OUTCOME, REWARDS, BY_RELEASE, group=group)


TABLE: tuple[Entry, ...] = (
    _served(Kind.MASS, BINS, ONE, PEOPLE, MASS_SHARE),
    _served(Kind.LEVEL, BINS, OUTCOME, REWARDS, LEVEL_SHARE, first=1, second=1, public=False),
    _served(Kind.CONTRAST, BINS, SIGNED_OUTCOME, REWARDS, REST, first=1, second=-1, public=False),
    _served(Kind.RANKED, BINS, OUTCOME, REWARDS, REST, first=2, public=True),
    _of_all_bins(Kind.BIN_REWARD, OUTCOME, REWARDS, BIN_REWARD_SHARE, first=1, second=1),
    _of_all_bins(Kind.BIN_MASS, ONE, PEOPLE, BIN_MASS_SHARE),
    _served(Kind.REWARD, EVERYBODY, OUTCOME, REWARDS, REST, audits=True),
    _of_group(Kind.POLICY_REWARD, POLICY),
    _of_group(Kind.BASELINE_REWARD, BASELINE),
    _served(Kind.SCALE, EVERYBODY, POSITION, PLACES, BY_RELEASE),
    _logged(Kind.LOGGED_SCALE, EVERYBODY, POSITION, PLACES, BY_RELEASE),
    _logged(Kind.COUNT, BIN_ARMS, ONE, ROWS, COUNT_SHARE, share_unknown=COUNT_SHARE_UNKNOWN),
    _logged(
        Kind.LOGGED_LEVEL, BINS, OUTCOME, REWARDS, LOGGED_LEVEL_SHARE, first=1, second=1, arms=TWO
    ),
    _logged(Kind.OUTCOME, BINS, SIGNED_OUTCOME, REWARDS, REST, first=1, second=-1, arms=TWO),
    _logged(Kind.OUTCOME, BIN_ARMS, OUTCOME, REWARDS, REST, first=1, arms=MORE),
)
"""Every kind of question. ``menu`` gives out the shares in this order."""


def questions_of(experiment: Experiment) -> dict[int, Entry]:
    """Return the questions that an experiment asks, by kind, in the order of the table."""
    if "questions" not in experiment.derived:
        settings = cast(Whisper, experiment.settings)
        public, certified = settings.public_arms, settings.guarantee == "certified"
        counts = (ANY, TWO if len(experiment.arms) == 2 else MORE)
        experiment.derived["questions"] = {
            entry.kind: entry
            for entry in TABLE
            if entry.arms in counts
            and entry.public in (None, public)
            and entry.certified in (None, certified)
            and (not entry.audits or experiment.audited)
            and (entry.group is None or experiment.compared_with is not None)
            and (entry.measures != PLACES or any(axis.levels == 0 for axis in experiment.axes))
        }
    found: dict[int, Entry] = experiment.derived["questions"]
    return found


class Menu(NamedTuple):
    """What may be asked: the first kind whose bound is above a coin of 0 … SHARES - 1."""

    kinds: tuple[int, ...]
    bounds: tuple[int, ...]


def menu(experiment: Experiment, *, population: int, logged: bool, audits: bool = False) -> Menu:
    """Return what a population's people are asked, but for what each release says the share of.

    audits: of those who are asked for their reward.
    """
    known = experiment.populations[population].behaviour is not None
    kinds, bounds, asked, rest = [], [], 0, []
    for entry in questions_of(experiment).values():
        share = entry.share if known or entry.share_unknown is None else entry.share_unknown
        if (entry.logged, entry.audits) != (logged, audits) or share == BY_RELEASE:
            continue
        if share == REST:
            rest.append(int(entry.kind))
            continue
        asked += share
        kinds.append(int(entry.kind))
        bounds.append(asked)
    return Menu((*kinds, *rest), (*bounds, *[SHARES] * len(rest)))


@dataclass(frozen=True, slots=True)
class Question:
    """One question: its kind, the axis that it is about, if any, and the pattern of signs.

    row: of the Hadamard matrix, for an axis whose levels have no order (``axes.py``); or the
        threshold, where the question is about places.
    """

    kind: int
    axis: int | None = None
    row: int = 0

    def number(self, experiment: Experiment) -> int:
        """Return the question's number on the wire."""
        first, patterns = _first_numbers(experiment)[self.kind], slots_of(experiment).patterns
        if self.axis is None:
            return first
        if _is_about_places(self.kind):
            return first + self.axis * len(THRESHOLDS) + self.row
        return first + patterns[self.axis] + self.row


def most_questions(experiment: Experiment) -> int:
    """Return how many numbers the questions of an experiment take."""
    return _first_numbers(experiment)[-1]


def _is_about_places(kind: int) -> bool:
    return any(entry.kind == kind and entry.measures == PLACES for entry in TABLE)


def _first_numbers(experiment: Experiment) -> tuple[int, ...]:
    """Return the first number of each kind, and one beyond the last.

    Most kinds have a number for each pattern. Those about places have one for each threshold of
    each axis. Those about all bins and of the groups are about no axis, and have one; the latter
    none where there is no baseline.
    """
    if "numbers" not in experiment.derived:
        patterns = slots_of(experiment).patterns[-1]
        places = experiment.dimension * len(THRESHOLDS)
        counts = [patterns] * (1 + max(entry.kind for entry in TABLE))
        for entry in TABLE:
            if entry.measures == PLACES or entry.settled:
                counts[entry.kind] = 1 if entry.settled else places
            if entry.group is not None:
                counts[entry.kind] = int(experiment.compared_with is not None)
        experiment.derived["numbers"] = tuple(accumulate(counts, initial=0))
    found: tuple[int, ...] = experiment.derived["numbers"]
    return found


def question_of(number: int, experiment: Experiment) -> Question:
    """Read a question's number, and refuse one that the experiment does not ask."""
    firsts, asked = _first_numbers(experiment), questions_of(experiment)
    kind = bisect_right(firsts, number) - 1
    entry, pattern = asked.get(kind), number - firsts[kind]
    about = entry is not None and entry.measures == PLACES
    axis, threshold = divmod(pattern, len(THRESHOLDS))
    if entry is None or (about and experiment.axes[axis].levels):
        names = ", ".join(entry.name for entry in asked.values())
        rule = f"be one that its experiment asks ({names})"
        raise ReportRejected(Rejection.UNKNOWN_QUESTION, must("a report's question", rule, number))
    if about:
        return Question(kind, axis, threshold)
    if pattern and entry.cells == EVERYBODY:
        rule = "be about no axis where everybody is in one cell"
        raise ReportRejected(Rejection.UNKNOWN_QUESTION, must("a report's question", rule, number))
    if pattern == 0:
        return Question(kind)
    patterns = slots_of(experiment).patterns
    axis = bisect_right(patterns, pattern) - 1
    return Question(kind, axis, pattern - patterns[axis])
