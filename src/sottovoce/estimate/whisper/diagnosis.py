"""``whisper``'s diagnosis of auxiliary data: the state → who promises what, and who is where."""

import math
from collections.abc import Sequence

import numpy as np

from sottovoce.estimate.diagnosis import Audit, Diagnosis, Source
from sottovoce.estimate.whisper.audit import mean_at_random, mean_of_policy
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.measurement import bin_shares, estimate
from sottovoce.estimate.whisper.smoothing import smooth
from sottovoce.estimate.whisper.state import Floats, Information, State
from sottovoce.estimate.whisper.tally import worth
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.whisper.cells import cell_mechanism, one_cell_mechanism, parts_of
from sottovoce.shared.whisper.questions import Kind, menu, questions_of
from sottovoce.shared.whisper.tuning import SHARES


def diagnose(state: State, experiment: Experiment, reports: Sequence[int]) -> Diagnosis:
    """Say of each auxiliary population what its reports, and those of the target, have shown.

    reports: how many have come of each population.
    """
    fixed = constants(experiment)
    audit = _audit(state, experiment) if fixed.audited else None
    everybody, rows = _who_is_where(state, fixed)
    misled = bool(state.totals[0].misled)
    # What the learner has forgotten, it has judged already.
    promised = state.promised if misled else promises(state, fixed)
    sources, here = [], np.flatnonzero(~fixed.retired)
    for m, population in enumerate(experiment.populations[1:], start=1):
        came = reports[m] > 0
        exploration = None
        if fixed.known[m]:
            exploration = len(here) * float(fixed.behaviour[m, here].min())
        elif came:
            exploration = len(here) * float(rows[:, m, here].sum(axis=0).min() / rows[:, m].sum())
        told = float(promised[m]) if came else None
        harmful = False
        if audit is not None and (audit.falls_short or misled) and told is not None:
            # Of several populations, those are to blame that promise what the policy rests on.
            harmful = told >= (audit.promised - audit.at_random) / 2
        sources.append(
            Source(
                population=population.name,
                epsilon=population.epsilon,
                reports=reports[m],
                expected=population.users,
                worth=_worth(state, experiment, m),
                exploration=exploration,
                overlap=float(everybody.T[[0, m]].min(axis=0).sum()) if came else None,
                promises=told,
                harmful=harmful,
            )
        )
    return Diagnosis(tuple(sources), audit)


def _audit(state: State, experiment: Experiment) -> Audit:
    totals = state.totals[0]
    told, inside = int(totals.audit_answers), one_cell_mechanism(experiment, 0).inside

    def mean(total: float) -> float:
        return float(total) / max(told, 1) + 0.5  # g = f - 1/2

    return Audit(
        answers=told,
        delivered=mean(totals.audit_delivered),
        promised=mean(totals.audit_promised),
        at_random=mean(totals.audit_at_random),
        # Of a mean of r, from answers with mean 2r - 1 and (value/β)² = inside each.
        standard_error=math.sqrt(inside / told) / 2 if told else math.inf,
    )


def promises(state: State, fixed: Constants) -> Floats:
    """Return what each population alone promises for this policy, (M+1,); 0 for the target."""
    everybody, _ = _who_is_where(state, fixed)
    others = range(1, len(fixed.behaviour))
    return np.array([0.0, *(_promises(state, fixed, m, everybody[:, 0]) for m in others)])


def _leaves(state: State) -> list[int]:
    return [node for node in range(state.totals[0].nodes) if state.tree.child[node] == node]


def _who_is_where(state: State, fixed: Constants) -> tuple[Floats, Floats]:
    """Return the share of each population in each leaf (L, M+1), and rows by arm (L, M+1, K)."""
    people = [bin_shares(state, fixed, leaf) for leaf in _leaves(state)]
    share = np.array([each.share for each in people])
    return share / share.sum(axis=0), np.array([each.rows for each in people])


def _promises(state: State, fixed: Constants, population: int, people: Floats) -> float:
    """Return what one population alone promises for the policy of now, beyond arms at random.

    people (L,): the target's share in each leaf.
    """

    def of_population(told: Information) -> Information:
        alone = Information(np.zeros_like(told.precision), np.zeros_like(told.vector))
        alone.precision[:, population] = told.precision[:, population]
        alone.vector[:, population] = told.vector[:, population]
        return alone

    alone = state._replace(
        prior=Information(state.prior.precision.copy(), state.prior.vector.copy()),
        effect_variance=state.effect_variance.copy(),
        relevance=state.relevance.copy(),
        served=of_population(state.served),
        logged=of_population(state.logged),
        totals=state.totals.copy(),
    )
    smooth(alone, fixed)
    gain = 0.0
    for share, leaf in zip(people, _leaves(state), strict=True):
        mean = estimate(alone, fixed, leaf).mean
        gain += share * (mean_of_policy(state, fixed, leaf, mean) - mean_at_random(fixed, mean))
    return float(gain)


def _worth(state: State, experiment: Experiment, m: int) -> float:
    """Return what one row says, in reports of target users, for as many bins as are contested."""
    fixed, bins = constants(experiment), max(1, int(state.totals[0].contested))
    parts, population = parts_of(experiment, 0), experiment.populations[m]
    usual = cell_mechanism(experiment.epsilon, bins, parts=parts).mechanism.variance
    cells = bins * fixed.arms if questions_of(experiment)[Kind.OUTCOME].by_arm else bins
    own = cell_mechanism(population.epsilon, cells, parts=parts).mechanism.variance
    others = menu(experiment, population=m, logged=True).bounds[-2]  # all but outcomes
    return (1 - others / SHARES) * worth(fixed, usual, own, True)
