"""The means of answers, and whole reports."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import (
    ASK,
    BIN_MASS,
    BIN_REWARD,
    CONTEXT,
    CONTRAST,
    COUNT,
    LEVEL,
    LOGGED_LEVEL,
    MASS,
    OUTCOME,
    RANKED,
    REWARD_SHARE,
    Purse,
    four_bins,
    settled_release,
    uniform,
    walking,
)
from sottovoce.device.method import Secret
from sottovoce.device.whisper import subset
from sottovoce.device.whisper.answer import true_answer
from sottovoce.shared import wire
from sottovoce.shared.partition import Partition
from sottovoce.shared.whisper.cells import CellLayout, cell_layout
from sottovoce.shared.whisper.questions import TABLE, Kind, Question, question_of


def people_with_weights() -> list[tuple[tuple[float, ...], Fraction]]:
    """Points in every quarter of every bin, more or less of them."""
    grid = [*itertools.product((0.1, 0.3, 0.6, 0.9), repeat=2)]
    weights = [1 + (7 * place) % 5 for place in range(len(grid))]
    return [(point, Fraction(w, sum(weights))) for point, w in zip(grid, weights, strict=True)]


def reward(point: tuple[float, ...], arm: int) -> Fraction:
    return Fraction(1 + int(10 * point[0]) * (arm + 1) + int(10 * point[1]) * (3 - arm), 60)


BEHAVIOUR = {
    3: (Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)),
    2: (Fraction(3, 10), Fraction(7, 10)),
}
LOGGED = (Kind.OUTCOME, Kind.COUNT, Kind.LOGGED_LEVEL)
# Their one cell is in test_reward_privacy.py and test_scale_privacy.py.
OF_GROUPS = (Kind.POLICY_REWARD, Kind.BASELINE_REWARD)
OF_EVERYBODY = (Kind.REWARD, Kind.SCALE, Kind.LOGGED_SCALE, *OF_GROUPS)
OF_ALL_BINS = (Kind.BIN_REWARD, Kind.BIN_MASS)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize(
    ("kind", "arms"),
    [
        *((kind, 3) for kind in Kind if kind not in (*OF_EVERYBODY, Kind.LOGGED_LEVEL)),
        *((kind, 2) for kind in Kind if kind not in OF_EVERYBODY),
    ],
)
def test_the_means_of_the_answers_are_those_of_the_table(
    kind: Kind, arms: int, epsilon: float
) -> None:
    release = four_bins(epsilon=epsilon, arms=arms, public_arms=kind == Kind.RANKED)
    logged = kind in LOGGED
    # Of two arms one cell tells how they differ; only their counts have a cell each.
    by_arm = kind == Kind.COUNT or (kind == Kind.OUTCOME and arms == 3)
    layout = cell_layout(release, population=0, by_arm=by_arm, settled=kind in OF_ALL_BINS)
    assert layout is not None
    rankings = [*itertools.permutations(range(arms))] if kind == Kind.RANKED else [()]
    axes: tuple[int | None, ...] = (0, 1) if layout.halves.parts == 2 else (None, 0)
    if kind in OF_ALL_BINS:
        axes = (None,)
    for axis, ranking in itertools.product(axes, rankings):
        means: Counter[int | None] = Counter()
        for point, weight in people_with_weights():
            path = release.partition.find(point)
            offered = release.policies[path].arms
            chances = dict(zip(offered, [Fraction(1, len(offered))] * 3, strict=False))
            if kind == Kind.RANKED:
                chances = {min(offered, key=ranking.index): Fraction(1)}
            elif logged:
                chances = dict(enumerate(BEHAVIOUR[arms]))
            for arm, outcome in itertools.product(chances, (0, 1)):
                f = reward(point, arm)
                chance = weight * chances[arm] * (f if outcome else 1 - f)
                secret = Secret(point, path, arm, logged=logged, ranking=ranking)
                question, y = Question(kind, axis), float(outcome)
                cell, value = true_answer(release, layout, question, secret=secret, outcome=y)
                means[cell] += chance * Fraction(value)  # type: ignore[assignment]
        assert {cell: mean for cell, mean in means.items() if mean} == expected_means(
            release, layout, kind, axis, ranking
        )


def expected_means(
    release: sv.Release,
    layout: CellLayout,
    kind: Kind,
    axis: int | None,
    ranking: tuple[int, ...],
) -> dict[int, Fraction]:
    """p·(f_first - f_second) and the rest of the table, for bins or for the halves of bins."""
    expected: Counter[int] = Counter()
    behaviour = BEHAVIOUR[len(release.experiment.arms)]
    place = -1
    for policy in release.bins if kind in OF_ALL_BINS else release.contested:
        for arm in policy.live if layout.by_arm else (policy.arms[0],):
            place += 1
            for side in (0, 1):
                box = release.partition.box(policy.path)
                here = [
                    (point, weight)
                    for point, weight in people_with_weights()
                    if release.partition.find(point) == policy.path
                    and (axis is None or (point[axis] >= sum(box[axis]) / 2) == side)
                ]
                p = sum((weight for _, weight in here), Fraction(0))

                f = [
                    sum((w * reward(point, k) for point, w in here), Fraction(0)) / p
                    for k in range(len(behaviour))
                ]
                # What each arm's rows tell; of three arms the cell is about one, of two about both.
                rows = [pi * (2 * mean - 1) for pi, mean in zip(behaviour, f, strict=True)]
                first, second = policy.arms[0], policy.arms[-1]
                ranked = min(policy.live, key=ranking.index) if ranking else 0
                mean = {
                    CONTRAST: p * (f[first] - f[second]),
                    LEVEL: p * (f[first] + f[second] - 1),
                    MASS: p,
                    OUTCOME: p * (rows[arm] if layout.by_arm else rows[0] - rows[1]),
                    COUNT: p * behaviour[arm],
                    RANKED: p * (2 * f[ranked] - 1),
                    LOGGED_LEVEL: p * (rows[0] + rows[1]),
                    BIN_REWARD: p * (f[first] + f[second] - 1),  # of a settled bin 2f - 1
                    BIN_MASS: p,
                }[int(kind)]
                if layout.mechanism(axis).parts == 2:
                    expected[2 * place + side] += mean  # type: ignore[assignment]
                elif axis is not None:
                    expected[place] += mean if side else -mean  # type: ignore[assignment]
                elif side:  # once for the whole bin
                    expected[place] += mean  # type: ignore[assignment]
    return {cell: Fraction(mean) for cell, mean in expected.items() if mean}


def many_bins(count: int, *, epsilon: float) -> sv.Release:
    """So many contested bins, and none besides: one cut after the other along the first axis."""
    paths, cuts = [""], {}
    while len(paths) < count:
        path = paths.pop(0)
        cuts[path] = len(path) % 2
        paths += [path + "0", path + "1"]
    bins = tuple(uniform(path, 0, 1, waiting=(2,)) for path in sorted(paths))
    return sv.Release(walking(epsilon=epsilon), 1, Partition(2, cuts), bins, REWARD_SHARE, ASK)


def test_a_report_on_two_hundred_contested_bins_takes_less_than_64_bytes() -> None:
    release = many_bins(200, epsilon=1.0)
    assert len(release.contested) == 200
    assert wire.release_from_json(wire.release_to_json(release)) == release
    for _ in range(20):
        device = sv.Device(release, public_arms=True)
        device.choose(CONTEXT)
        report = device.report(reward=0.5)
        data = wire.report_to_bytes(report)
        assert len(data) < 64
        of_one_cell = question_of(report.question, release.experiment).kind == Kind.REWARD
        assert len(report.payload) == (1 if of_one_cell else 25)
        assert wire.report_from_bytes(data) == report


def test_where_arms_are_public_one_gets_the_first_live_one_of_the_ranking() -> None:
    release = four_bins(public_arms=True)
    young, middle = {"age": 20, "bmi": 20}, {"age": 20, "bmi": 40}
    seen = set()
    for context, live in (
        (young, ("control", "coach")),
        (middle, ("control", "reminder", "coach")),
    ):
        for _ in range(200):
            device = sv.Device(release, public_arms=True)
            arm = device.choose(context)
            report = device.report(reward=1.0)
            if report.question // 3 == RANKED:
                assert sorted(report.ranking) == [0, 1, 2]
                named = [release.experiment.arms[each] for each in report.ranking]
                assert arm == next(each for each in named if each in live)
                seen.add((arm, report.ranking))
            else:
                assert report.ranking == ()
    # Twice 200 reports of which 4 in 5 rank: one of 6 is never seen with probability below 1e-12.
    assert len({ranking for _, ranking in seen}) == 6
    assert {arm for arm, _ in seen} == {"control", "reminder", "coach"}


def test_private_arms_are_drawn_with_equal_chances_from_those_on_offer() -> None:
    # 4000 draws, within 5.4 standard deviations but for less than 1 run in 10^7.
    device = sv.Device(four_bins(), public_arms=True)
    arms = Counter(device.choose({"age": 20, "bmi": 40}) for _ in range(4000))
    assert set(arms) == {"reminder", "coach"}
    assert abs(arms["coach"] - 2000) < 5.4 * math.sqrt(1000)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("public_arms", [False, True])
def test_each_report_spends_its_epsilon_once_wherever_the_person_is(
    tmp_path: Path, epsilon: float, public_arms: bool
) -> None:
    release = four_bins(epsilon=epsilon, public_arms=public_arms)
    ledger = sv.Ledger(tmp_path / "ledger", budget=1000)
    device = sv.Device(release, ledger=ledger, public_arms=True)
    for context in itertools.product((20, 80), (20, 40)):
        device.choose(dict(zip(("age", "bmi"), context, strict=True)))
        assert device.report(reward=0.3).payload
        for arm in release.experiment.arms:
            row = dict(zip(("age", "bmi"), context, strict=True))
            assert device.report_logged(row, arm=arm, reward=1.0).payload
    entries = ledger.entries()
    assert len(entries) == 16
    for entry in entries:
        assert (entry.epsilon, entry.release, entry.name) == (epsilon, 7, "walking")
        assert entry.experiment == release.experiment.fingerprint


def test_a_population_spends_its_own_epsilon(tmp_path: Path) -> None:
    ledger = sv.Ledger(tmp_path / "ledger", budget=10)
    device = sv.Device(four_bins(), population="clinic-b", ledger=ledger, public_arms=True)
    assert device.report_logged(CONTEXT, arm="coach", reward=0.5).population == 1
    assert [entry.epsilon for entry in ledger.entries()] == [8.0]


@pytest.mark.parametrize("public_arms", [False, True])
def test_where_everything_is_settled_only_those_who_are_asked_how_it_went_tell_anything(
    tmp_path: Path, public_arms: bool
) -> None:
    release = settled_release(public_arms=public_arms)
    ledger = sv.Ledger(tmp_path / "ledger", budget=200)
    device = sv.Device(release, ledger=ledger, public_arms=True)
    told = 0
    # Of 160 people 24 are asked: of so many none is, or all are, less than once in 10^11.
    for _ in range(160):
        assert device.choose(CONTEXT) == "reminder"
        report = device.report(reward=1.0)
        asked = report.question // 3 == Kind.REWARD
        told += asked
        assert len(report.payload) == asked
        assert report.question % 3 == 0  # about no feature
        assert device.report_logged(CONTEXT, arm="coach", reward=1.0).payload == b""
        assert len(ledger.entries()) == told
    assert 0 < told < 160


def test_a_crash_after_the_ledger_was_written_loses_budget_and_sends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def crash(mechanism: object, *, cell: object, value: object) -> bytes:
        raise SystemError("power cut")

    monkeypatch.setattr(subset, "whisper", crash)
    ledger = sv.Ledger(tmp_path / "ledger", budget=1)
    device = sv.Device(four_bins(), ledger=ledger, public_arms=True)
    device.choose(CONTEXT)
    with pytest.raises(SystemError):
        device.report(reward=1)
    assert ledger.left == 0


@pytest.mark.parametrize("reward", [-0.1, 1.1, math.nan, math.inf, "1"])
def test_a_bad_reward_is_refused_and_costs_nothing(reward: Any) -> None:
    purse = Purse()
    device = sv.Device(four_bins(), ledger=purse, public_arms=True)
    device.choose(CONTEXT)
    with pytest.raises(sv.RewardError, match=r"a reward must be a number in \[0, 1\]; got"):
        device.report(reward=reward)
    with pytest.raises(sv.RewardError):
        device.report_logged(CONTEXT, arm="coach", reward=reward)
    assert purse.spent == []
    device.report(reward=1)
    assert len(purse.spent) == 1


# Long enough that no random bytes spell one by chance.
AGE, BMI, REWARD = 61.73205081, 31.41592654, 0.57721566
SECRETS = ("61.73205081", "31.41592654", "0.57721566", repr((AGE - 18) / 72)[:10])


@pytest.mark.parametrize("public_arms", [False, True])
def test_raw_values_are_in_no_report_and_in_no_repr(public_arms: bool) -> None:
    release = four_bins(epsilon=8.0, public_arms=public_arms)
    for _ in range(50):
        device = sv.Device(release, public_arms=True)
        device.choose({"age": AGE, "bmi": BMI})
        secret = vars(device)["_pending"].secret
        shown = [repr(secret), str(secret), f"{secret}", repr(device), repr(vars(device))]
        report = device.report(reward=REWARD)
        assert vars(device)["_pending"] is None
        shown += [repr(report), wire.report_to_json(report)]
        assert not [text for text in shown for each in SECRETS if each in text]
        assert "point" not in repr(secret)
        assert "arm=" not in repr(secret)


def test_a_report_fits_the_learner_whose_release_it_is_for() -> None:
    for settings in (
        {},
        {"epsilon": 8.0},
        {"public_arms": True},
        {"guarantee": "certified"},
        {"arms": 2},
        {"arms": 2, "epsilon": 8.0},
    ):
        learner = sv.Learner(walking(**settings))
        for name, logged in itertools.product(("target", "clinic-b", "clinic-c"), (False, True)):
            device = sv.Device(learner.release(), population=name, ledger=Purse(), public_arms=True)
            for _ in range(20):
                if logged:
                    arm = learner.experiment.arms[-1]
                    report = device.report_logged(CONTEXT, arm=arm, reward=0.3)
                else:
                    device.choose(CONTEXT)
                    report = device.report(reward=0.3)
                learner.receive(wire.report_from_bytes(wire.report_to_bytes(report)))
        assert sum(learner.status().reports.values()) == 120


def test_a_device_chooses_no_public_arm_unless_it_agreed_to() -> None:
    learner = sv.Learner(
        sv.Experiment(
            arms=["a", "b", "c"],
            context=[sv.Numeric("x", 0, 1)],
            epsilon=1.0,
            auxiliary=[sv.Population("clinic-b", 1.0, 10)],
            method=sv.Whisper(public_arms=True),
        )
    )
    with pytest.raises(sv.DeviceError, match="unless the device agrees to public_arms"):
        sv.Device(learner.release()).choose({"x": 0.5})
    # A logged row says nothing of its arm but through the mechanism.
    custodian = sv.Device(learner.release(), population="clinic-b")
    assert custodian.report_logged({"x": 0.5}, arm="b", reward=1.0).ranking == ()


def test_the_kinds_of_questions_have_the_numbers_of_the_wire() -> None:
    """They are in reports that wait on devices and in logs of servers: no number ever changes."""
    numbers = {
        "CONTRAST": 0,
        "LEVEL": 1,
        "MASS": 2,
        "OUTCOME": 3,
        "COUNT": 4,
        "RANKED": 5,
        "REWARD": 6,
        "LOGGED_LEVEL": 7,
        "SCALE": 8,
        "LOGGED_SCALE": 9,
        "BIN_REWARD": 10,
        "BIN_MASS": 11,
        "POLICY_REWARD": 12,
        "BASELINE_REWARD": 13,
    }
    assert {kind.name: int(kind) for kind in Kind} == numbers
    assert {entry.name: entry.kind for entry in TABLE} == numbers
