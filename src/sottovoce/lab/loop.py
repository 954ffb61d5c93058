"""The loop over a block of people: serve them until the next step, add up what they lose, step.

The loop is written once. A policy in plain Python runs it as it stands. A compiled policy runs it
compiled with functions of its own.

**A compiled policy** is a state (a NamedTuple of arrays) and plain functions with the same meaning,
for ``compile_loop``:

    serve(state, fixed, people, start, stop, arms, rng)         fill in arms[start:stop]
    contribute(state, fixed, rows, start, stop, population, rng)
    step(state, fixed, rng)
    probabilities(state, fixed, points, out)                    fill in out (P, K)
    has_room(state) -> bool                                     for the next step; else it grows
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sottovoce.lab.compiled import compile_for, compiled_once, inlined
from sottovoce.lab.environments import Counts, Floats, People, Rows
from sottovoce.shared.errors import ExperimentError, must

Generator = np.random.Generator


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
    people = compiled_once(compile_for(name, serve_block, own))
    rows = None
    if contribute is not None:
        rows = compiled_once(compile_for(name, contribute_block, own))
    return Loop(people, rows, probabilities)


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
