"""The noise in every cell, from every person; and proof that these tests can fail.

False alarms: each check is wrong with probability at most 1e-6 (support/noise.py), and 15 honest
checks are made here, so the file fails by chance in at most 15 of a million runs. Each mutation is
missed far less often than that: it changes the distribution of 2000 reports beyond recognition.
"""

import math
from collections.abc import Sequence
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device.ldpmab import laplace
from sottovoce.shared.ldpmab.laplace import SENSITIVITY
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, uniform
from support.noise import faults

REPORTS = 2000
YOUNG, OLD = {"age": 20, "bmi": 20}, {"age": 80, "bmi": 20}


class Boundless:
    """A ledger for a person who takes part two thousand times."""

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        pass


def release(epsilon: float = 1.0) -> sv.Release:
    """Three bins: one with three arms, one settled, one with two arms. N = 5 cells."""
    bins = (uniform("00", (0, 1, 2)), BinPolicy("01", (1,), (1.0,)), uniform("1", (0, 2)))
    partition = Partition(2, {"": 0, "0": 1})
    both = [sv.Population("clinic-b", 4.0, 10)]
    return sv.Release(experiment(epsilon=epsilon, auxiliary=both), 1, partition, bins)


def collect(
    context: dict[str, Any],
    *,
    arm: str,
    reward: float,
    epsilon: float = 1.0,
    population: str = "target",
) -> list[sv.Report]:
    device = sv.Device(release(epsilon), population=population, ledger=Boundless())
    return [device.report_logged(context, arm=arm, reward=reward) for _ in range(REPORTS)]


NOBODY = [0.0] * 10
"""Someone in the settled bin, or with an arm that is no longer live: V = U = 0 everywhere."""


def somebody(cell: int, reward: float) -> list[float]:
    truth = list(NOBODY)
    truth[cell], truth[5 + cell] = reward, 1.0
    return truth


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize(
    ("context", "arm", "reward", "truth"),
    [
        (YOUNG, "control", 0.25, somebody(0, 0.25)),
        (YOUNG, "coach", 1.0, somebody(2, 1.0)),
        (OLD, "coach", 0.5, somebody(4, 0.5)),
        ({"age": 20, "bmi": 40}, "reminder", 1.0, NOBODY),
    ],
)
def test_every_cell_gets_its_noise_from_every_person(
    context: dict[str, Any], arm: str, reward: float, truth: list[float], epsilon: float
) -> None:
    reports = collect(context, arm=arm, reward=reward, epsilon=epsilon)
    assert faults(reports, truth=truth, epsilon=epsilon) == []


def test_someone_with_an_arm_that_is_no_longer_live_is_hidden_as_well() -> None:
    reports = collect(OLD, arm="reminder", reward=1.0)
    assert faults(reports, truth=NOBODY, epsilon=1.0) == []


def test_an_auxiliary_population_has_the_noise_of_its_own_epsilon() -> None:
    reports = collect(YOUNG, arm="control", reward=1.0, population="clinic-b")
    assert faults(reports, truth=somebody(0, 1.0), epsilon=4.0) == []
    assert faults(reports, truth=somebody(0, 1.0), epsilon=1.0) != []


# --- mutations: each breaks the promise, and each must be found -----------------------------------


def mutate(monkeypatch: pytest.MonkeyPatch, change: Any) -> list[str]:
    """Wrap the mechanism at the one door, and check the reports it then makes."""
    honest = laplace.mechanism

    def mechanism(length: int, *, epsilon: float) -> Any:
        add_noise = honest(length, epsilon=epsilon)
        return lambda values: change(add_noise, list(values))

    monkeypatch.setattr(laplace, "mechanism", mechanism)
    reports = collect(YOUNG, arm="control", reward=0.25)
    return faults(reports, truth=somebody(0, 0.25), epsilon=1.0)


def test_the_unmutated_wrapper_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mutate(monkeypatch, lambda add_noise, values: add_noise(values)) == []


def test_halved_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    laplace.mechanism.cache_clear()
    monkeypatch.setattr(laplace, "SENSITIVITY", SENSITIVITY / 2)
    monkeypatch.setattr(laplace, "laplace_scale", lambda epsilon: 2 / epsilon)
    reports = collect(YOUNG, arm="control", reward=0.25)
    laplace.mechanism.cache_clear()
    assert len(faults(reports, truth=somebody(0, 0.25), epsilon=1.0)) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("cell", range(10))
def test_one_number_without_noise_is_found(monkeypatch: pytest.MonkeyPatch, cell: int) -> None:
    def change(add_noise: Any, values: list[float]) -> Sequence[float]:
        noisy = list(add_noise(values))
        noisy[cell] = values[cell]
        return noisy

    assert mutate(monkeypatch, change) != []


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.25])
def test_noise_of_the_wrong_scale_in_one_number_is_found(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    def change(add_noise: Any, values: list[float]) -> Sequence[float]:
        noisy = list(add_noise(values))
        noisy[3] = values[3] + factor * (noisy[3] - values[3])
        return noisy

    assert mutate(monkeypatch, change) != []


def test_a_cell_the_person_is_not_in_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The authors' leak: only the cells of the person's own bin get noise."""

    def change(add_noise: Any, values: list[float]) -> Sequence[float]:
        noisy = list(add_noise(values))
        own_bin = {0, 1, 2, 5, 6, 7}
        return [noisy[k] if k in own_bin else values[k] for k in range(10)]

    assert mutate(monkeypatch, change) != []


def test_a_report_that_omits_a_cell_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = mutate(monkeypatch, lambda add_noise, values: add_noise(values)[:8])
    assert found == ["reports have (8,) numbers, not 10"]


def test_the_same_noise_in_two_numbers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(add_noise: Any, values: list[float]) -> Sequence[float]:
        noisy = list(add_noise(values))
        noisy[6] = values[6] + noisy[1] - values[1]
        return noisy

    assert mutate(monkeypatch, change) != []


def test_noise_with_its_sign_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(add_noise: Any, values: list[float]) -> Sequence[float]:
        pairs = zip(add_noise(values), values, strict=True)
        return [value + abs(noisy - value) for noisy, value in pairs]

    assert mutate(monkeypatch, change) != []


def test_a_person_in_a_settled_bin_who_sends_no_noise_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The null case changed: V = U = 0 everywhere must look like anyone else's report."""
    honest = laplace.mechanism

    def mechanism(length: int, *, epsilon: float) -> Any:
        add_noise = honest(length, epsilon=epsilon)
        return lambda values: add_noise(values) if any(values) else list(values)

    monkeypatch.setattr(laplace, "mechanism", mechanism)
    reports = collect({"age": 20, "bmi": 40}, arm="reminder", reward=1.0)
    assert faults(reports, truth=NOBODY, epsilon=1.0) != []


# --- the privacy map: no statistics, OpenDP's own account -----------------------------------------


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.1, 1 / 3, 1.0, 4.0, 50.0, 1024.0, 1e6])
@pytest.mark.parametrize("cells", [1, 5, 200, 3000])
def test_the_mechanism_spends_at_most_epsilon_by_opendp_s_own_map(
    epsilon: float, cells: int
) -> None:
    measurement: Any = laplace.mechanism(2 * cells, epsilon=epsilon)
    # 4: V and U change in two cells each, by at most 1.
    spent = measurement.map(4.0)
    assert spent <= epsilon
    assert math.isclose(spent, epsilon, rel_tol=1e-6)
