"""Tasks for sweeps, importable by worker processes."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np


def toss(setting: Mapping[str, Any], seed: int) -> dict[str, float]:
    """A number that depends on the setting and the seed alone."""
    return {"value": float(np.random.default_rng(seed).normal(setting["mean"]))}


def slow_toss(setting: Mapping[str, Any], seed: int) -> dict[str, float]:
    time.sleep(0.02)
    return toss(setting, seed)
