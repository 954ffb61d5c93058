"""The page of the documentation that lists the mutants, and what became of them."""

from collections.abc import Sequence
from itertools import groupby

from mutants.run import ROOT, Mutant

PAGE = ROOT / "docs" / "research" / "mutants.md"

HEAD = """\
# Mistakes made on purpose

A test that cannot fail is worth nothing. So we make plausible mistakes in the code, one at a time,
and see whether the tests notice: noise halved, one cell missed, the null case changed, a sign
flipped, a report sent twice, a request that says too much. Each mistake, a *mutant*, must be found
by the tests that are named for it.

`make mutants` makes all of them again; the list is `tests/mutants/mutants.toml`. This page is
written by `python tests/mutants/run.py -j 2 --page`.

"""


def write(mutants: Sequence[Mutant], finders: Sequence[str], *, seconds: float) -> None:
    """Write the page after a run that found all of them.

    finders: the test that failed first, for each mutant.
    """
    lines = [HEAD + f"**{len(mutants)} of {len(mutants)} found**, in {seconds / 60:.0f} minutes."]
    rows = sorted(zip(mutants, finders, strict=True), key=lambda row: row[0].file)
    for file, group in groupby(rows, key=lambda row: row[0].file):
        lines += ["", f"## `{file}`", "", "| what goes wrong | found first by |", "|---|---|"]
        lines += [f"| {escaped(mutant.breaks)} | `{name_of(test)}` |" for mutant, test in group]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def escaped(text: str) -> str:
    """Write text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def name_of(test: str) -> str:
    """Return the name of a test without its file and its parameters."""
    return test.rpartition("::")[2].partition("[")[0]
