"""Begin anew, where what was learned misleads the target's people."""

from sottovoce.estimate.tree import copy_into
from sottovoce.estimate.whisper.audit import reward_share
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.diagnosis import promises
from sottovoce.estimate.whisper.state import State, initial_state

_KEPT = ("reports", "served", "target", "release", "misled", "amended")


def begin_anew(state: State, constants: Constants) -> State:
    """Return a state with one bin and all arms, at the place of another.

    What auxiliary populations told is forgotten with the rest. If nothing fades, the audit stays as
    it is, so that the diagnosis goes on to say why.
    """
    new = initial_state(constants)
    totals, before = new.totals[0], state.totals[0]
    for name in _KEPT:
        totals[name] = before[name]
    totals.first_release = before.release
    if totals.misled:
        new.promised[:] = promises(state, constants)
        for name in ("audit_answers", "audit_delivered", "audit_promised", "audit_at_random"):
            totals[name] = before[name]
    # Where people are does not follow from what misled.
    for name in ("scale", "scaled", "scaled_since", "thresholds"):
        getattr(new, name)[:] = getattr(state, name)
    for told, known in zip(new.scale_told, state.scale_told, strict=True):
        told[:] = known
    totals.scale_share = before.scale_share
    copy_into(new.gain, state.gain)  # nor does what the policy has brought until now
    totals.reward_share = reward_share(new, constants)
    return new
