"""What people will lose, by a rule of thumb, before the first of them comes.

With V the variance of one answer (``subset.py``), K arms, d axes and L levels without order,

    half = people·V·K^arms·d^axes·L^levels      so many people lose half of what random arms lose
    share = 1/(1 + (n/half)^fall)

Why this form? An estimate from n answers has the variance V/n, so that only n/V counts. More arms,
axes or levels leave fewer answers for each. The powers are fitted to simulations of worlds in which
arms clearly differ (docs/how-to/what-to-expect.md): an experiment with smaller effects loses more.
The share falls with n and ε, and grows with arms, axes and levels.
"""

import math
from typing import NamedTuple, cast

from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.subset import signed_subset
from sottovoce.shared.whisper.tuning import (
    OUTLOOK_ARMS,
    OUTLOOK_AXES,
    OUTLOOK_BINS,
    OUTLOOK_FALL,
    OUTLOOK_LEVELS,
    OUTLOOK_PEOPLE,
)


class Powers(NamedTuple):
    """How the number of people grows with what is to be learned; ``people``: with nothing."""

    people: float
    arms: float
    axes: float
    levels: float


FITTED = Powers(OUTLOOK_PEOPLE, OUTLOOK_ARMS, OUTLOOK_AXES, OUTLOOK_LEVELS)


def expected_share(experiment: Experiment) -> float:
    """Return the share of what arms at random lose that people are expected to lose."""
    half = people_for_half(
        variance=_variance(experiment.epsilon, OUTLOOK_BINS),
        arms=len(experiment.arms) - len(experiment.retired),
        axes=experiment.dimension,
        levels=sum(slots_of(experiment).levels),
    )
    return share_of_random(people_who_count(experiment), half=half, fall=OUTLOOK_FALL)


def people_for_half(
    *, variance: float, arms: int, axes: int, levels: int, powers: Powers = FITTED
) -> float:
    """Return after how many people half of what random arms lose is lost."""
    size = arms**powers.arms * axes**powers.axes * max(1, levels) ** powers.levels
    return float(powers.people * variance * size)


def share_of_random(people: float, *, half: float, fall: float) -> float:
    """Return the share after so many people; 1/2 at ``half``.

    >>> [round(share_of_random(people, half=1000, fall=1), 2) for people in (0, 1000, 9000)]
    [1.0, 0.5, 0.1]
    """
    return float(1 / (1 + (people / half) ** fall))


def people_who_count(experiment: Experiment) -> float:
    """Return how many people are remembered in the end, with what others' rows say."""
    half_life = cast(Whisper, experiment.settings).half_life
    rows = sum(_worth(experiment, each) * each.users for each in experiment.auxiliary)
    all_told = float(experiment.horizon + rows)
    if half_life is not None:  # each answer counts half after so many people: in all, so many count
        return min(all_told, half_life / math.log(2))
    return all_told


def _worth(experiment: Experiment, population: Population) -> float:
    """Return how many people of the target say as much as one logged row, roughly.

    The learner's own figure (``worth`` in estimate/whisper/tally.py) follows from its bins. That
    rows come before anybody is served is not credited: they bring more than is said here.
    """
    arms = len(experiment.arms) - len(experiment.retired)
    cells = OUTLOOK_BINS if arms == 2 else OUTLOOK_BINS * arms
    ratio = _variance(experiment.epsilon, OUTLOOK_BINS) / _variance(population.epsilon, cells)
    told = 1.0 if population.behaviour is not None else 0.5  # otherwise half of them count rows
    return told * ratio * (1.0 if arms == 2 else 2 / arms**2)


def _variance(epsilon: float, cells: int) -> float:
    return signed_subset(epsilon, cells).variance
