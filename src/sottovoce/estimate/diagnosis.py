"""Does auxiliary data help? What can be said of it from reports alone, before and during its use.

Two things can go wrong. It may tell little: few rows, a small ε, other places than those where the
target's people are, arms that were hardly ever tried. Or it may mislead: the same context means
something else there. The first shows in its own reports. The second shows in the outcomes of the
target's people, some of whom are asked nothing else: what others promise is then not delivered.
"""

from dataclasses import dataclass, replace

from sottovoce.shared.reward import RewardScale
from sottovoce.shared.whisper.tuning import AUDIT_ERRORS, AUDIT_LEAST


@dataclass(frozen=True, slots=True)
class Audit:
    """Rewards of the target's people under the policies they had, by those who were asked.

    delivered: their mean reward, give or take ``standard_error``, the noise of their reports.
    promised: what the learner expected of these policies when they were in force.
    at_random: what it expects of arms at random; what a policy promises beyond is its gain.
    """

    answers: int
    delivered: float
    promised: float
    at_random: float
    standard_error: float

    @property
    def doubt(self) -> float:
        """How many standard errors delivery is above half of the promised gain."""
        half = self.at_random + (self.promised - self.at_random) / 2
        return (self.delivered - half) / self.standard_error if self.answers else 0.0

    @property
    def falls_short(self) -> bool:
        """Whether less than half of the promised gain is delivered, beyond the noise."""
        return self.answers >= AUDIT_LEAST and self.doubt <= -AUDIT_ERRORS

    @property
    def holds(self) -> bool:
        """Whether more than half of the promised gain is delivered, beyond the noise."""
        return self.answers >= AUDIT_LEAST and self.doubt >= AUDIT_ERRORS


@dataclass(frozen=True, slots=True)
class Source:
    """What an auxiliary population brings.

    reports: how many have come; ``expected`` how many were announced.
    worth: how many reports of target users say as much as one of its rows, when two arms are
        compared: less than 1 for a smaller ε, and because rows have arms that nobody asked for.
    exploration: K times the share of the arm that its rows have least often: 1 if all arms are
        alike, 0 if one is missing, and nothing can be learned of it (the paper's κ). Where the
        behaviour is not known it is estimated, and leans towards 1 while few rows have come; None
        before the first.
    overlap: the share of people that it has in common with the target, bin by bin: 1 if they are
        in the same places. None before the first report.
    promises: what its rows alone promise for the policy of now, beyond arms at random.
    harmful: the target's people get less than half of what was promised, and it is this population
        that promises so much.
    """

    population: str
    epsilon: float
    reports: int
    expected: int
    worth: float
    exploration: float | None
    overlap: float | None
    promises: float | None
    harmful: bool

    @property
    def effective_users(self) -> float:
        """How many reports of target users would have said as much as its reports so far."""
        return self.reports * self.worth * self._usable

    @property
    def expected_users(self) -> float:
        """The same, of all that were announced: what one knows before the jump-start."""
        return self.expected * self.worth * self._usable

    @property
    def quality(self) -> float:
        """What one row is worth: by this, the best come first."""
        return self.worth * self._usable

    @property
    def _usable(self) -> float:
        """Arms that are seldom tried decide how well arms can be compared.

        With shares a/K and b/K of two arms, the variance of their difference goes with 1/a² + 1/b².
        (In experiments with two arms, whose rows compare them in one cell, it is less for equal
        shares, which ``worth`` knows of, and up to twice as much for very unequal ones.)
        """
        if self.exploration is None:
            return 1.0
        rare, common = self.exploration, 2 - self.exploration
        return 0.0 if rare <= 0 else 2 / (1 / rare**2 + 1 / common**2)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What can be said of the auxiliary populations; ``audit`` is None where nobody is asked."""

    sources: tuple[Source, ...]
    audit: Audit | None

    def counted_as(self, rewards: RewardScale) -> "Diagnosis":
        """Return a diagnosis of outcomes in [0, 1] in the owner's unit."""
        sources = tuple(
            each if each.promises is None else replace(each, promises=rewards.width * each.promises)
            for each in self.sources
        )
        audit = self.audit
        if audit is not None:
            audit = replace(
                audit,
                delivered=rewards.mean(audit.delivered),
                promised=rewards.mean(audit.promised),
                at_random=rewards.mean(audit.at_random),
                standard_error=rewards.width * audit.standard_error,
            )
        return Diagnosis(sources, audit)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an operator should know, in plain sentences."""
        lines = []
        for source in self.sources:
            name = source.population
            if source.harmful and self.audit is not None:
                audit = self.audit
                lines.append(
                    f"{name} seems to mislead: mean reward {audit.delivered:.3f} ±"
                    f" {audit.standard_error:.3f} where {audit.promised:.3f} was promised and arms"
                    f" at random are expected to bring {audit.at_random:.3f}. Go on without it."
                )
            if source.exploration is not None and source.exploration < 0.1:
                lines.append(
                    f"{name} has hardly any rows with one of the arms"
                    f" (exploration {source.exploration:.2f}): it can say little about that arm."
                )
            if source.overlap is not None and source.overlap < 0.25:
                lines.append(
                    f"{name} has its people elsewhere (overlap {source.overlap:.2f}): it says"
                    " little about most of the target's."
                )
        return tuple(lines)

    @property
    def harmful(self) -> tuple[str, ...]:
        """The populations that seem to mislead."""
        return tuple(source.population for source in self.sources if source.harmful)

    def best_first(self) -> tuple[str, ...]:
        """Return the populations in the order in which they should come: by what a row is worth."""
        ordered = sorted(self.sources, key=lambda source: -source.quality)
        return tuple(source.population for source in ordered)
