"""A call returns only at moments that were drawn before it began."""

import secrets
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device import moments

TURN = 24_000


class Clock:
    """Time that passes by one step with each look, and while a call works."""

    def __init__(self, step: int) -> None:
        self.now = 1_000_000
        self.step = step

    def __call__(self) -> int:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(step=1)
    monkeypatch.setattr(moments, "perf_counter_ns", clock)
    return clock


@pytest.mark.parametrize("drawn", [0, 1, 12_345, TURN - 1])
@pytest.mark.parametrize("work", [0, 1, 12_344, 12_345, 30_000, 5 * TURN])
def test_a_call_ends_a_drawn_part_of_a_turn_and_whole_turns_after_its_beginning(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, drawn: int, work: int
) -> None:
    limits = []

    def randbelow(limit: int) -> int:
        limits.append(limit)
        return drawn

    monkeypatch.setattr(secrets, "randbelow", randbelow)

    @moments.ends_at_a_random_turn
    def call() -> str:
        clock.now += work
        return "done"

    begun = clock.now + 1
    assert call() == "done"
    taken = clock.now - begun
    assert limits == [TURN]
    assert (taken - drawn) % TURN <= 1  # the clock may pass the moment by one look
    assert work < taken <= work + TURN + 1


def test_a_call_that_fails_ends_at_such_a_moment_too(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda limit: 777)

    @moments.ends_at_a_random_turn
    def call() -> None:
        clock.now += 10_000
        raise ValueError("no")

    begun = clock.now + 1
    with pytest.raises(ValueError, match="no"):
        call()
    assert (clock.now - begun) % TURN == 777


@pytest.mark.parametrize("name", ["choose", "report", "report_logged", "report_nothing_logged"])
def test_every_call_of_a_device_about_a_person_ends_so(name: str) -> None:
    call: Any = getattr(sv.Device, name)
    assert call.__wrapped__.__name__ == name
    assert call.__code__.co_filename == moments.__file__
