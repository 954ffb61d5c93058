"""The ``ldpmab`` crowd as the driver drives it; it grows when its tree needs room."""

import numpy as np

from sottovoce.estimate.history import Amended, DatedEvent, history_of
from sottovoce.estimate.ldpmab.amend import amend
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.estimate.ldpmab.publish import release_of
from sottovoce.estimate.ldpmab.state import initial_state, with_room
from sottovoce.estimate.ldpmab.step import new_scratch
from sottovoce.estimate.tree import copy_into, node_paths
from sottovoce.lab.driver import BLOCK
from sottovoce.lab.ldpmab.noise import Devices
from sottovoce.lab.ldpmab.people import LOOP
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release


class LdpmabPolicy:
    """The learner and all devices of ``ldpmab``."""

    loop = LOOP

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._amended: tuple[DatedEvent, ...] = ()
        fixed = constants(experiment)
        self.state = initial_state(fixed)
        self.devices = Devices(
            fixed,
            leaking=False,
            owed=np.zeros_like(self.state.users),
            hits=np.zeros_like(self.state.users),
            leaves=np.zeros(min(BLOCK, experiment.release_every), dtype=np.int64),
            scratch=new_scratch(fixed),
        )

    def leak_noise(self) -> None:
        """NOT PRIVATE: let only the people inside a bin add noise to it; see ``simulate``."""
        self.devices = self.devices._replace(leaking=True)

    def fixed(self, population: int) -> Devices:
        """Return the devices."""
        return self.devices

    def grow(self) -> None:
        """Make room for every contested bin to be split."""
        old = self.devices
        self.state = with_room(self.state, old.constants)
        owed, hits = np.zeros_like(self.state.users), np.zeros_like(self.state.users)
        copy_into((owed, hits), (old.owed, old.hits))
        self.devices = old._replace(owed=owed, hits=hits)

    def amend(self, experiment: Experiment) -> None:
        """Go on with an amended experiment."""
        fixed, devices, state = constants(experiment), self.devices, self.state
        # Whoever came since the last step came before the amendment.
        nodes = state.contested[: state.totals[0].contested]
        state.users[nodes] += state.fresh
        devices.owed[nodes] += devices.hits[nodes] if devices.leaking else state.fresh
        devices.hits[:] = 0
        state.fresh[:] = 0
        self.state, anew = amend(state, devices.constants, fixed)
        begun = [path in anew for path in node_paths(self.state)]
        devices.owed[np.flatnonzero(begun)] = 0
        self.experiment = experiment
        self.devices = devices._replace(constants=fixed, scratch=new_scratch(fixed))
        self.grow()
        totals = self.state.totals[0]
        event = Amended(int(totals.release), experiment.amendments[-1])
        self._amended += (DatedEvent(int(totals.reports), event),)

    def history(self) -> tuple[DatedEvent, ...]:
        """Return eliminations, splits and amendments, with the number of all reports by then."""
        both = (*history_of(self.state), *self._amended)
        return tuple(sorted(both, key=lambda dated: dated.reports))

    def release(self) -> Release:
        """Return the policy now."""
        return release_of(self.experiment, self.state)
