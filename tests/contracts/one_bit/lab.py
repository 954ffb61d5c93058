"""``one_bit`` in the lab: many people at once, in plain Python, and the learner's own counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from contracts.one_bit.estimate import begin as begin_estimator
from contracts.one_bit.shared import odds, question_of
from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.lab.environments import People, Rows
from sottovoce.shared.amendment import RUNNING
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release


class OneBitPolicy:
    """The learner and all devices of ``one_bit``."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._estimator = begin_estimator(experiment)

    def probabilities(self, points: Any) -> Any:
        """Return the same chances everywhere."""
        policy = self.release().bins[0]
        chances = np.zeros(len(self._experiment.arms))
        chances[list(policy.arms)] = policy.propensities
        return np.tile(chances, (len(points), 1))

    def serve(self, people: People, rng: np.random.Generator) -> Any:
        """Give each person a live arm, and let them tell their bits."""
        arms = rng.choice(self.release().bins[0].arms, len(people.means))
        self._tell(arms, people.rewards(arms, rng), rng, population=0, logged=False)
        return arms

    def contribute(self, rows: Rows, population: int, rng: np.random.Generator) -> None:
        """Let logged rows tell their bits."""
        self._tell(rows.arms, rows.rewards(rng), rng, population=population, logged=True)

    def step(self) -> None:
        """Let the learner decide."""
        if self._experiment.state == RUNNING:
            self._estimator.step()

    def amend(self, experiment: Experiment) -> None:
        """Go on with an amended experiment."""
        self._experiment = experiment
        self._estimator.amend(experiment)

    def release(self) -> Release:
        """Return the policy now."""
        return self._estimator.release

    def diagnosis(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the auxiliary populations bring."""
        return self._estimator.diagnose(reports)

    def _tell(
        self, arms: Any, rewards: Any, rng: np.random.Generator, *, population: int, logged: bool
    ) -> None:
        release, count = self.release(), len(self._experiment.arms)
        if release.bins[0].settled:
            return
        told, other = odds(self._experiment.populations[population].epsilon)
        coins = rng.choice(release.bins[0].arms, len(arms))
        bits = (arms == coins) & (rng.random(len(arms)) < rewards)
        bits ^= rng.random(len(arms)) >= told / (told + other)
        for arm in release.bins[0].arms:
            asked = coins == arm
            key = (release.version, population, question_of(arm, arms=count, logged=logged))
            self._estimator.count(key, int(asked.sum()), int((2 * bits[asked] - 1).sum()))


begin = OneBitPolicy
