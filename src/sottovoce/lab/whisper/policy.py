"""The ``whisper`` crowd as the driver drives it; it grows when its tree needs room."""

from collections.abc import Sequence

import numpy as np

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.history import Dated
from sottovoce.estimate.whisper.board import Board, begin, roomy
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.diagnosis import diagnose
from sottovoce.estimate.whisper.places import ASKED, RELEASE
from sottovoce.estimate.whisper.policy import history_of, partition_of, policies_of
from sottovoce.lab.whisper.people import LOOP
from sottovoce.lab.whisper.tables import Crowd, Fixed, Floats, answers, laws, reward_law
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.questions import may_halve
from sottovoce.shared.release import Release


class WhisperPolicy:
    """The learner and all devices of ``whisper``."""

    loop = LOOP

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.constants = constants(experiment)
        self.go_on_with(begin(self.constants))

    @property
    def board(self) -> Board:
        """The learner's state."""
        return self.state.board

    def go_on_with(self, board: Board) -> None:
        """Go on with a board."""
        self.state = Crowd(board, answers(board, self.constants))

    def fixed(self, population: int) -> Fixed:
        """Return what stands still while people of a population come."""
        return Fixed(
            self.constants,
            laws=self._laws(population, by_arm=population > 0),
            target_laws=self._laws(0, by_arm=False),
            reward_law=reward_law(self.experiment),
            ranking=np.arange(self.constants.arms),
        )

    def grow(self) -> None:
        """Make room for every contested bin to be cut."""
        self.go_on_with(roomy(self.board, self.constants))

    def diagnosis(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the auxiliary populations bring, given how many rows of each have come."""
        return diagnose(self.board, self.experiment, reports)

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
