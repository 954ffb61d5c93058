"""Whole audits: what they look at, what they find, and how often they are wrong."""

from collections import Counter

import pytest

import sottovoce as sv
from sottovoce.lab.audit.cases import pairs_of
from sottovoce.lab.audit.claims import auditing_of
from sottovoce.lab.audit.mechanism import report_of
from sottovoce.lab.audit.run import FULL, Length, audit, tasks_of
from sottovoce.lab.audit.tasks import Attack, Finding
from sottovoce.shared.methods import register, settings_from, unregister
from sottovoce.shared.wire import release_from_json, release_to_json

TINY = Length((100, 200), (100, 200), (100, 200), (10, 20))
ALL = ("whisper", "ldpmab", "abse", "linear", "nn")


def test_every_method_and_every_private_baseline_is_audited() -> None:
    tasks = tasks_of(ALL, [1.0])
    kinds = Counter((type(task).__name__, getattr(task, "method", "")) for task in tasks)
    for variant in ("whisper", "whisper, certified", "whisper, public arms", "ldpmab"):
        assert kinds["Exact", variant] >= 3
        assert kinds["Attack", variant] >= 12
        assert kinds["Game", variant] == kinds["Randomness", variant] == 1
    assert kinds["Attack", "linear"] == kinds["Attack", "nn"] == 3
    assert kinds["NoClaim", "abse"] == 1


@pytest.mark.parametrize("method", ["whisper", "ldpmab"])
def test_every_hostile_release_is_one_that_devices_follow(method: str) -> None:
    for settings in auditing_of(method).variants().values():  # type: ignore[union-attr]
        for pair in pairs_of(settings, 1.0):
            release = pair.scene.release
            assert release_from_json(release_to_json(release)) == release
            for person in (pair.one, pair.other):
                report_of(pair.scene, person)


def test_the_error_rate_is_shared_out_over_all_bounds() -> None:
    rates = []

    class Noting:
        bounds, work = 3, 1.0

        def find(self, *, error_rate: float, seed: int) -> Finding:
            rates.append(error_rate)
            return Finding("", "", "attack", 1.0, 0.0, True, "")

    audit([Noting(), Noting()], error_rate=0.06, workers=1)
    assert rates == [0.01, 0.01]


def test_findings_come_in_the_order_of_the_tasks_whatever_takes_longest() -> None:
    tasks = [task for task in tasks_of(["ldpmab"], [1.0], length=TINY) if isinstance(task, Attack)]
    heard: list[tuple[int, int]] = []
    found = audit(
        tasks,
        error_rate=1e-3,
        workers=1,
        progress=lambda finding, done, of: heard.append((done, of)),
    )
    assert [each.case for each in found] == [task.pair.name for task in tasks]
    assert heard == [(done, len(tasks)) for done in range(1, len(tasks) + 1)]


def test_a_method_that_says_nothing_of_itself_is_attacked_all_the_same() -> None:
    register("one_bit", modules="contracts.one_bit.{room}")
    try:
        tasks = tasks_of(["one_bit"], [1.0], length=TINY)
        kinds = {type(task).__name__ for task in tasks}
    finally:
        unregister("one_bit")
    assert kinds == {"Attack", "Randomness"}


@pytest.mark.parametrize("wrong", ["nobody", ""])
def test_an_unknown_method_is_refused(wrong: str) -> None:
    with pytest.raises(sv.ExperimentError, match="a method to audit must be one of"):
        tasks_of([wrong], [1.0])


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0])
def test_an_impossible_error_rate_is_refused(rate: float) -> None:
    with pytest.raises(sv.ExperimentError, match="the error rate must lie in"):
        audit([], error_rate=rate)


def sharp(method: str, epsilon: float) -> list[Attack]:
    tasks = tasks_of([method], [epsilon], length=FULL)
    return [
        task
        for task in tasks
        if isinstance(task, Attack) and task.pair.sharp and task.method == method
    ]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("method", ["whisper", "ldpmab"])
def test_the_sharpest_pair_reaches_nine_tenths_of_the_claim(method: str, epsilon: float) -> None:
    """At the error rate that each bound of a whole audit has.

    The least margin is that of ldpmab at ε = 1: 2.8 standard deviations, so 3 of 1,000 runs fail.
    """
    rate = 1e-3 / sum(task.bounds for task in tasks_of(ALL, [1.0, 4.0]))
    found = [task.find(error_rate=rate, seed=0).bound or 0.0 for task in sharp(method, epsilon)]
    assert 0.9 * epsilon <= max(found) <= epsilon


@pytest.mark.slow
def test_a_hundred_audits_of_what_is_correct_flag_next_to_nothing() -> None:
    """Each flags something with a probability of at most 1e-3: three do in 1 of 6,000 tests."""
    short = Length((40, 60), (40, 60), (40, 60), (4, 6))
    tasks = [task for task in tasks_of(ALL, [1.0], length=short) if task.bounds]
    assert len(tasks) > 60
    flagged = [
        [(each.method, each.case, each.bound) for each in found if not each.kept]
        for repeat in range(100)
        if (found := audit(tasks, error_rate=1e-3, seed=repeat * len(tasks), workers=2))
    ]
    assert len(flagged) == 100
    assert sum(map(bool, flagged)) <= 2, flagged


def test_baselines_are_attacked_by_their_own_law() -> None:
    (task, *_) = [t for t in tasks_of(["linear"], [4.0], length=TINY) if isinstance(t, Attack)]
    found = task.find(error_rate=0.01, seed=0)
    assert found.kept
    assert found.bound is not None
    assert found.bound > 1


def test_settings_of_every_variant_are_those_of_the_method() -> None:
    for name in ("whisper", "ldpmab"):
        variants = auditing_of(name).variants()  # type: ignore[union-attr]
        assert settings_from(name) in variants.values()
