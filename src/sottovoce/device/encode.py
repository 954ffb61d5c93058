"""Raw features to a point of [0, 1]^d, by the public schema."""

from collections.abc import Mapping
from typing import Any

from sottovoce.shared.errors import ContextError, must
from sottovoce.shared.experiment import Experiment


def encode(experiment: Experiment, context: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the paper's X: each feature of the schema on its axis."""
    if not isinstance(context, Mapping):
        raise ContextError(must("a context", "map feature names to values", type(context).__name__))
    names = [feature.name for feature in experiment.context]
    missing = [name for name in names if name not in context]
    # The names of unknown features are not shown: they come from raw data.
    unknown = len(context.keys() - set(names))
    if missing or unknown:
        lacks = f"it lacks {missing}" if missing else "it lacks none"
        raise ContextError(
            f"a context must have the features {names} and no other; {lacks}"
            f" and has {unknown} unknown"
        )
    return tuple(feature.position(context[feature.name]) for feature in experiment.context)
