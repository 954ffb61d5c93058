"""Makes the vectors: ``python -m vectors.make [FILE]``, with tests and src on the path.

The same seed gives the same file. docs/reference/wire-format.md says what is in it.
"""

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

from vectors import worlds
from vectors.cases import cases
from vectors.refused import numbers, refused

HERE = Path(__file__).parent
COMMITTED = HERE / "vectors.json.gz"


def made(
    seed: int, *, grown: int, built: int, count: int, spoiled: int, of_each: int
) -> dict[str, Any]:
    """Vectors from a seed: so many cases, and so many spoiled releases beside other refusals."""
    vectors = cases(seed, grown=grown, built=built, count=count)
    others = worlds.releases(random.Random(f"refused {seed}"), worlds=0, built_for=12)
    return {
        "sottovoce": 5,
        "kind": "vectors",
        **vectors,
        "refused": refused(seed, others, count=spoiled, of_each=of_each),
        "numbers": numbers(seed, count=200),
    }


def committed() -> dict[str, Any]:
    """What the repository keeps: enough to test with where there is no Python."""
    return made(18, grown=2, built=14, count=400, spoiled=200, of_each=2)


def packed(vectors: dict[str, Any]) -> bytes:
    """Write vectors as JSON in gzip, without a date."""
    return gzip.compress(json.dumps(vectors, separators=(",", ":")).encode(), 9, mtime=0)


def main() -> None:
    """Write the file."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED
    path.write_bytes(packed(committed()))


if __name__ == "__main__":
    main()
