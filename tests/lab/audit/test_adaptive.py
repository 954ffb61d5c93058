"""The whole protocol: a person reports once, whatever releases follow."""

from dataclasses import replace

import pytest

from sottovoce.lab.audit.adaptive import Game, OneDevice
from sottovoce.lab.audit.cases import LOW, experiment_of
from sottovoce.lab.audit.claims import Person
from sottovoce.shared.ldpmab import Ldpmab
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.whisper import Whisper


def game(settings: MethodSettings, *, runs: tuple[int, int] = (100, 300)) -> Game:
    experiment = replace(experiment_of(settings, 4.0), release_every=1, horizon=20)
    one, other = Person(LOW, "a", 1.0), Person(LOW, "b", 1.0)
    return Game("", "", experiment, one, other, *runs)


@pytest.mark.parametrize("settings", [Whisper(), Ldpmab()], ids=["whisper", "ldpmab"])
def test_the_adversary_learns_something_and_no_more_than_is_claimed(
    settings: MethodSettings,
) -> None:
    """The false-alarm rate of the bound is 1e-4."""
    found = game(settings).find(error_rate=1e-4, seed=0)
    assert found.kept
    assert found.bound is not None
    assert 0.3 < found.bound <= 4
    assert found.runs == 800


def test_a_person_who_is_asked_again_sends_nothing() -> None:
    person, release = OneDevice(), None
    from sottovoce.estimate.learner import Learner

    release = Learner(game(Whisper()).experiment).release()
    assert len(person.asked(release, Person(LOW, "a", 1.0))) == 1
    assert person.asked(release, Person(LOW, "a", 1.0)) == []
