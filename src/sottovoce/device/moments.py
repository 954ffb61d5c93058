"""Calls that end at a moment which says next to nothing about how long their work took.

The device does the same steps for everybody, but plain Python does not take the same time for them:
small numbers are kept ready, a look into a dictionary may take one probe more, memory is near or
far. What is left is a fraction of a microsecond. ``ends_at_a_random_turn`` hides it: a call draws a
moment u of a turn at random before it begins, and returns only u, u + TURN, u + 2·TURN, … after its
beginning.

Why: two calls whose work takes t and t + δ return at different moments only if such a moment lies
between the two. As u is uniform, this has probability δ/TURN at most, whatever t is. So somebody
who times one call tells them apart with an AUC of at most 1/2 + δ/TURN. Moments at fixed multiples
would not do: a release could be made so that the work of some people ends just before one, and the
work of others just after.

It cannot hide differences that are much longer than a turn, and somebody who can time thousands of
calls *about the same secret* can take their mean. A device makes one such call.
"""

import secrets
from collections.abc import Callable
from functools import wraps
from time import perf_counter_ns
from typing import ParamSpec, TypeVar

TURN = 24_000
"""Nanoseconds. A call takes half of it longer on average."""

P = ParamSpec("P")
R = TypeVar("R")


def ends_at_a_random_turn(call: Callable[P, R]) -> Callable[P, R]:
    """Let a call return, or raise, only at a moment that was drawn before it began."""

    @wraps(call)
    def timed(*args: P.args, **kwargs: P.kwargs) -> R:
        moment = secrets.randbelow(TURN)
        begun = perf_counter_ns()
        try:
            return call(*args, **kwargs)
        finally:
            taken = perf_counter_ns() - begun
            # The first moment that is not over yet.
            end = begun + taken + (moment - taken) % TURN
            while perf_counter_ns() < end:
                pass

    return timed
