"""The page's section on auxiliary data."""

from typing import Any

import pytest
from msgspec.structs import replace

import sottovoce as sv
from factories import CONTEXT, experiment
from sottovoce.server.diagnosis import AuditSummary, DiagnosisSummary, SourceSummary
from sottovoce.server.status import Snapshot
from support.pages import Page, page_of, release_of

TITLE = "Auxiliary data"
AUDIT = AuditSummary(
    answers=1240,
    delivered=0.612,
    promised=0.721,
    at_random=0.498,
    standard_error=0.0203,
    holds=False,
    falls_short=False,
)
SOURCE = SourceSummary(
    population="clinic-b",
    epsilon=2.5,
    reports=12000,
    expected=20000,
    worth=0.0361,
    exploration=0.753,
    overlap=0.914,
    promises=0.2,
    harmful=False,
    effective_users=3456.7,
    expected_users=5761.2,
)


def page(
    *sources: dict[str, Any], audit: AuditSummary | None = AUDIT, warnings: tuple[str, ...] = ()
) -> Page:
    listed = tuple(replace(SOURCE, **source) for source in sources)
    diagnosis = DiagnosisSummary(5, listed, audit, warnings)
    return page_of(release_of(), snapshot=Snapshot(diagnosis=diagnosis))


def test_a_population_has_its_figures_in_a_row() -> None:
    words = page({}).words
    start = words.index("clinic-b")
    assert words[start : start + 9] == [
        "clinic-b",
        "2.5",
        "12,000",
        "0.036",
        "3,457",
        "of 5,761 expected",
        "0.91",
        "0.75",
        "too early to say",
    ]


def test_the_audit_is_one_line() -> None:
    line = (
        "Mean reward 0.61 ± 0.02 among 1,240 people of the target population who were asked for it."
        " The learner expected 0.72, and 0.50 from arms at random."
    )
    assert line in page({}).words
    empty = replace(AUDIT, answers=0, standard_error=None)
    told = page({}, audit=empty).text
    assert "Nobody of the target population has been asked for a reward yet." in told
    assert "Mean reward" not in told
    assert "Mean reward" not in page({}, audit=None).text


SHORT, HOLDS = replace(AUDIT, falls_short=True), replace(AUDIT, holds=True)


@pytest.mark.parametrize(
    ("source", "audit", "verdict"),
    [
        ({"reports": 0}, HOLDS, "no reports yet"),
        ({}, AUDIT, "too early to say"),
        ({}, HOLDS, "keeps its promise"),
        ({"harmful": True}, SHORT, "seems to mislead"),
        ({}, SHORT, "promises little itself"),
        ({}, None, "not checked: nobody is asked for their reward"),
    ],
)
def test_the_verdict_in_words(
    source: dict[str, Any], audit: AuditSummary | None, verdict: str
) -> None:
    shown = page(source, audit=audit)
    assert verdict in shown.words
    assert shown.count("td", "warn") == int(verdict == "seems to mislead")


def test_what_is_not_known_is_said() -> None:
    unknown = dict.fromkeys(("overlap", "exploration", "worth", "effective_users"))
    assert page(unknown).words.count("not known") == 4


def test_warnings_stand_in_a_box_and_are_never_markup() -> None:
    assert page({}).count("ul", "warnings") == 0
    shown = page({"population": "<script>b"}, warnings=("<script>b misleads", "c & d"))
    assert shown.count("ul", "warnings") == 1
    for words in ("<script>b", "<script>b misleads", "c & d"):
        assert words in shown.words
    assert "script" not in {tag for tag, _ in shown.tags}


def test_without_auxiliary_populations_there_is_no_section() -> None:
    assert TITLE not in page().words
    assert TITLE not in page_of(release_of()).words
    assert TITLE not in page_of(release_of(), snapshot=Snapshot()).words


@pytest.mark.parametrize("method", ["ldpmab", "whisper"])
def test_a_learner_has_the_section(method: str) -> None:
    learner = sv.Learner(experiment(method=method, auxiliary=[sv.Population("clinic-b", 4.0, 500)]))
    for _ in range(7):
        device = sv.Device(learner.release(), population="clinic-b")
        learner.receive(device.report_logged(CONTEXT, arm="coach", reward=1.0))
    words = page_of(learner.release(), snapshot=Snapshot.of(learner)).words
    section = words[words.index(TITLE) :]
    start = section.index("clinic-b")
    assert section[start : start + 3] == ["clinic-b", "4", "7"]
