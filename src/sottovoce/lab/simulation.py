"""Ask "what would happen": one run of a method in a simulated world, in milliseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack, cast

import numpy as np

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.gain_interval import GainEstimate
from sottovoce.estimate.history import DatedEvent
from sottovoce.estimate.learner import Learner
from sottovoce.lab.amendments import AmendedAfter, arms_at_first, offered
from sottovoce.lab.driver import AnyPolicy, Driver
from sottovoce.lab.environments import (
    Counts,
    Environment,
    Floats,
    behaviour,
    means_at,
    schema_of,
    world_at,
)
from sottovoce.lab.methods import Playable, method_of
from sottovoce.shared import check
from sottovoce.shared.baseline import Baseline
from sottovoce.shared.errors import ExperimentError, Requirement, must
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.release import Release

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


class PlayOptions(TypedDict, total=False):
    """What ``simulate`` and ``play`` may be given besides; ``simulate`` explains it."""

    release_every: int
    order: Order
    heed: bool
    points: Sequence[Sequence[float]]


class SimulateOptions(PlayOptions, total=False):
    """What ``simulate`` may be given besides, and explains."""

    auxiliary: Sequence[Auxiliary]
    amendments: Sequence[AmendedAfter]
    horizon: int | None
    baseline: Baseline | Mapping[str, Any] | None
    not_private_leaking_noise: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The same, with what is taken where nothing was given."""

    release_every: int = 100
    order: Order = "given"
    heed: bool = False
    points: Sequence[Sequence[float]] = ()
    auxiliary: Sequence[Auxiliary] = ()
    amendments: Sequence[AmendedAfter] = ()
    horizon: int | None = None
    baseline: Baseline | Mapping[str, Any] | None = None
    not_private_leaking_noise: bool = False


@dataclass(frozen=True)
class Result:
    """What happened.

    people (R,)          how many target users had come at each release
    regret (R,)          what they had lost by then in all; the last value is the total
    local_regret (R, P)  what people at each given point would have lost in all, in expectation
    arm_ratios (R, P, K) how often each arm would have been pulled there, on average so far
    method               its name
    policy               the method's own policy, as it is at the end
    reports              how many of each population came to it
    heeded               how many people had come when the rest went on without auxiliary data
    warning              the diagnosis that was heeded then
    """

    people: Counts
    regret: Floats
    local_regret: Floats
    arm_ratios: Floats
    experiment: Experiment
    method: str
    policy: AnyPolicy
    reports: tuple[int, ...]
    heeded: int | None = None
    warning: Diagnosis | None = None

    def regret_since(self, people: int) -> float:
        """Return what was lost after so many people had come, by the last release until then."""
        releases = int(np.searchsorted(self.people, people, side="right"))
        before = self.regret[releases - 1] if releases else 0.0
        return float(self.regret[-1] - before)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """What the auxiliary data has brought, if the method can tell; or the heeded warning."""
        diagnose = getattr(self.policy, "diagnosis", None)
        if self.warning is not None or diagnose is None:
            return self.warning
        found: Diagnosis = diagnose(self.reports)
        return found

    @cached_property
    def gain(self) -> GainEstimate | None:
        """What the policy brings over the baseline, where there is one."""
        gain = getattr(self.policy, "gain", None)
        return None if gain is None else cast(GainEstimate | None, gain())

    @cached_property
    def history(self) -> tuple[DatedEvent, ...]:
        """Eliminations and cuts, with the number of reports by then, auxiliary ones included."""
        history = getattr(self.policy, "history", None)
        return () if history is None else tuple(history())

    @cached_property
    def release(self) -> Release:
        """The final policy, if devices can follow it."""
        release = getattr(self.policy, "release", None)
        if release is None:
            raise ExperimentError(
                f"a release must come from a method with devices; {self.method} is a baseline or a"
                " policy of the lab, which no device can follow"
            )
        last: Release = release()
        return last


