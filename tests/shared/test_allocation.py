"""Who gets which arm: policies of other schemas and other arms are told in words."""

from dataclasses import replace
from typing import Any

import pytest

import sottovoce as sv
from factories import ARMS, experiment
from sottovoce.shared.allocation import allocation_of
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import uniform

OURS = experiment(method="whisper")


def release(of: sv.Experiment, *arms: int) -> sv.Release:
    return sv.Release(of, 3, Partition(of.dimension), (uniform("", arms),))


def test_one_arm_for_everybody_has_one_bin() -> None:
    found = allocation_of("always:coach", OURS)
    assert (found.name, dict(found.partition.cuts)) == ("always:coach", {})
    assert dict(found.chances) == {"": (0.0, 0.0, 1.0)}


def test_a_release_gives_its_arms_with_its_chances_and_a_policy_its_best() -> None:
    found = allocation_of(release(OURS, 0, 2), OURS)
    assert (found.name, dict(found.chances)) == ("release 3", {"": (0.5, 0.0, 0.5)})
    policy = sv.Policy(release(OURS, 0, 2), estimates={("", 0): (0.1, 0.1), ("", 2): (0.2, 0.1)})
    found = allocation_of(policy, OURS)
    assert (found.name, dict(found.chances)) == (
        "the best arms of release 3",
        {"": (0.0, 0.0, 1.0)},
    )


def test_arms_are_known_by_their_names() -> None:
    turned = replace(OURS, arms=ARMS[::-1])
    found = allocation_of(release(turned, 0), OURS)
    assert dict(found.chances) == {"": (0.0, 0.0, 1.0)}


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("always:tea", r"must be one of control, reminder, coach; got 'tea'"),
        ("always", r'must begin with "always:"; got \'always\''),
        ("coach", r'must begin with "always:"; got \'coach\''),
        (42, r'must be "always:ARM", a Release or a Policy; got int'),
        (
            release(replace(OURS, context=[sv.Numeric("age", 18, 90)]), 0),
            r"must be over the same features, with the same bounds and levels \(age, bmi\);"
            r" got one over age",
        ),
        (
            release(replace(OURS, context=[sv.Numeric("age", 18, 91), *OURS.context[1:]]), 0),
            "must be over the same features",
        ),
        (
            release(replace(OURS, arms=["control", "tea", "coach"]), 0),
            "must be of the arms control, reminder, coach; got tea",
        ),
    ],
)
def test_what_is_no_policy_of_this_experiment_is_told_in_words(policy: Any, told: str) -> None:
    with pytest.raises(sv.PolicyError, match=told):
        allocation_of(policy, OURS)
