import json

import numpy as np
import pytest

import sottovoce as sv
from factories import grown
from support.histories import World


@pytest.mark.parametrize("preset", ["paper", "authors"])
def test_a_resumed_learner_goes_on_bit_for_bit(preset: str) -> None:
    method = sv.Ldpmab(preset, c=0.1)  # type: ignore[arg-type]
    rng = np.random.default_rng(5)
    stays = grown(method=method, reports=7)
    world = World(stays.experiment, rng.beta(0.3, 0.3, (4, 3)))
    moves = sv.Learner.from_json(stays.to_json())
    releases = [stays.release()]
    for count in range(600):
        late = releases[int(rng.integers(len(releases)))]
        release = late if rng.random() < 0.2 else stays.release()
        report = world.message(rng, release, int(rng.integers(2))).report
        stays.receive(report)
        moves.receive(report)
        if count % 13 == 0:  # stopped in the middle of a batch, too
            moves = sv.Learner.from_json(moves.to_json())
        assert moves.release() == stays.release()
        releases.append(stays.release())
    assert moves.to_json() == stays.to_json()
    assert stays.status().dropped_cells > 0
    assert len(stays.history()) > 3
    assert moves.history() == stays.history()
    assert moves.status() == stays.status()


def test_a_truncated_state_is_refused() -> None:
    text = grown().to_json()
    for length in [0, 1, 10, *range(100, len(text), len(text) // 50), len(text) - 1]:
        with pytest.raises(sv.StateError, match="must be whole JSON"):
            sv.Learner.from_json(text[:length])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sottovoce", 1, "the version of a saved learner must be 10; got 1"),
        ("sottovoce", 2, "the version of a saved learner must be 10; got 2"),
        ("sottovoce", 9, "must be 10; got 9; resume it with the sottovoce that saved it"),
        ("sottovoce", None, "the version of a saved learner must be 10; got None"),
        ("kind", "release", "must say so in 'kind'"),
        ("rewards", [[0.0]], "must be complete and consistent"),
        ("users", None, "must be complete and consistent"),
        ("reports", [1], "its counts do not fit its populations"),
        ("reports", [-1, 5], "its counts must not be negative"),
        ("late_reports", -1, "its counts must not be negative"),
        ("late_reports", float("inf"), "must be complete and consistent"),
        ("past", [], "must be complete and consistent"),
        ("past", [[5, [["", 0]]]], "its past releases are not in order"),
        ("history", [{"reports": 1, "kind": "Guess"}], "an event of an unknown kind"),
        ("past", [[1, [["", 0]]]], "its last release is not the one it has"),
        ("release", {}, "must be complete and consistent"),
        ("pulls", "x", "must be complete and consistent"),
    ],
)
def test_a_state_of_another_version_or_inconsistent_is_refused(
    key: str, value: object, message: str
) -> None:
    table = json.loads(grown().to_json())
    table[key] = value
    with pytest.raises(sv.StateError, match=message):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("wrong", [1.5, -5])
def test_users_must_be_counts(wrong: float) -> None:
    table = json.loads(grown().to_json())
    table["users"][0][0] = wrong
    with pytest.raises(sv.StateError, match="users must be whole numbers >= 0"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize("key", ["release", "past", "reports", "rewards", "history"])
def test_a_state_with_a_part_missing_is_refused(key: str) -> None:
    table = json.loads(grown().to_json())
    del table[key]
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))
