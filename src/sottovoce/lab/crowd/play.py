"""What ``simulate`` needs of a crowd, whatever its method."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.history import Dated
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Play(Protocol):
    """A crowd and its learner on their way, block by block."""

    experiment: Experiment

    @property
    def waiting(self) -> int:
        """The number of reports since the last step."""

    def contribute(
        self,
        rng: np.random.Generator,
        population: int,
        contexts: Floats,
        means: Floats,
        outcomes: Floats,
        logged: Counts,
    ) -> None:
        """Let the rows of a log come, with the arms in ``logged`` (n,)."""

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
        """Let target users come; return the number of releases passed on the way.

        contexts (n, d), means (n, K)
        outcomes (n, K)    what each arm would bring; with 0 rows, 1 with probability ``means``
        lost (1,)          what all target users have lost so far; goes up
        regret (R,)        filled in: ``lost`` at each release
        points (P, d), policies (R, P, K)   filled in: the policy at the points until each release
        """

    def look(self, points: Floats, policies: Floats) -> None:
        """Fill in the chance of each arm at each point, (P, K)."""

    def history(self) -> tuple[Dated, ...]:
        """Return eliminations and cuts, with the number of all reports by then."""

    def release(self) -> Release:
        """Return the policy now."""
