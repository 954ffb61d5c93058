"""Learners never publish a tree that devices would refuse."""

import random
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment, grown
from sottovoce.estimate import tree
from sottovoce.estimate.ldpmab import constants
from support.whispers import send


def whispering(*, reports: int = 1500) -> sv.Learner:
    learner = sv.Learner(experiment(epsilon=64.0, release_every=50, method="whisper"))
    send(learner, random.Random(3), reports, target_only=True)
    return learner


GROW: dict[str, Any] = {"ldpmab": grown, "whisper": whispering}


def deepest(release: sv.Release) -> int:
    return max(len(policy.path) for policy in release.bins)


@pytest.mark.parametrize("method", GROW)
def test_without_the_bounds_the_tree_is_larger(method: str) -> None:
    release = GROW[method]().release()
    assert len(release.bins) > 2
    assert deepest(release) > 1


@pytest.mark.parametrize("method", GROW)
def test_a_learner_makes_no_more_bins_than_a_release_may_have(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(tree, "MOST_BINS", 2)
    assert len(GROW[method]().release().bins) == 2


@pytest.mark.parametrize("method", GROW)
def test_a_learner_splits_no_deeper_than_a_release_may_be(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(tree, "MOST_DEPTH", 1)
    assert deepest(GROW[method]().release()) == 1


def test_the_constants_of_ldpmab_stop_at_the_depth_of_a_release() -> None:
    for preset in ("paper", "authors"):
        features = [sv.Numeric(f"x{j}", 0, 1) for j in range(5)]
        public = sv.Experiment(
            arms=["a", "b"],
            context=features,
            epsilon=1e6,
            horizon=2**52,
            method=sv.Ldpmab(preset=preset),
        )
        assert constants.constants(public).deepest <= 96
