"""Files with logged rows: a table of anybody's, or the layout of the Open Bandit Dataset.

That layout (Saito, Aihara, Matsutani and Narita, 2021) has ``item_id``, ``position``, ``click``,
``propensity_score`` and ``user_feature_0`` and so on. The item is the arm, the click the reward.
The features are the position and the user's own; the affinities of users and items, the time and
the row number are left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Literal

import numpy as np
from scipy.optimize import minimize

from sottovoce.lab.data.columns import Column, Levels, Numbers, numbers_of, strings
from sottovoce.lab.data.files import File
from sottovoce.lab.environments import Counts, Floats
from sottovoce.lab.logs.log import (
    Log,
    check_propensities,
    design,
    shares_of_arms,
    uniform_propensities,
)
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.reward import RewardScale, reward_scale
from sottovoce.shared.schema import Categorical, Feature, Numeric

Behaviour = Literal["estimated", "shares", "uniform"]

MOST_ARMS = 255
MOST_LEVELS = 64
"""A column of text with more levels is refused: few rows would be left for each."""

OPEN_BANDIT = ("item_id", "click", "propensity_score")
"""The columns by which the layout of the Open Bandit Dataset is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What the columns of a file are.

    features: the columns that devices may use; None for all that are nothing else.
    categorical: columns of numbers that are codes of levels.
    behaviour: where no propensities are given: "estimated" from the features, "shares" if everybody
        had the same chances, "uniform" if all arms had.
    reward_range: what counts as 0 and as 1; None for rewards between 0 and 1.
    """

    arm: str | None = None
    reward: str | None = None
    propensity: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = field(default_factory=tuple)
    behaviour: Behaviour | None = None
    reward_range: tuple[float, float] | None = None

    def for_file(self, file: File) -> "Columns":
        """Return the same with what the Open Bandit Dataset's layout says, if it has that."""
        known = self.arm is None and self.reward is None and set(OPEN_BANDIT) <= set(file.names)
        if not known:
            return self
        own = [name for name in file.names if re.fullmatch(r"user_feature_\d+", name)]
        place = [name for name in ("position",) if name in file.names]
        item, click, chance = OPEN_BANDIT
        return replace(
            self,
            arm=item,
            reward=click,
            propensity=self.propensity or (None if self.behaviour else chance),
            features=self.features or [*place, *own],
            categorical=[*self.categorical, *own],
        )


def read_log(paths: Sequence[str | PathLike[str]], columns: Columns) -> Log:
    """Read the files one after the other as one log."""
    files = [File(path) for path in paths]
    chosen = columns.for_file(files[0])
    if chosen.arm is None or chosen.reward is None:
        rule = f"have --arm and --reward, or the columns {', '.join(OPEN_BANDIT)}"
        raise ExperimentError(must("a log", rule, f"columns {list(files[0].names)}"))
    for file in files:
        needed = [chosen.arm, chosen.reward, *([chosen.propensity] if chosen.propensity else [])]
        file.require(needed, what="the columns of a log")
    named = _features(files[0], chosen)
    for file in files:
        file.require(named, what="features")
    levels = set(chosen.categorical)
    joined = {name: _joined(files, name, levels=name in levels) for name in named}
    arm = strings(_joined(files, chosen.arm, levels=True))
    reward = numbers_of(_joined(files, chosen.reward), chosen.reward)
    _refuse_gaps({chosen.arm: arm, chosen.reward: Numbers(reward)})
    if len(arm.levels) > MOST_ARMS:
        rule = f"have at most {MOST_ARMS} values"
        raise ExperimentError(must(f"column {chosen.arm!r}", rule, len(arm.levels)))
    scale, rewards = _rewards(reward, chosen)
    schema, contexts = _contexts(joined)
    given = None
    if chosen.propensity is not None:
        given = numbers_of(_joined(files, chosen.propensity), chosen.propensity)
        _refuse_gaps({chosen.propensity: Numbers(given)})
        check_propensities(given)
    propensities, source = _propensities(given, chosen.behaviour, arm, contexts, schema)
    log = Log(
        name=files[0].path.name.split(".")[0],
        arms=arm.levels,
        schema=schema,
        contexts=contexts,
        chosen=arm.codes,
        rewards=rewards,
        propensities=propensities,
        source=source,
        scale=scale,
    )
    log.require_arms()
    return log


def range_of(text: str | None) -> tuple[float, float] | None:
    """Read what counts as 0 and as 1, such as 0,60."""
    if text is None:
        return None
    low, comma, high = text.partition(",")
    try:
        if comma:
            return float(low), float(high)
    except ValueError:
        pass
    rule = "be two numbers with a comma, such as 0,60"
    raise ExperimentError(must("reward-range", rule, repr(text)))


def estimated_propensities(
    chosen: Counts, arms: int, contexts: Floats, schema: Sequence[Feature]
) -> Floats:
    """Return the chance of each row's arm by multinomial logistic regression on the features.

    The model is linear in the columns of ``design``; a ridge of 1 keeps it finite.
    """
    columns = design(contexts, schema)
    n, p = columns.shape
    picked = np.zeros((n, arms))
    picked[np.arange(n), chosen] = 1

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(p, arms)
        scores = columns @ weights
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        total = chances.sum(axis=1, keepdims=True)
        likelihood = float((scores[picked > 0] - np.log(total[:, 0])).sum())
        slope = columns.T @ (chances / total - picked) + weights
        return 0.5 * float((weights**2).sum()) - likelihood, slope.ravel()

    found = minimize(loss, np.zeros(p * arms), jac=True, method="L-BFGS-B").x.reshape(p, arms)
    scores = columns @ found
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray((chances / chances.sum(axis=1, keepdims=True))[np.arange(n), chosen])


