"""The public API: its names and signatures, and that all it returns is part of it.

``public_api.txt`` has a line for each name and method. After a change that is meant:

    python tests/test_public_api.py > tests/public_api.txt
"""

import inspect
import os
import pydoc
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce import lab
from sottovoce.shared import errors
from support.paths import ROOT

PINNED = Path(__file__).with_name("public_api.txt")
WIRE = [
    *("report_to_bytes", "report_from_bytes", "report_to_json", "report_from_json"),
    *("release_to_json", "release_from_json", "release_id", "release_of"),
    *("batch_to_bytes", "batch_from_bytes"),
]


def classes() -> list[type]:
    return [each for name in sv.__all__ if isinstance(each := getattr(sv, name), type)]


def functions(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, those that it inherits from us too."""
    for name in sorted(dir(kind)):
        member = inspect.getattr_static(kind, name)
        function = getattr(member, "fget", None) or getattr(member, "func", None)
        function = function or getattr(member, "__func__", member)
        ours = getattr(function, "__module__", None) or ""
        if not name.startswith("_") and inspect.isfunction(function) and "sottovoce" in ours:
            yield name, function


def is_error(kind: type) -> bool:
    return issubclass(kind, Exception)


def lines() -> Iterator[str]:
    """Write the API, a line for each name."""
    for name in sv.__all__:
        each = getattr(sv, name)
        if name == "wire":
            yield from (f"wire.{one}{written(getattr(each, one))}" for one in WIRE)
        elif is_error(each):
            yield f"{name}({', '.join(base.__name__ for base in each.__bases__)})"
        elif issubclass(each, Enum):
            yield f"{name}: {', '.join(each.__members__)}"
        elif typing.is_typeddict(each):
            yield f"{name}: {', '.join(typing.get_type_hints(each))}"
        else:
            yield name + written(each)
            for method, function in functions(each):
                yield f"{name}.{method}{written(function)}"


def written(function: Any) -> str:
    """Write a signature without the modules that its types are in."""
    text = str(inspect.signature(function))
    text = re.sub(r"<function (\w+) at 0x\w+>|<(\w+) '([\w.]+)'>", r"\1\3", text)
    text = re.sub(r"<bound method (\w+)\.(\w+) of <[^<>]*>>", r"\1.\2", text)
    return re.sub(r"<[^<>]* at 0x\w+>", "…", re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", text))


def parts(hint: Any) -> Iterator[Any]:
    """Yield every class in an annotation."""
    if isinstance(hint, list | tuple):
        for each in hint:
            yield from parts(each)
    elif arguments := typing.get_args(hint):
        if typing.get_origin(hint) is not typing.Literal:
            yield typing.get_origin(hint)
            yield from parts(arguments)
    else:
        yield hint


def test_the_names_and_signatures_are_those_that_were_pinned() -> None:
    assert [*lines()] == PINNED.read_text().splitlines()


def test_all_names_are_listed_by_dir_and_in_order() -> None:
    assert sv.__all__ == sorted(sv.__all__)
    assert {*sv.__all__, "__version__"} <= set(dir(sv))
    assert all(name in dir(sv) for name in ("Learner", "Device", "Client", "Ledger"))
    assert not hasattr(sv, "Whisperer")


def test_every_public_name_and_method_explains_itself() -> None:
    for kind in classes():
        assert inspect.getdoc(kind), kind
        made = re.match(rf"{kind.__name__}\(", kind.__doc__ or "")
        assert not made, f"{kind} has the docstring that dataclasses write"
        for name, function in functions(kind):
            assert function.__doc__, (kind, name)
    assert all(getattr(sv.wire, name).__doc__ for name in WIRE)


@pytest.mark.parametrize("kind", [each for each in classes() if not is_error(each)])
def test_all_that_the_api_takes_and_returns_is_part_of_it(kind: type) -> None:
    public = {each.__name__: each for each in classes()}
    written = [kind, *(function for _, function in functions(kind))]
    if inspect.isfunction(vars(kind).get("__init__")) and not issubclass(kind, Enum):
        written.append(vars(kind)["__init__"])
    for each in written:
        for name, hint in typing.get_type_hints(each, localns=public).items():
            for part in parts(hint):
                ours = getattr(part, "__module__", "").startswith("sottovoce")
                known = not ours or part in public.values() or name.startswith("_")
                assert known, f"{kind.__name__} has {part}, which is not in sottovoce.__all__"


def test_the_lab_lists_its_entry_points_and_all_are_in_the_reference() -> None:
    page = ROOT / "docs" / "reference" / "lab.md"
    documented = re.findall(r"^::: sottovoce\.lab\.(\w+)$", page.read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(lab.__all__) == sorted(set(dir(lab)) - {"__doc__"})
    assert all(getattr(lab, name).__doc__ for name in lab.__all__)

    assert callable(lab.simulate)


def test_help_reads_from_the_experiment_to_the_report() -> None:
    text = pydoc.plain(pydoc.render_doc(sv))
    places = [text.index(f"sv.{name} ") for name in ("Experiment", "Learner", "Device", "Report")]
    assert places == sorted(places)
    assert "class Learner" in text
    assert "class Client" in text


def test_the_version_is_the_one_that_was_installed() -> None:
    assert sv.__version__ == version("sottovoce")


def test_the_module_is_the_command() -> None:
    run = [sys.executable, "-m", "sottovoce", "--version"]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.strip() == sv.__version__


def test_nothing_is_loaded_before_it_is_used() -> None:
    script = """
import sys, sottovoce as sv
dir(sv)
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("sottovoce.")}
import sottovoce.lab
print(*sorted(rooms), "numpy" in sys.modules)
"""
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["shared", "False"]


def test_every_error_is_a_sottovoce_error_and_a_value_error() -> None:
    every = [each for each in classes() if is_error(each)]
    made = [each for each in vars(errors).values() if isinstance(each, type) and is_error(each)]
    assert set(every) == set(made)
    assert all(issubclass(error, sv.SottovoceError) for error in every)
    assert issubclass(sv.SottovoceError, ValueError)


def test_the_tree_drawn_at_the_top_of_the_errors_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    rows = re.findall(r"^([│ ├└─]*)(\w+)(?: {2,}|$)", drawn, flags=re.MULTILINE)
    tree = [(len(stem) // 4, name) for stem, name in rows if hasattr(errors, name)]
    made = {name for name, each in vars(errors).items() if isinstance(each, type)}
    raised = {name for name in made if issubclass(getattr(errors, name), Exception)}
    assert sorted(name for _, name in tree) == sorted(raised)
    parents: dict[int, str] = {}
    for depth, name in tree:
        parents[depth] = name
        if depth:
            bases = [base.__name__ for base in getattr(errors, name).__bases__]
            assert bases[0] == parents[depth - 1]


if __name__ == "__main__":
    print(*lines(), sep="\n")
