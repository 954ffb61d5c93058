"""How fast the lab and a device are."""

import time
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from sottovoce.device.device import Device
from sottovoce.estimate.learner import Learner
from sottovoce.lab.environments import Exponential
from sottovoce.lab.simulation import simulate
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import uniform
from sottovoce.shared.schema import Numeric
from sottovoce.shared.wire import report_to_bytes

METHODS = ["whisper", "ldpmab"]


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
    speeds = []
    for method in METHODS:
        simulate(environment, method=method, epsilon=1, n=1000, seed=0)  # compiles, or loads
        for release_every, epsilon, n in product((100, 1), (1.0, 1024.0), (20_000, 160_000)):
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
            speeds.append(Speed(method, release_every, epsilon, n, len(rates), median, best))
    return speeds


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """Microseconds that a device takes to choose an arm and to report, and bytes of the report."""

    method: str
    epsilon: float
    bins: int
    calls: int
    median: float
    best: float
    bytes: int


def measure_devices(*, seconds: float = 1.0) -> list[DeviceSpeed]:
    """Measure ``whisper`` with 200 contested bins of two features, a fresh device each time."""
    return [_measure_device(epsilon, seconds=seconds) for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]


def _measure_device(epsilon: float, *, seconds: float, count: int = 200) -> DeviceSpeed:
    experiment = Experiment(
        arms=["control", "reminder", "coach"],
        context=[Numeric("age", 18, 90), Numeric("bmi", 15, 45)],
        epsilon=epsilon,
    )
    partition = Partition(2)
    while len(leaves := list(partition.leaves())) < count:
        shortest = min(leaves, key=len)
        partition = partition.cut(shortest, axis=len(shortest) % 2)
    bins = tuple(uniform(path, [0, 1]) for path in leaves)
    release = replace(Learner(experiment).release(), partition=partition, bins=bins)
    rng = np.random.default_rng(0)
    times: list[float] = []
    size = 0
    begun = time.perf_counter()
    while len(times) < 100 or time.perf_counter() - begun < seconds:
        context = {"age": rng.uniform(18, 90), "bmi": rng.uniform(15, 45)}
        start = time.perf_counter()
        device = Device(release)
        device.choose(context)
        report = device.report(reward=1.0)
        times.append(1e6 * (time.perf_counter() - start))
        size = len(report_to_bytes(report))
    times.sort()
    return DeviceSpeed(
        "whisper", epsilon, count, len(times), times[len(times) // 2], times[0], size
    )
