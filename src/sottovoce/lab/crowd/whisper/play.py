"""The ``whisper`` crowd as ``simulate`` plays it; it grows when its tree needs room."""

import numpy as np

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.history import Dated
from sottovoce.estimate.whisper.board import begin, roomy
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.diagnosis import diagnose
from sottovoce.estimate.whisper.places import ASKED, RELEASE, REPORTS
from sottovoce.estimate.whisper.policy import history_of, partition_of, policies_of
from sottovoce.lab.crowd.whisper.people import contribute, look, serve
from sottovoce.lab.crowd.whisper.tables import Counts, Floats, answers, laws, reward_law
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.questions import may_halve
from sottovoce.shared.release import Release


class WhisperPlay:
    """Implements ``Play``."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.constants = constants(experiment)
        self.board = begin(self.constants)
        self.answers = answers(self.board, self.constants)
        self.came = [0] * len(experiment.populations)

    @property
    def waiting(self) -> int:
        """The number of reports since the last step."""
        return int(self.board.totals[REPORTS]) % self.experiment.release_every

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
        self.came[population] += len(contexts)
        done = 0
        while True:
            done = contribute(
                self.board,
                self.constants,
                self.answers,
                self._laws(population, by_arm=True),
                self._laws(0, by_arm=False),
                self.experiment.release_every,
                rng,
                population,
                done,
                contexts,
                means,
                outcomes,
                logged,
            )
            if done == len(contexts):
                return
            self._grow()

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
        self.came[0] += len(contexts)
        done, releases = 0, 0
        while True:
            done, more = serve(
                self.board,
                self.constants,
                self.answers,
                self._laws(0, by_arm=False),
                reward_law(self.experiment),
                self.experiment.release_every,
                rng,
                done,
                contexts,
                means,
                outcomes,
                points,
                lost,
                regret[releases:],
                policies[releases:],
            )
            releases += int(more)
            if done == len(contexts):
                return releases
            self._grow()

    def look(self, points: Floats, policies: Floats) -> None:
        """Fill in the policy at the points."""
        look(self.board, self.constants, points, policies)

    def diagnosis(self) -> Diagnosis:
        """Say what the auxiliary populations bring."""
        return diagnose(self.board, self.experiment, self.came)

    def history(self) -> tuple[Dated, ...]:
        """Return eliminations and cuts."""
        return history_of(self.board)

    def release(self) -> Release:
        """Return the policy now."""
        partition = partition_of(self.board)
        bins = policies_of(self.board, self.constants)
        version, asked = int(self.board.totals[RELEASE]), int(self.board.totals[ASKED])
        return Release(self.experiment, version, partition, bins, asked)

    def _laws(self, population: int, *, by_arm: bool) -> Floats:
        nodes = len(self.board.axis)
        cells = nodes * self.constants.arms if by_arm else nodes
        epsilon = self.experiment.populations[population].epsilon
        return laws(epsilon, cells, may_halve=may_halve(self.experiment))

    def _grow(self) -> None:
        self.board = roomy(self.board, self.constants)
        self.answers = answers(self.board, self.constants)
