"""Private stochastic gradients: the people, their reports and the learner, compiled.

Han, Liang, Wang and Zhang (2021), Algorithm 2, for K arms with parameters θ_1..θ_K of their own:

warm-up   the arms in turn, whoever comes
after it  the arm with the best score at the person's context: greedy
report    the gradient of the loss at the released θ, a vector of K·P numbers that is zero but for
          the block of the person's arm; ε-LDP on a sphere (``sphere``). Nothing else is sent, so
          that context, arm and reward are all protected, and so is where the block stands
learner   θ ← θ - η_t·(Z_t + λ·θ), η_t = step·K/(t + delay)^power; a new θ is released after every
          ``release_every`` reports, and t counts the reports of all populations
"""

from typing import NamedTuple

import numpy as np

from sottovoce.estimate.history import Dated
from sottovoce.lab.baselines.baseline import no_release
from sottovoce.lab.baselines.models import features, gradient_of, parameters, score_of
from sottovoce.lab.baselines.sphere import draw_report, keep_chance, length
from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.crowd.ldpmab.people import outcome
from sottovoce.lab.crowd.play import Counts, Floats
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release

REPORTS, SERVED = range(2)


class Settings(NamedTuple):
    """The numbers that a run goes by.

    width: of the hidden layer; 0 for the linear model.
    clip: the longest gradient, r of ``sphere``.
    warm_up: reports, auxiliary ones included, before the policy is greedy.
    """

    width: int
    clip: float
    warm_up: int
    step: float
    delay: float
    power: float
    ridge: float


class Descent(NamedTuple):
    """The learner, and room for one person's work."""

    theta: Floats  # (K, P) as released
    change: Floats  # (K·P,) Σ η_t·Z_t since then
    rate: Floats  # (1,) Σ η_t since then
    totals: Counts  # (2,) reports, target users
    keep: Floats  # (M+1,) p of each population
    reach: Floats  # (M+1,) B of each population
    phi: Floats  # (d+1,)
    hidden: Floats  # (H,)
    gradient: Floats  # (P,)
    report: Floats  # (K·P,)
    settings: Settings
    release_every: int


def begin(experiment: Experiment, settings: Settings, theta: Floats) -> Descent:
    """Start from the parameters theta (K, P)."""
    size = theta.size
    epsilons = [population.epsilon for population in experiment.populations]
    reach = [length(size, epsilon=epsilon, bound=settings.clip) for epsilon in epsilons]
    return Descent(
        theta=np.array(theta, dtype=np.float64),
        change=np.zeros(size),
        rate=np.zeros(1),
        totals=np.zeros(2, dtype=np.int64),
        keep=np.array([keep_chance(epsilon) for epsilon in epsilons]),
        reach=np.array(reach),
        phi=np.zeros(experiment.dimension + 1),
        hidden=np.zeros(settings.width),
        gradient=np.zeros(theta.shape[1]),
        report=np.zeros(size),
        settings=settings,
        release_every=experiment.release_every,
    )


@inlined
def choose(descent: Descent, context: Floats) -> int:
    """Return the arm of the next target user; fill in their φ."""
    theta, settings = descent.theta, descent.settings
    features(context, descent.phi)
    if descent.totals[REPORTS] < settings.warm_up:
        arm: int = descent.totals[SERVED] % len(theta)
        return arm
    best, arm = -np.inf, 0
    for k in range(len(theta)):
        score = score_of(theta[k], descent.phi, settings.width, descent.hidden)
        if score > best:
            best, arm = score, k
    return arm


@inlined
def send(
    descent: Descent, rng: np.random.Generator, population: int, arm: int, reward: float
) -> None:
    """Fill in the one report of a person whose φ is filled in: all that leaves the device."""
    theta, settings = descent.theta, descent.settings
    gradient_of(theta[arm], descent.phi, settings.width, descent.hidden, reward, descent.gradient)
    draw_report(
        rng,
        descent.gradient,
        arm * theta.shape[1],
        settings.clip,
        descent.keep[population],
        descent.reach[population],
        descent.report,
    )


