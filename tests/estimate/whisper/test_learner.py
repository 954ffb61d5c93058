"""A learner with whisper: late reports, and what it knows."""

import itertools
import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import CONTRAST, LEVEL, LOGGED_LEVEL, MASS, OUTCOME, grown_whisper, whispering
from factories import grown as ldpmab_grown
from sottovoce.estimate.history import Elimination, Split
from sottovoce.estimate.whisper.state import State
from sottovoce.shared.whisper.cells import cell_layout
from sottovoce.shared.whisper.subset import unpack
from support.insides import whisper_state_of
from support.whispers import each_setting, number, person, send, truth


def test_the_example_has_dropped_arms_and_split_bins() -> None:
    learner = grown_whisper()
    kinds = {type(dated.event) for dated in learner.history()}
    assert kinds == {Split, Elimination}
    status = learner.status()
    assert status.contested_cells > 0
    assert 0 < status.settled_bins < status.bins
    assert len(json.loads(learner.to_json())["tallies"]) > 2  # some answers wait for the next step


def older_release(learner: sv.Learner, rng: random.Random) -> sv.Release:
    """Go on until some bins of an older release stand and some do not; end on a whole batch."""
    while True:
        before = learner.release()
        send(learner, rng, 20)
        now = {policy.path for policy in learner.release().contested}
        standing = [policy.path in now for policy in before.contested]
        if any(standing) and not all(standing):
            return before


@pytest.mark.parametrize("logged", [False, True])
def test_a_late_report_counts_for_the_bins_that_still_stand(logged: bool) -> None:
    learner, rng = sv.Learner(whispering()), random.Random(3)
    older = older_release(learner, rng)
    assert sum(learner.status().reports.values()) % 20 == 0
    now = {policy.path for policy in learner.release().contested}
    gone = [policy for policy in older.contested if policy.path not in now]
    status, state = learner.status(), whisper_state_of(learner)
    names = path_of(state)
    grew = {}
    fields = ("logged", "rows_told") if logged else ("served", "mass_told")
    before = {name: getattr(state, name).precision.copy() for name in fields}
    learner.receive(person(rng, older, population=1, logged=logged))
    assert learner.status().late_reports == status.late_reports + 1
    cells = sum(len(policy.live) if logged else 1 for policy in gone)
    assert learner.status().dropped_cells == status.dropped_cells + cells
    # The rest of the batch tells nothing of rewards or counts in population 1.
    for _ in range(19):
        learner.receive(person(rng, older, population=2))
    state = whisper_state_of(learner)
    for node, path in enumerate(names):
        grew[path] = any(
            (getattr(state, name).precision[node, 1] != before[name][node, 1]).any()
            for name in fields
        )
    assert {path for path in grew if grew[path]} == {
        policy.path for policy in older.contested if policy.path in now
    }


def path_of(state: State) -> list[str]:
    """The path of each node, by following children; independent of ``node_paths``."""
    names = {0: ""}
    for node in range(int(state.totals[0].nodes)):
        child = int(state.tree.child[node])
        if child != node:
            names |= {child: names[node] + "0", child + 1: names[node] + "1"}
    return [names[node] for node in sorted(names)]


def test_a_late_report_whose_bins_are_all_gone_is_counted_as_dropped() -> None:
    learner, rng = grown_whisper(), random.Random(5)
    first = sv.Learner(learner.experiment).release()
    status = learner.status()
    assert status.bins > 1
    learner.receive(person(rng, first, question=number(CONTRAST, 0)))
    logged = number(OUTCOME, 0)
    learner.receive(person(rng, first, population=1, logged=True, question=logged))
    after = learner.status()
    assert after.late_reports == status.late_reports + 2
    assert after.dropped_cells == status.dropped_cells + 1 + 3


def test_a_vote_that_comes_late_is_for_the_arms_that_were_compared_then() -> None:
    learner, rng = sv.Learner(whispering(epsilon=2.0, guarantee="certified")), random.Random(2)
    first = learner.release()
    while (now := learner.release()).bins[0].arms == first.bins[0].arms:
        send(learner, rng, 20, target_only=True)
    assert len(now.bins) == 1
    a, b = first.bins[0].arms
    before = whisper_state_of(learner).votes[0].copy()
    votes = {-1: 0, 0: 0, 1: 0}
    for _ in range(20):
        report = person(rng, first, question=number(CONTRAST))
        votes[named_of(first, report)] += 1
        learner.receive(report)
    more = whisper_state_of(learner).votes[0] - before
    assert (more[a, b], more[b, a]) == (votes[1], votes[-1])
    assert more.sum() == votes[1] + votes[-1] > 0


def test_only_the_target_s_people_vote_and_only_on_whole_bins() -> None:
    settings: dict[str, Any] = {"epsilon": 2.0, "guarantee": "certified", "release_every": 40}
    learner, rng = sv.Learner(whispering(**settings)), random.Random(2)
    first = learner.release()
    for _ in range(20):
        learner.receive(person(rng, first, population=1, question=number(CONTRAST)))
    for kind, feature in [(CONTRAST, 0), (CONTRAST, 1), (LEVEL, None), (MASS, None)] * 5:
        learner.receive(person(rng, first, question=number(kind, feature)))
    assert whisper_state_of(learner).served.precision[0].any()  # it was looked at
    assert not whisper_state_of(learner).votes.any()


