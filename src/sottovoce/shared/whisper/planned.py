"""What people will lose if arms differ by so much, by a rule of thumb, before anybody comes.

As in ``outlook.py``, with one more thing that is known: the **effect**, what a person's best arm
brings more than the next best one, on average, as a share of the range of rewards.

    half = people·V·K^arms·d^axes·L^levels·(0.1/effect)^effects
    share = 1/(1 + (n/half)^fall)

By theory the power of the effect is 2: to see half as much takes four times as many people. The
worlds are those of ``sottovoce plan`` (lab/plan/worlds.py): a feature or two matter, and the arms
differ by the effect for everybody. ``python -m benchmarks.plan --fit`` fits the numbers to
docs/figures/results/plan.json, and prints how far they are off.
"""

import math

from sottovoce.shared.experiment import Experiment
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.outlook import (
    Powers,
    people_for_half,
    people_who_count,
    share_of_random,
)
from sottovoce.shared.whisper.subset import signed_subset

BINS = 4
"""How many bins are contested, for the mechanism's variance: as ``OUTLOOK_BINS``."""

REFERENCE = 0.1
"""The effect at which ``POWERS`` hold."""

POWERS = Powers(people=12_000.0, arms=-0.43, axes=1.0, levels=0.25)
"""After how many people half of random is lost: how the number grows with what is to be learned.

Of more arms, arms at random lose more, and some of them are soon dropped: that is why the power of
arms is below 0. More arms cost more rewards all the same."""

EFFECTS = 1.9
"""The power by which the number falls as the effect grows."""

FALL = 0.45
"""The power by which the odds of losing fall as more people come.

All six are fitted to 300 settings of 4 worlds each. The root mean square of the error of a share is
0.12, and also where one half of the settings is fitted and the other half told."""


def expected_loss(experiment: Experiment, *, effect: float) -> float:
    """Return the share of what arms at random lose that people are expected to lose."""
    return share_of_random(
        people_who_count(experiment), half=people_for_half_of(experiment, effect=effect), fall=FALL
    )


def people_for_half_of(experiment: Experiment, *, effect: float) -> float:
    """Return after how many people half of what random arms lose is lost."""
    half = people_for_half(
        variance=signed_subset(experiment.epsilon, BINS).variance,
        arms=len(experiment.arms) - len(experiment.retired),
        axes=experiment.dimension,
        levels=sum(slots_of(experiment).levels),
        powers=POWERS,
    )
    return half * math.pow(REFERENCE / effect, EFFECTS)
