"""The driver: it lets people come, block by block, and adds up what they lose.

It draws the people, finds the next step boundary, counts the regret, writes the trace down and asks
for a step after every ``release_every`` people or rows. A policy supplies what is its own.

**A policy of your own** is any object with two methods; three more are optional:

    serve(people, rng) -> arms            give each person an arm, and learn what it brings
    probabilities(points) -> (P, K)       the chance of each arm at some points of [0, 1]^d
    contribute(rows, population, rng)     learn from logged rows; without it they are left out
    step()                                after every ``release_every`` people or rows
    amend(experiment)                     go on with an amended experiment

``serve`` gets all people until the next step at once. An honest policy reads their ``contexts``
(n, d) and what ``people.rewards(arms, rng)`` brings; it leaves their ``means`` alone. Anything that
makes a policy from an experiment is a method, for instance its class:

>>> import numpy as np
>>> from sottovoce.lab.environments import Slope
>>> from sottovoce.lab.simulation import simulate
>>> class ExploreThenCommit:
...     def __init__(self, experiment):
...         self.sums, self.left = np.zeros((2, len(experiment.arms))), experiment.horizon // 10
...     def probabilities(self, points):
...         chances = np.full(self.sums.shape[1], 1 / self.sums.shape[1])
...         if self.left <= 0:  # the best mean reward alone
...             chances = np.eye(len(chances))[np.argmax(self.sums[1] / self.sums[0])]
...         return np.tile(chances, (len(points), 1))
...     def serve(self, people, rng):
...         arms = rng.choice(self.sums.shape[1], len(people.means), p=self.probabilities([0])[0])
...         if self.left > 0:
...             np.add.at(self.sums.T, arms, np.stack([0 * arms + 1, people.rewards(arms, rng)], 1))
...             self.left -= len(arms)
...         return arms
>>> result = simulate(Slope(), method=ExploreThenCommit, epsilon=1, n=2000, seed=0)
>>> result.people[-1], result.regret[-1] < 1000
(np.int64(2000), np.True_)

The result has the policy as ``result.policy``. If it has ``release()``, ``history()`` or
``diagnosis(reports)``, the result has these, too.

A compiled policy has a loop of its own: see ``lab/loop.py``.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from sottovoce.lab.environments import (
    Counts,
    Environment,
    Floats,
    People,
    Rows,
    draw_people,
    world_at,
)
from sottovoce.lab.loop import (
    RELEASES,
    SERVED,
    WAITING,
    Generator,
    Loop,
    Trace,
    contribute_block,
    probabilities,
    serve_block,
)
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment

BLOCK = 16384
"""People drawn at a time: small enough for the cache, large enough for NumPy."""


class Policy(Protocol):
    """A policy of anybody's own; see above for its optional methods."""

    def serve(self, people: People, rng: Generator) -> Any:
        """Give each person an arm, and learn what it brings."""

    def probabilities(self, points: Floats) -> Any:
        """Return the chance of each arm at each point, (P, K)."""


class CompiledPolicy(Protocol):
    """A policy with a compiled loop; optional methods as above."""

    loop: Loop
    state: Any

    def fixed(self, population: int) -> Any:
        """Return what stands still in a block of people of a population, as a NamedTuple."""

    def grow(self) -> None:
        """Make room in the state for the next step."""


AnyPolicy = Policy | CompiledPolicy


class _Plain:
    """A policy in plain Python, as the driver drives a compiled one."""

    def __init__(self, policy: Any) -> None:
        missing = [name for name in ("serve", "probabilities") if not hasattr(policy, name)]
        if missing:
            came = f"a {type(policy).__name__} without {' and '.join(missing)}"
            raise ExperimentError(must("a policy", "have serve and probabilities", came))
        self.state = policy
        rows = contribute_block if hasattr(policy, "contribute") else None
        self.loop = Loop(serve_block, rows, probabilities)

    def fixed(self, population: int) -> None:
        """Nothing: it keeps what it needs by itself."""

    def grow(self) -> None:
        """Do nothing: it never needs room."""


