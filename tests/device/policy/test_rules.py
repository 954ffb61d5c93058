import random
import re

import pytest

import sottovoce as sv
from sottovoce.device.policy.rules_text import rules_text
from sottovoce.shared.partition import Partition
from support.policies import HOSTILE, experiment, learned, released

SLEEP = sv.Experiment(
    arms=["usual care", "coach", "call"],
    context=[sv.Numeric("age", 18, 90), sv.Numeric("hours of sleep", 4, 10, optional=True)],
    epsilon=1.0,
    method="ldpmab",
    name="sleep",
)


def rules(policy: sv.Policy) -> list[str]:
    text = rules_text(policy).partition("## ")[0]
    return [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]


def release(cuts: dict[str, int], *arms: tuple[int, ...], of: sv.Experiment = SLEEP) -> sv.Release:
    partition = Partition(of.dimension, cuts)
    bins = tuple(
        sv.BinPolicy(path, each, (1 / len(each),) * len(each))
        for path, each in zip(partition.leaves(), arms, strict=True)
    )
    return sv.Release(of, 12, partition, bins)


def test_rules_say_who_gets_which_arm() -> None:
    policy = sv.Policy(release({"": 0, "0": 1}, (0,), (1,), (2,)))
    assert rules(policy) == [
        "People with age under 54; hours of sleep under 7 or missing: **usual care**",
        "People with age under 54; hours of sleep 7 or more: **coach**",
        "People with age 54 or more: **call**",
    ]
    assert "All of it is settled" in rules_text(policy)


def test_neighbours_who_get_the_same_arm_are_one_rule_if_it_is_settled() -> None:
    same = sv.Policy(release({"": 0, "0": 1, "00": 1}, (0,), (0,), (0,), (2,)))
    assert rules(same) == [
        "People with age under 54: **usual care**",
        "People with age 54 or more: **call**",
    ]
    assert rules(sv.Policy(release({"": 0}, (1,), (1,)))) == ["Everyone: **coach**"]
    assert len(rules(sv.Policy(release({"": 0}, (1,), (1, 2))))) == 2


def test_rules_say_where_it_is_not_settled_and_why_an_arm_is_named() -> None:
    undecided = release({"": 0}, (0, 2), (1,))
    (first, _) = rules(sv.Policy(undecided))
    assert first == (
        "People with age under 54: **usual care**, not settled between usual care and call:"
        " it comes first in the experiment"
    )
    known = {("0", 0): (0.5, 0.02), ("0", 2): (0.61, 0.03)}
    (first, _) = rules(sv.Policy(undecided, estimates=known))
    assert first == (
        "People with age under 54: **call**, not settled between usual care and call:"
        " its estimated reward is highest, 0.610 ± 0.030; usual care 0.500 ± 0.020"
    )
    assert "1 of 2 rules is not settled" in rules_text(sv.Policy(undecided))
    often = sv.Release(SLEEP, 1, Partition(3), (sv.BinPolicy("", (0, 1), (0.4, 0.6)),))
    assert "**coach**, not settled" in rules(sv.Policy(often))[0]
    assert rules(sv.Policy(often))[0].endswith("the release gives it most often")


def test_missing_numbers_and_stretches_are_told() -> None:
    policy = sv.Policy(release({"": 2, "0": 1, "01": 1}, (0,), (1,), (2,), (1,)))
    assert rules(policy) == [
        "People with hours of sleep under 7: **usual care**",
        "People with hours of sleep from 7 to under 8.5: **coach**",
        "People with hours of sleep 8.5 or more: **call**",
        "People with hours of sleep missing: **coach**",
    ]
    whether = sv.Policy(release({"": 2}, (0,), (1,)))
    assert rules(whether)[0] == "People with hours of sleep not missing: **usual care**"


def test_levels_are_told_as_sets() -> None:
    of = sv.Experiment(
        arms=["a", "b"],
        context=[
            sv.Categorical("city", ("Rome", "Oslo", "Lima"), optional=True, other=True),
            sv.Ordinal("mood", ("low", "middling", "high")),
            sv.Boolean("member"),
        ],
        epsilon=1.0,
    )
    partition = Partition(3, {"": 0, "0": 1, "1": 2}, (5, 0, 0), {"": frozenset({0, 3})})
    bins = [sv.BinPolicy(path, (i % 2,), (1.0,)) for i, path in enumerate(partition.leaves())]
    policy = sv.Policy(sv.Release(of, 1, partition, tuple(bins), 0, (512, 512, 0, 0)))
    assert rules(policy) == [
        "People with city anything but Rome or *another level*; mood low: **a**",
        "People with city anything but Rome or *another level*; mood anything but low: **b**",
        "People with city Rome or *another level*; member: false: **a**",
        "People with city Rome or *another level*; member: true: **b**",
    ]
    assert "*another level* is any but Rome, Oslo and Lima; it may be missing." in rules_text(
        policy
    )


def test_cuts_are_rounded_so_that_they_stay_apart_and_are_exact_below() -> None:
    of = sv.Experiment(
        arms=["a", "b"], context=[sv.Numeric("x", -0.3, 0.3)], epsilon=1, method="ldpmab"
    )
    deep = {"0" * depth: 0 for depth in range(20)}
    policy = sv.Policy(release(deep, *(((depth % 2),) for depth in range(21)), of=of))
    told = rules(policy)
    assert told[-1] == "People with x 0 or more: **a**"
    named = re.findall(r"from (\S+) to under (\S+):", "\n".join(told))
    assert all(float(low) < float(high) for low, high in named)
    assert len({*named}) == 19
    (exact,) = re.findall(r"^- x: 0 is `(.*)`$", rules_text(policy), re.MULTILINE)
    assert abs(float(exact)) < 1e-15


def test_names_mean_nothing_to_markdown() -> None:
    features = [sv.Categorical(name, HOSTILE, other=True) for name in HOSTILE]
    hostile = experiment(features, arms=HOSTILE, name=HOSTILE[3])
    text = rules_text(sv.Policy(released(hostile, random.Random(1), cuts=60)))
    for line in text.splitlines():
        plain = re.sub(r"\\.", "", re.sub(r"`[0-9a-f]{64}`", "", line))
        assert not re.search(r"[<>`\[\]|]", plain), line
        assert plain.count("*") % 2 == 0
    assert re.search(r"evil\\\.example", text)


@pytest.mark.parametrize("method", ["whisper", "ldpmab"])
def test_rules_of_what_was_learned_tell_every_rule_once(method: str) -> None:
    told = rules(learned(method))
    assert len(told) == len(set(told)) > 1
