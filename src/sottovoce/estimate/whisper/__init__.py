"""``whisper``, the project's own method and the default: contrasts inside a bin, from few bits.

The way of the data, a file for each stage. From ``tally`` to ``step`` they are plain functions,
which the learner calls as they are, and the lab compiles as they stand:

    past_releases  which answers fit the release they were made for
    tally          answers, added up until the next step
    measurement    what they say of a bin, and the estimate that follows
    smoothing      what bins learn from each other
    decisions      which arms go, which are compared, where to split
    split          a bin becomes two
    audit          do the target's people get what auxiliary data promised?
    step           all of these, in order
    publish        the state → the next release

``estimator`` puts them together for the learner. Every tuned number is in
``shared/whisper/tuning.py``.
"""

from sottovoce.estimate.whisper.estimator import begin, resume
from sottovoce.estimate.whisper.past_releases import past_releases

__all__ = ["begin", "past_releases", "resume"]
