"""``whisper``'s diagnosis of auxiliary data: a board → who promises what, and who is where."""

from collections.abc import Sequence

import numpy as np

from sottovoce.estimate.diagnosis import Audit, Diagnosis, Source, standard_error
from sottovoce.estimate.whisper import answers, kin
from sottovoce.estimate.whisper.audit import of_policy
from sottovoce.estimate.whisper.board import Board, Floats
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.places import (
    ANSWERS,
    CHANCE,
    CONTESTED,
    DELIVERED,
    NODES,
    PROMISED,
)
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.questions import Kind, is_by_arm, law, may_halve, reward_mechanism
from sottovoce.shared.shares import COUNT_SHARE, COUNT_SHARE_UNKNOWN, SHARES, TONE_SHARE


def diagnose(board: Board, experiment: Experiment, reports: Sequence[int]) -> Diagnosis:
    """Say of each auxiliary population what its reports, and those of the target, have shown.

    reports: how many have come of each population.
    """
    fixed = constants(experiment)
    audit = _audit(board, experiment) if fixed.audited else None
    everybody, rows = _who_is_where(board, fixed)
    sources = []
    for m, population in enumerate(experiment.populations[1:], start=1):
        came = reports[m] > 0
        exploration = None
        if fixed.known[m]:
            exploration = fixed.arms * float(fixed.behaviour[m].min())
        elif came:
            exploration = fixed.arms * float(rows[:, m].sum(axis=0).min() / rows[:, m].sum())
        promises = _promises(board, fixed, m, everybody[:, 0]) if came else None
        harmful = False
        if audit is not None and audit.falls_short and promises is not None:
            # Of several populations, those are to blame that promise what the policy rests on.
            harmful = bool(promises >= (audit.promised - audit.at_random) / 2)
        sources.append(
            Source(
                population=population.name,
                epsilon=population.epsilon,
                reports=reports[m],
                expected=population.users,
                worth=_worth(board, experiment, m),
                exploration=exploration,
                overlap=float(everybody.T[[0, m]].min(axis=0).sum()) if came else None,
                promises=promises,
                harmful=harmful,
            )
        )
    return Diagnosis(tuple(sources), audit)


def _audit(board: Board, experiment: Experiment) -> Audit:
    told = int(board.audit[ANSWERS])
    mean = board.audit / max(told, 1) + 0.5  # g = f - 1/2
    return Audit(
        answers=told,
        delivered=float(mean[DELIVERED]),
        promised=float(mean[PROMISED]),
        at_random=float(mean[CHANCE]),
        standard_error=standard_error(told, inside=reward_mechanism(experiment).inside),
    )


def _leaves(board: Board) -> list[int]:
    return [node for node in range(int(board.totals[NODES])) if board.child[node] == node]


def _who_is_where(board: Board, fixed: Constants) -> tuple[Floats, Floats]:
    """Return the share of each population in each leaf (L, M+1), and rows by arm (L, M+1, K)."""
    leaves, groups = _leaves(board), board.mass.shape[1]
    share, upper = np.empty((len(leaves), groups)), np.empty((groups, fixed.dimension))
    rows = np.empty((len(leaves), groups, fixed.arms))
    for place, leaf in enumerate(leaves):
        answers.shares(board, fixed, leaf, share[place], upper, rows[place])
    return share / share.sum(axis=0), rows


def _promises(board: Board, fixed: Constants, population: int, people: Floats) -> float:
    """Return what one population alone promises for the policy of now, beyond arms at random.

    people (L,): the target's share in each leaf.
    """
    alone = board._replace(
        **{name: getattr(board, name).copy() for name in ("prior_info", "prior_lean", "anew")},
        **{name: np.zeros_like(getattr(board, name)) for name in ("info", "lean")},
        **{name: getattr(board, name).copy() for name in ("logged_info", "logged_lean")},
        totals=board.totals.copy(),
    )
    others = [m for m in range(board.mass.shape[1]) if m != population]
    alone.info[:, population] = board.info[:, population]
    alone.lean[:, population] = board.lean[:, population]
    alone.logged_info[:, others] = alone.logged_lean[:, others] = 0.0
    kin.smooth(alone, fixed)
    arms, d, groups = fixed.arms, fixed.dimension, board.mass.shape[1]
    mean, covariance = np.empty(arms), np.empty((arms, arms))
    gain = 0.0
    for place, leaf in enumerate(_leaves(board)):
        answers.estimate(
            alone,
            fixed,
            leaf,
            mean,
            covariance,
            np.empty((d, arms)),
            np.empty((d, arms, arms)),
            np.empty(groups),
            np.empty((groups, d)),
        )
        gain += people[place] * (of_policy(board, fixed, leaf, mean) - float(mean.mean()))
    return float(gain)


def _worth(board: Board, experiment: Experiment, m: int) -> float:
    """Return what one row says, in reports of target users, for as many bins as are contested."""
    fixed, bins = constants(experiment), max(1, int(board.totals[CONTESTED]))
    halves, population = may_halve(experiment), experiment.populations[m]
    usual = law(experiment.epsilon, bins, may_halve=halves).mechanism.variance
    by_arm = is_by_arm(Kind.OUTCOME, arms=fixed.arms)
    cells = bins * fixed.arms if by_arm else bins
    own = law(population.epsilon, cells, may_halve=halves).mechanism.variance
    others = COUNT_SHARE if fixed.known[m] else COUNT_SHARE_UNKNOWN
    others += 0 if by_arm else TONE_SHARE
    return (1 - others / SHARES) * answers.worth(fixed, usual, own, True)
