"""The benchmark of what the time of a call tells: its figure is right, and it can fail."""

import json
from typing import Any

import pytest
from benchmarks import even_time
from benchmarks.even_time import Pair, auc


def test_the_auc_is_the_share_of_pairs_in_order() -> None:
    one, other = [1, 2, 2, 5], [2, 3, 6]
    wins = sum((y > x) + (y == x) / 2 for x in one for y in other)
    assert auc(one, other)[0] == pytest.approx(wins / 12)
    assert auc([1, 2, 3], [4, 5, 6]) == (1.0, 0.0)
    assert auc([1, 2], [1, 2])[0] == 0.5


class Clock:
    """Time that passes only while somebody works."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now

    def work(self, least: int) -> Any:
        def call() -> None:
            self.now += even_time.RNG.randrange(least, least + 1000)

        return lambda: call


@pytest.mark.parametrize(("slower", "status"), [(0, 0), (500, 1)])
def test_it_fails_if_a_pair_can_be_told_apart(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    slower: int,
    status: int,
) -> None:
    clock = Clock()
    monkeypatch.setattr(even_time, "time", clock)
    pair = Pair("two people", clock.work(0), clock.work(slower))
    monkeypatch.setattr(even_time, "all_pairs", lambda: [pair])
    monkeypatch.setattr("sys.argv", ["even_time", "--calls", "3000", "--json"])
    assert even_time.main() == status
    (result,) = json.loads(capsys.readouterr().out)
    # 1/2 + δ/T - (δ/T)²/2 of two uniforms of width T that are δ apart.
    assert result["auc"] == pytest.approx(0.5 + 0.375 * status, abs=0.04)


def test_every_pair_can_be_called() -> None:
    with even_time.public_coins_held():
        for pair in even_time.all_pairs():
            for person in (pair.one, pair.other):
                person()()
