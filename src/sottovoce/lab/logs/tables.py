"""A comparison on a log for scripts."""

import math
from dataclasses import asdict
from typing import Any

from sottovoce.lab.logs.comparison import LogComparison


def as_json(found: LogComparison) -> dict[str, Any]:
    """Write everything as JSON has it; what is not known is null."""
    log = found.log
    return {
        "log": log.name,
        "rows": len(log),
        "arms": list(log.arms),
        "features": [feature.name for feature in log.schema],
        "epsilon": found.epsilon,
        "reps": found.reps,
        "propensities": log.source,
        "clip": found.clip,
        "clipped": found.clipped,
        "best_single_arm": found.best,
        "policies": [_known(asdict(line)) for line in found.lines],
        "warnings": list(found.warnings),
    }


def _known(value: Any) -> Any:
    """Replace numbers that are none by None."""
    if isinstance(value, dict):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