class Driver:
    """Lets people come to a policy, block by block, so that memory stays flat.

    world, chance: the randomness of who comes, and of what they do and send.
    reports: how many of each population have come since the policy began.
    people, regret, policies: a piece for each block, as in ``Trace``.
    """

    def __init__(self, policy: AnyPolicy, experiment: Experiment, points: Floats) -> None:
        self.world, self.chance = np.random.default_rng(experiment.seed).spawn(2)
        self.people: list[Counts] = []
        self.regret: list[Floats] = []
        self.policies: list[Floats] = []
        self._every, self._arms = experiment.release_every, len(experiment.arms)
        self._points = points
        self._lost = np.zeros(1)
        self._counts = np.zeros(3, dtype=np.int64)
        self.change_policy(policy, populations=len(experiment.populations))

    def change_policy(self, policy: AnyPolicy, *, populations: int) -> None:
        """Let the people to come have another policy, which begins anew."""
        self.policy = policy
        self.reports = [0] * populations
        self._driven: Any = policy if hasattr(policy, "loop") else _Plain(policy)
        self._counts[WAITING] = 0

    def amend(self, experiment: Experiment) -> None:
        """Let the policy go on with an amended experiment."""
        policy: Any = self.policy
        if not hasattr(policy, "amend"):
            came = f"a {type(policy).__name__} without amend"
            raise ExperimentError(must("a policy of an amended experiment", "have amend", came))
        policy.amend(experiment)
        self._arms = len(experiment.arms)

    @property
    def served(self) -> int:
        """How many target users have come."""
        return int(self._counts[SERVED])

    @property
    def waiting(self) -> int:
        """How many people and rows have come since the last step."""
        return int(self._counts[WAITING])

    def contribute(
        self, environment: Environment, users: int, *, behaviour: Floats, population: int
    ) -> None:
        """Let the rows of an auxiliary population come, with arms by its behaviour policy."""
        for size in _blocks(users):
            people = draw_people(environment, self.world, size)
            arms = self.world.choice(len(behaviour), size=size, p=behaviour)
            self.contribute_rows(Rows(*people, arms), population)

    def contribute_rows(self, rows: Rows, population: int) -> None:
        """Let a block of rows come; a policy that does not learn from rows never sees them."""
        self.reports[population] += len(rows.arms)
        if self._driven.loop.contribute is not None:
            trace = self._trace(0)
            self._drive(self._driven.loop.contribute, rows, population, trace, population)

    def serve(self, environment: Environment, users: int) -> None:
        """Let target users come. Where the world changes while they do, a block ends."""
        changes = [each - self.served for each in getattr(environment, "changes", ())]
        for size in _blocks(users, ends=changes):
            now = world_at(environment, self.served)
            self.serve_people(draw_people(now, self.world, size))
        if self.waiting:  # people after the last release
            trace = self._trace(1)
            self.look(self._points, trace.policies[0])
            trace.people[0], trace.regret[0], trace.counts[RELEASES] = self.served, self._lost[0], 1
            self._keep(trace)

    def serve_people(self, people: People) -> None:
        """Let a block of target users come."""
        size = len(people.means)
        self.reports[0] += size
        trace = self._trace(size // self._every + 1)
        self._drive(self._driven.loop.serve, people, np.empty(size, dtype=np.int64), trace, 0)
        self._keep(trace)

    def look(self, points: Floats, out: Floats) -> None:
        """Fill in the chance of each arm at each point, (P, K)."""
        driven = self._driven
        driven.loop.probabilities(driven.state, driven.fixed(0), points, out)

    def _drive(
        self,
        loop: Callable[..., int],
        block: People | Rows,
        given: Counts | int,
        trace: Trace,
        population: int,
    ) -> None:
        """Drive a loop over a block; where it stops before the end, the policy needs room."""
        done = 0
        while True:
            state, fixed = self._driven.state, self._driven.fixed(population)
            done = loop(state, fixed, block, done, given, trace, self.chance)
            if done == len(block.means):
                return
            self._driven.grow()

    def _trace(self, releases: int) -> Trace:
        self._counts[RELEASES] = 0
        return Trace(
            every=self._every,
            counts=self._counts,
            lost=self._lost,
            points=self._points,
            people=np.empty(releases, dtype=np.int64),
            regret=np.empty(releases),
            policies=np.empty((releases, len(self._points), self._arms)),
        )

    def _keep(self, trace: Trace) -> None:
        releases = int(trace.counts[RELEASES])
        self.people.append(trace.people[:releases])
        self.regret.append(trace.regret[:releases])
        self.policies.append(trace.policies[:releases])


def _blocks(users: int, *, ends: Iterable[int] = ()) -> list[int]:
    """Return the sizes of the blocks; one of them ends after each of ``ends`` users."""
    edges = [0, *sorted({each for each in ends if 0 < each < users}), users]
    return [
        min(BLOCK, stop - first)
        for start, stop in pairwise(edges)
        for first in range(start, stop, BLOCK)
    ]
