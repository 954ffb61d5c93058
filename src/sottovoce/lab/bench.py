"""How fast the lab is: users a second, for each method and size."""

import time
from dataclasses import dataclass

from sottovoce.lab.environments import Exponential
from sottovoce.lab.simulate import simulate

METHODS = ["ldpmab"]


@dataclass(frozen=True, slots=True)
class Speed:
    """Users a second of whole calls of ``simulate``, drawing the people included."""

    method: str
    release_every: int
    epsilon: float
    n: int
    calls: int
    median: float
    best: float


def measure_speed(*, seconds: float = 1.0) -> list[Speed]:
    """Measure each combination for about ``seconds``, on one core."""
    environment = Exponential()
    simulate(environment, epsilon=1, n=1000, seed=0)  # compiles, or loads what was compiled
    speeds = []
    for method in METHODS:
        for release_every in (100, 1):
            for epsilon in (1.0, 1024.0):
                for n in (20_000, 160_000):
                    rates: list[float] = []
                    begun = time.perf_counter()
                    while len(rates) < 3 or time.perf_counter() - begun < seconds:
                        start = time.perf_counter()
                        simulate(
                            environment,
                            method=method,
                            epsilon=epsilon,
                            n=n,
                            seed=len(rates),
                            release_every=release_every,
                        )
                        rates.append(n / (time.perf_counter() - start))
                    rates.sort()
                    median, best = rates[len(rates) // 2], rates[-1]
                    speeds.append(
                        Speed(method, release_every, epsilon, n, len(rates), median, best)
                    )
    return speeds
