"""``whisper`` on the device: which question is asked, what is answered, what is spent and sent."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device import ask, privatise, subset
from sottovoce.device.ask import Secret, answer, draw_question, draw_ranking
from sottovoce.shared import wire
from sottovoce.shared.partition import Partition
from sottovoce.shared.questions import Kind, Question, Sheet, sheet
from sottovoce.shared.release import BinPolicy
from support.examples import CONTEXT, experiment
from support.subset import Following

CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED = range(6)
AUXILIARY = [
    sv.Population("clinic-b", 8.0, 100, (0.2, 0.3, 0.5)),
    sv.Population("clinic-c", 0.5, 100),
]


def whispering(*, epsilon: float = 1.0, **settings: Any) -> sv.Experiment:
    method = sv.Whisper(**settings)
    return experiment(epsilon=epsilon, method=method, auxiliary=AUXILIARY, name="walking")


def uniform(path: str, *arms: int, waiting: tuple[int, ...] = ()) -> BinPolicy:
    return BinPolicy(path, arms, (1 / len(arms),) * len(arms), waiting)


def four_bins(*, epsilon: float = 1.0, **settings: Any) -> sv.Release:
    """Two bins for the young, contested; one for the old and light, settled; one for the rest."""
    public = settings.get("public_arms", False)
    bins = (
        uniform("00", 0, 2) if public else uniform("00", 0, 2, waiting=()),
        uniform("01", 0, 1, 2) if public else uniform("01", 1, 2, waiting=(0,)),
        uniform("10", 1),
        uniform("11", 0, 1),
    )
    cuts = {"": 0, "0": 1, "1": 1}
    return sv.Release(whispering(epsilon=epsilon, **settings), 7, Partition(2, cuts), bins)


def settled_release(**settings: Any) -> sv.Release:
    return sv.Release(whispering(**settings), 3, Partition(2, {}), (uniform("", 1),))


class Purse:
    """A ledger that only counts."""

    def __init__(self) -> None:
        self.spent: list[tuple[float, str, str, int]] = []

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        self.spent.append((epsilon, experiment, name, release))


# --- which question -------------------------------------------------------------------------------


def law_of(monkeypatch: pytest.MonkeyPatch, draw: Callable[[], Any]) -> dict[Any, Fraction]:
    """What is drawn and how often, exactly: by following every way that the draws can go."""
    law: dict[Any, Fraction] = {}
    untried: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while untried:
        draws = Following(*untried.pop())
        monkeypatch.setattr(ask, "OPERATING_SYSTEM", draws)
        drawn = draw()
        law[drawn] = law.get(drawn, Fraction(0)) + draws.probability
        untried += draws.untried
    return law


MASSES, LEVELS = Fraction(1, 20), Fraction(1, 32)
SERVED = {Kind.MASS: MASSES, Kind.LEVEL: LEVELS, Kind.CONTRAST: 1 - MASSES - LEVELS}
PUBLIC = {Kind.MASS: MASSES, Kind.RANKED: 1 - MASSES}
KNOWN = {Kind.COUNT: Fraction(1, 10), Kind.OUTCOME: Fraction(9, 10)}
UNKNOWN = {Kind.COUNT: Fraction(1, 2), Kind.OUTCOME: Fraction(1, 2)}
SOMETIMES: dict[int | None, Fraction] = {
    None: Fraction(7, 10), 0: Fraction(3, 20), 1: Fraction(3, 20)
}  # fmt: skip
ALWAYS: dict[int | None, Fraction] = {0: Fraction(1, 2), 1: Fraction(1, 2)}


@pytest.mark.parametrize(
    ("settings", "population", "logged", "kinds", "features"),
    [
        ({"epsilon": 1.0}, 0, False, SERVED, SOMETIMES),
        ({"epsilon": 2.0}, 0, False, SERVED, SOMETIMES),
        ({"epsilon": 8.0}, 0, False, SERVED, ALWAYS),
        ({"epsilon": 8.0, "guarantee": "certified"}, 0, False, SERVED, SOMETIMES),
        ({"epsilon": 1.0, "public_arms": True}, 0, False, PUBLIC, SOMETIMES),
        ({"epsilon": 8.0, "public_arms": True}, 0, False, PUBLIC, ALWAYS),
        ({}, 1, False, SERVED, ALWAYS),  # a streaming population, served
        ({}, 1, True, KNOWN, ALWAYS),
        ({}, 2, True, UNKNOWN, SOMETIMES),
        ({"epsilon": 8.0}, 0, True, UNKNOWN, ALWAYS),  # logged rows of the target
        ({"public_arms": True}, 1, True, KNOWN, ALWAYS),
    ],
)
def test_questions_are_drawn_in_their_public_shares(
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    population: int,
    logged: bool,
    kinds: dict[Kind, Fraction],
    features: dict[int | None, Fraction],
) -> None:
    release = four_bins(**settings)
    law = law_of(monkeypatch, lambda: draw_question(release, population=population, logged=logged))
    assert law == {
        Question(kind, feature): kinds[kind] * features[feature]
        for kind in kinds
        for feature in features
    }
    assert sum(law.values()) == 1


def test_the_questions_are_numbered_as_the_wire_has_them() -> None:
    numbers = {
        Question(Kind(kind), feature).number(2)
        for kind, feature in itertools.product(range(6), (None, 0, 1))
    }
    assert numbers == set(range(18))
    assert Question(Kind.CONTRAST).number(5) == 0
    assert Question(Kind.RANKED, 4).number(5) == 35


def test_every_ranking_is_as_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    release = four_bins(public_arms=True)
    law = law_of(monkeypatch, lambda: draw_ranking(release))
    assert law == dict.fromkeys(itertools.permutations(range(3)), Fraction(1, 6))
    assert draw_ranking(four_bins()) == ()


def everybody(release: sv.Release, *, logged: bool = False) -> Iterator[tuple[Secret, float]]:
    """Someone in each quarter of each bin, with each arm and outcome they can have."""
    arms = len(release.experiment.arms)
    rankings: list[tuple[int, ...]] = [()]
    settings = release.experiment.settings
    public = isinstance(settings, sv.Whisper) and settings.public_arms and not logged
    if public:
        rankings = [*itertools.permutations(range(arms))]
    for point in itertools.product((0.0, 0.1, 0.3, 0.49, 0.5, 0.6, 0.75, 1.0), repeat=2):
        path = release.partition.find(point)
        offered: tuple[int, ...] = release.policies[path].arms
        for ranking, outcome in itertools.product(rankings, (0.0, 0.3, 1.0)):
            given = range(arms) if logged else offered
            if public:
                given = (next(arm for arm in ranking if arm in offered),)
            for arm in given:
                yield Secret(point, path, arm, logged=logged, ranking=ranking), outcome


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("settings", [{"epsilon": 1.0}, {"epsilon": 8.0}, {"public_arms": True}])
def test_the_coins_of_a_report_are_drawn_without_a_look_at_the_person(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], logged: bool
) -> None:
    """The exact law of question and ranking of whole answers is the same for everybody."""
    release = four_bins(**settings)
    monkeypatch.setattr(subset, "whisper", lambda mechanism, *, cell, value: b"said")
    laws = []
    for secret, outcome in list(everybody(release, logged=logged))[::29]:

        def coins(secret: Secret = secret, outcome: float = outcome) -> Any:
            told = privatise.privatise(
                release, secret, population=0, reward=outcome, ledger=Purse()
            )
            assert told.payload == b"said"
            # The ranking was drawn before; it goes out with RANKED only.
            assert told.ranking == (secret.ranking if told.question // 3 == RANKED else ())
            return told.question

        laws.append(law_of(monkeypatch, coins))
    assert len(laws) > 5
    assert all(law == laws[0] for law in laws)


# --- the true answer ------------------------------------------------------------------------------


def by_the_table(
    release: sv.Release, cells: Sheet, question: Question, secret: Secret, outcome: float
) -> tuple[int | None, float]:
    """The table in shared/questions.py once more, bin by bin."""
    place, box = 0, release.partition.box(secret.path)
    mine = None
    for policy in release.bins:
        if len(policy.arms) == 1:
            continue
        for arm in sorted({*policy.arms, *policy.waiting}) if cells.by_arm else [None]:
            if policy.path == secret.path and arm in (None, secret.arm):
                mine = place
            place += 1
    halves = 2 if cells.law.halves else 1
    if mine is None:
        return (halves * place if cells.law.elsewhere else None), 0.0
    sign = 2 * outcome - 1
    offered = release.policies[secret.path].arms
    values = {
        CONTRAST: sign if secret.arm == offered[0] else -sign,
        LEVEL: sign,
        MASS: 1.0,
        OUTCOME: sign,
        COUNT: 1.0,
        RANKED: sign,
    }
    value = values[int(question.kind)]
    if question.feature is None:
        return mine, value
    low, high = box[question.feature]
    side = int(secret.point[question.feature] >= low + (high - low) / 2)
    if cells.law.halves:
        return 2 * mine + side, value
    return mine, value if side else -value


def kinds_of(release: sv.Release, *, logged: bool) -> list[Kind]:
    settings = release.experiment.settings
    assert isinstance(settings, sv.Whisper)
    if logged:
        return [Kind.OUTCOME, Kind.COUNT]
    return (
        [Kind.RANKED, Kind.MASS] if settings.public_arms else [Kind.CONTRAST, Kind.LEVEL, Kind.MASS]
    )


def grown_releases() -> list[sv.Release]:
    """Releases of learners that real devices have reported to."""
    rng = random.Random(0)
    found = []
    for epsilon, public_arms in ((1.0, False), (8.0, False), (8.0, True)):
        learner = sv.Learner(
            experiment(
                epsilon=epsilon,
                method=sv.Whisper(public_arms=public_arms),
                release_every=25,
                horizon=600,
                auxiliary=AUXILIARY,
            )
        )
        for count in range(600):
            device = sv.Device(learner.release(), public_arms=True)
            context = {"age": rng.uniform(18, 90), "bmi": rng.uniform(15, 45)}
            arm = device.choose(context)
            likes = {"control": context["age"] < 50, "coach": context["bmi"] > 30}
            learner.receive(device.report(reward=0.9 if likes.get(arm, False) else 0.1))
            if count % 150 == 149:
                found.append(learner.release())
    return found


@lru_cache
def releases() -> list[sv.Release]:
    return [
        *grown_releases(),
        *(four_bins(epsilon=epsilon) for epsilon in (0.5, 2.0, 8.0)),
        *(four_bins(epsilon=epsilon, public_arms=True) for epsilon in (0.5, 8.0)),
        four_bins(epsilon=8.0, guarantee="certified"),
    ]


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("number", range(18))
def test_answers_are_those_of_the_table(number: int, logged: bool) -> None:
    release = releases()[number]
    for population in range(3):
        cells = sheet(release, population=population, by_arm=logged)
        if cells is None:
            continue
        features = [0, 1] if cells.law.halves else [None, 0, 1]
        for kind, feature in itertools.product(kinds_of(release, logged=logged), features):
            question = Question(kind, feature)
            for secret, outcome in everybody(release, logged=logged):
                found = answer(release, cells, question, secret=secret, outcome=outcome)
                assert found == by_the_table(release, cells, question, secret, outcome)
                cell, value = found
                assert -1 <= value <= 1
                assert cell is None or 0 <= cell < cells.law.mechanism.cells


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_whoever_has_no_cell_is_elsewhere_or_nowhere(epsilon: float) -> None:
    release = four_bins(epsilon=epsilon)
    for by_arm, whole_cells in ((False, 3), (True, 2 + 3 + 2)):
        cells = sheet(release, population=0, by_arm=by_arm)
        assert cells is not None
        people = [Secret((0.9, 0.1), "10", 1, logged=by_arm)]  # a settled bin
        if by_arm:
            people += [
                Secret((0.1, 0.1), "00", 1, logged=True),  # a dropped arm
                Secret((0.9, 0.9), "11", 2, logged=True),
                Secret((0.9, 0.1), "10", 0, logged=True),
            ]
        last = (2 * whole_cells if cells.law.halves else whole_cells) if epsilon > 1 else None
        kind, feature = (Kind.OUTCOME if by_arm else Kind.CONTRAST), 0
        for secret, outcome in itertools.product(people, (0.0, 0.3, 1.0)):
            question = Question(kind, feature)
            assert answer(release, cells, question, secret=secret, outcome=outcome) == (last, 0.0)
        expected = whole_cells if epsilon < 1 else last if last is None else last + 1
        assert cells.law.mechanism.cells == expected
        assert cells.law.halves == (epsilon == 8.0)
    waits = Secret((0.1, 0.9), "01", 0, logged=True)  # an arm that waits is live
    assert cells is not None
    assert answer(release, cells, Question(Kind.COUNT, 0), secret=waits, outcome=0.0) != (last, 0.0)


# --- the means of the answers ---------------------------------------------------------------------


def people_with_weights() -> list[tuple[tuple[float, ...], Fraction]]:
    """Points in every quarter of every bin, more or less of them."""
    grid = [*itertools.product((0.1, 0.3, 0.6, 0.9), repeat=2)]
    weights = [1 + (7 * place) % 5 for place in range(len(grid))]
    return [(point, Fraction(w, sum(weights))) for point, w in zip(grid, weights, strict=True)]


def reward(point: tuple[float, ...], arm: int) -> Fraction:
    return Fraction(1 + int(10 * point[0]) * (arm + 1) + int(10 * point[1]) * (3 - arm), 60)


BEHAVIOUR = (Fraction(1, 5), Fraction(3, 10), Fraction(1, 2))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("kind", list(Kind))
def test_the_means_of_the_answers_are_those_of_the_table(kind: Kind, epsilon: float) -> None:
    release = four_bins(epsilon=epsilon, public_arms=kind == Kind.RANKED)
    by_arm = kind in (Kind.OUTCOME, Kind.COUNT)
    cells = sheet(release, population=0, by_arm=by_arm)
    assert cells is not None
    rankings = [*itertools.permutations(range(3))] if kind == Kind.RANKED else [()]
    for feature, ranking in itertools.product((0, 1) if cells.law.halves else (None, 0), rankings):
        means: Counter[int | None] = Counter()
        for point, weight in people_with_weights():
            path = release.partition.find(point)
            offered = release.policies[path].arms
            chances = dict(zip(offered, [Fraction(1, len(offered))] * 3, strict=False))
            if kind == Kind.RANKED:
                chances = {min(offered, key=ranking.index): Fraction(1)}
            elif by_arm:
                chances = dict(enumerate(BEHAVIOUR))
            for arm, outcome in itertools.product(chances, (0, 1)):
                f = reward(point, arm)
                chance = weight * chances[arm] * (f if outcome else 1 - f)
                secret = Secret(point, path, arm, logged=by_arm, ranking=ranking)
                cell, value = answer(
                    release, cells, Question(kind, feature), secret=secret, outcome=float(outcome)
                )
                means[cell] += chance * Fraction(value)  # type: ignore[assignment]
        assert {cell: mean for cell, mean in means.items() if mean} == expected_means(
            release, cells, kind, feature, ranking
        )


def expected_means(
    release: sv.Release, cells: Sheet, kind: Kind, feature: int | None, ranking: tuple[int, ...]
) -> dict[int, Fraction]:
    """p·(f_first - f_second) and the rest of the table, for bins or for the halves of bins."""
    expected: Counter[int] = Counter()
    place = -1
    for policy in release.contested:
        for arm in policy.live if cells.by_arm else (policy.arms[0],):
            place += 1
            for side in (0, 1):
                box = release.partition.box(policy.path)
                here = [
                    (point, weight)
                    for point, weight in people_with_weights()
                    if release.partition.find(point) == policy.path
                    and (feature is None or (point[feature] >= sum(box[feature]) / 2) == side)
                ]
                p = sum((weight for _, weight in here), Fraction(0))

                f = [
                    sum((w * reward(point, k) for point, w in here), Fraction(0)) / p
                    for k in range(3)
                ]
                first, second = policy.arms[0], policy.arms[-1]
                ranked = min(policy.live, key=ranking.index) if ranking else 0
                mean = {
                    CONTRAST: p * (f[first] - f[second]),
                    LEVEL: p * (f[first] + f[second] - 1),
                    MASS: p,
                    OUTCOME: p * BEHAVIOUR[arm] * (2 * f[arm] - 1),
                    COUNT: p * BEHAVIOUR[arm],
                    RANKED: p * (2 * f[ranked] - 1),
                }[int(kind)]
                if cells.law.halves:
                    expected[2 * place + side] += mean  # type: ignore[assignment]
                elif feature is not None:
                    expected[place] += mean if side else -mean  # type: ignore[assignment]
                elif side:  # once for the whole bin
                    expected[place] += mean  # type: ignore[assignment]
    return {cell: Fraction(mean) for cell, mean in expected.items() if mean}


# --- whole reports --------------------------------------------------------------------------------


def many_bins(count: int, *, epsilon: float) -> sv.Release:
    """So many contested bins, and none besides: one cut after the other along the first axis."""
    paths, cuts = [""], {}
    while len(paths) < count:
        path = paths.pop(0)
        cuts[path] = len(path) % 2
        paths += [path + "0", path + "1"]
    bins = tuple(uniform(path, 0, 1, waiting=(2,)) for path in sorted(paths))
    return sv.Release(whispering(epsilon=epsilon), 1, Partition(2, cuts), bins)


def test_a_report_on_two_hundred_contested_bins_takes_less_than_64_bytes() -> None:
    release = many_bins(200, epsilon=1.0)
    assert len(release.contested) == 200
    assert wire.release_from_bytes(wire.release_to_bytes(release)) == release
    for _ in range(20):
        device = sv.Device(release, public_arms=True)
        device.choose(CONTEXT)
        report = device.report(reward=0.5)
        data = wire.report_to_bytes(report)
        assert len(data) < 64
        assert len(report.payload) == 25
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
    # 200 reports of which 19 in 20 rank: one of 6 is never seen with probability below 1e-12.
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
def test_where_everything_is_settled_nothing_is_sent_and_nothing_is_spent(
    tmp_path: Path, public_arms: bool
) -> None:
    release = settled_release(public_arms=public_arms)
    ledger = sv.Ledger(tmp_path / "ledger", budget=1)
    device = sv.Device(release, ledger=ledger, public_arms=True)
    for _ in range(30):
        assert device.choose(CONTEXT) == "reminder"
        report = device.report(reward=1.0)
        assert report.payload == b""
        assert report.question % 3 == 0  # about no feature
        assert device.report_logged(CONTEXT, arm="coach", reward=1.0).payload == b""
    assert ledger.entries() == []


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


@pytest.mark.parametrize("reward", [-0.1, 1.1, math.nan, math.inf, "1", None, True])
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
        _, secret = vars(device)["_pending"]
        shown = [repr(secret), str(secret), f"{secret}", repr(device), repr(vars(device))]
        report = device.report(reward=REWARD)
        assert vars(device)["_pending"] is None
        shown += [repr(report), wire.report_to_json(report)]
        assert not [text for text in shown for each in SECRETS if each in text]
        assert "point" not in repr(secret)
        assert "arm=" not in repr(secret)


def test_a_report_fits_the_learner_whose_release_it_is_for() -> None:
    for settings in ({}, {"epsilon": 8.0}, {"public_arms": True}, {"guarantee": "certified"}):
        learner = sv.Learner(whispering(**settings))
        for name, logged in itertools.product(("target", "clinic-b", "clinic-c"), (False, True)):
            device = sv.Device(learner.release(), population=name, ledger=Purse(), public_arms=True)
            for _ in range(20):
                if logged:
                    report = device.report_logged(CONTEXT, arm="coach", reward=0.3)
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


def test_the_kinds_of_questions_have_the_same_numbers_everywhere() -> None:
    from sottovoce.estimate.whisper import answers

    assert {kind.name: int(kind) for kind in Kind} == {
        name: getattr(answers, name) for name in Kind.__members__
    }
