"""One step of the learner: the loop over bins of Algorithms 2 and 3.

Plain functions. The learner calls them as they are, and the lab compiles them as they stand, but
for two: ``is_ready``, where the crowd draws noise that nobody has looked at yet, and
``choose_axis``, where it draws from its own randomness.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sottovoce.estimate.ldpmab.rules import BinSums, Verdict, estimate_bin, judge_bin
from sottovoce.estimate.tree import Flags, may_split, split_node
from sottovoce.shared.partition import Box, max_edge_axis

if TYPE_CHECKING:
    from sottovoce.estimate.ldpmab.constants import Constants
    from sottovoce.estimate.ldpmab.state import State


class Scratch(NamedTuple):
    """Room for what a step works out on the way, so that its compiled form makes no arrays."""

    counted: Flags  # (M+1,)
    verdict: Verdict  # (K,) each


def new_scratch(constants: "Constants") -> Scratch:
    """Return room for any bin."""
    k = constants.arms
    verdict = Verdict(np.empty(k), np.empty(k), np.empty(k, dtype=np.bool_), np.empty(k))
    return Scratch(np.empty(len(constants.epsilons), dtype=np.bool_), verdict)


class Coins(NamedTuple):
    """What decides between a bin's longest edges: the experiment's seed, and the bin's path."""

    seed: int
    paths: list[str]  # of each node


def is_ready(state: "State", constants: "Constants", node: int, coins: Any) -> bool:
    """Say whether some population is past its warm-up. Until then nothing can be decided."""
    for m in range(len(state.fresh)):
        if state.users[node, m] > 0 and state.users[node, m] >= constants.warm_up:
            return True
    return False


def choose_axis(state: "State", node: int, coins: Any) -> int:
    """Draw one of a bin's longest edges (Algorithm 1, line 1)."""
    box = cast(Box, tuple((low, high) for low, high in state.tree.edges[node].tolist()))
    axis = max_edge_axis(box, path=coins.paths[node], seed=coins.seed)
    return cast(int, axis)  # bins that cannot be halved are as deep as bins get: see ``constants``


def step(state: "State", constants: "Constants", scratch: Scratch, coins: Any) -> None:
    """Bounds → eliminate → refine, for every contested bin; a new release if anything changed.

    coins: what ``is_ready`` and ``choose_axis`` draw from.
    """
    totals = state.totals[0]
    mark_counted(state, constants, scratch.counted)
    contested, born = totals.contested, totals.nodes
    totals.contested = 0
    changed = False
    for position in range(contested):
        node = state.contested[position]
        refine = False
        if is_ready(state, constants, node, coins):
            found = first_columns(scratch.verdict, state.live[node])
            estimate_bin(sums_of(state, node), scratch.counted, constants, found)
            refine = judge_bin(state.tree.depth[node], found, constants)
            refine = refine and may_split(state, node)
            changed |= carry_out(state, node, found)
        if refine:
            changed = True
            split(state, node, choose_axis(state, node, coins))
        elif state.live[node] > 1:
            contest(state, node)
    for node in range(born, totals.nodes):
        contest(state, node)
    totals.release += changed
    state.fresh[:] = 0


def mark_counted(state: "State", constants: "Constants", counted: Flags) -> None:
    """Fill in which populations take part (M+1,).

    The authors' running sums grow by those that reported since the last step; the paper's
    estimator always takes all.
    """
    for m in range(len(counted)):
        counted[m] = not constants.running_sums or state.fresh[m] > 0


def sums_of(state: "State", node: int) -> BinSums:
    """Return the sums of a bin's live arms."""
    live = state.live[node]
    return BinSums(
        state.users[node],
        state.pulls[node, :, :live],
        state.rewards[node, :, :live],
        state.running[node, :, :live],
    )


def first_columns(verdict: Verdict, live: int) -> Verdict:
    """Return the part of the scratch arrays that so many arms need."""
    return Verdict(
        verdict.estimates[:live],
        verdict.radii[:live],
        verdict.keep[:live],
        verdict.propensities[:live],
    )


def carry_out(state: "State", node: int, verdict: Verdict) -> bool:
    """Give arms their new chances and drop those that go; return whether anything changed.

    The arms that stay move to the first columns, with their sums.
    """
    changed = False
    stays = 0
    for k in range(state.live[node]):
        chance = verdict.propensities[k]
        changed |= chance != state.propensities[node, k]
        if not verdict.keep[k]:
            log_event(state, node, -1, state.arms[node, k])
            continue
        state.propensities[node, stays] = chance
        if stays < k:
            state.arms[node, stays] = state.arms[node, k]
            for m in range(len(state.fresh)):
                state.pulls[node, m, stays] = state.pulls[node, m, k]
                state.rewards[node, m, stays] = state.rewards[node, m, k]
            for row in range(3):
                state.running[node, row, stays] = state.running[node, row, k]
        stays += 1
    state.live[node] = stays
    return changed


def split(state: "State", node: int, axis: int) -> None:
    """Split a bin along an axis (Algorithm 1); its halves begin with its live arms and no sums."""
    totals, live = state.totals[0], state.live[node]
    lower = totals.nodes
    split_node(state.tree, node, axis, lower)
    for half in range(lower, lower + 2):
        state.live[half] = live
        for k in range(live):
            state.arms[half, k] = state.arms[node, k]
            state.propensities[half, k] = 1.0 / live
    totals.nodes += 2
    totals.depth = max(totals.depth, state.tree.depth[lower])
    log_event(state, node, axis, -1)


def contest(state: "State", node: int) -> None:
    """Add a bin to those that are contested."""
    totals = state.totals[0]
    state.contested[totals.contested] = node
    totals.contested += 1


def log_event(state: "State", node: int, axis: int, arm: int) -> None:
    """Write down a split along an axis, or with -1 that an arm was dropped."""
    totals = state.totals[0]
    event = state.events[totals.events]
    event.reports, event.node, event.axis, event.arm = totals.reports, node, axis, arm
    totals.events += 1
