"""What the owner of an experiment reads first on its page."""

import random
from typing import Any

import sottovoce as sv
from sottovoce.server.page import render
from sottovoce.server.status import ExperimentStatus, Snapshot


def page_after(people: int, **settings: Any) -> str:
    experiment = sv.Experiment(
        arms=["control", "<coach>"],
        context=[sv.Numeric("age", 18, 90)],
        epsilon=4.0,
        horizon=2000,
        reward=[0, 60],
        **settings,
    )
    learner, chance = sv.Learner(experiment), random.Random(1)
    for _ in range(people):
        device = sv.Device(learner.release())
        arm = device.choose({"age": chance.uniform(18, 90)})
        walked = 60.0 if chance.random() < (0.2 if arm == "control" else 0.9) else 0.0
        learner.receive(device.report(reward=walked))
    snapshot = Snapshot.from_json(Snapshot.of(learner).to_json())
    return render(ExperimentStatus(learner.release(), people, people, snapshot))


def test_the_gain_comes_first_in_the_owners_unit() -> None:
    page = page_after(1500, baseline={"arm": "control", "share": 0.2})
    assert page.index("What it brings") < page.index("Who has reported")
    assert "The policy has brought +" in page
    assert "per person over control" in page
    assert "<span>+60</span>" in page
    assert "Decided for" in page
    assert "mean reward if everybody had it" in page
    assert "<coach>" not in page


def test_before_the_first_person_nothing_is_claimed() -> None:
    page = page_after(0, baseline={"arm": "control", "share": 0.2})
    assert "Too few people have come to compare the policy with control." in page
    assert "Decided for 0% of people." in page
    assert "mean reward if everybody had it" not in page


def test_without_a_baseline_the_page_says_that_nothing_measures_the_gain() -> None:
    page = page_after(100)
    assert "no <code>baseline</code>" in page
    assert "has brought" not in page
