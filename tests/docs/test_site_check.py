"""The check of the built site finds what it is for."""

from pathlib import Path
from runpy import run_path

import pytest

from support.paths import ROOT

TROUBLES = run_path(str(ROOT / "docs" / "_site" / "check.py"))["troubles"]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('<a href="other.html#here">x</a> <a href="https://example.org">x</a>', None),
        ('<img src="data:image/png;base64,AA"> <script src="own.js"></script>', None),
        ('<a href="missing.html">x</a>', "missing.html leads nowhere"),
        ('<a href="other.html#there">x</a>', "other.html#there has no such place"),
        ('<a href="#there">x</a>', "#there has no such place"),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js"),
        ('<link href="//example.org/a.css" rel="stylesheet">', "loads //example.org/a.css"),
        ('<img src="http://example.org/a.png">', "loads http://example.org/a.png"),
    ],
)
def test_links_to_nowhere_and_things_of_others_are_found(
    tmp_path: Path, body: str, found: str | None
) -> None:
    (tmp_path / "index.html").write_text(body)
    (tmp_path / "other.html").write_text('<h2 id="here">x</h2>')
    (tmp_path / "own.js").write_text("")
    wrong = TROUBLES(tmp_path)
    assert [each.partition(": ")[2] for each in wrong] == ([found] if found else [])
