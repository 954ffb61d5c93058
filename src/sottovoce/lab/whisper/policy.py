"""The ``whisper`` crowd as the driver drives it; it grows when its tree needs room."""

from collections.abc import Sequence

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.gain_interval import GainEstimate, gain_estimate
from sottovoce.estimate.history import Amended, BeganAnew, DatedEvent, history_of
from sottovoce.estimate.whisper.amend import amend
from sottovoce.estimate.whisper.anew import begin_anew
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.diagnosis import diagnose
from sottovoce.estimate.whisper.publish import release_of
from sottovoce.estimate.whisper.state import State, initial_state, with_room
from sottovoce.estimate.whisper.trust import STAY
from sottovoce.lab.whisper.people import LOOP
from sottovoce.lab.whisper.tables import Crowd, Fixed, fixed_for, tallies_for
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release


class WhisperPolicy:
    """The learner and all devices of ``whisper``."""

    loop = LOOP

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.constants = constants(experiment)
        self._earlier: tuple[DatedEvent, ...] = ()
        self._amended: tuple[DatedEvent, ...] = ()
        self.go_on_with(initial_state(self.constants))

    def go_on_with(self, learner: State) -> None:
        """Go on with a learner's state."""
        self.learner = learner
        self.state = Crowd(learner, tallies_for(learner, self.constants))

    def fixed(self, population: int) -> Fixed:
        """Return what stands still while people of a population come."""
        return fixed_for(self.experiment, population, nodes=len(self.learner.live))

    def grow(self) -> None:
        """Begin anew if the learner said so, and make room for every contested bin to be split."""
        learner = self.learner
        if learner.totals[0].verdict != STAY:
            began = DatedEvent(int(learner.totals[0].reports), BeganAnew())
            self._earlier += (*history_of(learner), began)
            learner = begin_anew(learner, self.constants)
        self.go_on_with(with_room(learner, self.constants))

    def amend(self, experiment: Experiment) -> None:
        """Go on with an amended experiment, with the learner's state as it is."""
        before, self.constants = self.constants, constants(experiment)
        self.experiment = experiment
        self.go_on_with(amend(self.learner, before, self.constants))
        totals = self.learner.totals[0]
        event = Amended(int(totals.release), experiment.amendments[-1])
        self._amended += (DatedEvent(int(totals.reports), event),)

    def diagnosis(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the auxiliary populations bring, given how many rows of each have come."""
        return diagnose(self.learner, self.experiment, reports)

    def gain(self, *, level: float = 0.95) -> GainEstimate | None:
        """Return what the policy brings over the baseline, as of the last step."""
        if not self.constants.gain.measured:
            return None
        people = float(self.learner.totals[0].target)
        return gain_estimate(self.learner.gain, people=people, level=level)

    def history(self) -> tuple[DatedEvent, ...]:
        """Return eliminations, splits and amendments."""
        learned = (*self._earlier, *history_of(self.learner))
        return tuple(sorted((*learned, *self._amended), key=lambda dated: dated.reports))

    def release(self) -> Release:
        """Return the policy now."""
        return release_of(self.experiment, self.learner)
