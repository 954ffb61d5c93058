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

from sottovoce.lab.baselines.models import features, gradient_of, score_of
from sottovoce.lab.baselines.sphere import draw_report, keep_chance, length
from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.environments import Counts, Floats, People, Rows
from sottovoce.lab.loop import compile_loop, outcome
from sottovoce.shared.experiment import Experiment

REPORTS, SERVED, BEGUN = range(3)


class DescentSettings(NamedTuple):
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
    totals: Counts  # (3,) reports, target users; reports when the last piece of people began
    keep: Floats  # (M+1,) p of each population
    reach: Floats  # (M+1,) B of each population
    phi: Floats  # (d+1,)
    hidden: Floats  # (H,)
    gradient: Floats  # (P,)
    report: Floats  # (K·P,)
    settings: DescentSettings


@inlined
def best_arm(descent: Descent, context: Floats) -> int:
    """Return the arm with the best score at a context; fill in its φ."""
    width = descent.settings.width
    features(context, descent.phi)
    best, arm = -np.inf, 0
    for k in range(len(descent.theta)):
        score = score_of(descent.theta[k], descent.phi, width, descent.hidden)
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
def receive(descent: Descent) -> None:
    """Count a report."""
    settings, totals = descent.settings, descent.totals
    change, report = descent.change, descent.report
    totals[REPORTS] += 1
    eta = settings.step * len(descent.theta) / (totals[REPORTS] + settings.delay) ** settings.power
    descent.rate[0] += eta
    for j in range(len(report)):
        change[j] += eta * report[j]


@inlined
def step(descent: Descent, fixed: None, rng: np.random.Generator) -> None:
    """Release a new θ."""
    theta, change = descent.theta, descent.change
    left = max(0.0, 1.0 - descent.settings.ridge * descent.rate[0])
    size = theta.shape[1]
    for j in range(len(change)):
        theta[j // size, j % size] = left * theta[j // size, j % size] - change[j]
        change[j] = 0.0
    descent.rate[0] = 0.0


@compiled
def probabilities(descent: Descent, fixed: None, points: Floats, out: Floats) -> None:
    """Fill in the chance of each arm at each point; in the warm-up all come in turn."""
    if descent.totals[BEGUN] < descent.settings.warm_up:
        out[:] = 1.0 / len(descent.theta)
        return
    out[:] = 0.0
    for p in range(len(points)):
        out[p, best_arm(descent, points[p])] = 1.0


@inlined
def serve(
    descent: Descent,
    fixed: None,
    people: People,
    start: int,
    stop: int,
    arms: Counts,
    rng: np.random.Generator,
) -> None:
    """Let target users come, each with one report."""
    totals = descent.totals
    totals[BEGUN] = totals[REPORTS]
    for i in range(start, stop):
        if totals[REPORTS] < descent.settings.warm_up:
            features(people.contexts[i], descent.phi)
            arm = totals[SERVED] % len(descent.theta)
        else:
            arm = best_arm(descent, people.contexts[i])
        arms[i] = arm
        totals[SERVED] += 1
        send(descent, rng, 0, arm, outcome(people, i, arm, rng))
        receive(descent)


@inlined
def contribute(
    descent: Descent,
    fixed: None,
    rows: Rows,
    start: int,
    stop: int,
    population: int,
    rng: np.random.Generator,
) -> None:
    """Let the rows of a log come, each with one report by the ε of its own population."""
    for i in range(start, stop):
        features(rows.contexts[i], descent.phi)
        send(descent, rng, population, rows.arms[i], outcome(rows, i, rows.arms[i], rng))
        receive(descent)


LOOP = compile_loop(
    "descent", serve=serve, probabilities=probabilities, contribute=contribute, step=step
)


class DescentPolicy:
    """Private stochastic gradients from the parameters theta (K, P) on.

    There are no bins, and no arm is ever dropped.
    """

    loop = LOOP

    def __init__(self, experiment: Experiment, settings: DescentSettings, theta: Floats) -> None:
        size = theta.size
        epsilons = [population.epsilon for population in experiment.populations]
        reach = [length(size, epsilon=epsilon, bound=settings.clip) for epsilon in epsilons]
        self.state = Descent(
            theta=theta,
            change=np.zeros(size),
            rate=np.zeros(1),
            totals=np.zeros(3, dtype=np.int64),
            keep=np.array([keep_chance(epsilon) for epsilon in epsilons]),
            reach=np.array(reach),
            phi=np.zeros(experiment.dimension + 1),
            hidden=np.zeros(settings.width),
            gradient=np.zeros(theta.shape[1]),
            report=np.zeros(size),
            settings=settings,
        )

    def fixed(self, population: int) -> None:
        """Return nothing: the state has all."""

    def grow(self) -> None:
        """Do nothing: the state has its size from the start."""