@pytest.mark.parametrize("pair", [[0, 1], [1, 0]])
@pytest.mark.parametrize("kind", [OUTCOME, LOGGED_LEVEL])
def test_rows_with_two_arms_tell_of_the_first_and_the_second_whichever_leads(
    kind: int, pair: list[int]
) -> None:
    table = json.loads(sv.Learner(whispering(arms=2, release_every=1)).to_json())
    table["state"]["pair"][0] = pair
    learner = sv.Learner.from_json(json.dumps(table))
    row = person(random.Random(0), learner.release(), population=1, logged=True)
    # Of three cells, the set holds the upper half of the one bin, with a plus.
    learner.receive(replace(row, question=number(kind, 0), payload=bytes([2 * 1 + 1])))
    told = whisper_state_of(learner).logged.vector[0, 1]
    for index in (0, 1):
        assert told[index, 0] > 0
        assert told[index, 1] == (-told[index, 0] if kind == OUTCOME else told[index, 0])


def named_of(release: sv.Release, report: sv.Report) -> int:
    layout = cell_layout(release, population=0, by_arm=False)
    assert layout is not None
    assert isinstance(report.payload, bytes)
    return unpack(layout.mechanism(None).mechanism, report.payload)[0]


@each_setting
def test_every_arm_of_every_bin_has_an_estimate(settings: dict[str, Any]) -> None:
    learner = grown_whisper(**settings)
    arms = learner.experiment.arms
    expected = [
        (policy.path, arm, number in policy.live)
        for policy in learner.release().bins
        for number, arm in enumerate(arms)
    ]
    # Also the arms that wait until the two on offer have been compared.
    state = whisper_state_of(learner)
    live = dict(zip(path_of(state), state.live, strict=False))
    for policy in learner.release().contested:
        assert sorted(policy.live) == np.flatnonzero(live[policy.path]).tolist()
    found = learner.estimates()
    assert [(cell.path, cell.arm, cell.live) for cell in found] == expected
    for cell in found:
        assert cell.estimate is not None
        assert cell.radius is not None
        assert 0 < cell.radius < 1.5
        assert -0.5 < cell.estimate < 1.5
        assert cell.level == 0.95


@pytest.mark.parametrize(("epsilon", "reports"), [(8.0, 6000), (2.0, 10_000)])
def test_intervals_hold_the_truth_about_as_often_as_they_say(epsilon: float, reports: int) -> None:
    # The means of truth() over a box are its values at the middle. Seeds are fixed: no flakes.
    held = []
    for seed in range(2):
        learner = sv.Learner(whispering(epsilon=epsilon, horizon=10**6, release_every=500))
        send(learner, random.Random(seed), reports)
        release, arms = learner.release(), list(learner.experiment.arms)
        for cell in learner.estimates():
            middle = tuple((low + high) / 2 for low, high in release.partition.box(cell.path))
            assert cell.estimate is not None
            assert cell.radius is not None
            error = abs(cell.estimate - truth(middle, arms.index(cell.arm)))
            assert error < 2.5 * cell.radius
            held.append(error < cell.radius)
    assert len(held) > 10
    assert np.mean(held) > 0.8


def test_certificates_are_the_eliminations_of_the_history() -> None:
    learner = grown_whisper()
    arms = learner.experiment.arms
    certificates = learner.certificates()
    dropped = [
        (dated.event.path, arms[arm])
        for dated in learner.history()
        if isinstance(dated.event, Elimination)
        for arm in dated.event.arms
    ]
    assert [(each.path, each.dropped) for each in certificates] == dropped
    assert dropped
    for each in certificates:
        assert each.statistic >= each.boundary > 0
        assert each.delta is None
        assert each.dropped != each.winner
        assert 1 < each.release <= learner.release().version
    versions = [each.release for each in certificates]
    assert versions == sorted(versions)
    assert ldpmab_grown().certificates() == ()


def test_certified_releases_never_have_halves_for_cells() -> None:
    learner = sv.Learner(whispering(guarantee="certified", epsilon=8.0, horizon=2000))
    releases, rng = [learner.release()], random.Random(0)
    for _ in range(3000):  # where the first feature is small, two arms are worse by far
        report = person(
            rng,
            learner.release(),
            means=lambda point, arm: 0.9 if arm == (point[0] > 0.5) else 0.1,
        )
        learner.receive(report)
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
    for release, population, by_arm in itertools.product(releases, range(3), (False, True)):
        layout = cell_layout(release, population=population, by_arm=by_arm)
        if layout is not None:
            assert layout.halves.parts == 1
    assert max(len(release.contested) for release in releases) > 1
    certificates = learner.certificates()
    assert certificates
    for each in certificates:
        assert each.delta is not None
        assert 0 < each.delta < 0.05
        assert each.statistic >= each.boundary == pytest.approx(-np.log(each.delta))
    # The same releases would have halves for cells without the guarantee.
    regret = sv.Learner(whispering(epsilon=8.0, horizon=2000)).experiment
    finest = max(releases, key=lambda release: len(release.contested))
    layout = cell_layout(replace(finest, experiment=regret), population=0, by_arm=False)
    assert layout is not None
    assert layout.halves.parts == 2
