"""One run: the people of one plausible world come to the experiment, and are followed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sottovoce.lab.driver import Driver
from sottovoce.lab.environments import Counts, Floats, behaviour
from sottovoce.lab.methods import method_of
from sottovoce.lab.plan.worlds import draw_world, suits
from sottovoce.shared.experiment import Experiment

LOOKS = 1.2
"""By how much the people have grown when a run is looked at again."""

FOLLOWED = 400
"""So many people, drawn once from the world, say what the policy would give at each look."""

MOST_SIMULATED = 400_000
"""No run is longer: whoever comes later is taken to get what the last ones get."""

_NO_POINTS = np.empty((0, 0))


@dataclass(frozen=True, slots=True)
class Case:
    """What is simulated: an experiment, an effect as a share of the range of rewards, a baseline.

    baseline: the number of the arm that everybody would get otherwise; None for arms at random.
    """

    experiment: Experiment
    effect: float
    baseline: int | None = None

    def with_epsilon(self, epsilon: float) -> "Case":
        """Return the same under another ε."""
        return replace(self, experiment=replace(self.experiment, epsilon=epsilon))

    def with_features(self, count: int) -> "Case":
        """Return the same with the first so many features alone."""
        context = tuple(self.experiment.context)[:count]
        return replace(self, experiment=replace(self.experiment, context=context))

    def with_people(self, people: int) -> "Case":
        """Return the same with another number of people."""
        return replace(self, experiment=replace(self.experiment, horizon=people))


@dataclass(frozen=True, slots=True)
class Followed:
    """One run, in shares of the range of rewards.

    people (G,)  how many had come at each look
    suited (G,)  the share of people that would get an arm that suits them
    lost (G,)    what people had lost until then in all, against the best arm of each
    baseline     what a person loses on average under the baseline
    at_random    what a person loses on average with arms at random
    """

    people: Counts
    suited: Floats
    lost: Floats
    baseline: float
    at_random: float

    @property
    def gain(self) -> Floats:
        """What people had gained over the baseline in all, (G,)."""
        return np.asarray(self.baseline * self.people - self.lost)

    def people_until(self, share: float) -> float:
        """Return how many people come until an arm suits such a share; ∞ if that does not happen.

        Between two looks the share is a straight line in the logarithm of the people.
        """
        reached = np.flatnonzero(self.suited >= share)
        if not len(reached):
            return float("inf")
        first = int(reached[0])
        if first == 0:
            return float(self.people[0])
        low, high = self.suited[first - 1], self.suited[first]
        part = (share - low) / (high - low)
        ends = np.log(self.people[first - 1 : first + 1])
        return float(np.exp(ends[0] + part * (ends[1] - ends[0])))

    def lost_until(self, people: float) -> float:
        """Return what people had lost when so many had come; beyond the run it goes on alike."""
        if people <= self.people[-1]:
            return float(np.interp(people, [0, *self.people], [0.0, *self.lost]))
        last = max(len(self.people) - 8, 0)
        rate = (self.lost[-1] - self.lost[last]) / max(self.people[-1] - self.people[last], 1)
        return float(self.lost[-1] + rate * (people - self.people[-1]))


def follow(case: Case, seed: int) -> Followed:
    """Play one plausible world. Cases with the same features, arms and effect share the worlds."""
    experiment = replace(case.experiment, seed=seed)
    arms = len(experiment.arms)
    rng = np.random.default_rng([seed, 16])
    world = draw_world(experiment.context, arms=arms, effect=case.effect, rng=rng)
    driver = Driver(method_of(experiment.settings).begin(experiment), experiment, _NO_POINTS)
    for number, rows in enumerate(experiment.auxiliary, start=1):
        logged = behaviour(arms, 1.0) if rows.behaviour is None else np.array(rows.behaviour)
        if rows.users:
            driver.contribute(world, rows.users, behaviour=logged, population=number)
    points = world.contexts(rng, FOLLOWED)
    means = world.means(points)
    right = suits(means, case.effect)
    chances = np.empty((FOLLOWED, arms))
    suited, lost, came = [], [], []
    every = experiment.release_every
    for people in looks(min(experiment.horizon, MOST_SIMULATED), every):
        driver.serve(world, people - driver.served)
        driver.look(points, chances)
        came.append(people)
        suited.append(float((chances * right).sum() / FOLLOWED))
        lost.append(float(np.concatenate(driver.regret)[-1]))
    below = means.max(axis=1, keepdims=True) - means
    baseline = below.mean() if case.baseline is None else below[:, case.baseline].mean()
    return Followed(
        np.array(came),
        np.array(suited),
        np.array(lost),
        baseline=float(baseline),
        at_random=float(below.mean()),
    )


def looks(people: int, every: int) -> Sequence[int]:
    """Return when a run is looked at: after releases, less and less often, and at the end."""
    return [*_looks(people, every), people]


def _looks(people: int, every: int) -> Iterator[int]:
    at = every
    while at < people:
        yield at
        at = max(at + every, int(at * LOOKS) // every * every)
