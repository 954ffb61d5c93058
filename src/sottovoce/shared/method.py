"""The settings of a learning method, part of the public experiment.

``Whisper`` is this project's own and the default. ``Ldpmab`` is the paper's Algorithms 2 and 3; its
two presets differ in constants only, and ``docs/explanation/presets.md`` says which is useful when.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sottovoce.shared.check import finite_float, known_keys
from sottovoce.shared.errors import ExperimentError, must

Preset = Literal["authors", "paper"]
Guarantee = Literal["regret", "certified"]


@dataclass(frozen=True, slots=True)
class Ldpmab:
    """Arm elimination with the Laplace mechanism (the paper's Algorithms 2 and 3).

    preset: ``paper`` as printed, ``authors`` as the authors' experiments ran.
    c: the constant of C_n = c·log n, the width of every confidence bound; None takes the
       preset's own (1 for ``paper``; 2/ln 2 for ``authors``, whose C_n is 2·log2 n).
    """

    preset: Preset = "authors"
    c: float | None = None

    def __post_init__(self) -> None:
        if self.preset not in ("authors", "paper"):
            rule = "be 'authors' or 'paper'"
            raise ExperimentError(must("the preset of ldpmab", rule, repr(self.preset)))
        if self.c is not None:
            number = finite_float(self.c)
            if number is None or number <= 0:
                raise ExperimentError(must("c of ldpmab", "be finite and > 0", repr(self.c)))
            object.__setattr__(self, "c", number)

    @property
    def summary(self) -> str:
        """The method in a few words, for people."""
        return f"ldpmab, preset {self.preset}"

    @property
    def promise(self) -> str:
        """What is promised of each report."""
        return "ε-LDP"

    @property
    def has_weaker_privacy(self) -> bool:
        """Whether a report tells something openly."""
        return False

    @property
    def decision_rule(self) -> str:
        """When an arm is dropped, in a sentence."""
        return "An arm is dropped when its interval lies below that of a better one."


@dataclass(frozen=True, slots=True)
class Whisper:
    """Signed subset selection and contrasts inside a bin (docs/explanation/whisper.md).

    guarantee: ``regret``, the default, drops an arm when keeping it costs more than losing it
        would. ``certified`` waits for proof besides: with probability at least 1 - delta no arm
        that is best on average in its bin is ever dropped, whenever one looks.
    delta: the chance of error of ``certified``; without effect otherwise.
    public_arms: WEAKER PRIVACY. The arm that each person gets is public. What stays private is the
        context and the outcome: the report is ε-LDP in those, and no longer in the arm.
    """

    guarantee: Guarantee = "regret"
    delta: float = 0.05
    public_arms: bool = False

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
        if self.public_arms and self.guarantee == "certified":
            raise ExperimentError(
                "whisper must have private arms for its certified guarantee; got public_arms too"
            )

    @property
    def summary(self) -> str:
        """The method in a few words, for people."""
        if self.public_arms:
            return "whisper with public arms: weaker privacy"
        if self.guarantee == "certified":
            return f"whisper, arms dropped with proof, δ = {self.delta:g}"
        return "whisper"

    @property
    def promise(self) -> str:
        """What is promised of each report."""
        if self.public_arms:
            return "ε-LDP in context and outcome (its arm is public)"
        return "ε-LDP"

    @property
    def has_weaker_privacy(self) -> bool:
        """Whether a report tells something openly: the arm."""
        return self.public_arms

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


Method = Ldpmab | Whisper
_METHODS: dict[str, type[Ldpmab] | type[Whisper]] = {"whisper": Whisper, "ldpmab": Ldpmab}


def method_from(value: Any) -> Method:
    """Accept a method, its name, or its table."""
    if isinstance(value, Ldpmab | Whisper):
        return value
    if isinstance(value, str):
        value = {"name": value}
    fields = {field for kind in _METHODS.values() for field in kind.__dataclass_fields__}
    table = known_keys(value, what="method", known={"name", *fields})
    name = table.get("name")
    if not isinstance(name, str) or name not in _METHODS:
        raise ExperimentError(must("the method's name", f"be one of {[*_METHODS]}", repr(name)))
    kind = _METHODS[name]
    settings = {key: table[key] for key in table if key != "name"}
    known_keys(settings, what=f"method {name}", known={*kind.__dataclass_fields__})
    return kind(**settings)


def method_to_table(method: Method) -> dict[str, Any]:
    """Write a method as ``method_from`` reads it."""
    (name,) = (name for name, kind in _METHODS.items() if isinstance(method, kind))
    settings = {key: value for key, value in asdict(method).items() if value is not None}
    return {"name": name, **settings}
