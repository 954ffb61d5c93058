"""The code that privacy tests break on purpose, most of them slow, keeps up with the code."""

from typing import Any

import pytest

from device.whisper import (
    test_cap_privacy,
    test_level_privacy,
    test_prepared_privacy,
    test_privacy,
    test_reward_privacy,
    test_scale_privacy,
    test_two_arm_privacy,
)
from support.whole_reports import Code

MUTATIONS = [
    (module.__name__.rpartition(".")[2], name, what, mutation)
    for module in (
        test_cap_privacy,
        test_level_privacy,
        test_prepared_privacy,
        test_privacy,
        test_reward_privacy,
        test_scale_privacy,
        test_two_arm_privacy,
    )
    for name in ("BREAK_PRIVACY", "BREAK_THE_REST", "WRONG_ONLY", "MISTAKES")
    for what, mutation in getattr(module, name, {}).items()
]


def test_there_are_many() -> None:
    assert len(MUTATIONS) > 40


@pytest.mark.parametrize(("module", "kind", "what", "mutation"), MUTATIONS)
def test_what_is_replaced_is_there_once(module: str, kind: str, what: str, mutation: Any) -> None:
    pieces = mutation if isinstance(mutation[0], tuple) else [mutation[:2]]
    Code(*pieces)
