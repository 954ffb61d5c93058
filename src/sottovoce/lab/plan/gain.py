"""When the gain shows: after how many people its interval leaves 0, by a formula."""

import math

from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.whisper.subset import signed_subset

SHARE = 0.1
"""How many people a baseline group has, where the experiment says nothing."""

FIXED_TIME = 1.96
"""Half of a 95 % interval at one moment, in standard errors."""

ANY_MOMENT = 1.5
"""How many times as wide an interval is that holds at any moment one looks."""


def half_width(people: float, *, epsilon: float, share: float = SHARE) -> float:
    """Return half of the interval of the gain after so many people, as a share of the range.

    A public coin gives ``share`` of the people the baseline, and asks them and as many of the
    others for their outcome alone. Each answers by randomised response: the sign of 2y - 1, y the
    outcome, comes with the mean β·(2y - 1), β = (e^ε - 1)/(e^ε + 1). So (sign/β + 1)/2 is an
    estimate of y whose variance is at most 1/(4β²), whatever y is. Either group has share·n people,
    and the variance of the difference of their means is at most

        2·1/(4β²)/(share·n) = 1/(2·share·n·β²).

    The half-width is 1.5·1.96 times its square root: an interval that holds at any moment is at
    most 1.5 times as wide as one at a fixed time.
    """
    signal = signed_subset(epsilon, 1).signal
    error = math.sqrt(1 / (2 * share * people * signal**2))
    return ANY_MOMENT * FIXED_TIME * error


def people_until_gain_shows(
    people: Counts, gain: Floats, *, epsilon: float, share: float = SHARE
) -> float:
    """Return after how many people the gain exceeds half of its interval; ∞ if it never will.

    people, gain: what all had gained over the baseline when so many had come, as a share of the
        range. Beyond the last of them each person gains what the last ones do.
    """
    for number, come in enumerate(people.tolist()):
        if gain[number] / come > half_width(come, epsilon=epsilon, share=share):
            return float(come)
    last = max(len(people) - 8, 0)
    come, now = float(people[-1]), float(gain[-1])
    rate = (now - float(gain[last])) / max(come - float(people[last]), 1.0)
    if last == len(people) - 1 or rate <= 0:
        return math.inf
    low, high = come, come
    while (now + rate * (high - come)) / high <= half_width(high, epsilon=epsilon, share=share):
        low, high = high, 2 * high
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        shows = (now + rate * (middle - come)) / middle
        if shows > half_width(middle, epsilon=epsilon, share=share):
            high = middle
        else:
            low = middle
    return high
