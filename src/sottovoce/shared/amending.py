"""What an experiment is after its amendments, and which amendment may come next.

An experiment keeps its identity, the fingerprint of its first form, which devices pin. Each
amendment names the one before by its hash, and the first one names the fingerprint. Every release
carries the first form and all amendments so far, under the server's signature and in the chain of
releases. A device works out from them what holds now, and refuses a release whose amendments do not
continue those that it has seen.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from sottovoce.shared.amendment import (
    ADD_ARM,
    ARCHIVE,
    ARCHIVED,
    EXTEND_HORIZON,
    KINDS,
    MOST_ARMS,
    PAUSE,
    PAUSED,
    RESTORE,
    RESUME,
    RETIRE_ARM,
    RUNNING,
    STOPPED,
    WRITTEN,
    Amendment,
)
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment, Population


def draft(experiment: Experiment, kind: str, *, by: str, made: datetime, **about: Any) -> Amendment:
    """Return the amendment that follows those of an experiment."""
    moment = made.astimezone(UTC).strftime(WRITTEN)
    return Amendment(before=_last_hash(experiment), made=moment, by=by, kind=kind, **about)


def amended(experiment: Experiment, amendment: Amendment) -> Experiment:
    """Return what an experiment is after one more amendment, or raise ExperimentError."""
    _check_order(experiment, amendment)
    before, arms = experiment, experiment.arms
    if amendment.kind == ADD_ARM:
        experiment = _with_arm(experiment, amendment.arm or "")
    elif amendment.kind == RETIRE_ARM:
        in_use = [arms[k] for k in range(len(arms)) if k not in experiment.retired]
        if amendment.arm not in in_use:
            raise ExperimentError(must("a retired arm", f"be one of {in_use}", repr(amendment.arm)))
        if (baseline := experiment.compared_with) and baseline.arm == amendment.arm:
            rule = "not be the baseline, with which the policy is compared"
            raise ExperimentError(must("a retired arm", rule, repr(amendment.arm)))
        if len(in_use) == 2:
            raise ExperimentError(must("arms", "be at least 2 after one is retired", "1"))
    elif amendment.kind == EXTEND_HORIZON:
        horizon = amendment.horizon or 0
        if horizon <= experiment.horizon:
            rule = f"be more than {experiment.horizon}, which it is"
            raise ExperimentError(must("an extended horizon", rule, horizon))
        experiment = replace(experiment, horizon=horizon)
    amendments = (*experiment.amendments, amendment)
    return replace(experiment, first=before.first_form, amendments=amendments)


def after_amendments(first: Experiment, amendments: Iterable[Amendment]) -> Experiment:
    """Return what an experiment is after all of its amendments."""
    now = first
    for each in amendments:
        now = amended(now, each)
    return now


def continues(now: Experiment, before: Experiment) -> bool:
    """Say whether what holds now is what held before, with all of its amendments and perhaps more.

    No amendment changes the first form, in which ε, the populations and the features are. A server
    that was restored may have lost the newest amendments; it has to say so by a RESTORE.
    """
    if now.first_form != before.first_form:
        return False
    first = first_news(now, before)
    is_the_same = now.amendments[: len(before.amendments)] == before.amendments
    return is_the_same or (first is not None and first.kind == RESTORE)


def first_news(now: Experiment, before: Experiment) -> Amendment | None:
    """Return the first amendment of now that those of before do not have in its place."""
    places = zip_longest(now.amendments, before.amendments)
    return next((ours for ours, theirs in places if ours != theirs), None)


def restores_of(experiment: Experiment) -> tuple[Amendment, ...]:
    """Return how often the server has lost its newest releases, and where it went on."""
    return tuple(each for each in experiment.amendments if each.kind == RESTORE)


def kinds_in(state: str) -> frozenset[str]:
    """Return the kinds of amendments that an operator may ask for in a state."""
    return {
        RUNNING: frozenset(KINDS) - {RESUME},
        PAUSED: frozenset(KINDS) - {PAUSE},
        STOPPED: frozenset({ARCHIVE}),
        ARCHIVED: frozenset[str](),
    }[state]


def _check_order(experiment: Experiment, amendment: Amendment) -> None:
    """Check that an amendment follows the last one, and may come in this state."""
    if amendment.before != _last_hash(experiment):
        rule = "name the amendment before it by its hash"
        raise ExperimentError(must("an amendment", rule, "another hash"))
    if experiment.amendments and amendment.made < experiment.amendments[-1].made:
        last = experiment.amendments[-1].made
        raise ExperimentError(must("an amendment", f"not be older than {last}", amendment.made))
    state, allowed = experiment.state, kinds_in(experiment.state)
    if amendment.kind == RESTORE and state != ARCHIVED:
        _check_restore(experiment, amendment)
    elif amendment.kind not in allowed:
        rule = f"be one of {sorted(allowed)}" if allowed else "not come any more"
        raise ExperimentError(
            must(f"an amendment to an experiment that is {state}", rule, repr(amendment.kind))
        )


def _check_restore(experiment: Experiment, amendment: Amendment) -> None:
    """Check that a server goes on from a later release than the last time that it was restored."""
    for last in restores_of(experiment)[-1:]:
        if (amendment.release or 0) <= (last.release or 0) or amendment.branch == last.branch:
            rule = f"name a release after {last.release}, and a branch of its own"
            raise ExperimentError(must("a restore", rule, amendment.release))


def _with_arm(experiment: Experiment, arm: str) -> Experiment:
    if arm in experiment.arms:
        raise ExperimentError(must("an added arm", "have a new name", repr(arm)))
    if len(experiment.arms) == MOST_ARMS:
        raise ExperimentError(must("arms", f"be at most {MOST_ARMS}", MOST_ARMS + 1))
    auxiliary = [_without_rows_of_the_last(each) for each in experiment.auxiliary]
    return replace(experiment, arms=(*experiment.arms, arm), auxiliary=auxiliary)


def _without_rows_of_the_last(population: Population) -> Population:
    """Return a population whose log says nothing of an arm that came later."""
    if population.behaviour is None:
        return population
    return replace(population, behaviour=(*population.behaviour, 0.0))


def _last_hash(experiment: Experiment) -> str:
    if experiment.amendments:
        return experiment.amendments[-1].hash
    return experiment.fingerprint
