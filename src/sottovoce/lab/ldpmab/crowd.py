"""The learner's own state, and what the crowd keeps beside it."""

from typing import NamedTuple

import numpy as np

from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.estimate.ldpmab.state import Counts, State


class Crowd(NamedTuple):
    """The learner, and noise that its devices owe it: S nodes at most, M + 1 populations."""

    learner: State
    owed: Counts  # (S, M+1) users of the bin whose noise is not drawn yet
    hits: Counts  # (S, M+1) users in the bin since the last step


class Fixed(NamedTuple):
    """What the crowd goes by."""

    constants: Constants
    leaking: bool  # NOT PRIVATE, see ``simulate``
    leaves: Counts  # (n,) scratch: the leaf of each person until the next step


def crowd_of(learner: State) -> Crowd:
    """Return a crowd whose devices owe nothing."""
    return Crowd(learner, np.zeros_like(learner.users), np.zeros_like(learner.users))
