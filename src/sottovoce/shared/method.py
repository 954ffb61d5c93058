"""The settings of a learning method, part of the public experiment.

``Ldpmab`` is the paper's Algorithms 2 and 3. Its two presets differ in constants only; the
privacy mechanism, and with it the noise, is the same. ``docs/explanation/presets.md`` says which
preset is useful at which number of users.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sottovoce.shared.check import finite_float, known_keys
from sottovoce.shared.errors import ExperimentError, must

Preset = Literal["authors", "paper"]


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


Method = Ldpmab


def method_from(value: Any) -> Method:
    """Accept a method, its name, or its table."""
    if isinstance(value, Ldpmab):
        return value
    if isinstance(value, str):
        value = {"name": value}
    table = known_keys(value, what="method", known={"name", "preset", "c"})
    if table.get("name") != "ldpmab":
        raise ExperimentError(must("the method's name", "be 'ldpmab'", repr(table.get("name"))))
    return Ldpmab(**{key: table[key] for key in table if key != "name"})


def method_to_table(method: Method) -> dict[str, Any]:
    """Write a method as ``method_from`` reads it."""
    settings = {key: value for key, value in asdict(method).items() if value is not None}
    return {"name": "ldpmab", **settings}
