"""Which tests does a change need? Changed files come in, one a line; folders of tests go out.

A room's tests run when the room has changed, or one that it is built on. Texts have tests of their
own. Whatever is not known here needs all tests.
"""

import sys

BUILT_ON = {
    "shared": {"shared", "estimate", "device", "server", "lab", "cli"},
    "estimate": {"estimate", "device", "server", "lab", "cli"},
    "device": {"device", "server", "lab", "cli"},
    "server": {"server", "lab", "cli"},
    "lab": {"lab", "cli"},
    "cli": {"cli"},
}
"""The rooms whose tests see a change of a room. Devices and servers are tested with each other."""

THE_WHOLE = {
    *("tests/benches", "tests/contracts", "tests/docs", "tests/recordings", "tests/vectors"),
    "tests/walls",
    *("tests/test_bare_install.py", "tests/test_public_api.py"),
}
"""Tests of the package as a whole."""

TEXTS = (".md", ".css", ".png", ".svg", ".csv")


def tests_for(path: str) -> set[str]:
    """Return the folders with tests that a changed file needs."""
    match path.split("/"):
        case ["src", "sottovoce", room, *_] if room in BUILT_ON:
            return THE_WHOLE | {f"tests/{each}" for each in BUILT_ON[room]}
        case ["tests", folder, _, *_] if folder not in ("support", "recordings"):
            return {f"tests/{folder}"}
        case ["docs", *_] | ["mkdocs.yml"]:
            return {"tests/docs", "tests/benches", "tests/shared", "tests/device"}
        case ["js", *_]:
            return {"tests/js", "tests/vectors", "tests/docs"}
        case ["benchmarks", *_]:
            return {"tests/benches", "tests/docs", "tests/walls"}
        case [name] if name.endswith(TEXTS):
            return {"tests/docs", "tests/benches", "tests/test_bare_install.py"}
    return {"tests"}


def main() -> None:
    """Read the files, and print the folders."""
    folders = set().union(*(tests_for(line.strip()) for line in sys.stdin))
    print(*(["tests"] if "tests" in folders else sorted(folders)))


if __name__ == "__main__":
    main()
