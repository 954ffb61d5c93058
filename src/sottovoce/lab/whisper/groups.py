"""Where there is a baseline: who is in a group, and what the groups tell.

By the device's and the learner's own functions. Without a baseline nobody draws anything.
"""

import numpy as np

from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.whisper.draws import send
from sottovoce.lab.whisper.rules import add_people, group_of
from sottovoce.lab.whisper.tables import Crowd, Fixed
from sottovoce.shared.baseline import NEITHER, POLICY, UNIT


@inlined
def draw_group(share: int, rng: np.random.Generator) -> int:
    """Draw the group of a person; without a baseline nobody draws."""
    if share == 0:
        return NEITHER
    group: int = group_of(int(rng.random() * UNIT), share)
    return group


@compiled
def tell_group(
    crowd: Crowd, fixed: Fixed, group: int, sign: float, rng: np.random.Generator
) -> None:
    """Let somebody of a group tell the outcome. sign: of the reward."""
    tallies, mechanism = crowd.tallies, fixed.reward_mechanism[0]
    tallies.single[0] = 0.0
    send(mechanism, 0, sign, tallies.single, tallies.order, tallies.picks, rng)
    tallies.groups[group, int(tallies.single[0] > 0.0)] += 1
    if group == POLICY and fixed.constants.audited:
        tallies.rewards[0] += 1.0
        tallies.rewards[1] += tallies.single[0]


@compiled
def add_groups(crowd: Crowd, fixed: Fixed, settled: bool, people: int) -> None:
    """Hand over what the groups told, of so many people who came and were asked."""
    groups, constants, gain = crowd.tallies.groups, fixed.constants, crowd.state.gain
    if constants.gain.measured and people > 0:
        members = groups[0, 0] + groups[0, 1] + groups[1, 0] + groups[1, 1]
        others = 0 if settled else people - members
        add_people(gain, constants.gain, gain.share[0], settled, groups, float(others))
        groups[:] = 0
