"""The driver: it lets people come, block by block, and adds up what they lose.

It draws the people, finds the next step boundary, counts the regret, writes the trace down and asks
for a step after every ``release_every`` people or rows. A policy supplies what is its own.

**A policy of your own** is any object with two methods; two more are optional:

    serve(people, rng) -> arms            give each person an arm, and learn what it brings
    probabilities(points) -> (P, K)       the chance of each arm at some points of [0, 1]^d
    contribute(rows, population, rng)     learn from logged rows; without it they are left out
    step()                                after every ``release_every`` people or rows

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

**A compiled policy** is a state (a NamedTuple of arrays) and plain functions with the same meaning,
for ``compile_loop``. Its loop over a block is the one below, compiled with its own functions:

    serve(state, fixed, people, start, stop, arms, rng)         fill in arms[start:stop]
    contribute(state, fixed, rows, start, stop, population, rng)
    step(state, fixed, rng)
    probabilities(state, fixed, points, out)                    fill in out (P, K)
    has_room(state) -> bool                                     for the next step; else it grows
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from sottovoce.lab.compiled import compile_for, inlined
from sottovoce.lab.environments import Counts, Environment, Floats, People, Rows, draw_people
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment

BLOCK = 16384
"""People drawn at a time: small enough for the cache, large enough for NumPy."""

Generator = np.random.Generator


class Policy(Protocol):
    """A policy of anybody's own; see above for its optional methods."""

    def serve(self, people: People, rng: Generator) -> Any:
        """Give each person an arm, and learn what it brings."""

    def probabilities(self, points: Floats) -> Any:
        """Return the chance of each arm at each point, (P, K)."""


class CompiledPolicy(Protocol):
    """A policy with a compiled loop; optional methods as above."""

    loop: "Loop"
    state: Any

    def fixed(self, population: int) -> Any:
        """Return what stands still in a block of people of a population, as a NamedTuple."""

    def grow(self) -> None:
        """Make room in the state for the next step."""


AnyPolicy = Policy | CompiledPolicy


class Trace(NamedTuple):
    """What is written down while a block of people comes."""

    every: int  # people and rows between two steps
    counts: Counts  # (3,) people and rows since the last step; target users; releases in the block
    lost: Floats  # (1,) what all target users have lost so far
    points: Floats  # (P, d) where the policy is followed
    people: Counts  # (R,) target users at each release of the block …
    regret: Floats  # (R,) … what they had lost …
    policies: Floats  # (R, P, K) … and the policy at the points, as it was until then


WAITING, SERVED, RELEASES = range(3)


class Loop(NamedTuple):
    """The loops over a block, for one policy."""

    serve: Callable[..., int]
    contribute: Callable[..., int] | None
    probabilities: Callable[..., None]


# --- what a policy in plain Python supplies; a compiled one has its own ---------------------------


def serve(
    state: Any,
    fixed: None,
    people: People,
    start: int,
    stop: int,
    arms: Counts,
    rng: Generator,
) -> None:
    """Let a policy in plain Python serve people."""
    some = People._make(array[start:stop] for array in people)
    given = np.asarray(state.serve(some, rng))
    most = people.means.shape[1]
    if given.shape != (stop - start,) or given.dtype.kind not in "iu":
        rule = f"return an arm for each of {stop - start} people, as whole numbers"
        raise ExperimentError(must("a policy's serve", rule, f"{given.dtype} {given.shape}"))
    if not ((given >= 0) & (given < most)).all():
        came = f"{given.min()} to {given.max()}"
        raise ExperimentError(must("a policy's arms", f"lie between 0 and {most - 1}", came))
    arms[start:stop] = given


def contribute(
    state: Any,
    fixed: None,
    rows: Rows,
    start: int,
    stop: int,
    population: int,
    rng: Generator,
) -> None:
    """Let a policy in plain Python learn from logged rows."""
    state.contribute(Rows._make(array[start:stop] for array in rows), population, rng)


def step(state: Any, fixed: None, rng: Generator) -> None:
    """Let a policy in plain Python make its step, if it has one."""
    if hasattr(state, "step"):
        state.step()


