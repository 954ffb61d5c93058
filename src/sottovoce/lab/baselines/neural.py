"""``linear`` with a network of one hidden layer in place of each arm's linear score.

Ma, Jiang, Zhao, Yang and Yu compare with it in section 4.2 ("with the other steps staying
unchanged"); its size, its steps and how its gradients are bounded are not said there, and are
chosen here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.lab.baselines.checks import check_descent, check_positive
from sottovoce.shared import check
from sottovoce.shared.experiment import Experiment

if TYPE_CHECKING:
    from sottovoce.lab.driver import CompiledPolicy


@dataclass(frozen=True, slots=True)
class Neural:
    """Private stochastic gradients for one small network an arm, and a greedy policy.

    Reports, steps, warm-up and auxiliary rows are those of ``Linear``. A gradient longer than
    ``clip`` is shortened to it before it is reported, so that no person's is longer.

    width: hidden units, with tanh; the output goes through a sigmoid.
    spread: the standard deviation of the first weights, which come from the experiment's seed.

    The defaults were chosen on the simulated worlds of ``Linear`` and the checkerboard of the
    paper's supplement: width 4 to 16, clip 0.5 and 1, spread 0.5 to 2, step 10 to 60, and step 0.1
    to 1 with power 1/2. The differences are small; the steps of ``Linear`` are as good as any.
    """

    width: int = 8
    clip: float = 1.0
    spread: float = 1.0
    step: float = 20.0
    delay: float = 3000.0
    power: float = 1.0
    ridge: float = 0.0
    warm_up: int | None = None

    def __post_init__(self) -> None:
        check.whole_number(self.width, what="width of nn", least=1)
        for name in ("clip", "spread"):
            number = check_positive(getattr(self, name), what=f"{name} of nn")
            object.__setattr__(self, name, number)
        check_descent(self, name="nn")

    def __call__(self, experiment: Experiment) -> "CompiledPolicy":
        """Begin a run."""
        # Compiled code is loaded only where something is played.
        from sottovoce.lab.baselines.descent import (
            DescentPolicy,
            DescentSettings,
            size_of,
            warm_up_of,
        )

        settings = DescentSettings(
            width=self.width,
            clip=self.clip,
            warm_up=warm_up_of(self.warm_up, experiment),
            step=self.step,
            delay=self.delay,
            power=self.power,
            ridge=self.ridge,
        )
        rng = np.random.default_rng([experiment.seed, FIRST_WEIGHTS])
        theta = rng.normal(0.0, self.spread, size_of(experiment, width=self.width))
        theta[:, 0] = 0.0
        theta[:, 1 : 1 + self.width] /= np.sqrt(self.width)
        return DescentPolicy(experiment, settings, theta)


FIRST_WEIGHTS = 1
"""Keeps the first weights apart from the people of the same seed."""
