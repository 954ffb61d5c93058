"""The device's and the learner's own functions, compiled as they stand, for the crowd."""

from sottovoce.device.whisper import answer as device
from sottovoce.estimate import gain, tree
from sottovoce.estimate.whisper import (
    audit,
    bias,
    decisions,
    measurement,
    relevance,
    scale,
    shapes,
    smoothing,
    split,
    state,
    step,
    tally,
    trust,
)
from sottovoce.lab.compiled import compile_rules
from sottovoce.shared import baseline, partition
from sottovoce.shared import scale as shared_scale
from sottovoce.shared.whisper import axes, caps

midpoint = compile_rules(tree, inline=True)[tree.midpoint]

_device = compile_rules(device, axes, partition, shared_scale, inline=True)
asked_kind, own_cell = _device[device.asked_kind], _device[device.own_cell]
logged_share = _device[device.whole_share_of_rows]
asked_axis, part_and_sign = _device[device.asked_axis], _device[device.part_and_sign]
_caps = compile_rules(caps, inline=True)
share_of, told_share = _caps[caps.share_of], _caps[caps.told_share]
told_share_of_arm = _caps[caps.told_share_of_arm]
level_at, position_at = _device[partition.level_at], _device[shared_scale.position_at]

_learner = compile_rules(
    *(
        audit,
        axes,
        bias,
        caps,
        decisions,
        gain,
        measurement,
        relevance,
        scale,
        shapes,
        shared_scale,
        smoothing,
        split,
        state,
        step,
        tally,
        tree,
        trust,
    ),
    inline=False,
    allocate=True,
)
add_places, add_rewards = _learner[scale.add_places], _learner[audit.add_rewards]
hand_over, credit = _learner[tally.hand_over], _learner[tally.credit]
add_people = _learner[gain.add_people]
group_of = compile_rules(baseline, inline=True)[baseline.group_of]
learner_step, state_has_room = _learner[step.step], _learner[state.has_room]
