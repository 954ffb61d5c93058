"""Raw features to a point of [0, 1]^d, by the public schema."""

from collections.abc import Mapping
from typing import Any

from sottovoce.shared.errors import ContextError, must
from sottovoce.shared.experiment import Experiment


def encode(experiment: Experiment, context: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the paper's X: each feature of the schema on its axes.

    A feature that is optional in the schema may be absent: it is then missing.
    """
    if not isinstance(context, Mapping):
        raise ContextError(must("a context", "map feature names to values", type(context).__name__))
    features = experiment.context
    lacking = [each.name for each in features if not each.optional and each.name not in context]
    # The names of unknown features are not shown: they come from raw data.
    unknown = len(context.keys() - {feature.name for feature in features})
    if lacking or unknown:
        raise ContextError(_lacks(experiment, lacking, unknown))
    return tuple(
        position
        for feature in features
        for position in feature.positions(context.get(feature.name))
    )


def _lacks(experiment: Experiment, lacking: list[str], unknown: int) -> str:
    needed = [feature.name for feature in experiment.context if not feature.optional]
    optional = [feature.name for feature in experiment.context if feature.optional]
    may = f", may have {optional}" if optional else ""
    lacks = f"it lacks {lacking}" if lacking else "it lacks none"
    return (
        f"a context must have the features {needed}{may} and no other; {lacks}"
        f" and has {unknown} unknown"
    )
