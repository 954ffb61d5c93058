"""What a mechanism sends in a process of its own.

``python -m sottovoce.lab.audit.processes`` reads a pickled request and writes the answers, pickled.
Both come from the process that started it.
"""

import os
import pickle
import subprocess
import sys

from sottovoce.lab.audit.attack import without_nonce
from sottovoce.lab.audit.claims import Mechanism, Person, Scene


def in_a_new_process(
    mechanism: Mechanism, scene: Scene, person: Person, *, reports: int
) -> list[bytes]:
    """Return the reports of a person, without nonces, made in a process that has just begun."""
    places = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run(  # noqa: S603 - this interpreter, and a module of this package
        [sys.executable, "-m", __name__],
        input=pickle.dumps((mechanism, scene, person, reports)),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": places},
        check=True,
    )
    sent: list[bytes] = pickle.loads(done.stdout)  # noqa: S301 - written by that module
    return sent


def _main() -> None:
    request = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the function above
    mechanism, scene, person, reports = request
    answers = mechanism.reports(scene, person, reports)
    sys.stdout.buffer.write(pickle.dumps([without_nonce(each) for each in answers]))


if __name__ == "__main__":
    _main()
