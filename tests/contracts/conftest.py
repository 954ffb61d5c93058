"""Every test of this folder that asks for ``table`` or ``make`` runs on every method."""

from collections.abc import Iterator
from typing import Any

import pytest

import sottovoce as sv
from contracts.methods import AUXILIARY, CASES, ONE_BIT, Make
from factories import experiment
from sottovoce.shared.methods import register, settings_from, unregister


@pytest.fixture(params=CASES, ids=lambda case: " ".join(map(str, (case[0], *case[1].values()))))
def table(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The method as an experiment's file has it."""
    name, settings = request.param
    if name == "one_bit":
        register("one_bit", modules=ONE_BIT)
    yield {"name": name, **settings}
    if name == "one_bit":
        unregister("one_bit")


@pytest.fixture
def make(table: dict[str, Any]) -> Make:
    """Make experiments with the method."""

    def make(**settings: Any) -> sv.Experiment:
        defaults: dict[str, Any] = {
            "method": settings_from(table),
            "auxiliary": AUXILIARY,
            "release_every": 10,
            "horizon": 400,
        }
        return experiment(**{**defaults, **settings})

    return make
