"""The documents say what is so."""

import contextlib
import io
import re
import shlex
import unicodedata
from importlib import import_module
from pathlib import Path

import pytest

import sottovoce as sv
from support.commands import COMMANDS
from support.paths import ROOT
from support.slow import slow_but

PAPER = ROOT.parent / "shared" / "paper" / "locally-private-bandits.tex"
MAP = ROOT / "docs" / "explanation" / "paper-map.md"

ROWS = [line for line in MAP.read_text().splitlines() if line.startswith("| ")][1:]
PLACES = [place for row in ROWS for place in re.findall(r"`([\w.]+)`", row.split("|")[3])]

OUTSIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "benchmarks/README.md")
DOCUMENTS = sorted([*map(ROOT.joinpath, OUTSIDE), *(ROOT / "docs").rglob("*.md")])
each_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=[str(each.relative_to(ROOT)) for each in DOCUMENTS]
)

TAKE_LONG = ("presets.md", "try-your-own-table.md")


def blocks(document: Path, language: str) -> list[str]:
    """Return the fenced blocks of a document, without the indentation of a list."""
    found = re.findall(
        rf"^( *)```{language}\n(.*?)^ *```$", document.read_text(), re.DOTALL | re.MULTILINE
    )
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def find(place: str) -> object:
    """Import as much of a dotted name as is a module, and look the rest up."""
    parts = f"sottovoce.{place}".split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise AssertionError(place)


def test_the_map_has_its_rows() -> None:
    assert len(ROWS) > 25
    assert len(PLACES) > 30


@pytest.mark.parametrize("place", sorted(set(PLACES)))
def test_each_place_on_the_paper_map_exists(place: str) -> None:
    assert callable(find(place))


def test_a_place_that_does_not_exist_is_found_out() -> None:
    with pytest.raises(AttributeError):
        find("estimate.ldpmab.rules.guess")


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not beside the project")
def test_every_equation_and_algorithm_of_sections_2_and_3_is_on_the_map() -> None:
    text = PAPER.read_text()
    method = text[text.index(r"\label{sec:ldpbandit}") : text.index(r"\label{sec:experiments}")]
    labels = set(re.findall(r"\\label\{((?:equ?|alg):[\w-]+)\}", method))
    assert len(labels) > 25
    on_map = {
        label for row in ROWS for label in re.findall(r"(?:equ?|alg):[\w-]+", row.split("|")[1])
    }
    assert sorted(labels - on_map) == []


@pytest.mark.parametrize(
    "document",
    slow_but({each for each in DOCUMENTS if each.name not in TAKE_LONG}, DOCUMENTS),
    ids=[str(each.relative_to(ROOT)) for each in DOCUMENTS],
)
def test_every_python_example_runs_as_printed(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(
        r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?",
        document.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    names: dict[str, object] = {"__name__": "__main__"}  # as a script
    for example, printed in examples:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(example, document.name, "exec"), names)  # noqa: S102
        if printed:
            assert said.getvalue() == printed
    if document.name == "README.md" and document.parent == ROOT:
        assert len(examples) >= 3


@each_document
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", document.read_text())
    for target, anchor in links:
        path = document.parent / target if target else document
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{target}#{anchor}"


def anchors(document: Path) -> set[str]:
    """Return the names of a page's headings, as the site gives them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    names = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        if given := re.search(r"\{ #(\S+) \}", heading):
            names.add(given[1])
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        kept = re.sub(r"[^\w\s-]", "", plain).strip().lower()
        names.add(re.sub(r"[-\s]+", "-", kept))
    return names


@each_document
def test_every_file_that_is_named_exists(document: Path) -> None:
    rooms = "shared|device|estimate|server|lab|cli"
    named = rf"`((?:src/sottovoce/|tests/|docs/|benchmarks/|(?:{rooms})/)[\w./-]*\.\w+)`"
    for name in re.findall(named, document.read_text()):
        assert any((folder / name).exists() for folder in (ROOT, ROOT / "src/sottovoce")), name


@each_document
def test_every_toml_example_is_an_experiment(document: Path, tmp_path: Path) -> None:
    for example in blocks(document, "toml"):
        path = tmp_path / "experiment.toml"
        path.write_text(example)
        sv.Experiment.from_toml(path)


@each_document
def test_every_command_that_is_printed_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for block in blocks(document, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["make"]:
                assert set(words[1:]) <= targets, line
            if words and Path(words[0]).name == "sottovoce":
                assert not strange_options(words[1:]), line


def strange_options(words: list[str]) -> set[str]:
    """Return the options that a command does not have; a command must be one of ours."""
    name = " ".join(words[:2]) if words[0] == "bench" else words[0]
    known = {option for each in COMMANDS[name] for option in each.names}
    return {word.partition("=")[0] for word in words if word.startswith("--")} - known - {"--help"}
