"""One run of a method on a data set: the target's people come one by one, in a random order."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np

from sottovoce.lab.data.sample import DataSet, Deck
from sottovoce.lab.methods import Playable
from sottovoce.lab.simulation import Auxiliary, PlayOptions, Result, simulate
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must

Budgets = float | Sequence[float] | Mapping[str, float]
"""The ε of the auxiliary populations: one for all, one each in their order, or one each by name."""

RELEASE_EVERY = 100
LEAST_RELEASES = 50


def play(
    dataset: DataSet,
    *,
    method: Playable = "whisper",
    epsilon: float,
    epsilon_aux: Budgets | None = None,
    seed: int,
    n: int | None = None,
    **options: Unpack[PlayOptions],
) -> Result:
    """Play the target, after the auxiliary populations if they have an ε; None leaves them out.

    Every auxiliary person got an arm at random, as in the paper's section 4.2; people come in a
    random order. Runs with the same seed have the same people of the target in the same order,
    whatever the method, and with auxiliary data as without.

    n: how many of the target's people come; None for all of them.
    options: as ``simulate`` has them. Reports between two releases are fewer than 100 where few
        people come, if nobody says.
    """
    check.whole_number(seed, what="seed", least=0)
    people = len(dataset.target)
    if n is None:
        n = people
    elif check.whole_number(n, what="n", least=1) > people:
        rule = f"be at most the {people} people of {dataset.name}'s target"
        raise ExperimentError(must("n", rule, n))
    options.setdefault("release_every", max(1, min(RELEASE_EVERY, n // LEAST_RELEASES)))
    arms, schema = len(dataset.arms), dataset.schema
    budgets = _budgets(dataset, epsilon_aux)
    # The order follows from the seed alone, not from what was dealt of others before. A run has two
    # streams of its seed, children 0 and 1: this is the next.
    shuffle = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    return simulate(
        Deck(dataset.target, arms, order=shuffle.permutation(people), features=schema),
        method=method,
        epsilon=epsilon,
        n=n,
        seed=seed,
        auxiliary=[
            Auxiliary(len(sample), budgets[name], Deck(sample, arms, features=schema), name=name)
            for name, sample in dataset.auxiliary.items()
            if name in budgets
        ],
        **options,
    )


def reward_at(result: Result, t: float) -> float:
    """Return the mean reward of the first t people.

    A person's own arm brings 1 and every other arm 0, so that what they got is 1 less what they
    lost: the mean is 1 - regret/t. The regret is known at releases. In between it is interpolated:
    it never falls, and grows by at most 1 a person, so that the mean is off by less than the
    people between two releases over t.
    """
    last = int(result.people[-1])
    if not 0 < t <= last:
        raise ExperimentError(must("t", f"lie in (0, {last}], the people who came", t))
    people, regret = np.append(0, result.people), np.append(0.0, result.regret)
    return 1 - float(np.interp(t, people, regret)) / t


def best_arm_share(dataset: DataSet) -> float:
    """Return the mean reward of the best single arm: the largest share of a class in the target."""
    return float(np.bincount(dataset.target.labels).max() / len(dataset.target))


def _budgets(dataset: DataSet, epsilon_aux: Budgets | None) -> dict[str, float]:
    """Return the ε of each auxiliary population that is played."""
    if epsilon_aux is None:
        return {}
    names = list(dataset.auxiliary)
    if not names:
        rule = f"be left out: {dataset.name} has no auxiliary populations"
        raise ExperimentError(must("epsilon_aux", rule, epsilon_aux))
    if isinstance(epsilon_aux, Mapping):
        if set(epsilon_aux) != set(names):
            rule = f"name each auxiliary population, {names}"
            raise ExperimentError(must("epsilon_aux", rule, list(epsilon_aux)))
        budgets = {name: epsilon_aux[name] for name in names}
    elif isinstance(epsilon_aux, Sequence) and not isinstance(epsilon_aux, str):
        if len(epsilon_aux) != len(names):
            rule = f"have a number for each auxiliary population, {names}"
            raise ExperimentError(must("epsilon_aux", rule, list(epsilon_aux)))
        budgets = dict(zip(names, epsilon_aux, strict=True))
    else:
        budgets = dict.fromkeys(names, epsilon_aux)
    return {
        name: check.epsilon(budget, what=f"epsilon_aux of {name!r}")
        for name, budget in budgets.items()
    }
