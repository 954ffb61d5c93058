"""All forms of a policy give everybody the arm of the release."""

import random
from collections import Counter
from typing import Any

import pytest

import sottovoce as sv
from factories import grown, grown_whisper
from sottovoce.shared.methods import method_names
from sottovoce.shared.schema import Feature
from support.policies import (
    EVERY_KIND,
    HOSTILE,
    Arm,
    Context,
    by_policy,
    by_postgresql,
    by_release,
    by_sqlite,
    contexts,
    estimates,
    experiment,
    learned,
    python_function,
    released,
)


def arms(policy: sv.Policy, given: list[Context]) -> list[Arm]:
    """Ask every form, see that they agree, and return the arms."""
    expected = [by_release(policy, each) for each in given]
    function = python_function(policy)
    told = {
        "sv.Policy": [by_policy(policy, each) for each in given],
        "Python": [function(each) for each in given],
        "SQLite": by_sqlite(policy, given),
        "PostgreSQL": by_postgresql(policy, given),
    }
    for form, found in told.items():
        wrong = [place for place, arm in enumerate(found) if arm != expected[place]]
        assert wrong == [], (form, given[wrong[0]], found[wrong[0]], expected[wrong[0]])
        assert len(found) == len(expected)
    return expected


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", method_names())
def test_ten_thousand_contexts_get_the_same_arm_in_every_form(method: str, seed: int) -> None:
    rng = random.Random(f"{method} {seed}")
    release = released(experiment(method=method), rng)
    policy = sv.Policy(release, estimates=estimates(release, rng))
    found = Counter(arms(policy, [*contexts(release, rng, 10_000)]))
    assert len(found) == 4  # every arm is somebody's


@pytest.mark.parametrize("method", method_names())
def test_ten_thousand_contexts_get_the_same_arm_from_what_a_learner_has_learned(
    method: str,
) -> None:
    policy = learned(method)
    assert len(policy.release.bins) > 1
    given = contexts(policy.release, random.Random(method), 10_000)
    assert len(set(arms(policy, [*given]))) > 1


@pytest.mark.parametrize(
    "learner",
    [grown(), grown_whisper(), grown_whisper(public_arms=True), grown_whisper(reports=120)],
    ids=["ldpmab", "whisper", "public arms", "early"],
)
def test_bins_that_are_not_settled_give_one_arm_in_every_form(learner: sv.Learner) -> None:
    release = learner.release()
    assert release.contested
    arms(sv.Policy(release), [*contexts(release, random.Random(1), 2_000)])


@pytest.mark.parametrize("feature", EVERY_KIND, ids=lambda each: each.name)
def test_deep_bins_of_one_feature_get_the_same_arm_in_every_form(feature: Any) -> None:
    rng = random.Random(feature.name)
    for method in method_names():
        release = released(experiment([feature], method=method), rng, cuts=400)
        arms(sv.Policy(release), [*contexts(release, rng, 1_000)])


def test_names_that_are_code_are_only_names_in_every_form() -> None:
    rng = random.Random(5)
    features: list[Feature] = [
        *(sv.Numeric(name, 0, 1, optional=True) for name in HOSTILE[:3]),
        *(sv.Categorical(name, HOSTILE, other=True) for name in HOSTILE[3:7]),
        *(sv.Boolean(name) for name in HOSTILE[7:]),
        sv.Ordinal("a'b", HOSTILE),
    ]
    hostile = experiment(features, arms=HOSTILE, name=HOSTILE[1])
    release = released(hostile, rng, cuts=60)
    found = Counter(arms(sv.Policy(release), [*contexts(release, rng, 2_000)]))
    assert len(found) > 5
    assert None not in found


INFINITE, NAN = float("inf"), float("nan")
GOOD: Context = {
    "age": 42, "balance": 0.05, "steps": 9.5, "mood": "low", "pain": "some",
    "city": "Rome", "kind": "a", "hand": "left", "member": True, "vip": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        *[("age", each, False) for each in (None, NAN, INFINITE, -INFINITE)],
        *[("balance", each, False) for each in (INFINITE, -INFINITE)],
        *[("balance", each, True) for each in (None, NAN)],
        *[("mood", each, False) for each in (None, "Low", "low ", "")],
        *[("pain", each, False) for each in ("Some", "missing")],
        ("pain", None, True),
        *[("city", each, True) for each in (None, "", "Rome ", "rome", "other")],
        *[("kind", each, fits) for each, fits in ((None, False), ("e", True))],
        *[("hand", each, False) for each in (None, "both")],
        *[("member", each, fits) for each, fits in ((None, False), (False, True))],
        ("vip", None, True),
    ],
)
def test_every_form_refuses_what_a_device_refuses(name: str, value: Any, fits: bool) -> None:
    rng = random.Random(name)
    for method in method_names():
        release = released(experiment(method=method), rng)
        (found,) = arms(sv.Policy(release), [{**GOOD, name: value}])
        assert (found is not None) == fits


def test_a_release_of_one_bin_gives_one_arm_in_every_form() -> None:
    release = released(experiment(), random.Random(0), cuts=0)
    assert len(set(arms(sv.Policy(release), [GOOD]))) == 1
    anybody = experiment([sv.Categorical("city", ("Rome", "Oslo"), optional=True, other=True)])
    release = released(anybody, random.Random(0), cuts=0)
    assert (
        len(set(arms(sv.Policy(release), [{"city": "Rome"}, {"city": None}, {"city": "x"}]))) == 1
    )
