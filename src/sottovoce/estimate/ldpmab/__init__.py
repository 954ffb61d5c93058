"""The paper's Algorithms 2 and 3.

The way of the data, a file for each stage:

    past_releases  which reports fit the release they were made for
    rules          the paper's equations, one function each
    step           the loop over bins: estimate, drop arms, split
    publish        the state → the next release

``estimator`` puts them together for the learner, ``constants`` has the numbers of both presets.
"""

from sottovoce.estimate.ldpmab.estimator import begin, resume
from sottovoce.estimate.ldpmab.past_releases import past_releases

__all__ = ["begin", "past_releases", "resume"]
