"""An experiment → the numbers that the rules need: C_n, warm-up, τ_s, the depth cap.

The two presets side by side (n_m users of population m with ε_m, M auxiliary populations):

                    paper                        authors
    n               max n_m                      max n_m·min(1, ε_m)²
    C_n             c·ln n                       c·ln n, c = 2/ln 2: 2·log2 n
    warm-up         ln² n users                  ⌊log2 n⌋² users
    τ_s             2√d·2^(-s/d)                 2^(-s/d)
    band            2r                           max(r, τ_s)
    split when      some arm has r < τ_s         all arms have r < τ_s
    depth           no limit                     the cap of ``_depth_cap``
    policy          uniform over live arms       tilted to the better ones
    estimates       as they are                  clipped to [0, 1]
    sums            Σλ·ΣṼ                        added up again at every step
"""

import math
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.shared.amendment import RUNNING
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.ldpmab import Ldpmab
from sottovoce.shared.partition import HALVINGS, MOST_DEPTH


class Constants(NamedTuple):
    """What the rules need to know of an experiment; a plain tuple, so that it compiles."""

    arms: int
    dimension: int
    epsilons: NDArray[np.float64]
    confidence: float
    warm_up: float
    taus: NDArray[np.float64]  # (deepest + 1,) τ_s for each depth
    band_radius: float
    band_tau: float
    split_when_all: bool
    deepest: int
    tilt: float
    clip: bool
    running_sums: bool
    retired: NDArray[np.bool_]  # (K,) arms that nobody gets any more
    running: bool  # whether the learner decides anything


@lru_cache(maxsize=64)
def constants(experiment: Experiment) -> Constants:
    """Work out the constants of an experiment."""
    settings = cast(Ldpmab, experiment.settings)
    populations = experiment.populations
    epsilons = np.array([population.epsilon for population in populations])
    d = experiment.dimension
    paper = settings.preset == "paper"
    if paper:
        log_n = math.log(max(2, *(each.users for each in populations)))
        c, warm_up, deepest = 1.0, log_n**2, min(HALVINGS * d, MOST_DEPTH)
    else:
        effective = max(2.0, *(each.users * min(1.0, each.epsilon) ** 2 for each in populations))
        log_n = math.log(effective)
        c, warm_up = 2 / math.log(2), float(math.floor(math.log2(effective)) ** 2)
        deepest = min(_depth_cap(populations, dimension=d), HALVINGS * d, MOST_DEPTH)
    return Constants(
        arms=len(experiment.arms),
        epsilons=epsilons,
        confidence=(c if settings.c is None else settings.c) * log_n,
        warm_up=warm_up,
        dimension=d,
        # τ_s, the surrogate for the approximation error (eq. choiceoftaus).
        taus=(2 * math.sqrt(d) if paper else 1.0) * 2.0 ** (-np.arange(deepest + 1) / d),
        band_radius=2.0 if paper else 1.0,
        band_tau=0.0 if paper else 1.0,
        split_when_all=not paper,
        deepest=deepest,
        tilt=0.0 if paper else 1.2,
        clip=not paper,
        running_sums=not paper,
        retired=np.isin(np.arange(len(experiment.arms)), list(experiment.retired)),
        running=experiment.state == RUNNING,
    )


def _depth_cap(populations: tuple[Population, ...], *, dimension: int) -> int:
    """Return ⌊max_m min{log2(2n(M+1))·d/(2+d), log2(2nε²(M+1))·d/(2+2d)}⌋, at least 0."""
    d = dimension
    depths = []
    for population in populations:
        if population.users == 0:
            continue
        users = 2 * population.users * len(populations)
        plain = math.log2(users) * d / (2 + d)
        private = math.log2(users * population.epsilon**2) * d / (2 + 2 * d)
        depths.append(min(plain, private))
    return max(0, int(max(depths)))
