"""``whisper``, this project's method: its settings, and which experiments and releases fit."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import ExperimentError, malformed, must
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.whisper.caps import NO_CAP, caps_of, needs_uncapped_rival, share_of
from sottovoce.shared.whisper.thresholds import THRESHOLDS
from sottovoce.shared.whisper.tuning import ASK, SHARES

if TYPE_CHECKING:
    from sottovoce.shared.experiment import Experiment
    from sottovoce.shared.release import Release


@dataclass(frozen=True, slots=True)
class Whisper(MethodSettings):
    """Signed subset selection and contrasts inside a bin (docs/explanation/whisper.md).

    guarantee: ``regret``, the default, drops an arm when keeping it costs more than losing it
        would. ``certified`` also waits for proof: with probability at least 1 - delta it never
        drops an arm that is best on average in its bin.
    delta: the probability of an error of ``certified``; it has no effect otherwise.
    half_life: after so many people half of what was learned has faded, for a world that changes.
        Without it nothing fades.
    public_arms: WEAKER PRIVACY. The arm of each person is public. The report is ε-LDP in the
        context and the outcome, but not in the arm.
    """

    name: ClassVar[str] = "whisper"

    guarantee: Literal["regret", "certified"] = "regret"
    delta: float = 0.05
    public_arms: bool = False
    half_life: int | None = None

    def __post_init__(self) -> None:
        if self.guarantee not in ("regret", "certified"):
            rule = "be 'regret' or 'certified'"
            raise ExperimentError(must("the guarantee of whisper", rule, repr(self.guarantee)))
        delta = finite_float(self.delta)
        if delta is None or not 0 < delta < 1:
            raise ExperimentError(must("delta of whisper", "lie in (0, 1)", repr(self.delta)))
        object.__setattr__(self, "delta", delta)
        if type(self.public_arms) is not bool:
            came = repr(self.public_arms)
            raise ExperimentError(must("public_arms of whisper", "be true or false", came))
        if self.half_life is not None and (type(self.half_life) is not int or self.half_life < 1):
            rule = "be a whole number of people, at least 1"
            raise ExperimentError(must("half_life of whisper", rule, repr(self.half_life)))
        if self.half_life is not None and self.guarantee == "certified":
            rule = "learn for good where it is certified: a proof does not fade"
            raise ExperimentError(must("whisper", rule, "a half_life too"))
        if self.public_arms and self.guarantee == "certified":
            rule = "have private arms for its certified guarantee"
            raise ExperimentError(must("whisper", rule, "public_arms too"))

    def check_experiment(self, experiment: "Experiment") -> None:
        """Refuse more public arms than a report can rank, and more questions than it can number.

        A cap on an arm needs private arms: where they are public, each ranking is as likely as any
        other, and so is each arm.
        """
        from sottovoce.shared.whisper.questions import most_questions

        if most_questions(experiment) > 2**16:
            rule = "have fewer features, or fewer levels without order: "
            rule += "reports number their questions in two bytes"
            raise ExperimentError(must("the context", rule, most_questions(experiment)))
        if self.public_arms and len(experiment.arms) > 255:
            rule = "be at most 255 where they are public: a report ranks them in bytes"
            raise ExperimentError(must("arms", rule, len(experiment.arms)))
        if self.public_arms and experiment.caps:
            rule = "have no cap where arms are public: people get each live arm equally often"
            raise ExperimentError(must("an added arm", rule, "one"))

    def check_release(self, release: "Release") -> None:
        """Refuse other chances, more than two arms where they are private, and wrong shares."""
        caps, public = caps_of(release.experiment), self.public_arms
        for policy in release.bins:
            chances = [1 / len(policy.arms)] * len(policy.arms)
            if len(policy.arms) == 2 and not public:
                first, second = policy.arms
                chances = [share_of(caps, first, second), share_of(caps, second, first)]
                live = [arm in policy.live for arm in range(len(caps))]
                both = max(caps[first], caps[second]) < NO_CAP
                if both and needs_uncapped_rival(live, caps, first):
                    rule = "not offer two capped arms while one without a cap is live"
                    raise malformed(f"bin {policy.path!r}", rule, "two")
            equal = list(policy.propensities) == chances
            if not equal or (not public and len(policy.arms) > 2) or (public and policy.waiting):
                rule = "offer all live arms" if public else "offer at most two arms"
                rule += ", with equal chances"
                rule += ", or as the cap of one says" if release.experiment.caps else ""
                raise malformed(f"bin {policy.path!r}", rule, "something else")

        ask, axes = release.ask, release.experiment.dimension
        if len(ask) != 1 + axes or min(ask) < 0 or sum(ask) != ASK or not any(ask[1:]):
            rule = f"share {ASK} people between no axis and each of {axes} axes, not all to none"
            raise malformed("a release's ask", rule, "something else")

        asked, share = release.thresholds, release.scale_share
        numbers = [axis.levels == 0 for axis in release.experiment.axes]
        fits = len(asked) == (axes if share else 0) and all(
            0 <= each <= (len(THRESHOLDS) if number else 0)
            for each, number in zip(asked, numbers, strict=False)
        )
        if not fits or not 0 <= share <= SHARES or any(asked) != bool(share):
            rule = f"ask up to {SHARES} people about thresholds of numbers, if about any"
            raise malformed("a release's thresholds and scale_share", rule, "something else")

    def levels_in_sets(self, experiment: "Experiment") -> tuple[int, ...]:
        """Split axes whose levels have no order into sets of levels."""
        return tuple(0 if axis.ordered else axis.levels for axis in experiment.axes)

    def most_reward_share(self, experiment: "Experiment") -> int:
        """Let people be asked for their rewards where others or the past promise some."""
        return SHARES if experiment.auxiliary or self.half_life else 0

    def expected_share(self, experiment: "Experiment") -> float | None:
        """Return which share of what random arms lose people will lose, by a rule of thumb."""
        from sottovoce.shared.whisper.outlook import expected_share

        return expected_share(experiment)

    def expected_loss(self, experiment: "Experiment", *, effect: float) -> float | None:
        """Return the same where arms differ by an effect, by a rule of thumb."""
        from sottovoce.shared.whisper.planned import expected_loss

        return expected_loss(experiment, effect=effect)

    @property
    def measures_gain(self) -> bool:
        """Whether an experiment may have a baseline: its groups have questions of their own."""
        return True

    @property
    def arms_are_public(self) -> bool:
        """Whether the arm of each person is public, which is weaker privacy."""
        return self.public_arms

    @property
    def summary(self) -> str:
        """The method in a few words, for people."""
        if self.public_arms:
            return "whisper with public arms: weaker privacy"
        if self.half_life is not None:
            return f"whisper, half of what it learned fades over {self.half_life:,} people"
        if self.guarantee == "certified":
            return f"whisper, arms dropped with proof, δ = {self.delta:g}"
        return "whisper"

    @property
    def decision_rule(self) -> str:
        """When an arm is dropped, in a sentence: the two sides of ≥ in a certificate."""
        if self.guarantee == "certified":
            return (
                "An arm is dropped when the evidence against it, the logarithm of an e-value, "
                "reaches log 1/δ, where δ is this decision's share of the chance of error."
            )
        return (
            "An arm is dropped when its gap to a better arm, times the number of people so far, "
            "reaches the reward that the people to come are expected to lose without it."
        )


SETTINGS = Whisper
