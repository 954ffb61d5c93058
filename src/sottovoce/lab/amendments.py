"""Amendments in a simulated world: after how many people, and what changes then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from sottovoce.lab.environments import Environment, Floats, world_at
from sottovoce.shared import check
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ADD_ARM
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment

_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AmendedAfter:
    """One amendment of a simulation.

    people: how many target users come before it.
    kind: as in ``Amendment``. An arm that is added is the environment's next one: the experiment
        begins without those that come later.
    arm: the one that is retired, such as "arm 0". horizon, cap: as in ``Amendment``.
    """

    people: int
    kind: str
    arm: str | None = None
    horizon: int | None = None
    cap: float | None = None

    def __post_init__(self) -> None:
        check.whole_number(self.people, what="people before an amendment", least=1)
        if self.kind == ADD_ARM and self.arm is not None:
            rule = "have no name: it is the environment's next one"
            raise ExperimentError(must("an added arm of a simulation", rule, repr(self.arm)))

    def made(self, experiment: Experiment) -> Experiment:
        """Return what an experiment is after it."""
        arm = f"arm {len(experiment.arms)}" if self.kind == ADD_ARM else self.arm
        moment = _FIRST_DAY + timedelta(days=len(experiment.amendments))
        about = {"arm": arm, "horizon": self.horizon, "cap": self.cap}
        return amended(experiment, draft(experiment, self.kind, by="lab", made=moment, **about))


@dataclass(frozen=True, slots=True)
class Offered:
    """A world with its first arms only, and some of those retired: these bring nothing."""

    environment: Environment
    arms: int
    retired: frozenset[int] = frozenset()

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return self.environment.dimension

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw n contexts."""
        return self.environment.contexts(rng, n)

    def means(self, contexts: Floats) -> Floats:
        """Return what the arms on offer bring."""
        return self._of(self.environment.means(contexts))

    def _of(self, means: Floats) -> Floats:
        some = np.array(means[:, : self.arms])
        some[:, sorted(self.retired)] = 0.0
        return some

    def _deal(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        environment: Any = self.environment
        contexts, means = environment.deal(rng, n)
        return contexts, self._of(means)

    def _at(self, people: int) -> "Offered":
        return Offered(world_at(self.environment, people), self.arms, self.retired)

    def __getattr__(self, name: str) -> Any:
        # What not every environment has.
        if name in ("rewards", "deal", "at", "changes"):
            theirs = getattr(self.environment, name)
            return {"deal": self._deal, "at": self._at}.get(name, theirs)
        raise AttributeError(name)


def arms_at_first(environment: Environment, amendments: Sequence[AmendedAfter]) -> int:
    """Return how many arms an experiment begins with, and check the order of its amendments."""
    people = [each.people for each in amendments]
    if people != sorted(people):
        raise ExperimentError(must("amendments", "be in order", people))
    added = sum(each.kind == ADD_ARM for each in amendments)
    if environment.arms - added < 2:
        rule = f"add at most {environment.arms - 2} of {environment.arms} arms"
        raise ExperimentError(must("amendments", rule, added))
    return environment.arms - added


def offered(environment: Environment, experiment: Experiment) -> Environment:
    """Return a world with the arms that an experiment offers by now."""
    if len(experiment.arms) == environment.arms and not experiment.retired:
        return environment
    return Offered(environment, len(experiment.arms), experiment.retired)
