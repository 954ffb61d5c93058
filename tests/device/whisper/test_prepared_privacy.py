"""What lies on the device until an outcome comes is ε-LDP, exactly, and so is what is sent then.

A decision keeps three sets: for the outcomes 1 and 0, and for none at all. Whoever reads the file
sees all three. Their law, and that of the report in the end, are worked out by following every draw
of the device's own code.
"""

from typing import Any

import pytest

import sottovoce as sv
from device.whisper.test_cap_privacy import people as capped_people
from device.whisper.test_cap_privacy import release_of as capped_release
from device.whisper.test_level_privacy import groups, odds, release_of
from sottovoce.shared.errors import SottovoceError
from support.slow import SLOW, slow_but
from support.subset import power_of_e
from support.whole_reports import Code, Input, shares_of, spelled_out, worst_ratio

EPSILONS = slow_but([0.5], [0.5, 3.0, 8.0])
SETTINGS = slow_but([{}], [{}, {"public_arms": True}, {"guarantee": "certified"}])


def served(release: sv.Release) -> list[list[Input]]:
    """Those who must not be told apart; logged rows have their outcome at once."""
    return [each for each in groups(release) if not each[0][0].logged]


def cases(epsilon: float, settings: dict[str, Any]) -> list[tuple[sv.Release, list[list[Input]]]]:
    levels, gaps = (release_of(each, epsilon=epsilon, **settings) for each in ("levels", "gaps"))
    found = [(levels, served(levels)), (gaps, served(gaps))]
    if not settings.get("public_arms"):
        capped = capped_release(epsilon=epsilon, **settings)
        found.append((capped, [capped_people(capped)]))
    return found


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_no_two_people_differ_by_more_than_e_to_the_epsilon_in_what_their_devices_keep(
    settings: dict[str, Any], epsilon: float
) -> None:
    code = Code()
    for release, alike in cases(epsilon, settings):
        for people in alike:
            laws = [code.kept(release, person) for person in people]
            # The budget is used, and not a bit more: three sets tell no more than one.
            assert worst_ratio(laws) == odds(epsilon) <= power_of_e(epsilon)[0]
            shares = [shares_of(law) for law in laws]
            assert all(each == shares[0] for each in shares)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_report_that_waited_has_the_law_of_one_that_did_not(
    settings: dict[str, Any], epsilon: float
) -> None:
    for release, alike in cases(epsilon, settings):
        for people in alike:
            assert faults(Code(), release, people) == set()
            outcomes = {outcome for _, outcome in people}
            assert {0.0, 0.3, 1.0} <= outcomes


# --- proof that the checks can fail ---------------------------------------------------------------


def faults(code: Code, release: sv.Release, people: list[Input]) -> set[str]:
    """Say what the code breaks: what the file tells, or what the report says in the end."""
    found, right = set(), Code()
    try:
        ratio = worst_ratio([code.kept(release, person) for person in people])
        sent = [code.finished(release, person) for person in people]
    except (AssertionError, SottovoceError, ArithmeticError):
        return {"fails"}
    if ratio is None or ratio > power_of_e(release.experiment.epsilon)[0]:
        found.add("file")
    for person, each in zip(people, sent, strict=True):
        law = right.law(release, person)
        if {coins: spelled_out(payloads) for coins, payloads in law.items()} != each:
            found.add("report")
    return found


NO = "bad = subset.turned(_mechanism(release, asked, population), good)"
MISTAKES = {
    "the set for no is drawn by itself": (
        NO,
        "bad = cast(bytes, _told(release, asked, secret, population=population, outcome=0.0,"
        " spend=lambda: None).payload)",
        "fails",
    ),
    "the set for no is that for yes": (NO, "bad = good", "report"),
    "every set for no is turned": (
        "if good and questions_of(release.experiment)[asked.kind].value in"
        " (OUTCOME, SIGNED_OUTCOME):",
        "if good:",
        "report",
    ),
    "the set for no outcome is the person's": (
        "for outcome, pay in ((1.0, spend), (None, lambda: None))",
        "for outcome, pay in ((1.0, spend), (0.5, lambda: None))",
        "file",
    ),
    "what never came is sent as a no": (
        "return ((bad, good)[subset.rounded_up(2 * known - 1)], none)[outcome is None]",
        "return ((bad, good)[subset.rounded_up(2 * known - 1)], bad)[outcome is None]",
        "report",
    ),
    "an outcome is rounded to the nearest": (
        "subset.rounded_up(2 * known - 1)",
        "int(known > 0.5)",
        "report",
    ),
    "yes and no are exchanged": ("((bad, good)[", "((good, bad)[", "report"),
    "the question is drawn anew when the file is written": (
        "_told(release, asked, secret, population=population, outcome=outcome, spend=pay)",
        "_told(release, draw_question(release, population=population, logged=False), secret,"
        " population=population, outcome=outcome, spend=pay)",
        "fails",
    ),
}


@SLOW
@pytest.mark.parametrize("what", MISTAKES)
def test_code_that_breaks_a_promise_is_found(what: str) -> None:
    old, new, fault = MISTAKES[what]
    release = release_of("levels", epsilon=0.5)
    assert fault in faults(Code((old, new)), release, served(release)[0])
