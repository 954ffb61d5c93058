"""Simulated people, with raw features and outcomes, who come to a real server over HTTP.

As in a waiting room with a few tablets: each person uses one of them, once. A tablet is a
``Client`` with all that a phone would have, but for its ledger, which is a new one for each person.
"""

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sottovoce.device.client import Client
from sottovoce.device.ledger import OneReport
from sottovoce.lab.environments import Environment, Floats, People, draw_people
from sottovoce.shared.errors import TransportError, must
from sottovoce.shared.experiment import TARGET, Experiment
from sottovoce.shared.schema import MISSING, Boolean, Feature, Numeric, place_names

TABLETS = 8
# Seconds between two looks for a newer release: what a phone does in hours happens here in seconds.
REFRESH_EVERY = 0.05


def with_outcomes(environment: Environment, rng: np.random.Generator, n: int) -> People:
    """Draw people, and what each arm would bring each of them."""
    people = draw_people(environment, rng, n)
    if len(people.outcomes):
        return people
    drawn = rng.random(n)[:, np.newaxis] < people.means
    return people._replace(outcomes=drawn.astype(np.float64))


def features_of(experiment: Experiment, context: Floats) -> dict[str, Any]:
    """Turn a point of [0, 1]^d back into raw features."""
    left = iter(context.tolist())
    return {
        feature.name: value_at(feature, [next(left) for _ in feature.axes])
        for feature in experiment.context
    }


def value_at(feature: Feature, positions: Sequence[float]) -> Any:
    """Return a raw value whose positions are these; on axes with places, the nearest ones."""
    places = [
        names[min(int(at * len(names)), len(names) - 1)] if names else None
        for names, at in zip(place_names(feature), positions, strict=True)
    ]
    if feature.optional and places[-1] == MISSING:
        return None
    match feature:
        case Numeric():
            return feature.low + positions[0] * (feature.high - feature.low)
        case Boolean():
            return places[0] == "True"
        case _:
            return places[0]


class EachPersonOnce:
    """The ledger of a tablet: everyone spends from a budget of their own, for a single report."""

    def __init__(self) -> None:
        self.spent: list[float] = []
        self._own = OneReport()

    def next_person(self) -> None:
        """Somebody else takes the tablet."""
        self._own = OneReport()

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        """Allow one report for each person."""
        self._own.spend(epsilon, experiment=experiment, name=name, release=release)
        self.spent.append(epsilon)


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of it.

    regret: of each person, in the order in which they came.
    spent: what each report cost.
    """

    regret: Floats
    spent: list[float]


class Server(Protocol):
    """A server that runs, such as a ``LocalServer``."""

    @property
    def url(self) -> str:
        """Its address."""

    @property
    def key(self) -> str:
        """The public key that devices have to trust."""


def visit(
    server: Server,
    experiment: Experiment,
    people: People,
    *,
    population: str = TARGET,
    tablets: int = TABLETS,
    each: Callable[[], None] = lambda: None,
    until: Callable[[], bool] = lambda: False,
) -> Visit:
    """Let people come and use whichever tablet is free; return when every report is stored.

    people: with what each arm would bring them (``with_outcomes``). Choices and noise come from
        the operating system.
    each: called after every person, from any thread, for a progress bar.
    until: nobody comes any more once this is so.
    """
    contexts, means, outcomes = people
    regret = np.empty(len(means))
    queue = itertools.count()
    arms = {arm: number for number, arm in enumerate(experiment.arms)}
    ledgers = [EachPersonOnce() for _ in range(tablets)]
    epsilon = experiment.populations[experiment.population_index(population)].epsilon
    turn = threading.Lock()

    def use(ledger: EachPersonOnce) -> None:
        client = Client(
            server.url,
            experiment=experiment.fingerprint,
            keys=[server.key],
            ledger=ledger,
            population=population,
            most_epsilon=epsilon,
            refresh_every=REFRESH_EVERY,
            public_arms=True,  # simulated people have no secrets
            sticky=False,  # many people share one tablet
        )
        while not until() and (person := next(queue)) < len(means):
            ledger.next_person()
            decision = client.choose(features_of(experiment, contexts[person]))
            arm = arms[decision.arm]
            client.report(decision, reward=float(outcomes[person, arm]))
            client.send()  # at once: simulated people have no secrets, and the next one waits
            regret[person] = means[person].max() - means[person, arm]
            with turn:
                each()
        if not client.flush():
            raise TransportError(must("every report", "reach the server", f"{client.waiting} left"))
        if client.refused:
            raise TransportError(must("every report", "be taken", f"refusals {client.refused}"))

    with ThreadPoolExecutor(tablets) as room:
        for done in [room.submit(use, ledger) for ledger in ledgers]:
            done.result()
    came = min(next(queue), len(means))  # whoever took a number was served
    return Visit(regret[:came], [cost for ledger in ledgers for cost in ledger.spent])
