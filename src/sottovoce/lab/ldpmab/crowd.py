"""What the devices of a crowd go by, and the noise that they owe the learner."""

from typing import NamedTuple

import numpy as np

from sottovoce.estimate.ldpmab.constants import Constants, constants
from sottovoce.estimate.ldpmab.state import Counts, State
from sottovoce.estimate.ldpmab.step import Scratch, new_scratch
from sottovoce.lab.driver import BLOCK
from sottovoce.shared.experiment import Experiment


class Devices(NamedTuple):
    """All devices: S nodes at most, M + 1 populations."""

    constants: Constants
    leaking: bool  # NOT PRIVATE, see ``simulate``
    owed: Counts  # (S, M+1) users of the bin whose noise is not drawn yet
    hits: Counts  # (S, M+1) users in the bin since the last step
    leaves: Counts  # (n,) scratch: the leaf of each person until the next step
    scratch: Scratch  # of the learner


def new_devices(experiment: Experiment, state: State) -> Devices:
    """Return devices that owe nothing."""
    return Devices(
        constants(experiment),
        leaking=False,
        owed=np.zeros_like(state.users),
        hits=np.zeros_like(state.users),
        leaves=np.zeros(min(BLOCK, experiment.release_every), dtype=np.int64),
        scratch=new_scratch(constants(experiment)),
    )
