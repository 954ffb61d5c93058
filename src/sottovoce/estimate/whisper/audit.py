"""The audit: does the policy do what the learner expects of it? The target's own people say so.

Bins that auxiliary data has settled are never compared again: nobody there gets another arm. But
some of the people who are served, in any bin, are asked for their reward. A part of them are asked
for nothing else (``REWARD``). One cell for everybody makes that a precise question even at a small
ε, and it needs no experiment on anyone. Where auxiliary data is about other people than it seems,
they get less than promised. The others tell it for their bin (``BIN_REWARD``).

The learner says how many are asked. People in a settled bin have nothing to tell of arms: where
nearly all bins are settled before it is clear whether rightly so, nearly all people are asked.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.shared.whisper.caps import NO_CAP, share_of
from sottovoce.shared.whisper.tuning import (
    AUDIT_ERRORS,
    AUDIT_LEAST,
    REWARD_SHARE,
    REWARD_SHARE_FADING,
    REWARD_SHARE_UNCHECKED,
    SHARES,
)

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import Floats, State


def forecast(
    state: "State", constants: "Constants", node: int, share: float, mean: "Floats"
) -> None:
    """Write down what is expected in a bin: of its policy, and of an arm at random.

    share: of the target's people. mean (K,): g of each arm.
    """
    state.forecast.share[node] = share
    state.forecast.policy[node] = mean_of_policy(state, constants, node, mean)
    state.forecast.at_random[node] = mean_at_random(constants, mean)


def mean_of_policy(state: "State", constants: "Constants", node: int, mean: "Floats") -> float:
    """Return the mean over the arms that people get: the pair, or all live ones if public."""
    if constants.public_arms:
        return float(np.sum(mean * state.live[node]) / np.sum(state.live[node]))
    champion, challenger = state.pair[node, 0], state.pair[node, 1]
    share = share_of(constants.caps, champion, challenger)
    if share != NO_CAP:
        return float(share * mean[champion] + (1.0 - share) * mean[challenger])
    return float(mean[champion] + mean[challenger]) / 2.0


def mean_at_random(constants: "Constants", mean: "Floats") -> float:
    """Return the mean over all arms that there are."""
    return float(mean[~constants.retired].mean())


def add_rewards(state: "State", answers: float, total: float) -> None:
    """Set what people tell of their rewards beside what was expected of the policy they had.

    total: the sum of their answers, each with mean 2r - 1 for a mean reward r.
    """
    people, policy, at_random = 0.0, 0.0, 0.0
    totals = state.totals[0]
    for node in range(totals.nodes):
        if state.tree.child[node] == node:
            share = state.forecast.share[node]
            people += share
            policy += share * state.forecast.policy[node]
            at_random += share * state.forecast.at_random[node]
    totals.audit_answers += answers
    totals.audit_delivered += total / 2.0
    totals.audit_promised += answers * policy / people
    totals.audit_at_random += answers * at_random / people


def is_clear(state: "State", constants: "Constants") -> bool:
    """Say whether the audit has come out, well or badly, as ``Audit`` of the diagnosis has it."""
    totals = state.totals[0]
    half = (totals.audit_promised + totals.audit_at_random) / 2.0
    deviation = math.sqrt(totals.audit_answers * constants.reward_variance) / 2.0
    away = abs(totals.audit_delivered - half)
    clear: bool = totals.audit_answers >= AUDIT_LEAST and away >= AUDIT_ERRORS * deviation
    return clear


def reward_share(state: "State", constants: "Constants") -> int:
    """Return how many people of SHARES are asked for their reward.

    Until the audit is clear, as many more as people in settled bins outnumber the others; in steps,
    for each change makes a new release.
    """
    if not constants.audited or (state.totals[0].misled and constants.half_life == math.inf):
        return 0
    least = REWARD_SHARE if constants.half_life == math.inf else REWARD_SHARE_FADING
    totals = state.totals[0]
    if constants.half_life == math.inf and not totals.checked and totals.nodes > 1:
        least = REWARD_SHARE_UNCHECKED
    if is_clear(state, constants) and constants.half_life == math.inf:
        return REWARD_SHARE
    nodes = state.totals[0].nodes
    people = state.forecast.share[:nodes] * (state.tree.child[:nodes] == np.arange(nodes))
    settled = people * (state.pair[:nodes, 0] == state.pair[:nodes, 1])
    more = 2.0 * settled.sum() / people.sum() - 1.0
    if constants.half_life < math.inf:
        more /= 2.0  # as long as people come, others need answers, too
    return max(least, int(more * SHARES / REWARD_SHARE) * REWARD_SHARE)
