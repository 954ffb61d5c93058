"""Cases of which only some are tested each day: the others are slow, and left to ``test-all``."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def slow_but(every_day: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """Mark all cases as slow but some; a case is known by its first value."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if (case[0] if isinstance(case, tuple) else case) in every_day else SLOW,
        )
        for case in cases
    ]


SLOW = pytest.mark.slow
