"""The ``ldpmab`` crowd as the driver drives it; it grows when its tree needs room."""

import numpy as np

from sottovoce.estimate.history import DatedEvent
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.estimate.ldpmab.publish import history_of, release_of
from sottovoce.estimate.ldpmab.state import initial_state, with_room
from sottovoce.estimate.tree import copy_into
from sottovoce.lab.driver import BLOCK
from sottovoce.lab.ldpmab.crowd import Fixed, crowd_of
from sottovoce.lab.ldpmab.people import LOOP
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release


class LdpmabPolicy:
    """The learner and all devices of ``ldpmab``."""

    loop = LOOP

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        leaves = np.zeros(min(BLOCK, experiment.release_every), dtype=np.int64)
        self._fixed = Fixed(constants(experiment), leaking=False, leaves=leaves)
        self.state = crowd_of(initial_state(self._fixed.constants))

    def leak_noise(self) -> None:
        """NOT PRIVATE: let only the people inside a bin add noise to it; see ``simulate``."""
        self._fixed = self._fixed._replace(leaking=True)

    def fixed(self, population: int) -> Fixed:
        """Return what the crowd goes by."""
        return self._fixed

    def grow(self) -> None:
        """Make room for every contested bin to be split."""
        larger = crowd_of(with_room(self.state.learner, self._fixed.constants))
        copy_into(larger[1:], self.state[1:])
        self.state = larger

    def history(self) -> tuple[DatedEvent, ...]:
        """Return eliminations and splits, with the number of all reports by then."""
        return history_of(self.state.learner)

    def release(self) -> Release:
        """Return the policy now."""
        return release_of(self.experiment, self.state.learner)
