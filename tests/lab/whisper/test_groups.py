"""The crowd has the groups of a baseline, by the device's and the learner's own functions.

Seeds are fixed. Each test says how often it would fail by chance with others.
"""

import random
from collections import Counter

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.estimate.gain import look_at_gain
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.state import initial_state
from sottovoce.lab.environments import Floats
from sottovoce.lab.simulation import simulate
from sottovoce.lab.whisper import groups as kernel
from sottovoce.lab.whisper import tables
from support.gains import compared
from support.insides import whisper_state_of

GAP = 0.4


class OneBetter:
    """Arm 1 brings 0.4 more than arm 0, wherever one is."""

    arms = 2
    dimension = 1

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random((n, 1))

    def means(self, contexts: Floats) -> Floats:
        return np.tile([0.3, 0.3 + GAP], (len(contexts), 1))


def test_from_the_same_answers_the_kernel_and_the_learner_know_the_same_of_the_gain() -> None:
    experiment = compared(8.0, share=0.2, horizon=800, release_every=40)
    learner, chance = sv.Learner(experiment), random.Random(0)
    fixed = tables.fixed_for(experiment, 0, nodes=64)
    state = initial_state(constants(experiment))
    tallies = tables.tallies_for(state, fixed.constants)
    crowd = tables.Crowd(state, tallies)
    first = 8 * 2 + 2 * 27 + 2  # the number of POLICY_REWARD, with one feature
    settled_steps: Counter[bool] = Counter()
    for _ in range(20):
        settled = not learner.release().contested
        settled_steps[settled] += 1
        for _ in range(40):
            device = sv.Device(learner.release())
            good = chance.random() < (0.9 if device.choose({"age": 40}) == "coach" else 0.1)
            report = device.report(reward=float(good))
            group = report.question - first
            if group >= 0:
                tallies.groups[group, int(report.payload == b"\1")] += 1
            learner.receive(report)
        totals = state.totals[0]
        totals.paid += 40
        totals.target += 40
        kernel.add_groups(crowd, fixed, settled, 40)
        assert not tallies.groups.any()
        look_at_gain(state.gain, fixed.constants.gain, totals.target)
        for one, other in zip(state.gain, whisper_state_of(learner).gain, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        assert totals.paid == whisper_state_of(learner).totals[0].paid
    assert set(settled_steps) == {False, True}
    assert state.gain.share[0] == 1400


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_simulation_tells_what_the_policy_brought(epsilon: float) -> None:
    """Each of 4 figures is 5 standard deviations off once in 10^6 runs; the interval, 1 of 20."""
    n = 8000
    result = simulate(
        OneBetter(), epsilon=epsilon, n=n, seed=1, baseline={"arm": "arm 0", "share": 0.1}
    )
    gain = result.gain
    assert gain is not None
    ever = gain.ever
    assert ever.people == n
    held = ever.baseline_people
    shares = 0.1 if gain.share == 0.1 else 0.085
    for asked in (held, ever.policy_people):
        assert asked == pytest.approx(n * shares, abs=5 * (n * 0.1 * 0.9) ** 0.5 + n * 0.015)
    assert ever.balanced
    # People of the baseline group lose the gap, and all others what is left of the loss.
    lost = float(result.regret[-1]) - GAP * held
    truth = GAP - lost / (n - held)
    assert ever.low <= truth <= ever.high
    assert 0 < truth <= GAP
    assert gain.present is not None
    assert gain.present.low <= GAP <= gain.present.high + GAP - truth
    assert result.release.baseline_share in (1000, 700)


def test_arms_at_random_cost_less_than_the_worst_and_more_than_the_best() -> None:
    n = 6000
    lost = {}
    for name, arm in (("worst", "arm 0"), ("best", "arm 1"), ("random", None)):
        baseline = {"share": 0.3, **({"arm": arm} if arm else {})}
        result = simulate(OneBetter(), epsilon=4.0, n=n, seed=2, baseline=baseline)
        assert result.gain is not None
        lost[name] = float(result.regret[-1])
    assert lost["best"] < lost["random"] < lost["worst"]


def test_without_a_baseline_there_is_no_gain_and_other_methods_have_none() -> None:
    assert simulate(OneBetter(), epsilon=4.0, n=300, seed=0).gain is None
    with pytest.raises(sv.ExperimentError, match="baseline must be left out with ldpmab"):
        simulate(OneBetter(), method="ldpmab", epsilon=4.0, n=300, seed=0, baseline={"share": 0.1})
    with pytest.raises(sv.ExperimentError, match="a baseline must be given with whisper alone"):
        simulate(OneBetter(), method="abse", epsilon=4.0, n=300, seed=0, baseline={"share": 0.1})


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_intervals_of_simulated_experiments_hold_in_the_end(epsilon: float) -> None:
    """At most 10 of 100 may be wrong; with a chance of 0.05, more are so in 1 of 90 runs.

    The chance of an error is smaller, as the interval holds at all times.
    """
    wrong = 0
    for seed in range(100):
        result = simulate(
            OneBetter(), epsilon=epsilon, n=4000, seed=seed, baseline={"arm": "arm 0", "share": 0.1}
        )
        assert result.gain is not None
        ever = result.gain.ever
        lost = float(result.regret[-1]) - GAP * ever.baseline_people
        truth = GAP - lost / (4000 - ever.baseline_people)
        wrong += not ever.low <= truth <= ever.high
    assert wrong <= 10
