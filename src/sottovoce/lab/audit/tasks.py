"""The pieces of an audit: each looks at one claim and says whether it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sottovoce.lab.audit.attack import attack, sample_of
from sottovoce.lab.audit.cases import Pair
from sottovoce.lab.audit.claims import Mechanism, Person, Scene, Scores, auditing_of, must_know
from sottovoce.lab.audit.processes import in_a_new_process


@dataclass(frozen=True, slots=True)
class Finding:
    """What one task found.

    kind: exact, attack, protocol, randomness, or no claim.
    epsilon: what is claimed. bound: what was found: exactly, or a lower bound. None for neither.
    kept: whether the claim stands.
    runs: how many reports were made, or runs of the protocol played.
    """

    method: str
    case: str
    kind: str
    epsilon: float | None
    bound: float | None
    kept: bool
    detail: str
    runs: int = 0


class Task(Protocol):
    """One claim to look at."""

    @property
    def bounds(self) -> int:
        """How many bounds it reports that may be wrong by chance."""

    @property
    def work(self) -> float:
        """About how long it takes, compared with other tasks."""

    def find(self, *, error_rate: float, seed: int) -> Finding:
        """Do it. The seed is for the attacker's choices; no device ever sees it."""


@dataclass(frozen=True, slots=True)
class Attack:
    """Tell two people apart by their reports.

    train, test: how many reports of each person choose the event, and how many are counted.
    epsilon: the claim.
    """

    method: str
    pair: Pair
    mechanism: Mechanism
    epsilon: float
    train: int
    test: int

    bounds = 1

    @property
    def work(self) -> float:
        """How many reports it takes."""
        return float(self.train + self.test)

    def find(self, *, error_rate: float, seed: int) -> Finding:
        """Choose an event by the first reports and count it in the others."""
        pair = self.pair
        method = auditing_of(pair.scene.release.experiment.settings.name)
        # A mechanism may know its own law; the others have that of the release's method.
        knows = getattr(self.mechanism, "log_ratios", getattr(method, "log_ratios", None))
        scores: Scores | None = None if knows is None else knows(pair.scene, pair.one, pair.other)
        drawn = [
            self.mechanism.reports(pair.scene, person, self.train + self.test)
            for person in (pair.one, pair.other)
        ]
        train, test = (
            tuple(sample_of(each[piece], scores) for each in drawn)
            for piece in (slice(None, self.train), slice(self.train, None))
        )
        found = attack((train[0], train[1]), (test[0], test[1]), error_rate=error_rate)
        return Finding(
            self.method,
            pair.name,
            "attack",
            self.epsilon,
            found.bound,
            found.bound <= self.epsilon,
            f"{found.event}: {found.hits[0]} and {found.hits[1]} of {found.runs[0]}",
            2 * (self.train + self.test),
        )


@dataclass(frozen=True, slots=True)
class Exact:
    """Work out the exact worst ratio between some people."""

    method: str
    name: str
    scene: Scene
    people: Sequence[Person]

    bounds = 0
    work = 20_000.0

    def find(self, *, error_rate: float, seed: int) -> Finding:
        """Compare the exact laws of whole reports."""
        method = must_know(self.scene.release.experiment.settings.name)
        found = method.worst_exactly(self.scene, self.people)
        return Finding(
            self.method,
            self.name,
            "exact",
            self.scene.epsilon,
            found.epsilon,
            found.kept,
            f"{len(self.people)} people; {found.how}",
        )


@dataclass(frozen=True, slots=True)
class Randomness:
    """See whether two processes that begin alike send alike, as with a generator that is seeded.

    Two honest processes agree in so many reports with a probability below 2^-100.
    """

    method: str
    pair: Pair
    mechanism: Mechanism
    reports: int = 512

    bounds = 0
    work = 30_000.0

    def find(self, *, error_rate: float, seed: int) -> Finding:
        """Start two processes, and compare what they send."""
        pair = self.pair
        one, other = (
            in_a_new_process(self.mechanism, pair.scene, pair.one, reports=self.reports)
            for _ in range(2)
        )
        # Whoever always sends the same has no noise that could repeat.
        same = one == other and len(set(one)) > 1
        says = "send the same" if same else "send different reports"
        return Finding(
            self.method,
            "two processes",
            "randomness",
            pair.scene.epsilon,
            float("inf") if same else None,
            not same,
            f"they {says}, {self.reports} each",
            2 * self.reports,
        )


@dataclass(frozen=True, slots=True)
class NoClaim:
    """A method that promises nothing: it is listed, and nothing is looked at."""

    method: str

    bounds = 0
    work = 0.0

    def find(self, *, error_rate: float, seed: int) -> Finding:
        """Say so."""
        return Finding(self.method, "not private", "no claim", None, None, True, "nothing claimed")
