"""A client agrees to so much ε for a report, whatever a release asks for."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, experiment, four_bins
from support.fake_server import client_of
from support.shelf import Shelf


def as_device(population: str, most: float) -> None:
    sv.Device(four_bins(), population=population, most_epsilon=most)


def as_client(population: str, most: float) -> None:
    client = client_of(Shelf(four_bins()), population=population, most_epsilon=most)
    client.choose(CONTEXT)


@pytest.mark.parametrize("agree", [as_device, as_client])
@pytest.mark.parametrize(("population", "own"), [("target", 1), ("clinic-b", 8), ("clinic-c", 0.5)])
def test_the_most_epsilon_is_compared_with_that_of_the_own_population(
    agree: Callable[[str, float], None], population: str, own: float
) -> None:
    agree(population, own)
    for less in (0.99 * own, 0.1):
        with pytest.raises(sv.DeviceError, match=f"a report; got {own}"):
            agree(population, less)


def test_a_client_has_to_say_what_it_agrees_to() -> None:
    server = Shelf(four_bins())
    settings: dict[str, Any] = {"experiment": server.experiment, "keys": [server.key.public.hex()]}
    for kind in (sv.Client, sv.AsyncClient):
        with pytest.raises(TypeError, match="most_epsilon"):
            kind("https://sottovoce.test", **settings)
        with pytest.raises(sv.ExperimentError, match="most_epsilon must be"):
            kind("https://sottovoce.test", **{**settings, "most_epsilon": None})


def test_a_kept_release_that_asks_for_too_much_is_not_followed_either(tmp_path: Path) -> None:
    server = Shelf(four_bins())
    assert client_of(server, most_epsilon=1, outbox=tmp_path / "outbox").refresh()
    again = client_of(server, most_epsilon=0.5, outbox=tmp_path / "outbox")
    assert again.release is None
    with pytest.raises(sv.DeviceError, match=r"at most epsilon = 0\.5"):
        again.choose(CONTEXT)


def test_another_experiment_behind_the_same_fingerprint_is_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its ε is never compared, so it must not come that far."""
    server = Shelf(four_bins())
    name = server.experiment
    monkeypatch.setattr(sv.Experiment, "fingerprint", property(lambda _: name))
    client = client_of(server, most_epsilon=1)
    client.refresh()
    other = sv.Learner(experiment(method="whisper", epsilon=64.0)).release()
    server.current = dataclasses.replace(other, version=99)
    with pytest.raises(sv.DeviceError, match="a release to follow must be of experiment"):
        client.refresh()
    assert client.release is not None
    assert client.release.version == 7
