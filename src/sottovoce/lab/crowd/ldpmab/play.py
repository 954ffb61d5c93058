"""The ``ldpmab`` crowd as ``simulate`` plays it; it grows when its tree needs room."""

from itertools import groupby

import numpy as np

from sottovoce.estimate.history import Cut, Dated, Elimination, Event
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.lab.crowd.ldpmab.people import contribute, look, serve
from sottovoce.lab.crowd.ldpmab.state import (
    ELIMINATED,
    EVENTS,
    NODES,
    RELEASE,
    REPORTS,
    Counts,
    Crowd,
    Floats,
    begin,
    grow,
)
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, Release


class LdpmabPlay:
    """Implements ``Play``.

    leaking: NOT PRIVATE; see ``simulate``.
    """

    def __init__(self, experiment: Experiment, *, leaking: bool) -> None:
        self.experiment = experiment
        self.constants = constants(experiment)
        self.crowd = begin(self.constants, release_every=experiment.release_every, leaking=leaking)

    @property
    def waiting(self) -> int:
        """The number of reports since the last step."""
        return int(self.crowd.totals[REPORTS]) % self.experiment.release_every

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
        done = 0
        while True:
            done = contribute(
                self.crowd,
                self.constants,
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
            self.crowd = grow(self.crowd)

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
        done, releases = 0, 0
        while True:
            done, more = serve(
                self.crowd,
                self.constants,
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
            self.crowd = grow(self.crowd)

    def look(self, points: Floats, policies: Floats) -> None:
        """Fill in the policy at the points."""
        look(self.crowd, points, policies)

    def history(self) -> tuple[Dated, ...]:
        """Return eliminations and cuts."""
        crowd = self.crowd
        paths = paths_of(crowd)
        dated: list[Dated] = []
        rows = crowd.events[: crowd.totals[EVENTS]].tolist()
        # Arms that went at the same time from the same bin are one event.
        for (reports, kind, node), group in groupby(rows, key=lambda row: tuple(row[:3])):
            what = [row[3] for row in group]
            event: Event = Cut(paths[node], what[0])
            if kind == ELIMINATED:
                event = Elimination(paths[node], tuple(what))
            dated.append(Dated(reports, event))
        return tuple(dated)

    def release(self) -> Release:
        """Return the policy now."""
        return release_of(self.experiment, self.crowd)


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
