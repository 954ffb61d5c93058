"""One answer of the lab's ``whisper`` crowd, and every step it takes, are those of a learner.

Given the same answers, the kernel's board is the learner's. Answers are drawn from the law as it is
defined, at a false-alarm rate of 1e-9 each. Seeds are fixed for the crowd; devices draw from the
operating system.
"""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sottovoce.estimate.whisper.board import Board, begin, paths, roomy
from sottovoce.estimate.whisper.policy import policies_of
from sottovoce.shared.questions import LOGGED, Kind, is_by_arm, may_halve, question_of, sheet
from sottovoce.shared.shares import REWARD_SHARE
from sottovoce.shared.subset import odds, unpack

import sottovoce as sv
from sottovoce.estimate.whisper import answers, places, rules
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.lab.whisper import draws, tables
from sottovoce.lab.whisper import people as kernel
from support.insides import board_of, copy_of
from support.subset import expected_law

Floats = NDArray[np.float64]

EACH = 1e-9


WHISPER = sv.Whisper()
CERTIFIED = sv.Whisper("certified")
PUBLIC = sv.Whisper(public_arms=True)


# --- one answer -----------------------------------------------------------------------------------

DRAWS = 40_000


def surprise(row: Floats, expected: Mapping[tuple[int, ...], Fraction], cell: int) -> float:
    """The p-value of the kernel's sets of one person against the law as it is defined."""
    rng = np.random.default_rng(5)
    cells = int(row[tables.CELLS])
    order, picks, values = np.arange(cells), np.zeros(cells, dtype=np.int64), np.zeros(cells)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(DRAWS):
        values[:] = 0.0
        draws.answer(row, cell, 1.0, values, order, picks, rng)
        # Nobody reads "elsewhere", and a device's coin for its sign is not drawn.
        if cell < 0 and row[tables.ELSEWHERE]:
            values[-1] = abs(values[-1])
        seen[tuple(map(int, values))] += 1
    assert order.tolist() == list(range(cells))
    assert seen.keys() <= expected.keys()
    observed = [seen[values] for values in expected]
    return float(stats.chisquare(observed, [float(p) * DRAWS for p in expected.values()]).pvalue)