def probabilities(state: Any, fixed: None, points: Floats, out: Floats) -> None:
    """Ask a policy in plain Python for its chances."""
    chances = np.asarray(state.probabilities(points), dtype=np.float64)
    right = chances.shape == out.shape and (chances >= 0).all()
    if not right or not np.allclose(chances.sum(axis=1), 1):
        rule = f"return chances that add up to 1 for each point, {out.shape}"
        raise ExperimentError(must("a policy's probabilities", rule, f"shape {chances.shape}"))
    out[:] = chances


def has_room(state: Any) -> bool:
    """Python makes room by itself."""
    return True


# --- the loop -------------------------------------------------------------------------------------


def serve_block(
    state: Any,
    fixed: Any,
    people: People,
    start: int,
    arms: Counts,
    trace: Trace,
    rng: Generator,
) -> int:
    """Let people come from ``start`` on; return where it stopped: at the end, or for more room."""
    counts = trace.counts
    while start < len(arms) and has_room(state):
        stop = min(len(arms), start + trace.every - counts[WAITING])
        serve(state, fixed, people, start, stop, arms, rng)
        add_losses(people.means, arms, start, stop, trace.lost)
        counts[WAITING] += stop - start
        counts[SERVED] += stop - start
        start = stop
        if counts[WAITING] == trace.every:
            release = counts[RELEASES]
            trace.people[release] = counts[SERVED]
            trace.regret[release] = trace.lost[0]
            if len(trace.points) > 0:
                probabilities(state, fixed, trace.points, trace.policies[release])
            counts[RELEASES] += 1
            counts[WAITING] = 0
            step(state, fixed, rng)
    return start


def contribute_block(
    state: Any,
    fixed: Any,
    rows: Rows,
    start: int,
    population: int,
    trace: Trace,
    rng: Generator,
) -> int:
    """Let logged rows come from ``start`` on, as ``serve_block``; nobody counts what is lost."""
    counts = trace.counts
    while start < len(rows.arms) and has_room(state):
        stop = min(len(rows.arms), start + trace.every - counts[WAITING])
        contribute(state, fixed, rows, start, stop, population, rng)
        counts[WAITING] += stop - start
        start = stop
        if counts[WAITING] == trace.every:
            counts[WAITING] = 0
            step(state, fixed, rng)
    return start


@inlined
def add_losses(means: Floats, arms: Counts, start: int, stop: int, lost: Floats) -> None:
    """Add up what people lose against their best arm, one after the other."""
    for i in range(start, stop):
        best = means[i, 0]
        for k in range(1, means.shape[1]):
            best = max(best, means[i, k])
        lost[0] += best - means[i, arms[i]]


def compile_loop(
    name: str,
    *,
    serve: Callable[..., None],
    probabilities: Callable[..., None],
    contribute: Callable[..., None] | None = None,
    step: Callable[..., None] | None = None,
    has_room: Callable[..., bool] | None = None,
) -> Loop:
    """Compile the loop for one policy with its own functions, themselves compiled.

    name: of the policy, which tells its loop from others on disk.
    """
    own = {
        "serve": serve,
        "contribute": contribute,
        "probabilities": probabilities,
        "step": _no_step if step is None else step,
        "has_room": _always if has_room is None else has_room,
    }
    rows = None if contribute is None else compile_for(name, contribute_block, own)
    return Loop(compile_for(name, serve_block, own), rows, probabilities)


@inlined
def _no_step(state: Any, fixed: Any, rng: Generator) -> None:
    """Do nothing."""


@inlined
def _always(state: Any) -> bool:
    """Say that there is room."""
    return True


@inlined
def outcome(people: People | Rows, i: int, arm: int, rng: Generator) -> float:
    """Draw the reward of a person's arm, for compiled policies."""
    if len(people.outcomes) > 0:
        reward: float = people.outcomes[i, arm]
    else:
        reward = 1.0 * (rng.random() < people.means[i, arm])
    return reward


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
        """Let target users come."""
        for size in _blocks(users):
            self.serve_people(draw_people(environment, self.world, size))
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


def _blocks(users: int) -> list[int]:
    return [min(BLOCK, users - start) for start in range(0, users, BLOCK)]
