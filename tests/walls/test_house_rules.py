"""Rules of the house that a machine can check, over every module of the package."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT

SOURCE = ROOT / "src" / "sottovoce"
MODULES = sorted(SOURCE.rglob("*.py"))
each_module = pytest.mark.parametrize(
    "module", MODULES, ids=[str(each.relative_to(SOURCE)) for each in MODULES]
)

MOST_ARGUMENTS = 7
MOST_LINES = 400

Function = ast.FunctionDef | ast.AsyncFunctionDef


def arguments(function: Function) -> list[str]:
    """Return the names of all arguments but self and cls."""
    given = function.args
    more = [each for each in (given.vararg, given.kwarg) if each is not None]
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *more)]
    return [name for name in names if name not in ("self", "cls")]


def public(tree: ast.Module | ast.ClassDef) -> Iterator[Function | ast.ClassDef]:
    """Yield the public functions and classes of a module, and the methods of these classes."""
    for each in tree.body:
        if isinstance(each, Function | ast.ClassDef) and not each.name.startswith("_"):
            yield each
            if isinstance(each, ast.ClassDef):
                yield from public(each)


@each_module
def test_no_function_takes_more_than_seven_arguments(module: Path) -> None:
    counts = {
        f"{each.name}, line {each.lineno}": len(arguments(each))
        for each in ast.walk(ast.parse(module.read_text()))
        if isinstance(each, Function)
    }
    assert {name: count for name, count in counts.items() if count > MOST_ARGUMENTS} == {}


@each_module
def test_no_module_is_longer_than_400_lines(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= MOST_LINES


@each_module
def test_every_module_and_all_that_is_public_in_it_has_a_docstring(module: Path) -> None:
    tree = ast.parse(module.read_text())
    assert ast.get_docstring(tree)
    assert [each.name for each in public(tree) if not ast.get_docstring(each)] == []
