"""The demo: a server on SQLite, and simulated people who come to it over real HTTP."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sottovoce.lab.environments import Floats, Slope, regret_at_random
from sottovoce.lab.local_server import LocalServer, running
from sottovoce.lab.people import Visit, visit, with_outcomes
from sottovoce.lab.pictures import draw_learning
from sottovoce.server.replay import replay
from sottovoce.shared import wire
from sottovoce.shared.errors import ExperimentError
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.schema import Numeric


@dataclass(frozen=True, slots=True)
class Summary:
    """What the demo measured.

    reward: what those who came can expect on average, by the arms they got; beside it what arms at
        random bring, and the best arm for everyone.
    epsilon: the most that anybody spent.
    agrees: whether the releases, worked out again from the log, are those that were published.
    """

    users: int
    stored: int
    release: int
    bins: int
    settled_bins: int
    reward: float
    reward_in_last_tenth: float
    reward_at_random: float
    reward_of_the_best: float
    epsilon: float
    agrees: bool
    picture: Path


def run(
    *,
    users: int,
    epsilon: float,
    seed: int,
    port: int,
    out: Path,
    forever: bool,
    tell: Callable[[str], object],
) -> Summary:
    """Play the demo with a progress bar, and leave a picture in ``out``.

    forever: when all users have come, others do, until the program is interrupted. Interrupted it
        can be in either case, and then tells of those who came.
    tell: called with the address of the status page, as soon as there is one.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"{out} must be a folder that can be written; {error}") from error
    experiment = Experiment(
        name="demo",
        arms=["reminder", "coach"],
        context=[Numeric("age", 18, 90), Numeric("hours of sleep", 4, 10)],
        epsilon=epsilon,
        horizon=users,
        release_every=50,
        seed=seed,
    )
    environment = Slope()
    rng = np.random.default_rng(seed)
    columns = (TextColumn("people"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with running([experiment], port=port) as server:
        tell(f"{server.url}/experiments/{experiment.fingerprint}")
        visits: list[Visit] = []
        with _interruptible() as stopped:
            while not visits or (forever and not stopped()):
                people = with_outcomes(environment, rng, users)
                with Progress(*columns, console=Console(stderr=True)) as progress:
                    bar = progress.add_task("people", total=users)
                    each = partial(progress.advance, bar)
                    visits.append(visit(server, experiment, people, each=each, until=stopped))
        server.wait_until_learned(experiment)
        return _summary(server, experiment, environment, visits, picture=out / "demo.png")


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C be a request, where otherwise it could strike anywhere."""
    stopped = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stopped.set())
    try:
        yield stopped.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _summary(
    server: LocalServer,
    experiment: Experiment,
    environment: Slope,
    visits: list[Visit],
    *,
    picture: Path,
) -> Summary:
    regret: Floats = np.concatenate([each.regret for each in visits])
    if not len(regret):
        raise ExperimentError("the demo must go on until somebody has come; it was stopped before")
    replayed = replay(server.store, experiment.fingerprint)
    published = server.store.releases(experiment.fingerprint)[-1]
    release = wire.release_from_json(published.text)
    lost_at_random = regret_at_random(environment)
    draw_learning(
        release,
        regret=regret,
        random_regret=lost_at_random,
        boundary=environment.boundary,
        path=picture,
    )
    contexts = environment.contexts(np.random.default_rng(0), 200_000)
    best = float(environment.means(contexts).max(axis=1).mean())
    return Summary(
        users=len(regret),
        stored=replayed.reports,
        release=release.version,
        bins=len(release.bins),
        settled_bins=sum(policy.settled for policy in release.bins),
        reward=best - float(regret.mean()),
        reward_in_last_tenth=best - float(regret[-max(1, len(regret) // 10) :].mean()),
        reward_at_random=best - lost_at_random,
        reward_of_the_best=best,
        epsilon=max(cost for each in visits for cost in each.spent),
        agrees=replayed.agrees,
        picture=picture,
    )
