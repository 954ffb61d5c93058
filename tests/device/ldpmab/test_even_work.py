"""Everybody takes the same way through ``ldpmab``: the same vector is filled and gets its noise."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

import sottovoce as sv
from factories import Purse, experiment
from sottovoce.device import privatise
from sottovoce.device.ldpmab import laplace
from sottovoce.device.method import Secret
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import uniform

RELEASE = sv.Release(
    experiment(), 1, Partition(2, {"": 0}), (uniform("0", (0, 2)), uniform("1", (1,)))
)


def test_everybody_s_vector_gets_noise_whatever_is_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Sequence[float]] = []

    def mechanism(length: int, *, epsilon: float) -> Any:
        def add_noise(values: Sequence[float]) -> Sequence[float]:
            told.append(values)
            assert len(values) == length
            return values

        return add_noise

    monkeypatch.setattr(laplace, "mechanism", mechanism)
    for path, arm, reward in itertools.product(("0", "1"), (0, 1, 2), (None, 0.0, 0.3, 1.0)):
        secret = Secret((0.5, 0.5), path, arm)
        answer = privatise.privatise(RELEASE, secret, population=0, reward=reward, ledger=Purse())
        cells = {("0", 0): 0, ("0", 2): 1}
        right = [0.0] * 4
        if reward is not None and (path, arm) in cells:
            right[cells[path, arm]], right[2 + cells[path, arm]] = reward, 1.0
        assert list(answer.payload) == right
    assert len(told) == 24


@pytest.mark.parametrize("bins", [16, 40, 150])
def test_no_two_numbers_of_a_long_report_have_the_same_noise(bins: int) -> None:
    """On a grid of 2^-60 two of a report's numbers agree less than once in 10^12 reports."""
    pytest.importorskip("opendp")
    partition = Partition(2)
    while len(leaves := list(partition.leaves())) < bins:
        shortest = min(leaves, key=len)
        partition = partition.cut(shortest, axis=len(shortest) % 2)
    policies = tuple(uniform(path, (0, 1)) for path in leaves)
    release = sv.Release(experiment(), 1, partition, policies)
    device = sv.Device(release)
    device.choose({"age": 20, "bmi": 20})
    payload = device.report(reward=0.0).payload
    assert len(set(payload)) == len(payload) == 4 * bins
