"""Trust: does what was learned hold for the target's people now? If not, it is forgotten.

The audit sets what people get beside what was promised. There are two hypotheses about the
shortfall, in shares of the gain that was promised beyond arms at random:

    right    N(RIGHT_SHORTFALL, …): promises are a little too high
    wrong    N(WRONG_SHORTFALL, …): people get what arms at random bring, or less

Auxiliary data may be of people for whom other arms are best; and where the world changes, what was
learned of the past may be wrong by now. In both cases the learner begins anew.
"""

import math
from typing import TYPE_CHECKING

from sottovoce.estimate.whisper.decisions import (
    choose_pair,
    expected_loss,
    paid_for,
    variation_inside,
)
from sottovoce.estimate.whisper.measurement import estimate, gap_variance
from sottovoce.shared.whisper.tuning import (
    AUDIT_LEAST,
    BEGIN_ANEW_ODDS,
    CHANGED_ODDS,
    CHECKED_ERROR,
    NEW_WINDOW_ODDS,
    RIGHT_SHORTFALL,
    WRONG_ODDS,
    WRONG_SHORTFALL,
)

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State

STAY, BEGIN_ANEW = range(2)


def is_trusted_on_approval(state: "State", constants: "Constants") -> bool:
    """Say whether what was learned is to be checked: it is of others, or of the past."""
    others = state.mass.shape[1] > 1 and not state.totals[0].misled
    return constants.audited and (others or constants.half_life < math.inf)


def log_odds_of_wrong(state: "State", constants: "Constants") -> float:
    """Return the log of the likelihood ratio of wrong to right promises."""
    totals = state.totals[0]
    gain = totals.audit_promised - totals.audit_at_random
    variance = totals.audit_answers * constants.reward_variance / 4.0
    if variance == 0.0 or gain <= 0.0:
        return 0.0
    # To get more than was promised is no sign of anything wrong.
    short = min(totals.audit_delivered - totals.audit_promised, RIGHT_SHORTFALL[0] * gain)
    right = variance + (RIGHT_SHORTFALL[1] * gain) ** 2
    wrong = variance + (WRONG_SHORTFALL[1] * gain) ** 2
    ratio: float = (short - RIGHT_SHORTFALL[0] * gain) ** 2 / right
    ratio -= (short - WRONG_SHORTFALL[0] * gain) ** 2 / wrong
    return 0.5 * (ratio + math.log(right / wrong))


def shortfall_error(state: "State", constants: "Constants") -> float:
    """Return the standard error of the shortfall, in shares of the promised gain."""
    totals = state.totals[0]
    gain = totals.audit_promised - totals.audit_at_random
    if gain <= 0.0:
        return math.inf
    error: float = math.sqrt(totals.audit_answers * constants.reward_variance) / 2.0 / gain
    return error


def judge(state: "State", constants: "Constants") -> int:
    """Return the verdict on what was learned so far."""
    totals = state.totals[0]
    if not is_trusted_on_approval(state, constants) or constants.certified or totals.served == 0:
        return STAY
    odds = log_odds_of_wrong(state, constants) + math.log(WRONG_ODDS)
    if odds >= math.log(BEGIN_ANEW_ODDS if constants.half_life == math.inf else CHANGED_ODDS):
        totals.misled = constants.half_life == math.inf
        return BEGIN_ANEW
    if totals.audit_answers >= AUDIT_LEAST and shortfall_error(state, constants) < CHECKED_ERROR:
        totals.checked = 1
    if constants.half_life < math.inf and odds < math.log(WRONG_ODDS * NEW_WINDOW_ODDS):
        # Page's test: what was right until now must not hide a change to come.
        totals.audit_answers = totals.audit_delivered = 0.0
        totals.audit_promised = totals.audit_at_random = 0.0
    return STAY


def fade(state: "State", constants: "Constants") -> None:
    """Let what was learned fade: by half over a half-life of people; the audit fades faster."""
    totals = state.totals[0]
    if constants.half_life == math.inf or totals.served == 0:
        return
    factor = 0.5 ** (totals.served / constants.half_life)
    for position in range(totals.contested):
        node = state.contested[position]
        state.served.precision[node] *= factor
        state.served.vector[node] *= factor
        state.logged.precision[node] *= factor
        state.logged.vector[node] *= factor


def reopen(state: "State", constants: "Constants") -> None:
    """Open settled bins again where, by what is known now, an arm would not be dropped by far."""
    totals = state.totals[0]
    if not is_trusted_on_approval(state, constants) or constants.certified or totals.served == 0:
        return
    if constants.half_life < math.inf:
        return
    to_come = max(constants.horizon - totals.target, 1.0)
    for node in range(totals.nodes):
        champion = state.pair[node, 0]
        if state.tree.child[node] != node or champion != state.pair[node, 1]:
            continue
        known = estimate(state, constants, node)
        for k in range(constants.arms):
            if k == champion or constants.retired[k]:
                continue
            gap = known.mean[champion] - known.mean[k]
            inside, _ = variation_inside(state, constants, node, known, champion, k)
            variance = gap_variance(known.covariance, champion, k) + inside
            loss = to_come * expected_loss(gap, math.sqrt(variance))
            paid = paid_for(state, constants, node, champion, k)
            if loss > max(gap, 0.0) * paid:
                state.live[node, k] = True
        best, rival = choose_pair(state.live[node], known.mean, known.covariance, constants.caps)
        if best != rival:
            state.pair[node, 0], state.pair[node, 1] = best, rival
            state.contested[totals.contested] = node
            totals.contested += 1
