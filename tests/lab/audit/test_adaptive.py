"""The whole protocol: a person reports once, whatever releases follow."""

from dataclasses import replace

import pytest

from sottovoce.device.encode import encode
from sottovoce.estimate.learner import Learner
from sottovoce.lab.audit.adaptive import Game, OneDevice, within
from sottovoce.lab.audit.cases import LOW, MIXED, experiment_of
from sottovoce.lab.audit.claims import Person
from sottovoce.shared.ldpmab import Ldpmab
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import uniform
from sottovoce.shared.whisper import Whisper
from support.slow import slow_but


def game(settings: MethodSettings, *, runs: tuple[int, int] = (100, 300)) -> Game:
    experiment = replace(experiment_of(settings, 4.0), release_every=1, horizon=20)
    one, other = Person(LOW, "a", 1.0), Person(LOW, "b", 1.0)
    return Game("", "", experiment, one, other, *runs)


@pytest.mark.parametrize(
    "settings", slow_but([Ldpmab()], [Whisper(), Ldpmab()]), ids=["whisper", "ldpmab"]
)
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
    release = Learner(game(Whisper()).experiment).release()
    assert len(person.asked(release, Person(LOW, "a", 1.0))) == 1
    assert person.asked(release, Person(LOW, "a", 1.0)) == []


def test_the_adversary_finds_somebody_for_every_bin_of_levels_and_missing_values() -> None:
    """The last bin is empty: a missing number lies at 0. Whoever is sent there is elsewhere."""
    mixed = experiment_of(Whisper(), 4.0, context=MIXED)
    cuts = {"": 0, "0": 1, "1": 2, "01": 0, "11": 1}
    upper = {"": frozenset({1, 3}), "01": frozenset({2})}
    partition = Partition(3, cuts, (4, 0, 0), upper)
    bins = tuple(uniform(path, [0, 1]) for path in partition.leaves())
    release = replace(Learner(mixed).release(), partition=partition, bins=bins)
    found = {
        path: partition.find(encode(mixed, within(release, path))) for path in partition.leaves()
    }
    assert [path for path in found if found[path] != path] == ["111"]


def test_the_game_is_played_with_levels_and_missing_values() -> None:
    """The false-alarm rate of the bound is 1e-4."""
    experiment = experiment_of(Whisper(), 4.0, context=MIXED)
    one = Person({"city": "p", "x": 0.25}, "a", 1.0)
    other = Person({"city": "q", "x": None}, "b", 1.0)
    played = Game("", "", replace(experiment, release_every=1, horizon=20), one, other, 30, 60)
    assert played.find(error_rate=1e-4, seed=0).kept
