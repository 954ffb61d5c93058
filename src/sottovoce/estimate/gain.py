"""The gain: what the policy brings over the baseline, added up without any model.

docs/explanation/gain.md derives it; this is the whole argument.

**One person.** A public coin puts person t in the policy group with chance s, in the baseline group
with chance s, and in neither with chance 1 - 2s (``shared/baseline.py``). Somebody in a group sends
a sign, and x = sign/β has the mean u = 2r - 1, with r the mean outcome of their arm given all that
came before. So with r of the policy and of the baseline, the person's gain is
θ = r_policy - r_baseline = (u_policy - u_baseline)/2, whether or not the person is in a group. For
centres m_policy and m_baseline that follow from earlier reports alone, and
d = (m_policy - m_baseline)/2,

    residual = (x - m_policy)/(2s)      in the policy group,
               -(x - m_baseline)/(2s)   in the baseline group,
               0                        in neither

has the mean θ - d, given all that came before. So d + residual estimates θ without bias, whatever
the centres are. Good centres make it vary less.

**Many people.** For a rate λ with 1 + λ·residual > 0,

    wealth(λ) = Π (1 + λ·residual) · exp(-λ·Σ (θ - d))

is a supermartingale that begins at 1: each factor has the mean (1 + λ(θ - d))·exp(-λ(θ - d)) ≤ 1,
since 1 + z ≤ e^z. The same holds for -λ, and for a mixture of both over several rates, whose
weights add up to 1. By Ville's inequality it ever exceeds 1/α with a probability of at most α. So
the values of Σ θ for which the mixture is at most 1/α hold the true one at all times at once, with
probability 1 - α: however the gain drifts as the policy learns, and with no bound on a variance
that would have to be guessed (``gain_interval.py`` finds them). Nothing here is approximate.

The inequality loses (θ - d)²/2 where the variance is about 1/(2sβ²): hardly anything. How wide the
interval is depends on the rates. Each is best for one amount of evidence, so nearly all of the
weight is on the one that suits the people who were announced (``rates_of``).

**Where everything is settled**, whoever is in no group sends an empty report and spends nothing,
also without any budget left. Somebody in a group must have a budget. So there only those in groups
count, and each stands for 1/(2s) people: given that somebody is in a group, each group has
probability 1/2, the residual has the mean (θ - d)/(2s), and the factor that belongs to it is
exp(-λ(θ - d)/(2s)).

Reports come in steps: within a step the centres stand still, so that the order does not matter.
These are plain functions of plain arrays, which the lab compiles as they stand.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.shared.baseline import UNIT

if TYPE_CHECKING:
    from sottovoce.shared.experiment import Experiment

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

WINDOWS = 3
WHOLE, PRESENT, NEXT = range(WINDOWS)
"""The people that are looked at: all, those since a while ago, and those who will be looked at."""

BEGAN, NUMBER, WEIGHT, DRIFT, RESIDUAL, SQUARES = range(6)
"""Of a window: how many people had come when it began, or -1 if it has not; which of all windows
it is; how many people count; the sums of d, of the residuals, and of their squares."""

RATES = (2.745, 0.75, 7.8, 15.6, 31.2, 62.4)
"""Rates for evidence that has the variance 1 in the end: the best one, and others for what comes
later and earlier. With the first, an interval is at most 1.475 times as wide as 2·1.96 standard
errors where the variance is as expected to a factor of 1.9 either way. Tried: two near rates, which
make it 1.505 where it is so to a factor of 2.6."""

WEIGHTS = (0.93, 0.014, 0.014, 0.014, 0.014, 0.014)
"""How the chance of error is shared out among the rates. They add up to 1. Tried: 70 to 93 % of it
on the first one; a width at the end that is 3 % smaller makes early ones 10 % larger."""

VARIES = 0.65
"""The largest u² of people for which the rates are made: mean outcomes between 0.1 and 0.9."""

BOLDEST = 0.75
"""The most that a rate may stake on one answer: 1 ± λ·residual stays above a quarter. A guess."""

SURE = 0.9
"""The most that a centre may be away from the middle, of 1. A guess."""

DOUBT = 4.0
"""Centres begin in the middle, with the weight of so many answers without noise. A guess."""

PARTS = 32
"""The first window begins after 1/32 of the people who were announced, and the next after twice as
many each time. Not tuned."""

IN_TIME = 5
"""How many windows are looked at before all who were announced have come."""

IN_TIME_SHARE = 0.8
"""The share of the chance of error that these have; all later ones have the rest."""

CLEAR_ERRORS = 6.0
"""The gain is clear, so that fewer people need be in a group, when it is so many standard errors
away from 0: its interval is then about half as wide to each side as the gain is large. A guess."""

NARROW = 0.004
"""So it is when its standard error is this small, of a reward scale from 0 to 1. A guess."""


class GainConstants(NamedTuple):
    """What the rules need to know of an experiment."""

    measured: bool  # whether there is a baseline
    signal: float  # β of an answer
    first: int  # of UNIT people, how many get the baseline's arm at first …
    least: int  # … and once the gain is clear
    horizon: float  # people who were announced at first
    rates: Floats  # (J,) for evidence whose variance is 1


class Gain(NamedTuple):
    """What the two groups have told. W windows, J rates."""

    share: Counts  # (1,) of UNIT people, how many get the baseline's arm now
    centre: Floats  # (2,) of the policy group and of the baseline group
    told: Floats  # (2,) the sum of x in each group
    asked: Counts  # (2,) how many people of each group have answered
    windows: Floats  # (W, 6) see BEGAN, …
    groups: Counts  # (W, 2) how many people of each group have answered in a window
    rates: Floats  # (W, J)
    wealth: Floats  # (W, 2, J) the logarithm of Π (1 ± λ·residual)


def gain_constants(experiment: "Experiment", *, signal: float) -> GainConstants:
    """Return the constants of an experiment: those of its first form, for no rate may change.

    signal: β of what a group's people are asked; it follows from ε, which never changes.
    """
    first = experiment.first_form
    baseline = first.compared_with
    return GainConstants(
        measured=baseline is not None,
        signal=signal,
        first=0 if baseline is None else baseline.units,
        least=0 if baseline is None else baseline.least,
        horizon=float(first.horizon),
        rates=rates_of(signal, 1.0 if baseline is None else baseline.units / baseline.least),
    )


def rates_of(signal: float, most: float) -> Floats:
    """Return the rates for evidence that would have the variance 1 at the first share.

    It is smaller where outcomes are mostly good, or mostly bad: 1 - β²u² of that. It is larger
    where the share falls: up to ``most`` times as large.
    """
    least = 1.0 - VARIES * signal**2
    return np.asarray(np.array(RATES) / (least * most) ** 0.25)


def new_gain(fixed: GainConstants) -> Gain:
    """Return what is known before the first report."""
    rates = len(fixed.rates)
    gain = Gain(
        share=np.full(1, fixed.first, dtype=np.int64),
        centre=np.zeros(2),
        told=np.zeros(2),
        asked=np.zeros(2, dtype=np.int64),
        windows=np.zeros((WINDOWS, 6)),
        groups=np.zeros((WINDOWS, 2), dtype=np.int64),
        rates=np.zeros((WINDOWS, rates)),
        wealth=np.zeros((WINDOWS, 2, rates)),
    )
    gain.windows[:, BEGAN] = -1.0
    if fixed.measured:
        begin_window(gain, fixed, WHOLE, -1.0, 0.0)
    return gain


def add_people(
    gain: Gain,
    fixed: GainConstants,
    share: int,
    settled: bool,
    told: Counts,
    others: float,
) -> None:
    """Add people who came since the last step, with one share of the release that they had.

    settled: whether everything was settled in that release.
    told (2, 2): of each group, how many sent minus and plus.
    others: how many people were in neither group.
    """
    chance = share / UNIT
    members = float(told[0, 0] + told[0, 1] + told[1, 0] + told[1, 1])
    people = members / (2.0 * chance) if settled else members + others
    drift = (gain.centre[0] - gain.centre[1]) / 2.0
    for window in range(WINDOWS):
        sums = gain.windows[window]
        if sums[BEGAN] < 0.0:
            continue
        sums[WEIGHT] += people
        sums[DRIFT] += people * drift
        for group in range(2):
            for sign in range(2):
                count = told[group, sign]
                if count > 0:
                    value = (2.0 * sign - 1.0) / fixed.signal - gain.centre[group]
                    residual = (1.0 - 2.0 * group) * value / (2.0 * chance)
                    add_residual(gain, window, count, residual)
                    gain.groups[window, group] += count
    for group in range(2):
        gain.asked[group] += told[group, 0] + told[group, 1]
        gain.told[group] += (told[group, 1] - told[group, 0]) / fixed.signal


def add_residual(gain: Gain, window: int, count: int, residual: float) -> None:
    """Add a residual that so many people have."""
    gain.windows[window, RESIDUAL] += count * residual
    gain.windows[window, SQUARES] += count * residual**2
    for j in range(gain.rates.shape[1]):
        stake = gain.rates[window, j] * residual
        gain.wealth[window, 0, j] += count * math.log1p(stake)
        gain.wealth[window, 1, j] += count * math.log1p(-stake)


def look_at_gain(gain: Gain, fixed: GainConstants, people: float) -> bool:
    """Look at what the groups have told by a step; return whether the next release asks fewer.

    people: of the target, who have come in all.
    """
    if not fixed.measured:
        return False
    for group in range(2):
        # What people have told, less sure the more noise each answer has.
        weight = gain.asked[group] + DOUBT / fixed.signal**2
        gain.centre[group] = min(max(gain.told[group] / weight, -SURE), SURE)
    first, number = fixed.horizon / PARTS, int(gain.windows[NEXT, NUMBER])
    if gain.windows[NEXT, BEGAN] < 0.0:
        number = -1
    while people >= first * 2.0 ** (number + 1):
        copy_window(gain, NEXT, PRESENT)
        number += 1
        begin_window(gain, fixed, NEXT, float(number), people)
    before = gain.share[0]
    if is_clear(gain):
        gain.share[0] = fixed.least
    changed: bool = gain.share[0] != before
    return changed


def is_clear(gain: Gain) -> bool:
    """Say whether the gain of all people is clearly not 0, or known well enough."""
    sums = gain.windows[WHOLE]
    if sums[SQUARES] == 0.0:
        return False
    error = math.sqrt(sums[SQUARES])
    far = abs(sums[DRIFT] + sums[RESIDUAL]) >= CLEAR_ERRORS * error
    clear: bool = far or error <= NARROW * sums[WEIGHT]
    return clear


def begin_window(
    gain: Gain, fixed: GainConstants, window: int, number: float, people: float
) -> None:
    """Begin to look at people from now on.

    number: of the window; -1 for that of all people. people: how many have come.

    Its rates suit the variance that its evidence is expected to have in the end: 1/(2sβ²) for each
    person. Each window but that of all is looked at until as many people have come since as came
    before, and then three times as many; its rates are for the middle of that.
    """
    sums = gain.windows[window]
    sums[:] = 0.0
    sums[BEGAN], sums[NUMBER] = people, number
    expected = fixed.horizon if number < 0.0 else 2.0 * max(people, fixed.horizon / PARTS)
    chance = fixed.first / UNIT
    variance = expected / (2.0 * chance * fixed.signal**2)
    error = error_share(number)
    more = math.sqrt(1.0 - math.log(error) / math.log(40.0))  # a smaller chance of error
    least = fixed.least / UNIT
    boldest = BOLDEST * 2.0 * least / (1.0 / fixed.signal + SURE)
    gain.groups[window, :] = 0
    gain.wealth[window, :, :] = 0.0
    for j in range(gain.rates.shape[1]):
        gain.rates[window, j] = min(fixed.rates[j] * more / math.sqrt(variance), boldest)


def error_share(number: float) -> float:
    """Return the share of the chance of error that a window has; over all windows, at most 1.

    number: -1 for the window of all people, which is a statement of its own.
    """
    if number < 0.0:
        return 1.0
    if number < IN_TIME:
        return IN_TIME_SHARE / IN_TIME
    share: float = (1.0 - IN_TIME_SHARE) * 2.0 ** (IN_TIME - 1.0 - number)
    return share


def copy_window(gain: Gain, source: int, window: int) -> None:
    """Let one window be what another one is."""
    gain.windows[window] = gain.windows[source]
    gain.groups[window] = gain.groups[source]
    gain.rates[window] = gain.rates[source]
    gain.wealth[window] = gain.wealth[source]


def check_gain(gain: Gain, fixed: GainConstants, people: float) -> None:
    """Check that what was read of a saved learner does not contradict itself.

    people: of the target, who have come in all.
    """
    if gain.share[0] not in (fixed.first, fixed.least):
        raise ValueError("its share of the baseline is not one of its experiment")
    if (gain.asked < 0).any() or (gain.groups < 0).any() or (gain.groups > gain.asked).any():
        raise ValueError("its groups are not counts")
    if (gain.asked != gain.groups[WHOLE]).any() or gain.asked.sum() > people:
        raise ValueError("its groups are not counts")
    if (gain.windows[:, (WEIGHT, SQUARES)] < 0).any() or (gain.windows[:, BEGAN] > people).any():
        raise ValueError("its gain cannot be")
    if (np.abs(gain.centre) > SURE).any() or (gain.rates < 0).any():
        raise ValueError("its gain cannot be")
