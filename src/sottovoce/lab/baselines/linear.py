"""A locally private generalised linear bandit, by stochastic gradients.

Y. Han, Z. Liang, Y. Wang and J. Zhang, "Generalized linear bandits with local differential
privacy", NeurIPS 2021 (arXiv:2106.03365), Algorithm 2 (arms with parameters of their own), with the
logistic link. Mechanism, policy and steps were read off the authors' public code
(github.com/liangzp/LDP-Bandit), which need not agree with the paper's text in every constant.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.lab.baselines.checks import check_descent
from sottovoce.shared.experiment import Experiment

if TYPE_CHECKING:
    from sottovoce.lab.driver import CompiledPolicy


@dataclass(frozen=True, slots=True)
class Linear:
    """Private stochastic gradients for one logistic model an arm, and a greedy policy.

    As published: a warm-up with the arms in turn, then the arm with the best score; one report a
    user on the sphere of Duchi et al. (``sphere``), of the gradients of all arms at once, zero but
    for the arm that was pulled; θ ← θ - η_t·(Z_t + λ·θ). See ``descent`` for the lines.

    step, delay, power: η_t = step·K/(t + delay)^power. The authors' code has step 5 and power 1
        (for few dimensions; a second version has power 1/2), and begins it after 3000 users.
    ridge: λ. The authors' code has 0.05.
    warm_up: how many reports come before the policy is greedy; None for the authors' 3000, or a
        tenth of the target users if that is less.

    The defaults of step, delay and ridge were chosen on simulated worlds (exponential bumps, a
    slanted line, logistic models; n = 40,000 and 300,000; ε = 1, 2, 8): step 5 to 300 with delay
    300 to 3000, and step 0.02 to 1 with power 1/2, each with ridge 0 to 0.05. No real data was
    looked at. The authors' own 5 and 0.05 lose a quarter more there.

    Departs from the paper:
    - φ(x) = (1, 2x - 1)/√(d+1): an intercept, and no longer than 1, which it takes for granted.
    - The warm-up uses the same reports as the rest. The authors' code fits least squares then, with
      Gaussian noise: (ε, δ)-LDP, and the arm public.
    - The paper also rules arms out by the warm-up's estimates; the authors' code leaves that out,
      and so does this.
    - The length of a report is that of K(d+1) dimensions; the authors' code has the length for d,
      which is not unbiased.
    - θ starts from 0, and people between two releases use the same θ.
    - Auxiliary rows, which it does not know, go through the same steps first, each with one report
      by the ε of its population (as Ma et al. describe it), and count towards the warm-up.
    """

    step: float = 20.0
    delay: float = 3000.0
    power: float = 1.0
    ridge: float = 0.0
    warm_up: int | None = None

    def __post_init__(self) -> None:
        check_descent(self, name="linear")

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
            width=0,
            clip=1.0,
            warm_up=warm_up_of(self.warm_up, experiment),
            step=self.step,
            delay=self.delay,
            power=self.power,
            ridge=self.ridge,
        )
        theta = np.zeros(size_of(experiment, width=0))
        return DescentPolicy(experiment, settings, theta)
