"""Every way to weaken an experiment that people take part in: devices refuse each of them.

All are signed by the server's own key and continue its chain of releases, as a server would do that
wants to have more than people agreed to.
"""

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, four_bins, uniform
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ADD_ARM, ARCHIVE, EXTEND_HORIZON, RETIRE_ARM, STOP, Amendment
from sottovoce.shared.canonical import canonical_json
from support.fake_server import client_of
from support.shelf import Shelf

Table = dict[str, Any]
TWO_EACH = four_bins(arms=2)


def amend(release: sv.Release, *amendments: tuple[str, Table]) -> sv.Release:
    """The next release, after some amendments; in every bin two arms are compared."""
    now, made = release.experiment, datetime(2026, 3, 1, tzinfo=UTC)
    for kind, about in amendments:
        now = amended(now, draft(now, kind, by="Ada", made=made, **about))
    arms = tuple(arm for arm in range(len(now.arms)) if arm not in now.retired)[-2:]
    bins = tuple(uniform(each.path, *arms) for each in release.bins)
    version = release.version + 1
    return dataclasses.replace(release, experiment=now, version=version, bins=bins)


def seen() -> sv.Release:
    """What devices follow: an arm came, more people are expected, an arm went, and it is over."""
    return amend(
        TWO_EACH,
        (ADD_ARM, {"arm": "coach"}),
        (EXTEND_HORIZON, {"horizon": 200_000}),
        (RETIRE_ARM, {"arm": "control"}),
        (STOP, {}),
    )


def chained(table: Table) -> None:
    """Let each amendment name the one before, as the operator of another history would."""
    before = sv.Experiment.from_table(table["experiment"]).fingerprint
    for each in table["amendments"]:
        each["before"] = before
        before = Amendment.from_table(each).hash


def more(table: Table, kind: str, **about: Any) -> None:
    last = table["amendments"][-1]
    table["amendments"].append({"made": last["made"], "by": "Eve", "kind": kind, **about})
    chained(table)


def other_form(**changes: Any) -> Callable[[Table], None]:
    """Another first form, with the same amendments to it."""

    def change(table: Table) -> None:
        table["experiment"] |= changes
        chained(table)

    return change


def other_amendment(number: int, **changes: Any) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        table["amendments"][number] |= changes
        chained(table)

    return change


def other_population(table: Table) -> None:
    table["experiment"]["auxiliary"][0]["epsilon"] = 9.0
    chained(table)


def wider_feature(table: Table) -> None:
    table["experiment"]["context"][1]["numeric"] = [15, 50]
    chained(table)


def exchanged(table: Table) -> None:
    table["amendments"][:2] = table["amendments"][1::-1]


def exchanged_and_chained(table: Table) -> None:
    exchanged(table)
    chained(table)


def twice(table: Table) -> None:
    table["amendments"].append(table["amendments"][1])


def without(number: int, *, again: bool = False) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        del table["amendments"][number]
        if again:
            chained(table)

    return change


def retired_arm_on_offer(table: Table) -> None:
    table["bins"][0] |= {"arms": [0, 1], "propensities": [0.5, 0.5]}


ATTEMPTS: dict[str, Callable[[Table], None]] = {
    "ε is raised": other_form(epsilon=2.0),
    "ε of another population is raised": other_population,
    "a population more": other_form(
        auxiliary=[{"name": "clinic-d", "epsilon": 1.0, "users": 10, "behaviour": None}]
    ),
    "a feature more": other_form(
        context=[{"name": "age", "numeric": [18, 90]}, {"name": "smokes", "boolean": True}]
    ),
    "another feature": wider_feature,
    "another name": other_form(name="running"),
    "another unit of rewards": other_form(reward=[0, 60]),
    "another window": other_form(reward_window="1 day"),
    "public arms": other_form(method={"name": "whisper", "public_arms": True}),
    "another method": other_form(method={"name": "ldpmab"}),
    "no amendment at all": lambda table: table.pop("amendments"),
    "the stop is left out": without(-1),
    "the first amendment is left out": without(0),
    "the second amendment is left out": without(1, again=True),
    "another order": exchanged,
    "another order, chained": exchanged_and_chained,
    "an amendment twice": twice,
    "another operator": other_amendment(1, by="Eve"),
    "another moment": other_amendment(1, made="2025-01-01T00:00:00Z"),
    "a shorter horizon": other_amendment(1, horizon=150_000),
    "another arm": other_amendment(0, arm="game"),
    "a cap that was not": other_amendment(0, cap=0.25),
    "on again after the stop": lambda table: more(table, "resume"),
    "an arm after the stop": lambda table: more(table, "add arm", arm="game"),
    "more people after the stop": lambda table: more(table, "extend horizon", horizon=10**6),
    "a retired arm on offer": retired_arm_on_offer,
    "an amendment that says ε": lambda table: table["amendments"][-1].update(epsilon=9.0),
    "an amendment of a kind of its own": lambda table: table["amendments"][-1].update(
        kind="more ε"
    ),
}


@pytest.mark.parametrize("what", ATTEMPTS)
def test_no_device_follows_what_weakens_its_experiment(what: str, tmp_path: Path) -> None:
    good, server = seen(), Shelf(TWO_EACH)
    client = client_of(server, outbox=tmp_path / "outbox")
    client.choose(CONTEXT)
    server.current = good
    assert client.refresh()
    followed, served = client.document, client.choose(CONTEXT)
    assert not served.asked
    table = json.loads(wire.release_to_json(dataclasses.replace(good, version=good.version + 1)))
    ATTEMPTS[what](table)
    text = canonical_json(table).decode()
    signed = server.key.sign(text, server.chain.before(good.version + 1))

    def instead(request: Request) -> Response | None:
        return Response(200, {}, signed) if request.url.endswith("/releases/current") else None

    server.instead = instead
    for each in (client, client_of(server, outbox=tmp_path / "outbox")):
        with pytest.raises((sv.DeviceError, sv.ForkError, sv.WireError)):
            each.refresh()
        assert each.document == followed
        assert each.choose(CONTEXT) == served
    server.instead = None
    server.current = amend(good, (ARCHIVE, {}))
    assert client.refresh()  # the honest one is followed all the same


def test_an_honest_text_made_the_same_way_is_followed(tmp_path: Path) -> None:
    """Otherwise each attempt might be refused for its form alone."""
    good, server = seen(), Shelf(TWO_EACH)
    client = client_of(server, outbox=tmp_path / "outbox")
    server.current = good
    assert client.refresh()
    table = json.loads(wire.release_to_json(dataclasses.replace(good, version=good.version + 1)))
    more(table, "archive")
    text = canonical_json(table).decode()
    signed = server.key.sign(text, server.chain.before(good.version + 1))
    server.instead = lambda request: Response(200, {}, signed)
    assert client.refresh()
    assert client.release is not None
    assert client.release.experiment.state == "archived"
