"""Methods learn on a log as if its people came to them."""

from dataclasses import replace

import numpy as np
import pytest

from sottovoce.lab.logs.comparison import BEST, OWN, RANDOM, LogEffort, compare_on_log
from sottovoce.lab.logs.learning import learn
from sottovoce.shared.errors import ExperimentError
from support.trials import SCHEMA, Trial


def test_of_a_fair_log_as_many_rows_count_as_there_are_chances() -> None:
    """p_min·n rows count in the mean: 1000 of 3000, with a standard deviation of 26.

    A count outside of 850 to 1150 comes less than once in 10^8 times.
    """
    log = Trial(least=1 / 3).log(np.random.default_rng(1), 3000)
    found = learn(log, method="whisper", epsilon=4.0, floor=1 / 3, seed=0)
    assert 850 < len(found.rewards) < 1150


def test_rows_that_count_are_a_fair_sample_of_all_where_chances_were_not_fair() -> None:
    """With a tiny ε nothing is learned, and people get the two arms by fair coins.

    Over 10 runs of about 900 people what they get is known to 0.005; 0.03 is 6 of these.
    """
    trial, means = Trial(), []
    for seed in range(10):
        log = trial.log(np.random.default_rng(seed), 6000)
        two = log.take(np.flatnonzero(log.chosen < 2))
        fair = replace(two, arms=("a", "b"), propensities=two.propensities / (1 - trial.least))
        floor = trial.least / (1 - trial.least)
        means.append(learn(fair, method="whisper", epsilon=0.01, floor=floor, seed=seed).rewards)
    contexts = np.random.default_rng(5).random((100_000, 2))
    of_two = trial.means(contexts)[:, :2].mean()
    assert np.concatenate(means).mean() == pytest.approx(of_two, abs=0.03)


def test_a_method_finds_in_the_log_what_suits_whom() -> None:
    trial = Trial(least=1 / 3)
    log = trial.log(np.random.default_rng(2), 30_000)
    found = learn(log, method="whisper", epsilon=8.0, floor=1 / 3, seed=0)
    points = np.random.default_rng(3).random((2000, 2))
    value = (found.chances(points) * trial.means(points)).sum(axis=1).mean()
    assert value > 0.57  # the best of all is 0.66, the best single arm 0.54


@pytest.mark.parametrize("method", ["linear", "nn"])
def test_baselines_learn_from_rows_that_count_too(method: str) -> None:
    """After a warm-up of a tenth of the rows they are greedy; p_min·n rows count, as above."""
    trial = Trial(least=1 / 3)
    log = trial.log(np.random.default_rng(11), 6000)
    found = learn(log, method=method, epsilon=8.0, floor=1 / 3, seed=0)
    assert 1800 < len(found.rewards) < 2200
    chances = found.chances(np.random.default_rng(3).random((500, 2)))
    assert (chances.max(axis=1) == 1).all()
    assert chances.sum() == 500


def test_all_stand_side_by_side_and_the_truth_is_within_the_intervals() -> None:
    """The interval of a single arm is wrong once in 20 times; here it is taken three times as wide,
    which is wrong once in 10^8 times."""
    trial = Trial()
    log = trial.log(np.random.default_rng(4), 4000)
    effort = LogEffort(reps=1)
    found = compare_on_log(log, methods=["whisper"], epsilon=4.0, effort=effort)
    lines = {line.name: line for line in found.lines}
    assert next(iter(lines)) == "whisper"
    assert {BEST, RANDOM, OWN, "always a", "always b", "always c"} < set(lines)
    assert found.best == "a"
    points = np.random.default_rng(6).random((400_000, 2))
    for k, arm in enumerate("abc"):
        values = lines[f"always {arm}"].values
        assert values is not None
        truth = trial.means(points)[:, k].mean()
        for each in (values.ips, values.snips, values.dr):
            assert abs(each.value - truth) < 3 * (each.high - each.low) / 2
    learning = lines["whisper"].learning
    assert learning is not None
    assert 0.3 < learning.value < 0.7


def test_what_a_reader_must_know_is_said() -> None:
    log = Trial(least=0.02).log(np.random.default_rng(7), 600)
    found = compare_on_log(log, methods=["whisper"], clip=0.05, effort=LogEffort(reps=1))
    assert found.clipped == int((log.propensities < 0.05).sum()) > 0
    said = " ".join(found.warnings)
    assert "have a propensity below 0.05, which counts as 0.05" in said
    assert "Fewer than 200 people come in the replay of whisper" in said


def test_a_log_of_one_arm_says_nothing_of_others() -> None:
    log = Trial().log(np.random.default_rng(8), 200)
    with pytest.raises(ExperimentError, match=r"must have at least two arms.*got one, 'a'; of it"):
        compare_on_log(log.take(np.flatnonzero(log.chosen == 0)))
    with pytest.raises(ExperimentError, match="a log must have at least 20 rows; got 5"):
        compare_on_log(log.take(np.arange(5)))


@pytest.mark.parametrize(
    ("value", "words"), [(0.0, "be above 0 in every row"), (1.5, "be at most 1"), (-1, "above 0")]
)
def test_propensities_that_cannot_be_are_refused(value: float, words: str) -> None:
    log = Trial().log(np.random.default_rng(9), 200)
    wrong = log.propensities.copy()
    wrong[3] = value
    with pytest.raises(ExperimentError, match=words):
        type(log)("log", log.arms, SCHEMA, log.contexts, log.chosen, log.rewards, wrong)


def test_a_method_that_cannot_learn_from_rows_is_refused() -> None:
    log = Trial().log(np.random.default_rng(10), 200)
    with pytest.raises(ExperimentError, match=r"must be one of \['whisper', 'ldpmab'"):
        learn(log, method="abse", epsilon=1.0, floor=0.1, seed=0)
