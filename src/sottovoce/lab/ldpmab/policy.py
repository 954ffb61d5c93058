"""The ``ldpmab`` crowd as the driver drives it; it grows when its tree needs room."""

from itertools import groupby

import numpy as np

from sottovoce.estimate.history import DatedEvent, Elimination, Event, Split
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.lab.driver import BLOCK
from sottovoce.lab.ldpmab.people import LOOP
from sottovoce.lab.ldpmab.state import ELIMINATED, EVENTS, NODES, RELEASE, Crowd, Fixed, begin, grow
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, Release


class LdpmabPolicy:
    """The learner and all devices of ``ldpmab``."""

    loop = LOOP

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        homes = np.zeros(min(BLOCK, experiment.release_every), dtype=np.int64)
        self._fixed = Fixed(constants(experiment), leaking=False, homes=homes)
        self.state = begin(self._fixed.constants)

    def leak_noise(self) -> None:
        """NOT PRIVATE: let only the people inside a bin add noise to it; see ``simulate``."""
        self._fixed = self._fixed._replace(leaking=True)

    def fixed(self, population: int) -> Fixed:
        """Return what the crowd goes by."""
        return self._fixed

    def grow(self) -> None:
        """Make room for twice as many bins."""
        self.state = grow(self.state)

    def history(self) -> tuple[DatedEvent, ...]:
        """Return eliminations and cuts."""
        crowd = self.state
        paths = paths_of(crowd)
        dated: list[DatedEvent] = []
        rows = crowd.events[: crowd.totals[EVENTS]].tolist()
        # Arms that went at the same time from the same bin are one event.
        for (reports, kind, node), group in groupby(rows, key=lambda row: tuple(row[:3])):
            what = [row[3] for row in group]
            event: Event = Split(paths[node], what[0])
            if kind == ELIMINATED:
                event = Elimination(paths[node], tuple(what))
            dated.append(DatedEvent(reports, event))
        return tuple(dated)

    def release(self) -> Release:
        """Return the policy now."""
        return release_of(self.experiment, self.state)


def release_of(experiment: Experiment, crowd: Crowd) -> Release:
    """Return the policy of a crowd."""
    nodes = {path: node for node, path in enumerate(paths_of(crowd))}
    cuts = {
        path: int(crowd.axis[node]) for path, node in nodes.items() if crowd.child[node] != node
    }
    partition = Partition(experiment.dimension, cuts)
    bins = []
    for path in partition.leaves():
        node = nodes[path]
        live = int(crowd.live[node])
        order = np.argsort(crowd.arms[node, :live])
        arms = crowd.arms[node, order].tolist()
        propensities = crowd.propensities[node, order].tolist()
        bins.append(BinPolicy(path, tuple(arms), tuple(propensities)))
    return Release(experiment, int(crowd.totals[RELEASE]), partition, tuple(bins))


def paths_of(crowd: Crowd) -> list[str]:
    """Name each node by its path from the root."""
    paths = [""] * int(crowd.totals[NODES])
    for node, path in enumerate(paths):
        # Children come after their parents, so the parent's path is known by now.
        if crowd.child[node] != node:
            for side in range(2):
                paths[crowd.child[node] + side] = path + str(side)
    return paths
