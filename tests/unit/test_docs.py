"""The documents say what is so."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import sottovoce as sv

ROOT = Path(__file__).parents[2]
PAPER = ROOT.parent / "shared" / "paper" / "locally-private-bandits.tex"
MAP = ROOT / "docs" / "explanation" / "paper-map.md"

ROWS = [line for line in MAP.read_text().splitlines() if line.startswith("| ")][1:]
PLACES = [place for row in ROWS for place in re.findall(r"`([\w.]+)`", row.split("|")[3])]


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


@pytest.mark.parametrize("document", sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]))
def test_every_python_example_runs_as_printed(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", document.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {"__name__": "__main__"}  # as a script
    for example in examples:
        exec(compile(example, document.name, "exec"), names)  # noqa: S102
    if document.name == "README.md":
        assert len(examples) >= 3


@pytest.mark.parametrize("document", sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]))
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_the_toml_example_of_the_readme_is_an_experiment(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    path = tmp_path / "walking.toml"
    path.write_text(example)
    assert sv.Experiment.from_toml(path).name == "walking"