@inlined
def receive(descent: Descent) -> bool:
    """Count a report; return whether a new θ was released."""
    settings, totals = descent.settings, descent.totals
    theta, change, report = descent.theta, descent.change, descent.report
    totals[REPORTS] += 1
    eta = settings.step * len(theta) / (totals[REPORTS] + settings.delay) ** settings.power
    descent.rate[0] += eta
    for j in range(len(report)):
        change[j] += eta * report[j]
    if totals[REPORTS] % descent.release_every > 0:
        return False
    left = max(0.0, 1.0 - settings.ridge * descent.rate[0])
    size = theta.shape[1]
    for j in range(len(change)):
        theta[j // size, j % size] = left * theta[j // size, j % size] - change[j]
        change[j] = 0.0
    descent.rate[0] = 0.0
    return True


@compiled
def look(descent: Descent, points: Floats, policies: Floats) -> None:
    """Fill in the chance of each arm at each point; in the warm-up all come in turn."""
    arms = len(descent.theta)
    policies[:] = 1.0 / arms if descent.totals[REPORTS] < descent.settings.warm_up else 0.0
    if descent.totals[REPORTS] >= descent.settings.warm_up:
        for p in range(len(points)):
            policies[p, choose(descent, points[p])] = 1.0


@compiled
def serve(
    descent: Descent,
    rng: np.random.Generator,
    contexts: Floats,
    means: Floats,
    outcomes: Floats,
    points: Floats,
    lost: Floats,
    regret: Floats,
    policies: Floats,
) -> int:
    """Let target users come, as ``Play.serve``."""
    releases = 0
    before = np.empty((len(points), means.shape[1]))
    look(descent, points, before)
    for i in range(len(contexts)):
        arm = choose(descent, contexts[i])
        best = means[i, 0]
        for k in range(1, means.shape[1]):
            best = max(best, means[i, k])
        lost[0] += best - means[i, arm]
        send(descent, rng, 0, arm, outcome(outcomes, means, i, arm, rng))
        descent.totals[SERVED] += 1
        if receive(descent):
            regret[releases] = lost[0]
            policies[releases] = before
            releases += 1
            if len(points) > 0:
                look(descent, points, before)
    return releases


@compiled
def contribute(
    descent: Descent,
    rng: np.random.Generator,
    population: int,
    contexts: Floats,
    means: Floats,
    outcomes: Floats,
    logged: Counts,
) -> None:
    """Let the rows of a log come, each with one report by the ε of its own population."""
    for i in range(len(contexts)):
        features(contexts[i], descent.phi)
        reward = outcome(outcomes, means, i, logged[i], rng)
        send(descent, rng, population, logged[i], reward)
        receive(descent)


class DescentPlay:
    """Implements ``Play``."""

    def __init__(
        self, experiment: Experiment, settings: Settings, theta: Floats, *, name: str
    ) -> None:
        self.experiment = experiment
        self.descent = begin(experiment, settings, theta)
        self.name = name

    @property
    def waiting(self) -> int:
        """The number of reports since the last release."""
        return int(self.descent.totals[REPORTS]) % self.experiment.release_every

    def contribute(
        self,
        rng: np.random.Generator,
        population: int,
        contexts: Floats,
        means: Floats,
        outcomes: Floats,
        logged: Counts,
    ) -> None:
        """Let the rows of a log come."""
        contribute(self.descent, rng, population, contexts, means, outcomes, logged)

    def serve(
        self,
        rng: np.random.Generator,
        contexts: Floats,
        means: Floats,
        outcomes: Floats,
        points: Floats,
        lost: Floats,
        regret: Floats,
        policies: Floats,
    ) -> int:
        """Let target users come."""
        rows = (contexts, means, outcomes)
        return int(serve(self.descent, rng, *rows, points, lost, regret, policies))

    def look(self, points: Floats, policies: Floats) -> None:
        """Fill in the policy at the points."""
        look(self.descent, points, policies)

    def history(self) -> tuple[Dated, ...]:
        """Return nothing: there are no bins, and no arm is ever dropped."""
        return ()

    def release(self) -> Release:
        """Refuse: there is no partition to release."""
        raise no_release(self.name)


def warm_up_of(warm_up: int | None, experiment: Experiment) -> int:
    """Return the length of the warm-up: the authors' 3000, but at most a tenth of the users."""
    return min(3000, experiment.horizon // 10) if warm_up is None else warm_up


def size_of(experiment: Experiment, *, width: int) -> tuple[int, int]:
    """Return (K, P)."""
    return len(experiment.arms), parameters(experiment.dimension, width=width)
