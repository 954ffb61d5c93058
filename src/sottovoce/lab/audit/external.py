"""Other mechanisms: a Python callable, or a command that reads and writes lines.

Both get the same request, described in docs/reference/audit.md:

    {"release": text, "population": 0, "epsilon": 1.0,
     "context": {…}, "arm": null, "reward": 0.5, "logged": false}

A callable gets it as a dict, and returns bytes or numbers. A command gets it as a line of JSON, and
writes a line: the bytes in hexadecimal digits, or a JSON list of numbers.
"""

import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any

from sottovoce.lab.audit.claims import Answer, Person, Scene
from sottovoce.shared import wire
from sottovoce.shared.errors import ExperimentError, kind_of, must

AT_ONCE = 16
"""Requests that are written before their answers are read: fewer bytes than a pipe holds."""

PATIENCE = 30.0
"""Seconds to wait for the next answers of a command."""


@dataclass(frozen=True, slots=True)
class PythonCallable:
    """A function as ``module:function``. The current folder is searched, too."""

    name: str

    def reports(self, scene: Scene, person: Person, count: int) -> list[Answer]:
        """Call it so many times."""
        function, request = self.found(), request_of(scene, person)
        return [answer_of(function(dict(request)), of=self.name) for _ in range(count)]

    def found(self) -> Callable[[Mapping[str, Any]], Any]:
        """Import the function."""
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        module, _, function = self.name.partition(":")
        try:
            found = getattr(import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            rule = "be module:function, and importable from here"
            raise ExperimentError(f"{must('a callable', rule, self.name)}; {error}") from error
        if not callable(found):
            raise ExperimentError(must("a callable", "be a function", self.name))
        return found  # type: ignore[no-any-return]  # anything callable may be tried


@dataclass(frozen=True, slots=True)
class LineCommand:
    """A command that answers each line with a line. It is started anew for each person."""

    command: str

    def reports(self, scene: Scene, person: Person, count: int) -> list[Answer]:
        """Ask it so many times."""
        line = json.dumps(request_of(scene, person)) + "\n"
        answers: list[Answer] = []
        with ThreadPoolExecutor(1) as reader, self._started() as (requests, lines):
            while len(answers) < count:
                wanted = min(AT_ONCE, count - len(answers))
                try:
                    requests.write(line * wanted)
                    requests.flush()
                    came = reader.submit(_read_lines, lines, wanted).result(timeout=PATIENCE)
                except TimeoutError as error:
                    raise self._trouble(f"none came in {PATIENCE:g} seconds") from error
                except OSError as error:
                    raise self._trouble("it has stopped reading") from error
                answers += [self._read(each) for each in came]
        return answers

    def _read(self, line: str) -> Answer:
        if not line:
            raise self._trouble("it has ended")
        text = line.strip()
        try:
            value = json.loads(text) if text.startswith("[") else bytes.fromhex(text)
        except ValueError:
            raise self._trouble("another line") from None
        return answer_of(value, of=self.command)

    def _trouble(self, came: str) -> ExperimentError:
        rule = "answer each line with a line of hexadecimal digits or a JSON list of numbers"
        return ExperimentError(must(f"the command {self.command!r}", rule, came))

    @contextmanager
    def _started(self) -> Iterator[tuple[IO[str], IO[str]]]:
        """Start the command, and end it when it is no longer needed, whatever it is doing."""
        try:
            process = subprocess.Popen(  # noqa: S603 - what the user asked for
                shlex.split(self.command), stdin=PIPE, stdout=PIPE, text=True
            )
        except (OSError, ValueError, IndexError) as error:
            rule = "be one that can be started"
            raise ExperimentError(f"{must('a command', rule, self.command)}; {error}") from error
        if process.stdin is None or process.stdout is None:  # they are pipes, as asked for
            raise self._trouble("no pipes")
        try:
            yield process.stdin, process.stdout
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            with suppress(OSError):  # requests that it has not read are lost
                process.stdin.close()


def _read_lines(lines: IO[str], count: int) -> list[str]:
    return [lines.readline() for _ in range(count)]


def request_of(scene: Scene, person: Person) -> dict[str, Any]:
    """Return what a mechanism is asked."""
    return {
        "release": wire.release_to_json(scene.release),
        "population": scene.population,
        "epsilon": scene.epsilon,
        "context": None if person.context is None else dict(person.context),
        "arm": person.arm,
        "reward": person.reward,
        "logged": person.logged,
    }


def answer_of(value: Any, *, of: str) -> Answer:
    """Read what a mechanism sent: bytes, a number, or numbers."""
    if isinstance(value, bytes):
        return value
    numbers: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    if all(type(each) in (int, float, bool) and math.isfinite(each) for each in numbers):
        return tuple(map(float, numbers))
    raise ExperimentError(must(of, "send bytes or finite numbers", kind_of(value)))
