"""One step of the learner: estimate → decide → split, in every contested bin."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.estimate.gain import look_at_gain
from sottovoce.estimate.whisper.audit import forecast, reward_share
from sottovoce.estimate.whisper.bias import weigh_rows
from sottovoce.estimate.whisper.decisions import Decision, axis_variation, choose_pair, decide
from sottovoce.estimate.whisper.measurement import estimate, solve
from sottovoce.estimate.whisper.relevance import ask_about
from sottovoce.estimate.whisper.scale import scale_axes
from sottovoce.estimate.whisper.smoothing import smooth, smoothing_is_due
from sottovoce.estimate.whisper.split import split
from sottovoce.estimate.whisper.trust import STAY, fade, judge, reopen

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


def step(state: "State", constants: "Constants") -> None:
    """Look at every contested bin. There is a new release if anything changed."""
    totals = state.totals[0]
    totals.release += 1  # so that what is decided now bears the number of the next release
    fewer = look_at_gain(state.gain, constants.gain, totals.target)
    fade(state, constants)
    totals.verdict = judge(state, constants)
    if totals.verdict != STAY:
        return  # the tree begins anew (``anew.py``), and the next step looks at its bins
    nodes, contested, events = totals.nodes, totals.contested, totals.events
    smoothed = smoothing_is_due(state)
    if smoothed:
        weigh_rows(state, constants)
        smooth(state, constants)
        reopen(state, constants)
    changed = totals.contested != contested
    contested = totals.contested
    varies = np.zeros(constants.dimension)
    totals.contested = 0
    for position in range(contested):
        node = state.contested[position]
        known = estimate(state, constants, node)
        decision = decide(state, constants, node, known)
        changed |= carry_out(state, constants, node, decision)
        forecast(state, constants, node, known.people.share[0], known.mean)
        if smoothed and decision.champion != decision.challenger:
            for axis in range(constants.dimension):
                pair = decision.champion, decision.challenger
                seen, doubt = axis_variation(state, constants, node, known, pair[0], pair[1], axis)
                varies[axis] += known.people.share[0] * (seen + doubt)
        if decision.axis >= 0:
            state.upper[node] = decision.upper
            split(state, constants, node, decision.axis, known)
            log_event(state, node, decision.axis)
        elif decision.champion != decision.challenger:
            contest(state, node)
    arms = constants.arms
    mean, covariance = np.empty(arms), np.empty((arms, arms))
    for node in range(nodes, totals.nodes):
        contest(state, node)
        solve(state.prior.precision[node, 0], state.prior.vector[node, 0], mean, covariance)
        best, rival = choose_pair(state.live[node], mean, covariance, constants.caps)
        state.pair[node, 0], state.pair[node, 1] = best, rival
        forecast(state, constants, node, state.mass[node, 0], mean)
    if smoothed and totals.contested > 0:
        ask_about(state, constants, varies)
        changed = True
    if totals.scale_share > 0:
        changed |= scale_axes(state, constants)
    totals.served = 0
    share = reward_share(state, constants)
    changed |= share != totals.reward_share
    changed |= fewer
    totals.reward_share = share
    if not changed and totals.events == events:
        totals.release -= 1


def carry_out(state: "State", constants: "Constants", node: int, decision: Decision) -> bool:
    """Drop arms and put others on offer; return whether a contested bin now offers other arms."""
    for k in range(constants.arms):
        if state.live[node, k] and not decision.live[k]:
            state.live[node, k] = False
            event = log_event(state, node, -1)
            event.arm, event.winner = k, decision.champion
            event.statistic, event.boundary = decision.statistic[k], decision.boundary[k]
    before = state.pair[node, 0], state.pair[node, 1]
    state.pair[node, 0], state.pair[node, 1] = decision.champion, decision.challenger
    if decision.axis >= 0 or decision.champion == decision.challenger or constants.public_arms:
        return False  # with public arms, all live ones are on offer
    return (min(before), max(before)) != (
        min(decision.champion, decision.challenger),
        max(decision.champion, decision.challenger),
    )


def contest(state: "State", node: int) -> None:
    """Add a bin to those that are contested."""
    state.contested[state.totals[0].contested] = node
    state.totals[0].contested += 1


def log_event(state: "State", node: int, axis: int) -> Any:
    """Write down that a bin was split along a feature, or with -1 that an arm was dropped."""
    totals = state.totals[0]
    event = state.events[totals.events]
    event.reports, event.release, event.node, event.axis = (
        totals.reports,
        totals.release,
        node,
        axis,
    )
    event.arm = event.winner = -1
    totals.events += 1
    return event