@pytest.mark.parametrize(
    ("epsilon", "whole", "cells", "size"), [(1.0, 3, 3, 3), (1.5, 3, 4, 2), (5.0, 2, 5, 1)]
)
def test_an_answer_of_the_crowd_has_the_law_that_is_defined(
    epsilon: float, whole: int, cells: int, size: int
) -> None:
    row = tables.laws(epsilon, whole, may_halve=True)[whole].copy()
    assert (row[tables.CELLS], row[tables.SIZE]) == (cells, size)
    a = Fraction(*odds(epsilon))
    for cell in (-1, 0, cells // 2):
        if cell >= 0:
            expected = expected_law(cells, size, a, cell, 1.0)
        elif row[tables.ELSEWHERE]:
            expected = {}
            for values, chance in expected_law(cells, size, a, cells - 1, 0.0).items():
                unsigned = (*values[:-1], abs(values[-1]))
                expected[unsigned] = expected.get(unsigned, Fraction(0)) + chance
        else:
            expected = expected_law(cells, size, a, None, 0.0)
        assert surprise(row, expected, cell) > EACH
    row[tables.CONTAINS] *= 0.95
    assert surprise(row, expected, cell) < EACH


# --- step by step, with the same answers ----------------------------------------------------------


class Mirror:
    """The kernel's board, fed with the answers that a learner gets."""

    def __init__(self, experiment: sv.Experiment) -> None:
        self.experiment = experiment
        self.constants: Constants = constants(experiment)
        self.board = begin(self.constants)
        self.waiting: dict[tuple[int, bool], tables.Answers] = {}
        self.told = np.zeros(2)

    def law(self, population: int, *, by_arm: bool) -> Floats:
        """The kernel's mechanism for the cells of now."""
        answers = self.answers(population, by_arm)
        cells = kernel.lay_out(self.board, answers)[int(by_arm)]
        epsilon = self.experiment.populations[population].epsilon
        most = len(self.board.axis) * self.constants.arms
        row: Floats = tables.laws(epsilon, most, may_halve=may_halve(self.experiment))[cells]
        return row

    def answers(self, population: int, by_arm: bool) -> tables.Answers:
        fresh = tables.answers(self.board, self.constants)
        return self.waiting.setdefault((population, by_arm), fresh)

    def add(self, report: sv.Report, release: sv.Release) -> None:
        """Add the values of a report in the kernel's own order of cells."""
        board, settings, m = self.board, self.constants, report.population
        question = question_of(report.question, self.experiment)
        by_arm = is_by_arm(question.kind, arms=settings.arms)
        logged = question.kind in LOGGED
        row, answers = self.law(m, by_arm=by_arm), self.answers(m, by_arm)
        board.totals[places.REPORTS] += 1
        board.totals[places.SERVED] += not logged
        sheet_ = sheet(release, population=m, by_arm=by_arm)
        if not logged:
            board.experience[:] += 1.0
        elif sheet_ is not None:
            usual = self.law(0, by_arm=False)[tables.VARIANCE]
            own_law = self.law(m, by_arm=is_by_arm(Kind.OUTCOME, arms=settings.arms))
            board.experience[0] += kernel.credit(settings, usual, own_law[tables.VARIANCE], True)
        if question.kind == Kind.REWARD:
            assert m == 0
            assert report.payload in (b"\0", b"\1")
            self.told += [1, 1 if report.payload == b"\1" else -1]
            return
        if sheet_ is None:
            assert board.totals[places.CONTESTED] == 0
            assert report.payload == b""
            return
        mechanism = sheet_.law.mechanism
        assert [mechanism.cells, mechanism.size] == row[[tables.CELLS, tables.SIZE]].tolist()
        assert isinstance(report.payload, bytes)
        values = unpack(mechanism, report.payload)
        own = np.zeros(answers.sums.shape[1])
        nodes = {path: node for node, path in enumerate(paths(board))}
        width = 2 if sheet_.law.halves else 1
        for (path, arm), place in sheet_.places.items():
            node = nodes[path]
            cell = answers.first[node, int(by_arm)]
            cell += 0 if arm is None else board.live[node, :arm].sum()
            # A release has its arms in order, the kernel its champion first.
            other = question.kind == Kind.CONTRAST and board.pair[node, 0] > board.pair[node, 1]
            for half in range(width):
                own[width * cell + half] = values[width * place + half] * (-1 if other else 1)
        if question.kind == Kind.RANKED:
            place = 0 if question.feature is None else 1 + question.feature
            ranking = np.array(report.ranking)
            kernel.fold_ranked(board, settings, answers, row, place, ranking, own)
            return
        answers.sums[report.question] += own
        answers.asked[report.question] += 1
        if report.question == 0:
            answers.named[:] += abs(own)

    def step(self) -> None:
        for m, by_arm in self.waiting:
            row = self.law(m, by_arm=by_arm)
            answers = self.answers(m, by_arm)
            kernel.hand_over(self.board, self.constants, answers, row, m, by_arm)
        self.waiting.clear()
        if self.told[0]:
            row = tables.reward_law(self.experiment)
            kernel.audit(self.board, self.told[0], self.told[1] / row[tables.SIGNAL])
            self.told[:] = 0.0
        self.board = roomy(self.board, self.constants)
        kernel.decide(self.board, self.constants)


def assert_same(ours: Board, theirs: Board) -> None:
    assert ours.totals.tolist() == theirs.totals.tolist()
    nodes, contested, events = ours.totals[: places.EVENTS + 1]
    for name, one, other in zip(Board._fields, ours, theirs, strict=True):
        rows = {"contested": contested, "events": events, "totals": 8, "experience": 2, "audit": 4}
        a: Any = one[: rows.get(name, nodes)]
        b: Any = other[: rows.get(name, nodes)]
        if name == "events":
            assert a[:, :6].tolist() == b[:, :6].tolist()
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=name)
        else:
            assert a.tolist() == b.tolist(), name


