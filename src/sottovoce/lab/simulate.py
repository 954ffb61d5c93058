"""Ask "what would happen": one run of a method in a simulated world, in milliseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.history import Dated
from sottovoce.estimate.learner import Learner
from sottovoce.lab.baselines import Baseline, baseline_from
from sottovoce.lab.crowd.ldpmab.play import LdpmabPlay
from sottovoce.lab.crowd.play import Play
from sottovoce.lab.crowd.whisper.play import WhisperPlay
from sottovoce.lab.environments import (
    Counts,
    Environment,
    Floats,
    behaviour,
    draw_people,
    means_at,
)
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.method import Ldpmab, Method
from sottovoce.shared.release import Release
from sottovoce.shared.schema import Numeric

BLOCK = 16384
"""People drawn at a time: small enough for the cache, large enough for NumPy."""

LOOK_AGAIN = 1.1
"""By how much the people have grown when a diagnosis is looked at again; at first, after 1000."""

Order = Literal["given", "auto"]


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """Logged data of another population, played before the target (the jump-start).

    environment: where its contexts come from; None for the target's own.
    kappa: the exploration coefficient of its behaviour policy; 1 is uniform.
    known: whether the learner knows that policy; ``ldpmab`` does not ask.
    name: None for "auxiliary 1" and so on.
    """

    users: int
    epsilon: float
    environment: Environment | None = None
    kappa: float = 1.0
    known: bool = True
    name: str | None = None


@dataclass(frozen=True)
class Result:
    """What happened.

    people (R,)          how many target users had come at each release
    regret (R,)          what they had lost by then in all; the last value is the total
    local_regret (R, P)  what people at each given point would have lost in all, in expectation
    arm_ratios (R, P, K) how often each arm would have been pulled there, on average so far
    heeded               how many people had come when the rest went on without auxiliary data
    warning              the diagnosis that was heeded then
    """

    people: Counts
    regret: Floats
    local_regret: Floats
    arm_ratios: Floats
    experiment: Experiment
    play: Play
    heeded: int | None = None
    warning: Diagnosis | None = None

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """What the auxiliary data has brought; the warning if that was heeded. Of whisper only."""
        if self.warning is not None or not isinstance(self.play, WhisperPlay):
            return self.warning
        return self.play.diagnosis()

    @cached_property
    def history(self) -> tuple[Dated, ...]:
        """Eliminations and cuts, with the number of reports by then, auxiliary ones included."""
        return self.play.history()

    @cached_property
    def release(self) -> Release:
        """The final policy."""
        return self.play.release()


def simulate(
    environment: Environment,
    *,
    method: Method | Baseline | Mapping[str, Any] | str = "whisper",
    epsilon: float,
    n: int,
    seed: int,
    release_every: int = 100,
    auxiliary: Sequence[Auxiliary] = (),
    order: Order = "given",
    heed: bool = False,
    points: Sequence[Sequence[float]] = (),
    not_private_leaking_noise: bool = False,
) -> Result:
    """Play n people, one report each, and return what happened.

    method: one with a learner and devices or a baseline of the lab; also by name, or as a table
        with its name and settings.
    order: in which the auxiliary populations come. ``auto``: those first whose rows tell most, by
        what is known before they come (ε and exploration).
    heed: let the diagnosis be looked at as people come, and go on without auxiliary data, with a
        new learner, as soon as one of the populations seems to mislead; with ``whisper`` only.
    points: places of [0, 1]^d at which to follow the local regret and the arms.
    not_private_leaking_noise: NOT PRIVATE. Only the people inside a bin add noise to it, as in
        the authors' experiments. It exists to reproduce their figures; no device can do it.
    """
    if isinstance(environment, type):
        came = f"the class {environment.__name__}"
        raise ExperimentError(must("an environment", "be an object", f"{came}: add ()"))
    check.whole_number(n, what="n", least=1)
    baseline = baseline_from(method)
    # A baseline is none of an experiment's own methods: it is played in place of the default.
    own: Any = method if baseline is None else "whisper"
    experiment = Experiment(
        arms=[f"arm {k}" for k in range(environment.arms)],
        context=[Numeric(f"x{axis + 1}", 0, 1) for axis in range(environment.dimension)],
        epsilon=epsilon,
        horizon=n,
        auxiliary=[
            Population(
                each.name or f"auxiliary {m}",
                each.epsilon,
                each.users,
                behaviour(environment.arms, each.kappa).tolist() if each.known else None,
            )
            for m, each in enumerate(auxiliary, start=1)
        ],
        method=own,
        release_every=release_every,
        seed=seed,
    )
    worlds = [each.environment or environment for each in auxiliary]
    for world in worlds:
        if (world.arms, world.dimension) != (environment.arms, environment.dimension):
            rule = f"have {environment.arms} arms and d = {environment.dimension}"
            came = f"{world.arms} and {world.dimension}"
            raise ExperimentError(must("an auxiliary environment", rule, came))
    policies = [behaviour(environment.arms, each.kappa) for each in auxiliary]
    play = _begin(experiment, baseline, leaking=not_private_leaking_noise)
    if heed and not isinstance(play, WhisperPlay):
        raise ExperimentError(must("heed", "be asked of whisper alone", "another method"))
    run = _Run(play, environment, points)
    for m in _order(experiment, order):
        users = auxiliary[m].users
        run.contribute(worlds[m], users, policy=policies[m], population=m + 1)
    if heed:
        run.serve_and_look(environment, n)
    else:
        run.serve(environment, n)
    return run.result()


def _order(experiment: Experiment, order: Order) -> list[int]:
    """Return the auxiliary populations in the order in which they come."""
    names = [each.name for each in experiment.auxiliary]
    if order == "given":
        return list(range(len(names)))
    if order != "auto":
        raise ExperimentError(must("order", "be 'given' or 'auto'", repr(order)))
    return [names.index(name) for name in Learner(experiment).diagnosis().best_first()]


def _begin(experiment: Experiment, baseline: Baseline | None, *, leaking: bool) -> Play:
    """Begin the crowd of a method, or a baseline."""
    if baseline is None and isinstance(experiment.settings, Ldpmab):
        return LdpmabPlay(experiment, leaking=leaking)
    if leaking:
        raise ExperimentError(must("leaking noise", "be asked of ldpmab alone", "another method"))
    return WhisperPlay(experiment) if baseline is None else baseline.play(experiment)


class _Run:
    """The crowd on its way, block by block, so that memory stays flat."""

    def __init__(self, play: Play, environment: Environment, points: Any) -> None:
        self.play = play
        self.experiment = experiment = play.experiment
        self.world, self.chance = np.random.default_rng(experiment.seed).spawn(2)
        self.points = _check_points(experiment, points)
        self.point_means = means_at(environment, self.points)
        self.lost = np.zeros(1)
        self.people: list[int] = []
        self.regret: list[Floats] = []
        self.policies: list[Floats] = []
        self.came = 0
        self.heeded: int | None = None
        self.warning: Diagnosis | None = None

    def contribute(
        self, environment: Environment, users: int, *, policy: Floats, population: int
    ) -> None:
        """Let the rows of one auxiliary population come, with arms by its behaviour policy."""
        for size in _blocks(users):
            contexts, means, outcomes = draw_people(environment, self.world, size)
            logged = self.world.choice(len(policy), size=size, p=policy)
            self.play.contribute(self.chance, population, contexts, means, outcomes, logged)

    def serve(self, environment: Environment, users: int) -> None:
        """Let the target users come, and follow what they lose."""
        every, arms = self.experiment.release_every, len(self.experiment.arms)
        first = self.came + every - self.play.waiting
        passed = 0
        for size in _blocks(users):
            contexts, means, outcomes = draw_people(environment, self.world, size)
            regret = np.empty(size // every + 1)
            policies = np.empty((len(regret), len(self.points), arms))
            releases = self.play.serve(
                self.chance, contexts, means, outcomes, self.points, self.lost, regret, policies
            )
            self.regret.append(regret[:releases])
            self.policies.append(policies[:releases])
            passed += releases
        self.came += users
        self.people += range(first, first + passed * every, every)
        if not self.people or self.people[-1] < self.came:  # people after the last release
            policy = np.empty((1, len(self.points), arms))
            self.play.look(self.points, policy[0])
            self.people.append(self.came)
            self.regret.append(self.lost.copy())
            self.policies.append(policy)

    def serve_and_look(self, environment: Environment, users: int) -> None:
        """Let the target users come until the diagnosis warns; the rest has a new learner."""
        every = self.experiment.release_every
        while self.came < users and isinstance(self.play, WhisperPlay):
            look = max(1000, int(LOOK_AGAIN * self.came))
            look += every - (look - self.came + self.play.waiting) % every  # at a release
            self.serve(environment, min(look, users) - self.came)
            diagnosis = self.play.diagnosis()
            if diagnosis.harmful:
                self.heeded, self.warning = self.came, diagnosis
                rest = max(1, users - self.came)
                alone = replace(self.experiment, auxiliary=(), horizon=rest)
                self.play = WhisperPlay(alone)
                break
        if self.came < users:
            self.serve(environment, users - self.came)

    def result(self) -> Result:
        """Put together what was written down."""
        people = np.array(self.people)
        came = np.diff(people, prepend=0)[:, np.newaxis, np.newaxis]
        pulled = np.cumsum(np.concatenate(self.policies) * came, axis=0)
        lost = self.point_means.max(axis=1, keepdims=True) - self.point_means
        return Result(
            people=people,
            regret=np.concatenate(self.regret),
            local_regret=(pulled * lost).sum(axis=2),
            arm_ratios=pulled / people[:, np.newaxis, np.newaxis],
            experiment=self.experiment,
            play=self.play,
            heeded=self.heeded,
            warning=self.warning,
        )


def _check_points(experiment: Experiment, points: Any) -> Floats:
    """Check the places at which to follow the policy."""
    shape = (len(points), experiment.dimension)
    array = np.array(points, dtype=np.float64)
    if len(points) == 0:
        array = array.reshape(shape)
    if array.shape != shape or not ((array >= 0) & (array <= 1)).all():
        raise ExperimentError(must("points", f"be places of [0, 1]^{shape[1]}", points))
    return array


def _blocks(users: int) -> list[int]:
    return [min(BLOCK, users - start) for start in range(0, users, BLOCK)]
