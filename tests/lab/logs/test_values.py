"""Off-policy estimates agree with hand-computed cases, and their intervals hold their level."""

import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.logs.log import Log
from sottovoce.lab.logs.values import RewardModel, mean_reward, value_of
from support.trials import Policy, Trial

ONE = (sv.Numeric("x", 0, 1),)


def small() -> Log:
    """Four rows that can be worked out by hand."""
    return Log(
        "small",
        ("a", "b"),
        ONE,
        np.array([[0.1], [0.2], [0.3], [0.4]]),
        np.array([0, 1, 0, 1]),
        np.array([1.0, 0.0, 0.0, 1.0]),
        np.array([0.5, 0.25, 0.5, 0.75]),
    )


def test_each_estimator_agrees_with_what_was_worked_out_by_hand() -> None:
    # The policy gives b to everybody. Weights are 0, 4, 0 and 4/3; the model says 0.5 of b.
    policy, model = np.tile([0.0, 1.0], (4, 1)), np.tile([0.2, 0.5], (4, 1))
    found = value_of(policy, small(), model)
    assert found.ips.value == pytest.approx((4 / 3) / 4)
    assert found.snips.value == pytest.approx((4 / 3) / (4 + 4 / 3))
    # 0.5 for each, and 4·(0 - 0.5) and 4/3·(1 - 0.5) more.
    assert found.dr.value == pytest.approx(0.5 + (4 * -0.5 + 4 / 3 * 0.5) / 4)
    assert found.effective == pytest.approx((16 / 3) ** 2 / (16 + 16 / 9))
    terms = np.array([0, 0, 0, 4 / 3])
    half = 1.96 * terms.std(ddof=1) / math.sqrt(4)
    assert found.ips.high - found.ips.value == pytest.approx(half)
    # The ratio is 1/4; its error by the delta method: √(16·(1/4)² + (4/3)²·(3/4)²)/(16/3).
    assert found.snips.high - 0.25 == pytest.approx(1.96 * math.sqrt(1 + 1) / (16 / 3))


def test_small_propensities_count_as_the_clip() -> None:
    policy, model = np.tile([0.0, 1.0], (4, 1)), np.zeros((4, 2))
    found = value_of(policy, small(), model, clip=0.8)
    assert found.ips.value == pytest.approx((1 / 0.8) / 4)


def test_a_policy_that_no_row_agrees_with_is_worth_nobody_knows_what() -> None:
    policy = np.zeros((4, 2))
    found = value_of(policy, small(), np.zeros((4, 2)))
    assert found.effective == 0
    assert math.isnan(found.snips.value)


def test_the_model_is_the_line_through_the_rows_of_each_arm() -> None:
    rng = np.random.default_rng(0)
    contexts, chosen = rng.random((4000, 1)), rng.integers(2, size=4000)
    rewards = np.where(chosen == 1, 0.2 + 0.5 * contexts[:, 0], 0.6)
    log = Log("line", ("a", "b"), ONE, contexts, chosen, rewards, np.full(4000, 0.5))
    found = RewardModel.fit(log).predict(log)
    assert found[:, 0] == pytest.approx(0.6, abs=0.01)
    assert found[:, 1] == pytest.approx(0.2 + 0.5 * contexts[:, 0], abs=0.01)


def test_intervals_hold_their_level_whatever_the_model() -> None:
    """400 logs of 1,500 rows. 95 % of 400 is 380 ± 4.4: fewer than 362 or more than 396 of a right
    interval come less than once in 10,000 times; the six together once in 1,000."""
    trial, policies = Trial(), {"always c": Policy(2), "divided": Policy(0, 1)}
    truth = {name: trial.value(policy) for name, policy in policies.items()}
    held: dict[tuple[str, str], int] = {}
    for seed in range(400):
        first, second = trial.log(np.random.default_rng(seed), 3000).halves(
            np.random.default_rng(seed)
        )
        model = RewardModel.fit(first).predict(second)
        for name, policy in policies.items():
            found = value_of(policy(second.contexts), second, model)
            for kind in ("ips", "snips", "dr"):
                each = getattr(found, kind)
                inside = each.low <= truth[name] <= each.high
                held[name, kind] = held.get((name, kind), 0) + inside
    assert len(held) == 6
    assert {key: count for key, count in held.items() if not 362 <= count <= 396} == {}


def test_the_mean_of_the_log_is_in_the_unit_of_its_rewards() -> None:
    log = small()
    assert mean_reward(log).value == pytest.approx(0.5)
