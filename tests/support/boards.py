"""Boards for tests of the rules of whisper."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sottovoce.estimate.whisper.board import Board, begin

import sottovoce as sv
from sottovoce.estimate.whisper import answers
from sottovoce.estimate.whisper.constants import Constants

Floats = NDArray[np.float64]

CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED, REWARD, TONE = range(8)
NODES, CONTESTED, EVENTS, RELEASE, REPORTS, SERVED, SMOOTHED, ASKED = range(8)
ANSWERS, DELIVERED, PROMISED, CHANCE = range(4)
SEEDS = range(12)


def experiment(
    *,
    arms: int = 2,
    d: int = 2,
    horizon: int = 10_000,
    behaviours: tuple[tuple[float, ...] | None, ...] = (),
    **settings: Any,
) -> sv.Experiment:
    return sv.Experiment(
        arms=[f"arm {k}" for k in range(arms)],
        context=[sv.Numeric(f"x{j}", 0, 1) for j in range(d)],
        epsilon=1.0,
        horizon=horizon,
        auxiliary=[
            sv.Population(f"aux {m}", 2.0, 100, behaviour) for m, behaviour in enumerate(behaviours)
        ],
        method=sv.Whisper(**settings),
    )


@dataclass
class Estimate:
    """What ``answers.estimate`` writes, with room for it."""

    mean: Floats
    covariance: Floats
    slope: Floats
    slope_covariance: Floats
    share: Floats
    upper: Floats


def estimated(board: Board, known: Constants, node: int = 0) -> Estimate:
    k, d, groups = known.arms, known.dimension, board.mass.shape[1]
    found = Estimate(
        mean=np.full(k, np.nan),
        covariance=np.full((k, k), np.nan),
        slope=np.full((d, k), np.nan),
        slope_covariance=np.full((d, k, k), np.nan),
        share=np.full(groups, np.nan),
        upper=np.full((groups, d), np.nan),
    )
    answers.estimate(board, known, node, *vars(found).values())
    return found


def random_infos(rng: np.random.Generator, shape: tuple[int, ...], *, scale: float) -> Floats:
    """Matrices that answers could have added up to: none of them has a negative eigenvalue."""
    roots = rng.normal(0, 1, shape)
    infos: Floats = scale * roots @ np.swapaxes(roots, -1, -2)
    return infos


def centred_square(slope: Floats, covariance: Floats) -> float:
    """The variance of slopes between arms that is expected, from their mean and covariance.

    Of n arms, divided by n - 1; that of a single arm is its square.
    """
    arms = len(slope)
    second = np.outer(slope, slope) + covariance
    if arms == 1:
        return float(second[0, 0])
    centring = np.eye(arms) - 1 / arms  # takes the mean of all from each
    return float(np.trace(centring @ second @ centring.T)) / (arms - 1)


def noted(board: Board) -> list[list[float]]:
    rows: list[list[float]] = board.events[: board.totals[EVENTS]].tolist()
    return rows


def believing(
    known: Constants,
    mean: list[float],
    *,
    deviation: float = 0.01,
    slope: Floats | None = None,
    slope_deviation: float = 0.001,
    served: int = 1,
    users: float = 5000.0,
) -> Board:
    """A board that believes so of its one bin."""
    board = begin(known)
    identity = np.eye(known.arms)
    board.prior_info[0, 0] = identity / deviation**2
    board.prior_lean[0, 0] = np.array(mean) / deviation**2
    board.prior_info[0, 1:] = identity / slope_deviation**2
    if slope is not None:
        board.prior_lean[0, 1:] = slope / slope_deviation**2
    board.totals[REPORTS], board.totals[SERVED] = int(users), served
    board.experience[:] = users
    return board