def simulate(
    environment: Environment,
    *,
    method: Playable = "whisper",
    epsilon: float,
    n: int,
    seed: int,
    **options: Unpack[SimulateOptions],
) -> Result:
    """Play n people, one report each, and return what happened.

    method: one with a learner and devices or a baseline of the lab, also by name or as a table
        with its name and settings; or anything that makes a policy from an experiment (see
        ``lab.driver``).
    release_every: reports between two releases, 100 if nobody says.
    auxiliary: logged data that is played before the target.
    amendments: what changes after how many people. Regret is counted against the arms that there
        are at the time.
    horizon: how many people the method expects; n if nobody says.
    baseline: with what the policy is compared, and for how many people, as in an experiment; with
        ``whisper``. The result then has ``gain``.
    order: in which the auxiliary populations come: as they were given, or, by ``auto``, those
        first whose rows tell most, by what is known before they come (ε and exploration).
    heed: let the diagnosis be looked at as people come, and go on without auxiliary data, with a
        new learner, as soon as one of the populations seems to mislead; with ``whisper`` only.
    points: places of [0, 1]^d at which to follow the local regret and the arms.
    not_private_leaking_noise: NOT PRIVATE. Only the people inside a bin add noise to it, as in
        the authors' experiments. It exists to reproduce their figures; no device can do it.
    """
    if isinstance(environment, type):
        came = f"the class {environment.__name__}"
        raise ExperimentError(must("an environment", "be an object", f"{came}: add ()"))
    chosen = _Options(**options)
    check.whole_number(n, what="n", least=1)
    played = method_of(method)
    arms = arms_at_first(environment, chosen.amendments)
    experiment = Experiment(
        arms=[f"arm {k}" for k in range(arms)],
        context=schema_of(environment),
        epsilon=epsilon,
        horizon=n if chosen.horizon is None else chosen.horizon,
        auxiliary=[
            Population(
                each.name or f"auxiliary {m}",
                each.epsilon,
                each.users,
                behaviour(arms, each.kappa).tolist() if each.known else None,
            )
            for m, each in enumerate(chosen.auxiliary, start=1)
        ],
        method=played.settings,
        release_every=chosen.release_every,
        seed=seed,
        baseline=chosen.baseline,
    )
    worlds = [_world_of(each, environment) for each in chosen.auxiliary]
    policy = played.begin(experiment)
    if chosen.baseline is not None:
        _ability(policy, "gain", must("a baseline", "be given with whisper alone", played))
    if chosen.not_private_leaking_noise:
        _ability(policy, "leak_noise", must("leaking noise", "be asked of ldpmab alone", played))()
    if chosen.heed:
        _ability(policy, "diagnosis", must("heed", "be asked of whisper alone", played))
    points = _check_points(experiment, chosen.points)
    driver = Driver(policy, experiment, points)
    for m in _order(experiment, chosen.order):
        rows = chosen.auxiliary[m]
        logged, world = behaviour(arms, rows.kappa), offered(worlds[m], experiment)
        driver.contribute(world, rows.users, behaviour=logged, population=m + 1)
    heeded, warning = None, None
    if chosen.heed:
        if chosen.amendments:
            raise ExperimentError(must("heed", "be asked without amendments", "some"))
        heeded, warning = _serve_until_warned(driver, experiment, environment)
    if warning is not None:
        alone = replace(experiment, auxiliary=(), horizon=max(1, n - driver.served))
        driver.change_policy(played.begin(alone), populations=1)
    experiments = [(0, experiment)]
    for each in chosen.amendments:
        if not driver.served <= each.people < n:
            rule = f"come before the last of {n} people"
            raise ExperimentError(must("an amendment", rule, f"after {each.people}"))
        if driver.served < each.people:
            driver.serve(offered(environment, experiment), each.people - driver.served)
        experiment = each.made(experiment)
        driver.amend(experiment)
        experiments.append((each.people, experiment))
    if driver.served < n:
        driver.serve(offered(environment, experiment), n - driver.served)
    people = np.concatenate(driver.people)
    since_last = np.diff(people, prepend=0)[:, np.newaxis, np.newaxis]
    policies = [_padded(each, environment.arms) for each in driver.policies]
    pulls = np.concatenate(policies) * since_last
    lost = _losses(environment, experiments, points, since=people - since_last[:, 0, 0])
    return Result(
        people=people,
        regret=np.concatenate(driver.regret),
        local_regret=np.cumsum((pulls * lost).sum(axis=2), axis=0),
        arm_ratios=np.cumsum(pulls, axis=0) / people[:, np.newaxis, np.newaxis],
        experiment=experiment,
        method=played.name,
        policy=driver.policy,
        reports=tuple(driver.reports),
        heeded=heeded,
        warning=warning,
    )


