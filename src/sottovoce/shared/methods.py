"""The registry of methods: what a method is called, and where its parts are.

A method is a unit. It has a folder of its own name in each room that it needs, and one entry here.
Nothing outside of these folders asks which method it is.

    shared/<name>    settings and mechanism, on which both sides agree    ``MethodSettings``
    device/<name>    draws an arm, and privatises an outcome              ``device/method.py``
    estimate/<name>  turns reports into releases                          ``estimate/method.py``
    lab/<name>       simulates many devices and the learner at once       ``lab/driver.py``

A room's part is loaded when it is first asked for. So a device needs no NumPy, and a server can
run where the device's code cannot be imported.
"""

from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sottovoce.shared.check import known_keys
from sottovoce.shared.errors import ExperimentError, malformed, must

if TYPE_CHECKING:
    from sottovoce.shared.experiment import Experiment
    from sottovoce.shared.release import Release

Room = Literal["shared", "device", "estimate", "lab"]

_MODULES: dict[str, str] = {}
"""Of each method, the name of its modules, with {room} in place of the room."""


def register(name: str, *, modules: str = "sottovoce.{room}.{name}") -> None:
    """Add a method, whose parts are in the modules of that name."""
    _MODULES[name] = modules
    method_part.cache_clear()


def unregister(name: str) -> None:
    """Remove a method."""
    del _MODULES[name]
    method_part.cache_clear()


def method_names() -> list[str]:
    """Return the names of all methods, in the order in which they were registered."""
    return list(_MODULES)


@cache
def method_part(name: str, room: Room) -> Any:
    """Return the module of a method in a room."""
    return import_module(_MODULES[name].format(room=room, name=name))


@dataclass(frozen=True, slots=True)
class MethodSettings:
    """The public settings of a method. Their fields are keys of an experiment's file.

    The method's module in ``shared`` names its own settings ``SETTINGS``. They override what is
    different for the method.

    name: the name of the method in the registry.
    """

    name: ClassVar[str]

    def check_experiment(self, experiment: "Experiment") -> None:
        """Refuse an experiment that the method cannot run."""

    def check_release(self, release: "Release") -> None:
        """Refuse a release that the method's learner would never publish."""
        if release.ask or release.thresholds or release.scale_share or release.partition.scales:
            what = "a release's ask, scales, thresholds and scale_share"
            raise malformed(what, "be left out for this method", "some")

    def most_reward_share(self, experiment: "Experiment") -> int:
        """Return the largest ``reward_share`` of a release; 0 where nobody is asked so."""
        return 0

    def levels_in_sets(self, experiment: "Experiment") -> tuple[int, ...]:
        """Return how many levels each axis has that is split into sets; 0 for midpoints."""
        return (0,) * experiment.dimension

    def expected_share(self, experiment: "Experiment") -> float | None:
        """Return which share of what random arms lose people will lose; None if nobody knows."""
        return None

    def expected_loss(self, experiment: "Experiment", *, effect: float) -> float | None:
        """Return the same where a person's best arm brings ``effect`` more than the next best.

        effect: as a share of the range of rewards.
        """
        return None

    @property
    def measures_gain(self) -> bool:
        """Whether an experiment may have a baseline: reports must be able to name a group."""
        return False

    @property
    def arms_are_public(self) -> bool:
        """Whether the arm of each person is public, which is weaker privacy."""
        return False

    @property
    def promise(self) -> str:
        """What is promised of each report."""
        public = "ε-LDP in context and outcome (its arm is public)"
        return public if self.arms_are_public else "ε-LDP"

    @property
    def summary(self) -> str:
        """The method in a few words, for people."""
        return self.name

    @property
    def decision_rule(self) -> str:
        """When an arm is dropped, in a sentence, for people."""
        return ""

    def to_table(self) -> dict[str, Any]:
        """Write the settings as ``settings_from`` reads them."""
        settings = {key: value for key, value in asdict(self).items() if value is not None}
        return {"name": self.name, **settings}


def settings_from(value: Any) -> MethodSettings:
    """Accept settings, the name of a method, or a table with its name and settings."""
    if isinstance(value, MethodSettings):
        return value
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, dict):
        raise ExperimentError(must("method", "be a table", type(value).__name__))
    name = value.get("name")
    if not isinstance(name, str) or name not in _MODULES:
        rule = f"be one of {method_names()}"
        raise ExperimentError(must("the method's name", rule, repr(name)))
    kind: type[MethodSettings] = method_part(name, "shared").SETTINGS
    settings = {key: value[key] for key in value if key != "name"}
    known_keys(settings, what=f"method {name}", known={field.name for field in fields(kind)})
    return kind(**settings)


register("whisper")
register("ldpmab")