def _propensities(
    given: Floats | None,
    behaviour: Behaviour | None,
    arm: Levels,
    contexts: Floats,
    schema: Sequence[Feature],
) -> tuple[Floats, str]:
    arms = len(arm.levels)
    if given is not None:
        if behaviour is not None:
            rule = "be left out where propensities are given"
            raise ExperimentError(must("behaviour", rule, repr(behaviour)))
        return given, "given"
    if behaviour == "uniform":
        return uniform_propensities(arm.codes, arms), "taken to be the same for all arms"
    if behaviour == "shares" or not schema:
        return shares_of_arms(arm.codes, arms), "taken to be the arms' shares, for everybody"
    if behaviour not in (None, "estimated"):
        rule = "be estimated, shares or uniform"
        raise ExperimentError(must("behaviour", rule, repr(behaviour)))
    found = estimated_propensities(arm.codes, arms, contexts, schema)
    return found, "estimated from the features"


def _features(file: File, columns: Columns) -> list[str]:
    """Name the columns that become features."""
    file.require(columns.drop, what="drop")
    file.require(columns.categorical, what="categorical")
    taken = {columns.arm, columns.reward, columns.propensity, *columns.drop}
    if columns.features is not None:
        named = list(columns.features)
        if wrong := sorted(set(named) & taken):
            rule = "be no arm, reward or propensity, and not dropped"
            raise ExperimentError(must("features", rule, wrong))
    else:
        # A column without a name is a row number that somebody's index left behind.
        named = [name for name in file.names if name and name not in taken]
    if not named:
        raise ExperimentError(must("the features of a log", "be at least one column", "none"))
    return named


def _joined(files: Sequence[File], name: str, *, levels: bool = False) -> Column:
    """Return a column of all files, one after the other."""
    parts = [file.column(name, levels=levels) for file in files]
    if all(isinstance(part, Numbers) for part in parts):
        return Numbers(np.concatenate([numbers_of(part, name) for part in parts]))
    texts = [strings(part) for part in parts]
    known = tuple(sorted({level for text in texts for level in text.levels}))
    return Levels(np.concatenate([text.codes_in(known) for text in texts]), known)


def _contexts(columns: dict[str, Column]) -> tuple[tuple[Feature, ...], Floats]:
    """Return the features of a schema, and all rows on their axes."""
    schema: list[Feature] = []
    axes: list[Floats] = []
    for name, column in columns.items():
        make = (
            partial(_of_numbers, name) if isinstance(column, Numbers) else partial(_of_levels, name)
        )
        feature, found = make(column)
        schema.append(feature)
        axes.append(found)
    return tuple(schema), np.ascontiguousarray(np.hstack(axes))


def _of_numbers(name: str, column: Numbers) -> tuple[Feature, Floats]:
    """Return a number between the bounds that the rows have, on its axes."""
    gone = column.missing()
    there = column.values[~gone]
    if not len(there) or there.min() == there.max():
        rule = "have at least two values: drop it"
        raise ExperimentError(must(f"column {name!r}", rule, "one" if len(there) else "none"))
    low, high = float(there.min()), float(there.max())
    optional = bool(gone.any())
    at = np.where(gone, 0.0, (np.where(gone, low, column.values) - low) / (high - low))
    parts = [at, np.where(gone, 0.75, 0.25)] if optional else [at]
    return Numeric(name, low, high, optional=optional), np.stack(parts, axis=1)


def _of_levels(name: str, column: Levels) -> tuple[Feature, Floats]:
    """Return levels without an order: a file does not say whether theirs means anything."""
    gone = column.missing()
    if not 2 <= len(column.levels) <= MOST_LEVELS:
        rule = f"have 2 to {MOST_LEVELS} levels: drop it, or join levels"
        raise ExperimentError(must(f"column {name!r}", rule, len(column.levels)))
    optional = bool(gone.any())
    feature: Feature = Categorical(name, column.levels, optional=optional)
    places = len(column.levels) + optional
    codes = np.where(gone, places - 1, column.codes)
    return feature, ((codes + 0.5) / places)[:, np.newaxis]


def _rewards(values: Floats, columns: Columns) -> tuple[RewardScale, Floats]:
    """Return the unit of the rewards, and all of them in [0, 1]."""
    if columns.reward_range is None:
        if values.min() < 0 or values.max() > 1:
            rule = "lie in [0, 1]"
            came = f"{values.min():g} to {values.max():g}"
            hint = "say what counts as 0 and as 1, such as --reward-range 0,60"
            raise ExperimentError(must(f"column {columns.reward!r}", rule, came, hint=hint))
        return RewardScale(), values
    scale = reward_scale(columns.reward_range)
    return scale, np.clip((values - scale.low) / scale.width, 0.0, 1.0)


def _refuse_gaps(columns: dict[str, Column]) -> None:
    for name, column in columns.items():
        if gaps := int(column.missing().sum()):
            rule = "have a value in every row: leave such rows out, and say that you did"
            raise ExperimentError(must(f"column {name!r}", rule, f"{gaps} rows without"))