def _padded(policies: Floats, arms: int) -> Floats:
    """Return policies with a column for each arm that came later, (R, P, K)."""
    return np.pad(policies, ((0, 0), (0, 0), (0, arms - policies.shape[2])))


def _losses(
    environment: Environment,
    experiments: Sequence[tuple[int, Experiment]],
    points: Floats,
    *,
    since: Counts,
) -> Floats:
    """Return what each arm loses at each point in each release, (R, P, K); or (1, P, K) for all.

    experiments: each with the number of people who had come before it.
    since: how many people had come when each release began.
    """
    changing = hasattr(environment, "at") or len(experiments) > 1
    means = []
    for people in since if changing else since[:1]:
        now = [experiment for began, experiment in experiments if began <= people][-1]
        here = means_at(world_at(offered(environment, now), int(people)), points)
        means.append(np.pad(here, ((0, 0), (0, environment.arms - here.shape[1]))))
    stacked = np.stack(means)
    return np.asarray(stacked.max(axis=2, keepdims=True) - stacked)


def _world_of(auxiliary: Auxiliary, target: Environment) -> Environment:
    """Return where the rows of an auxiliary population come from."""
    world = auxiliary.environment or target
    if (world.arms, world.dimension) != (target.arms, target.dimension):
        rule = f"have {target.arms} arms and d = {target.dimension}"
        came = f"{world.arms} and {world.dimension}"
        raise ExperimentError(must("an auxiliary environment", rule, came))
    return world


def _ability(policy: AnyPolicy, name: str, refusal: Requirement) -> Any:
    """Return a method that not every policy has."""
    ability = getattr(policy, name, None)
    if ability is None:
        raise ExperimentError(refusal)
    return ability


def _order(experiment: Experiment, order: Order) -> list[int]:
    """Return the auxiliary populations in the order in which they come."""
    names = [each.name for each in experiment.auxiliary]
    if order == "given":
        return list(range(len(names)))
    if order != "auto":
        raise ExperimentError(must("order", "be 'given' or 'auto'", repr(order)))
    return [names.index(name) for name in Learner(experiment).diagnosis().best_first()]


def _serve_until_warned(
    driver: Driver, experiment: Experiment, environment: Environment
) -> tuple[int, Diagnosis] | tuple[None, None]:
    """Let the target users come until the diagnosis warns; return when that was, and how."""
    every, users = experiment.release_every, experiment.horizon
    while driver.served < users:
        look = max(1000, int(LOOK_AGAIN * driver.served))
        look += every - (look - driver.served + driver.waiting) % every  # at a release
        driver.serve(environment, min(look, users) - driver.served)
        policy: Any = driver.policy
        diagnosis = policy.diagnosis(driver.reports)
        if diagnosis.harmful:
            return driver.served, diagnosis
    return None, None


def _check_points(experiment: Experiment, points: Any) -> Floats:
    """Check the places at which to follow the policy."""
    shape = (len(points), experiment.dimension)
    array = np.array(points, dtype=np.float64)
    if len(points) == 0:
        array = array.reshape(shape)
    if array.shape != shape or not ((array >= 0) & (array <= 1)).all():
        raise ExperimentError(must("points", f"be places of [0, 1]^{shape[1]}", points))
    return array