@pytest.mark.parametrize("method", [WHISPER, CERTIFIED, PUBLIC], ids=["regret", "certified", "pub"])
def test_from_the_same_answers_the_kernel_and_the_learner_decide_the_same(
    method: sv.Whisper,
) -> None:
    outcomes: Counter[str] = Counter()
    smoothed = told = 0
    shares: set[int] = set()
    for seed in range(25):
        rng = np.random.default_rng(seed)
        arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        epsilons = [0.5, 1.0, 2.0, 8.0, 1024.0]
        experiment = sv.Experiment(
            arms=[f"{k}" for k in range(arms)],
            context=[sv.Numeric(f"x{axis}", 0, 1) for axis in range(d)],
            epsilon=epsilons[seed % 5],
            horizon=400,
            auxiliary=[
                sv.Population(
                    f"log {m}",
                    float(rng.choice(epsilons)),
                    100,
                    [1 / arms] * arms if rng.random() < 0.5 else None,
                )
                for m in range(1, 1 + rng.integers(0, 3))
            ],
            method=method,
            release_every=int(rng.choice([10, 30])),
        )
        means = rng.beta(0.3, 0.3, (4, arms))
        learner, mirror = sv.Learner(experiment), Mirror(experiment)
        for count in range(1, 421):
            release = learner.release()
            m = int(rng.integers(len(experiment.populations))) if rng.random() < 0.4 else 0
            device = sv.Device(release, population=experiment.populations[m].name, public_arms=True)
            context = {f"x{axis}": float(rng.random()) for axis in range(d)}
            quarter = means[int(4 * context["x0"])]
            if m > 0:
                arm = int(rng.integers(arms))
                reward = float(rng.random() < quarter[arm])
                report = device.report_logged(context, arm=f"{arm}", reward=reward)
            else:
                arm = int(device.choose(context))
                report = device.report(reward=float(rng.random() < quarter[arm]))
            mirror.add(report, release)
            learner.receive(report)
            if count % experiment.release_every == 0:
                mirror.step()
                assert_same(mirror.board, board_of(learner))
                now = learner.release()
                assert policies_of(mirror.board, mirror.constants) == now.bins
                assert mirror.board.totals[places.ASKED] == now.reward_share
                shares.add(now.reward_share)
        outcomes.update(type(dated.event).__name__ for dated in learner.history())
        smoothed += int(mirror.board.totals[places.SMOOTHED] > 0)
        told += int(mirror.board.audit[places.ANSWERS])
    assert outcomes["Split"] > 20
    assert smoothed > 5  # both have gone through the tree
    assert told > 500  # and people have told both how it went
    assert {0, REWARD_SHARE} <= shares
    if method != CERTIFIED:  # which settles too little for that
        assert max(shares) > REWARD_SHARE  # more of them were asked to where much was settled
    # Proof is rare after 420 reports.
    assert outcomes["Elimination"] > (0 if method == CERTIFIED else 10)


def test_where_arms_are_equal_the_kernel_and_the_learner_choose_the_same() -> None:
    """Arms of which nobody has told anything yet are tied, and rounding must not decide."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        arms = 2 + seed % 4
        settings = constants(
            sv.Experiment(
                arms=[f"arm {k}" for k in range(arms)],
                context=[sv.Numeric("x", 0, 1)],
                epsilon=1.0,
                horizon=400,
            )
        )
        ours = begin(settings)
        for kind in (answers.CONTRAST, answers.LEVEL):
            count = float(rng.integers(1, 60))
            whole = float(rng.integers(-2, 3))
            sums = (count, whole, whole, 0.46, 4.7, 4.7, False)
            answers.fold(ours, settings, 0, 0, kind, 0, 0, 1, *sums)
        ours.totals[[places.REPORTS, places.SERVED]] = 60
        theirs = copy_of(ours)
        for _ in range(3):
            kernel.decide(ours, settings)
            rules.step(theirs, settings)
            assert_same(ours, theirs)
