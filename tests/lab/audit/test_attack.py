"""The attacker finds what differs, whatever it is, and nothing where nothing differs."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from sottovoce.lab.audit.attack import Attacked, Sample, attack, sample_of, without_nonce
from sottovoce.lab.audit.cases import LOW, experiment_of, release_of
from sottovoce.lab.audit.claims import Answer, Person, Scene
from sottovoce.lab.audit.mechanism import RealDevice
from sottovoce.shared.whisper import Whisper

RUNS = 2000
Make = Callable[[random.Random], Answer]


def attacked(one: Make, other: Make, *, seed: int = 0) -> Attacked:
    rng = random.Random(seed)
    samples = [sample_of([make(rng) for _ in range(RUNS)], None) for make in (one, other) * 2]
    return attack((samples[0], samples[1]), (samples[2], samples[3]), error_rate=1e-4)


def coin(yes: Answer, no: Answer, chance: float) -> Make:
    return lambda rng: yes if rng.random() < chance else no


DIFFERENT: dict[str, tuple[Make, Make]] = {
    "lengths": (lambda rng: rng.randbytes(8), lambda rng: rng.randbytes(9)),
    "bits": (
        lambda rng: rng.randbytes(7) + b"\x10" + rng.randbytes(7),
        lambda rng: rng.randbytes(15),
    ),
    "messages": (coin(b"\x01", b"\x02", 0.9), coin(b"\x02", b"\x01", 0.9)),
    "numbers": (lambda rng: (rng.random(), 1 + rng.random()), lambda rng: (rng.random(),) * 2),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_is_found(what: str) -> None:
    one, other = DIFFERENT[what]
    for found in (attacked(one, other), attacked(other, one)):
        assert found.bound > 0.5
        assert str(found.event)


def test_the_other_direction_is_tried_too() -> None:
    """Something that only the second person sends is as telling as the reverse."""
    found = attacked(lambda rng: b"a", coin(b"b", b"a", 0.5))
    assert found.bound > 3
    assert found.event.flipped


def test_people_who_send_the_same_are_not_told_apart() -> None:
    """The false-alarm rate is 1e-4 for each attack that finds more than 0."""
    make: Make = lambda rng: rng.randbytes(1) + bytes(rng.choices((0, 1), (3, 1)))  # noqa: E731
    assert max(attacked(make, make, seed=seed).bound for seed in range(5)) == 0


def test_an_event_that_was_chosen_by_chance_does_not_count() -> None:
    """Without a split of the sample, the best of many events would look telling."""
    rng = np.random.default_rng(0)

    def sample() -> Sample:
        return Sample([b""] * 50, rng.random((50, 400)))

    one, other, *more = (sample() for _ in range(4))
    assert attack((one, other), (one, other), error_rate=0.3).bound > 0
    assert attack((one, other), (more[0], more[1]), error_rate=1e-4).bound == 0


def test_only_the_nonce_is_left_out_of_a_message() -> None:
    scene = Scene(release_of(experiment_of(Whisper(), 1.0), cuts={}, contested=""))
    reports: Sequence[Answer] = RealDevice().reports(scene, Person(LOW, None, 1.0), 300)
    assert len(set(reports)) == 300
    assert 4 <= len({without_nonce(each) for each in reports}) < 30
    assert without_nonce(b"something else") == b"something else"
