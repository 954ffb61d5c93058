"""The gate runs what a change needs."""

from runpy import run_path
from typing import Any

import pytest

from support.paths import ROOT

TESTS_FOR: Any = run_path(str(ROOT / ".ci" / "tests_for.py"))["tests_for"]


@pytest.mark.parametrize(
    ("path", "runs", "leaves"),
    [
        ("src/sottovoce/server/page.py", ["server", "lab", "cli", "contracts"], ["device"]),
        ("src/sottovoce/shared/wire.py", ["shared", "estimate", "device", "server", "lab"], []),
        ("src/sottovoce/lab/whisper/people.py", ["lab", "recordings", "walls"], ["server"]),
        ("tests/server/test_page.py", ["server"], ["lab", "walls"]),
        ("docs/explanation/privacy.md", ["docs"], ["server", "lab"]),
        ("js/src/device/client.ts", ["js", "vectors", "docs"], ["server", "device"]),
        ("README.md", ["docs", "test_bare_install.py"], ["server", "lab"]),
    ],
)
def test_a_change_needs_the_tests_of_what_is_built_on_it(
    path: str, runs: list[str], leaves: list[str]
) -> None:
    folders = TESTS_FOR(path)
    assert {f"tests/{each}" for each in runs} <= folders
    assert not {f"tests/{each}" for each in leaves} & folders


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "src/sottovoce/__init__.py", "tests/factories.py", "Makefile"]
)
def test_whatever_touches_everything_needs_all_tests(path: str) -> None:
    assert TESTS_FOR(path) == {"tests"}


def test_every_folder_that_is_named_is_there() -> None:
    for path in (
        "src/sottovoce/shared/wire.py",
        "docs/index.md",
        "js/package.json",
        "README.md",
        "benchmarks/rules.py",
    ):
        assert all((ROOT / folder).exists() for folder in TESTS_FOR(path))
