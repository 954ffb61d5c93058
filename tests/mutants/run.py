"""Break the code on purpose, one mutant at a time, and see that the tests find it.

``make mutants`` runs all of them; ``python tests/mutants/run.py -k ledger -j 2`` some, two at once.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")
PYTEST = ["-x", "-q", "-n", "0", "--tb=no", "-p", "no:cacheprovider"]
# Nothing here takes a minute on an idle machine; a mutant may make a test wait for ever.
PATIENCE_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake, and the tests that must fail because of it.

    breaks: what goes wrong, in words.
    file: the module, below src/sottovoce. old, new: a piece of its text, and what replaces it.
    tests: files, or ``file::test``.
    """

    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def is_anchored(self, source: Path) -> bool:
        """Say whether its old text is there exactly once."""
        path = source / "sottovoce" / self.file
        return path.is_file() and path.read_text(encoding="utf-8").count(self.old) == 1

    def apply(self, source: Path) -> None:
        """Make the mistake in a copy of src."""
        path = source / "sottovoce" / self.file
        path.write_text(path.read_text(encoding="utf-8").replace(self.old, self.new), "utf-8")


def read_list() -> list[Mutant]:
    """Read the list of mutants."""
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def run_tests(source: Path, tests: Sequence[str], folder: Path) -> tuple[int | None, str]:
    """Run tests on a copy of src; return pytest's exit status, None if it hangs, and its words."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        # What a mutant makes is kept for no later run: compiled rules, and examples that failed.
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    command = [sys.executable, "-m", "pytest", *PYTEST, "-m", "not slow", *tests]
    with (folder / "output").open("w+", encoding="utf-8") as output:
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, ""
        output.seek(0)
        return done.returncode, output.read()


def try_mutant(mutant: Mutant) -> tuple[str, str]:
    """Return what became of a mutant, and the test that failed."""
    if not mutant.is_anchored(ROOT / "src"):
        return "anchor missing", ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        mutant.apply(folder / "src")
        status, words = run_tests(folder / "src", mutant.tests, folder)
    # 1: a test has failed. Any other status says that the tests could not be run.
    verdict = {0: "not found", 1: "found", None: "hangs"}.get(status, "not run")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", words, re.MULTILINE)
    return verdict, failed[1] if failed else ""


def pass_unbroken(tests: Sequence[str]) -> bool:
    """Say whether tests pass as long as nothing is broken: else their failing says nothing."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        status, words = run_tests(ROOT / "src", tests, Path(name))
    if status != 0:
        print(f"{words}\nthese tests must pass on the code as it is")
    return status == 0


def main() -> int:
    """Try the mutants; return 1 unless each is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only mutants whose words or file hold this text")
    parser.add_argument("-j", type=int, default=1, help="how many at once")
    parser.add_argument("--page", action="store_true", help="write the documentation's page")
    options = parser.parse_args()
    chosen = [mutant for mutant in read_list() if options.k in f"{mutant.breaks} {mutant.file}"]
    begun = monotonic()
    finders: list[str] = []
    with ThreadPoolExecutor(options.j) as pool:
        for mutant, (verdict, test) in zip(chosen, pool.map(try_mutant, chosen), strict=True):
            name = test.rpartition("::")[2]
            print(f"{verdict:<15}{mutant.file}: {mutant.breaks}  {name}", flush=True)
            if verdict == "found":
                finders.append(test)
    found = len(finders)
    are_all_found = 0 < found == len(chosen) and pass_unbroken(sorted(set(finders)))
    seconds = monotonic() - begun
    print(f"{found} of {len(chosen)} found in {seconds:.0f} s")
    if are_all_found and options.page:
        sys.path.insert(0, str(ROOT / "tests"))
        from mutants import page

        page.write(chosen, finders, seconds=seconds)
    return 0 if are_all_found else 1


if __name__ == "__main__":
    sys.exit(main())
