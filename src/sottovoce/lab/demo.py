"""The demo: a few thousand simulated people through real devices and a real learner."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sottovoce.estimate.learner import Learner, Status
from sottovoce.lab.environments import Slope, regret_at_random
from sottovoce.lab.people import meet
from sottovoce.lab.pictures import draw_learning
from sottovoce.shared.errors import ExperimentError
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.schema import Numeric


@dataclass(frozen=True, slots=True)
class Summary:
    """What the demo measured."""

    status: Status
    reward_lost: float
    lost_at_random: float
    lost_in_last_tenth: float
    epsilon: float
    picture: Path


def run(*, people: int, epsilon: float, seed: int, out: Path) -> Summary:
    """Play the demo with a progress bar, and leave a picture in ``out``."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"{out} must be a folder that can be written; {error}") from error
    environment = Slope()
    experiment = Experiment(
        name="demo",
        arms=["reminder", "coach"],
        context=[Numeric("age", 18, 90), Numeric("hours of sleep", 4, 10)],
        epsilon=epsilon,
        horizon=people,
        release_every=50,
        seed=seed,
    )
    learner = Learner(experiment)
    rng = np.random.default_rng(seed)
    columns = (TextColumn("people"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("people", total=people)
        regret = meet(
            environment, learner, people=people, rng=rng, each=lambda: progress.advance(task)
        )
    lost_at_random = regret_at_random(environment)
    picture = out / "demo.png"
    draw_learning(
        learner.release(),
        regret=regret,
        random_regret=lost_at_random,
        boundary=environment.boundary,
        path=picture,
    )
    return Summary(
        status=learner.status(),
        reward_lost=float(regret.mean()),
        lost_at_random=lost_at_random,
        lost_in_last_tenth=float(regret[-max(1, people // 10) :].mean()),
        epsilon=epsilon,
        picture=picture,
    )
