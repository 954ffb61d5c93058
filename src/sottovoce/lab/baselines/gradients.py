"""Locally private bandits by stochastic gradients: a linear model for each arm, or a small network.

``Linear``: Y. Han, Z. Liang, Y. Wang and J. Zhang, "Generalized linear bandits with local
differential privacy", NeurIPS 2021 (arXiv:2106.03365), Algorithm 2 (arms with parameters of their
own), with the logistic link. Mechanism, policy and steps were read off the authors' public code
(github.com/liangzp/LDP-Bandit), which need not agree with the paper's text in every constant.

``Neural``: Ma, Jiang, Zhao, Yang and Yu compare with it in section 4.2 ("with the other steps
staying unchanged"); its size, its steps and how its gradients are bounded are not said there, and
are chosen here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.lab.baselines.checks import make_positive
from sottovoce.lab.environments import Floats
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment

if TYPE_CHECKING:
    from sottovoce.lab.driver import CompiledPolicy

FIRST_WEIGHTS = 1
"""Keeps the first weights apart from the people of the same seed."""


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
        _check(self, "linear")

    def __call__(self, experiment: Experiment) -> "CompiledPolicy":
        """Begin a run."""
        theta = np.zeros((len(experiment.arms), experiment.dimension + 1))
        return _begin(self, experiment, theta, width=0, clip=1.0)


@dataclass(frozen=True, slots=True)
class Neural:
    """``Linear`` with a network of one hidden layer in place of each arm's linear score.

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
        make_positive(self, "clip", "spread", of="nn")
        _check(self, "nn")

    def __call__(self, experiment: Experiment) -> "CompiledPolicy":
        """Begin a run."""
        rng = np.random.default_rng([experiment.seed, FIRST_WEIGHTS])
        size = self.width * (experiment.dimension + 2) + 1
        theta = rng.normal(0.0, self.spread, (len(experiment.arms), size))
        theta[:, 0] = 0.0
        theta[:, 1 : 1 + self.width] /= np.sqrt(self.width)
        return _begin(self, experiment, theta, width=self.width, clip=self.clip)


def _check(model: Linear | Neural, name: str) -> None:
    """Check the settings that both have."""
    make_positive(model, "step", "power", of=name)
    make_positive(model, "delay", "ridge", of=name, zero=True)
    if model.power > 1:
        raise ExperimentError(must(f"power of {name}", "lie in (0, 1]", model.power))
    if model.warm_up is not None:
        check.whole_number(model.warm_up, what=f"warm_up of {name}", least=0)


def _begin(
    model: Linear | Neural, experiment: Experiment, theta: Floats, *, width: int, clip: float
) -> "CompiledPolicy":
    """Begin a run from the parameters theta (K, P); see ``models`` for P."""
    # Compiled code is loaded only where something is played.
    from sottovoce.lab.baselines.descent import DescentPolicy, DescentSettings

    warm_up = min(3000, experiment.horizon // 10) if model.warm_up is None else model.warm_up
    steps = (model.step, model.delay, model.power, model.ridge)
    return DescentPolicy(experiment, DescentSettings(width, clip, warm_up, *steps), theta)
