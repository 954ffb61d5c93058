"""The list of mutants keeps up with the code. ``make mutants`` sees whether they are found."""

import pytest

from mutants.page import PAGE, escaped
from mutants.run import Mutant, read_list
from support.paths import ROOT


@pytest.mark.parametrize("mutant", read_list(), ids=lambda mutant: mutant.breaks)
def test_a_mutant_changes_one_place_and_names_tests_that_are_there(mutant: Mutant) -> None:
    assert mutant.is_anchored(ROOT / "src"), f"{mutant.old!r} must be in {mutant.file} once"
    assert mutant.old != mutant.new
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("[")[0].partition("::")
        assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8"), test


def test_the_page_lists_every_mutant() -> None:
    text = PAGE.read_text(encoding="utf-8")
    mutants = read_list()
    missing = [each.breaks for each in mutants if f"| {escaped(each.breaks)} |" not in text]
    assert not missing, "write it anew: python tests/mutants/run.py -j 2 --page"
    assert f"**{len(mutants)} of {len(mutants)} found**" in text


def test_no_two_mutants_are_the_same() -> None:
    mutants = read_list()
    assert len({mutant.breaks for mutant in mutants}) == len(mutants)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in mutants}) == len(mutants)
