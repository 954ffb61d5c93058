import pickle

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.data.sample import Deck, Sample
from sottovoce.lab.environments import Floats
from sottovoce.lab.simulation import Auxiliary, simulate


def sample(rows: int, *, arms: int = 3, seed: int = 0) -> Sample:
    """People whose class is the third of the first axis in which they are."""
    contexts = np.random.default_rng(seed).random((rows, 2))
    return Sample(contexts, np.minimum((arms * contexts[:, 0]).astype(np.int64), arms - 1))


def dealt(deck: Deck, rng: np.random.Generator, sizes: list[int]) -> Floats:
    return np.concatenate([deck.deal(rng, size)[0] for size in sizes])


def test_every_row_is_dealt_once_in_a_run() -> None:
    people = sample(1000)
    contexts = dealt(Deck(people, 3), np.random.default_rng(1), [300, 1, 0, 699])
    order = np.lexsort(contexts.T)
    assert (contexts[order] == people.contexts[np.lexsort(people.contexts.T)]).all()
    assert not (contexts == people.contexts).all()


def test_each_run_has_an_order_of_its_own_and_the_same_seed_the_same_order() -> None:
    deck = Deck(sample(100), 3)
    first, second, again = (dealt(deck, np.random.default_rng(s), [100]) for s in (1, 2, 1))
    assert (first == again).all()
    assert not (first == second).all()


def test_the_label_brings_one_and_every_other_arm_nothing() -> None:
    people = sample(50, arms=5)
    contexts, means = Deck(people, 5).deal(np.random.default_rng(0), 50)
    assert (means.sum(axis=1) == 1).all()
    labels = {tuple(row): label for row, label in zip(people.contexts, people.labels, strict=True)}
    assert [labels[tuple(row)] for row in contexts] == means.argmax(axis=1).tolist()


def test_a_deck_has_no_more_people_than_it_has() -> None:
    with pytest.raises(sv.ExperimentError, match="at most its 10 people in a run; got 11"):
        dealt(Deck(sample(10), 3), np.random.default_rng(0), [6, 5])
    with pytest.raises(sv.ExperimentError, match="at most its 10 people"):
        simulate(Deck(sample(10), 3), epsilon=1, n=11, seed=0)


def test_what_a_place_would_bring_is_not_known() -> None:
    with pytest.raises(sv.ExperimentError, match="points must be left out with real data"):
        simulate(Deck(sample(10), 3), epsilon=1, n=10, seed=0, points=[(0.5, 0.5)])


@pytest.mark.parametrize("arms", [0, 2, True])
def test_a_deck_needs_as_many_arms_as_labels(arms: int) -> None:
    with pytest.raises(sv.ExperimentError, match=r"arms|labels from 0 to 1"):
        Deck(sample(10), arms)


def test_a_sample_is_checked_and_cannot_be_written_to() -> None:
    with pytest.raises(sv.ExperimentError, match="contexts of a sample must lie in"):
        Sample(np.full((2, 2), 1.5), np.zeros(2, dtype=np.int64))
    with pytest.raises(sv.ExperimentError, match="have shapes"):
        Sample(np.zeros((2, 2)), np.zeros(3, dtype=np.int64))
    with pytest.raises(ValueError, match="read-only"):
        sample(3).contexts[0, 0] = 0


def test_a_deck_travels_to_worker_processes() -> None:
    deck = pickle.loads(pickle.dumps(Deck(sample(20), 3)))  # noqa: S301
    assert len(dealt(deck, np.random.default_rng(0), [20])) == 20


def test_the_reward_is_the_number_of_people_less_the_regret() -> None:
    # With ε this large and classes that a cut tells apart, nearly everybody gets their own arm.
    people, n = sample(20_000, arms=2), 20_000
    result = simulate(Deck(people, 2), epsilon=20, n=n, seed=0)
    reward = n - result.regret[-1]
    assert reward == int(reward)
    assert 0.8 * n < reward <= n
    by_then = result.people - result.regret
    assert (np.diff(by_then, prepend=0) <= np.diff(result.people, prepend=0)).all()


def test_auxiliary_rows_are_dealt_too_and_help() -> None:
    target, other = Deck(sample(4000, arms=2), 2), Deck(sample(4000, arms=2, seed=1), 2)
    rewards = [
        4000 - simulate(target, epsilon=2, n=4000, seed=0, auxiliary=auxiliary).regret[-1]
        for auxiliary in ([], [Auxiliary(4000, 8.0, other)])
    ]
    assert rewards[1] > rewards[0]
    again = simulate(target, epsilon=2, n=4000, seed=0).regret[-1]
    assert 4000 - again == rewards[0]


class Crooked(Deck):
    """A deck of a user's own that deals what cannot be."""

    def deal(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        contexts, means = super().deal(rng, n)
        return contexts, 2 * means


def test_what_is_dealt_is_checked() -> None:
    with pytest.raises(sv.ExperimentError, match=r"deal\(rng, n\) must lie in \[0, 1\]"):
        simulate(Crooked(sample(10), 3), epsilon=1, n=10, seed=0)


def test_a_deck_has_the_features_it_is_given_and_numbers_otherwise() -> None:
    people = sample(10)
    assert Deck(people, 3).features == (sv.Numeric("x1", 0, 1), sv.Numeric("x2", 0, 1))
    optional = [sv.Numeric("hours", 0, 9, optional=True)]
    assert simulate(
        Deck(people, 3, features=optional), epsilon=1, n=9, seed=0
    ).experiment.context == tuple(optional)
    with pytest.raises(sv.ExperimentError, match="have the 2 axes of its sample; got 1"):
        Deck(people, 3, features=[sv.Numeric("hours", 0, 9)])
