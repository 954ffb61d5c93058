"""The noise of all devices, drawn when somebody looks; and the learner's step, compiled with it.

Two things are done at once instead of one by one, both exact:

- A sum of n Laplace(b) noises. Laplace(b) is b·√(2E)·Z with E exponential and Z normal, so the sum
  is b·√(2G)·Z with G ~ Gamma(n). For n = 1 it is b·(E - E′).
- Noise of a bin in its warm-up. Nobody looks at it until the warm-up is over, so it is owed, and
  drawn in one go when the first look comes.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.estimate import tree
from sottovoce.estimate.ldpmab import rules, step
from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.estimate.ldpmab.state import Counts, State
from sottovoce.estimate.ldpmab.step import Scratch
from sottovoce.lab.compiled import compile_rules, inlined
from sottovoce.shared.ldpmab import laplace

laplace_scale = compile_rules(laplace, inline=True)[laplace.laplace_scale]


class Devices(NamedTuple):
    """All devices: S nodes at most, M + 1 populations."""

    constants: Constants
    leaking: bool  # NOT PRIVATE, see ``simulate``
    owed: Counts  # (S, M+1) users of the bin whose noise is not drawn yet
    hits: Counts  # (S, M+1) users in the bin since the last step
    leaves: Counts  # (n,) scratch: the leaf of each person until the next step
    scratch: Scratch  # of the learner


class Source(NamedTuple):
    """What noise and splits are drawn from; see ``Devices``."""

    owed: Counts
    hits: Counts
    leaking: bool
    rng: np.random.Generator


@inlined
def draw_noise(state: State, constants: Constants, node: int, source: Source) -> bool:
    """Count the last users of a bin; draw the noise it owes once anyone may look at it.

    Stands in for ``is_ready``, and says the same.
    """
    users, owed, hits = state.users[node], source.owed[node], source.hits[node]
    fresh, pulls, rewards = state.fresh, state.pulls[node], state.rewards[node]
    ready = False
    for m in range(len(fresh)):
        users[m] += fresh[m]
        owed[m] += hits[m] if source.leaking else fresh[m]
        hits[m] = 0
        if users[m] > 0 and users[m] >= constants.warm_up:
            ready = True
            if owed[m] > 0:
                scale = laplace_scale(constants.epsilons[m])
                shift = owed[m] - 1.0 / 3.0
                slope = 1.0 / math.sqrt(9.0 * shift)
                for k in range(state.live[node]):
                    pulls[m, k] += scale * laplace_sum(source.rng, owed[m], shift, slope)
                    rewards[m, k] += scale * laplace_sum(source.rng, owed[m], shift, slope)
                owed[m] = 0
    return ready


@inlined
def laplace_sum(rng: np.random.Generator, count: int, shift: float, slope: float) -> float:
    """Draw the sum of ``count`` > 0 independent standard Laplace noises.

    shift = count - 1/3 and slope = 1/√(9·shift) are those of Marsaglia and Tsang's exact way to
    draw Gamma(count) (ACM Transactions on Mathematical Software 26, 2000). Here they are worked
    out once for many draws, which halves the time.
    """
    if count == 1:
        return rng.standard_exponential() - rng.standard_exponential()
    while True:
        x = rng.standard_normal()
        v = 1.0 + slope * x
        if v > 0.0:
            v = v * v * v
            u = rng.random()
            if u < 1.0 - 0.0331 * x * x * x * x or (
                math.log(u) < 0.5 * x * x + shift * (1.0 - v + math.log(v))
            ):
                return math.sqrt(2.0 * shift * v) * rng.standard_normal()


@inlined
def draw_axis(state: State, node: int, source: Source) -> int:
    """Draw one of a bin's longest edges (Algorithm 1, line 1). Stands in for ``choose_axis``."""
    edges = state.tree.edges[node]
    longest, ties = 0.0, 0
    for j in range(len(edges)):
        length = edges[j, 1] - edges[j, 0]
        if length > longest:
            longest, ties = length, 0
        ties += length == longest
    drawn = int(source.rng.random() * ties)
    axis = 0
    while drawn > 0 or edges[axis, 1] - edges[axis, 0] < longest:
        drawn -= edges[axis, 1] - edges[axis, 0] == longest
        axis += 1
    return axis


_learner = compile_rules(
    *(rules, step, tree),
    inline=True,
    replace={step.is_ready: draw_noise, step.choose_axis: draw_axis},
)
learner_step, has_room = _learner[step.step], _learner[tree.has_room]
leaf_of = _learner[tree.leaf_of]


@inlined
def make_step(state: State, devices: Devices, rng: np.random.Generator) -> None:
    """Draw the noise that is due, and let the learner decide."""
    source = Source(devices.owed, devices.hits, devices.leaking, rng)
    if devices.constants.running:
        learner_step(state, devices.constants, devices.scratch, source)
