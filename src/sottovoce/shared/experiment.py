"""An experiment: all that is public about it before the first person takes part."""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from sottovoce.shared import check
from sottovoce.shared.amendment import RETIRE_ARM, Amendment, state_after
from sottovoce.shared.baseline import Baseline, checked_baseline
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.durations import duration
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.methods import MethodSettings, settings_from
from sottovoce.shared.reward import RewardScale, reward_scale
from sottovoce.shared.schema import Axis, Feature, feature_from_table, feature_to_table

TARGET = "target"

MOST_FEATURES = 1000
"""How many axes the features may have. A device looks at each, and reports number their questions,
several for each axis, in two bytes."""


@dataclass(frozen=True, slots=True)
class Population:
    """A source of users with its own ε: the target (the paper's Q_0) or an auxiliary one (Q_m).

    Historical and streaming populations are treated alike. ``users`` is the expected number, the
    paper's n_P or n_Qm. It sets constants; more users may come. 0 is for a population that is named
    but not expected.

    behaviour: the probability of each arm in its logged rows, in the order of the experiment's
        arms, if it is known and the same for everyone; otherwise None. Only ``whisper`` uses it:
        without it, half of the reports on logged rows have to count rows.
    """

    name: str
    epsilon: float
    users: int
    behaviour: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check.name(self.name, what="the name of a population")
        what = f"of population {self.name!r}"
        object.__setattr__(self, "epsilon", check.epsilon(self.epsilon, what=f"epsilon {what}"))
        users = check.whole_number(self.users, what=f"users {what}", least=0)
        object.__setattr__(self, "users", users)
        if self.behaviour is not None:
            chances = check.propensities(self.behaviour, what=f"behaviour {what}")
            object.__setattr__(self, "behaviour", chances)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Arms, context schema, populations with their ε, method and its settings.

    arms: the options, at least two.
    context: the features, each with one or two axes of [0, 1]^d.
    epsilon: the privacy budget of one report of a target user.
    horizon: how many target users are expected.
    auxiliary: other populations that help with their own data under their own ε.
    release_every: how many reports the learner takes in between two steps.
    seed: fixes the public random choices (which longest edge is split), so that a replay is
        identical. No privacy noise depends on it.
    reward: how rewards are counted: the lowest and the highest, such as (0, 60), or "yes/no".
        Without it, they are numbers in [0, 1].
    reward_window: how long after a choice its reward may come, such as "7 days". Every report is
        sent after this time, whether or not there was a reward. Without it, a reward is there at
        once or never.
    baseline: what the policy is compared with, and for how many people: a ``Baseline``, or its
        table, such as {"arm": "control", "share": 0.1}. Without it, the gain is not measured.
    first, amendments: of an experiment that was amended, its first form and what was amended since
        (``amendment.py``). The other fields then say what holds now; retired arms stay in ``arms``.
    """

    arms: Sequence[str]
    context: Sequence[Feature]
    epsilon: float
    horizon: int = 100_000
    auxiliary: Sequence[Population] = ()
    method: MethodSettings | str = "whisper"
    release_every: int = 100
    seed: int = 0
    name: str = "experiment"
    reward: Sequence[float] | str | None = None
    reward_window: str | None = None
    baseline: Baseline | Mapping[str, Any] | None = None
    first: "Experiment | None" = None
    amendments: tuple[Amendment, ...] = ()

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("arms", check.distinct_names(self.arms, what="arms", least=2))
        rule = "hold Numeric, Ordinal, Categorical or Boolean features"
        put("context", check.items(self.context, Feature, what="context", rule=rule))
        names = [feature.name for feature in self.context]
        check.distinct_names(names, what="context features", least=1)
        if self.dimension > MOST_FEATURES:
            rule = f"have at most {MOST_FEATURES} axes"
            raise ExperimentError(must("context", rule, self.dimension))
        # A feature may have the name that another one's second axis has.
        check.distinct_names([axis.name for axis in self.axes], what="axes of the context", least=1)
        rule = "hold Populations"
        put("auxiliary", check.items(self.auxiliary, Population, what="auxiliary", rule=rule))
        for population in self.auxiliary:
            if population.behaviour is not None and len(population.behaviour) != len(self.arms):
                what = f"behaviour of population {population.name!r}"
                rule = f"have one chance for each of {len(self.arms)} arms"
                raise ExperimentError(must(what, rule, len(population.behaviour)))
        put("epsilon", check.epsilon(self.epsilon))
        put("horizon", check.whole_number(self.horizon, what="horizon", least=1))
        names = [population.name for population in self.populations]
        check.distinct_names(names, what="populations", least=1)
        put("method", settings_from(self.method))
        put("baseline", checked_baseline(self.baseline, self))
        self.settings.check_experiment(self)
        put("release_every", check.whole_number(self.release_every, what="release_every", least=1))
        put("seed", check.whole_number(self.seed, what="seed", least=0))
        check.name(self.name, what="name")
        scale = self.rewards
        if scale.clamps:
            put("reward", (scale.low, scale.high))
        if self.reward_window is not None:
            duration(self.reward_window, what="reward_window")

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of all features, in their order: what the coordinates of a context mean."""
        return tuple(axis for feature in self.context for axis in feature.axes)

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return len(self.axes)

    @cached_property
    def populations(self) -> tuple[Population, ...]:
        """The target first, then the auxiliary ones: the paper's Q_0, Q_1, …, Q_M."""
        return (Population(TARGET, self.epsilon, self.horizon), *self.auxiliary)

    @cached_property
    def settings(self) -> MethodSettings:
        """The settings of the method, also where it was given by name."""
        return settings_from(self.method)

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """A cache for what a method computes from this experiment."""
        return {}

    @cached_property
    def rewards(self) -> RewardScale:
        """How rewards are counted."""
        return reward_scale(self.reward)

    @property
    def first_form(self) -> "Experiment":
        """The experiment as it was before any amendment."""
        return self.first or self

    @cached_property
    def retired(self) -> frozenset[int]:
        """The arms that were retired, by their numbers."""
        gone = {each.arm for each in self.amendments if each.kind == RETIRE_ARM}
        return frozenset(k for k, arm in enumerate(self.arms) if arm in gone)

    @cached_property
    def caps(self) -> dict[int, float]:
        """How many of a bin's people may get an arm while it is compared, where that is capped."""
        limits = {each.arm: each.cap for each in self.amendments if each.cap is not None}
        return {k: limits[arm] for k, arm in enumerate(self.arms) if arm in limits}

    @cached_property
    def state(self) -> str:
        """Whether it is running, paused, stopped or archived."""
        return state_after(self.amendments)

    @cached_property
    def window(self) -> timedelta | None:
        """How long after a choice its reward may come; None if it is there at once or never."""
        if self.reward_window is None:
            return None
        return duration(self.reward_window, what="reward_window")

    @property
    def compared_with(self) -> Baseline | None:
        """The baseline; None without one."""
        return self.baseline if isinstance(self.baseline, Baseline) else None

    @property
    def audited(self) -> bool:
        """Whether some of the target's people may be asked for their reward, for an audit."""
        return self.settings.most_reward_share(self) > 0

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of all public settings of its first form, as 64 hexadecimal digits.

        Devices, ledgers and journals pin the whole of it: two experiments with the same first
        digits are found within minutes.
        """
        return hashlib.sha256(canonical_json(self.to_table())).hexdigest()

    @property
    def short(self) -> str:
        """The first 16 digits of the fingerprint, for people to read. Nothing is decided by it."""
        return self.fingerprint[:16]

    def population_index(self, name: str) -> int:
        """Return the index of a population, the paper's m."""
        names = [population.name for population in self.populations]
        if name not in names:
            raise ExperimentError(must("population", f"be one of {names}", repr(name)))
        return names.index(name)

    def to_table(self) -> dict[str, Any]:
        """Write the first form as ``from_table`` reads it: the keys are those of a TOML file."""
        if self.first is not None:
            return self.first.to_table()
        return {
            "name": self.name,
            "arms": list(self.arms),
            "context": [feature_to_table(feature) for feature in self.context],
            "epsilon": self.epsilon,
            "horizon": self.horizon,
            "auxiliary": [_population_to_table(each) for each in self.auxiliary],
            "method": self.settings.to_table(),
            "release_every": self.release_every,
            "seed": self.seed,
            # Left out where it is not set: experiments of before keep their fingerprint.
            **({"reward": _reward_to_table(self.reward)} if self.reward is not None else {}),
            **({"reward_window": self.reward_window} if self.reward_window is not None else {}),
            **({"baseline": self.compared_with.to_table()} if self.compared_with else {}),
        }

    @classmethod
    def from_table(cls, table: Any) -> "Experiment":
        """Read what ``to_table`` wrote, or a TOML file's table."""
        known = {field.name for field in fields(cls)} - {"first", "amendments"}
        entries = dict(check.known_keys(table, what="an experiment", known=known))
        if missing := sorted({"arms", "context", "epsilon"} - entries.keys()):
            raise ExperimentError(
                f"an experiment must have arms, context, epsilon; it lacks {missing}"
            )
        for name in ("context", "auxiliary"):
            if not isinstance(entries.get(name, []), list):
                raise ExperimentError(must(name, "be a list of tables", repr(entries[name])))
        entries["context"] = [feature_from_table(entry) for entry in entries["context"]]
        entries["auxiliary"] = [_population(entry) for entry in entries.get("auxiliary", [])]
        return cls(**entries)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> "Experiment":
        """Read an experiment from a TOML file."""
        try:
            table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ExperimentError(f"{path} must be a readable TOML file; {error}") from error
        return cls.from_table(table)


def _reward_to_table(reward: Sequence[float] | str) -> Any:
    return reward if isinstance(reward, str) else list(reward)


def _population(entry: Any) -> Population:
    needed = {"name", "epsilon", "users"}
    table = check.known_keys(entry, what="an auxiliary population", known={*needed, "behaviour"})
    if missing := sorted(needed - table.keys()):
        raise ExperimentError(
            f"an auxiliary population must have name, epsilon and users; it lacks {missing}"
        )
    return Population(**table)


def _population_to_table(population: Population) -> dict[str, Any]:
    table = {"name": population.name, "epsilon": population.epsilon, "users": population.users}
    if population.behaviour is None:
        return table
    return {**table, "behaviour": list(population.behaviour)}
