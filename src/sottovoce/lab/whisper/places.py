"""Where people are: what they tell of the threshold of an axis, by the device's own function."""

import numpy as np

from sottovoce.device.whisper import answer as device
from sottovoce.estimate.whisper.state import Counts, Floats
from sottovoce.lab.compiled import compile_rules, compiled
from sottovoce.lab.whisper.draws import send
from sottovoce.lab.whisper.tables import Crowd, Fixed
from sottovoce.shared import partition
from sottovoce.shared.whisper import axes

told_of_place = compile_rules(device, axes, partition, inline=True)[device.told_of_place]


@compiled
def tell_place(crowd: Crowd, fixed: Fixed, point: Floats, rng: np.random.Generator) -> None:
    """Let a person tell whether they are at or above the threshold of a random axis."""
    state, tallies = crowd.state, crowd.tallies
    axis = asked_place(state.thresholds, rng.random())
    threshold = state.thresholds[axis] - 1
    value = told_of_place(point[axis], fixed.thresholds[threshold])
    tallies.place_answers[axis] += 1.0
    send(
        fixed.place_mechanism[0],
        0,
        value,
        tallies.places[axis : axis + 1],
        tallies.order,
        tallies.picks,
        rng,
    )


@compiled
def asked_place(thresholds: Counts, coin: float) -> int:
    """Return a random axis that has a threshold."""
    number = 0
    for axis in range(len(thresholds)):
        number += thresholds[axis] > 0
    index = int(coin * number)
    for axis in range(len(thresholds)):
        index -= thresholds[axis] > 0
        if index < 0:
            return axis
    return 0
