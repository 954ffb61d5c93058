"""Raw values that are posted to the service by mistake are refused, and found nowhere afterwards.

What no server can tell is left out: the numbers of an ``ldpmab`` report and every nonce are drawn
by the device, so a device that puts a raw value there has broken its promise already.
"""

import itertools
import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import sottovoce as sv
from sottovoce.lab.local_server import LocalServer
from sottovoce.server.settings import ServerSettings
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from support.canaries import (
    AGE,
    ARM,
    BMI,
    NAME,
    NEEDLES,
    REWARD,
    WHOLE,
    canaries_in,
    canaries_under,
)
from support.http import (
    ADMIN,
    COMPACT,
    JSON,
    TOKEN,
    Answer,
    as_json,
    ask,
    get,
    opened,
    post,
    release_of,
    report_for,
    until,
)

TOML = "application/toml"
FORM = "application/x-www-form-urlencoded"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
FILES = {
    "whisper": """
name = "walking"
arms = ["control", "reminder", "coach"]
epsilon = 1.0
[[context]]
name = "age"
numeric = [18, 90]
[[context]]
name = "bmi"
numeric = [15, 45]
[[auxiliary]]
name = "clinic-b"
epsilon = 4.0
users = 500
"""
}
FILES["ldpmab"] = FILES["whisper"].replace('"walking"', '"running"\nmethod = "ldpmab"')

ROW: dict[str, Any] = {
    "age": AGE,
    "bmi": BMI,
    "arm": ARM,
    "reward": REWARD,
    "name": NAME,
    "id": WHOLE,
}
NAMES = [
    "context", "features", "feature", "x", "covariates", "age", "bmi", "arm", "action",
    "choice", "option", "treatment", "a", "reward", "outcome", "y", "label", "target", "value",
    "result", "response", "user", "person", "name", "id", "data", "row", "rows", "record",
    "event", "report", "reports", "payload", "propensity", "logged", "raw",
]  # fmt: skip


@dataclass(frozen=True)
class Service:
    """The real command, with all that it writes in one folder."""

    local: LocalServer
    folder: Path
    experiments: tuple[sv.Experiment, ...]


@contextmanager
def service(folder: Path) -> Iterator[Service]:
    for name, text in FILES.items():
        (folder / f"{name}.toml").write_text(text)
    start = [sys.executable, "-c", "from sottovoce.cli import main; main()", "serve"]
    start += ["--port", "0", *(f"{name}.toml" for name in FILES)]
    environment = {**os.environ, "SOTTOVOCE_ADMIN_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    with (folder / "out.log").open("wb") as out, (folder / "err.log").open("wb") as err:
        process = subprocess.Popen(start, cwd=folder, stdout=out, stderr=err, env=environment)
    try:
        until(lambda: b"Experiment   running" in (folder / "out.log").read_bytes())
        (url,) = re.findall(r"Serving at (\S+)", (folder / "out.log").read_text())
        database = f"sqlite:///{folder}/sottovoce.db"
        settings = ServerSettings(database=database, key=folder / "sottovoce.key", token=TOKEN)
        local = LocalServer(url, "", Store.open(database), settings)
        experiments = tuple(sv.Experiment.from_toml(folder / f"{name}.toml") for name in FILES)
        for each in experiments:
            status = f"/experiments/{each.fingerprint}/status"
            until(lambda path=status: get(local, path).status == 200)
        yield Service(local, folder, experiments)
        local.store.close()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def bodies(report: bytes, of_numbers: bytes) -> Iterator[tuple[str, bytes]]:
    """Every shape in which somebody might send a person's data: its type, and its bytes."""
    value: Any
    for name in NAMES:
        for value in (ROW, [ROW], [AGE, BMI, REWARD], REWARD, str(AGE), ARM, WHOLE):
            yield JSON, json.dumps({name: value}).encode()
        good = json.loads(as_json(report))
        for value in (ROW, REWARD, ARM):
            yield JSON, json.dumps({**good, name: value}).encode()
            yield JSON, json.dumps([good, {**good, name: value}]).encode()
    for key, value in itertools.product(
        json.loads(as_json(report)), (AGE, WHOLE, NAME, [AGE], ROW)
    ):
        changed = json.dumps({**json.loads(as_json(report)), key: value}).encode()
        yield JSON, changed
        yield JSON, b"[" + changed + b"]"
    whole = (ROW, [ROW], [[AGE, BMI, REWARD]], {"reports": [ROW]}, AGE, NAME, [AGE, ARM], {NAME: 1})
    for value in whole:
        yield JSON, json.dumps(value).encode()
        yield JSON, json.dumps(value).encode()[:-1]
    twice = as_json(report).replace(b"{", b'{"release": %d, "set": "%s", ' % (WHOLE, NAME.encode()))
    yield JSON, twice[:-1]
    yield from compact(report, of_numbers)
    text = "&".join(f"{key}={value}" for key, value in ROW.items())
    for kind in (FORM, "text/plain", COMPACT, TOML, JSON, "text/csv", f"{JSON}; age={AGE}"):
        yield kind, text.encode()
        yield kind, f"age,bmi,reward\n{AGE},{BMI},{REWARD}\n".encode()
    yield (
        "multipart/form-data; boundary=x",
        (f'--x\r\nContent-Disposition: form-data; name="age"\r\n\r\n{AGE}\r\n--x--\r\n'.encode()),
    )
    yield from experiments_that_cannot_be()


def compact(report: bytes, of_numbers: bytes) -> Iterator[tuple[str, bytes]]:
    raw = struct.pack("<3d", AGE, BMI, REWARD)
    shapes = [
        raw,
        struct.pack("<3f", AGE, BMI, REWARD),
        report[:34] + raw,
        report + raw,
        raw + report,
        report[:3] + b"\1" + report[4:34] + struct.pack("<I", 3) + raw,
        of_numbers[:34] + struct.pack("<I", 3) + raw,
        of_numbers + raw,
        of_numbers[:4] + WHOLE.to_bytes(8, "little") + of_numbers[12:],
        b"sv\x01\x03" + raw * 4,
        json.dumps(ROW).encode(),
    ]
    for shape in shapes:
        yield COMPACT, shape
        yield COMPACT, wire.batch_to_bytes([shape])
        yield COMPACT, wire.batch_to_bytes([shape]) + raw


def experiments_that_cannot_be() -> Iterator[tuple[str, bytes]]:
    good: dict[str, Any] = {
        "name": "new",
        "arms": ["a", "b"],
        "epsilon": 1,
        "context": [{"name": "age", "numeric": [0, 1]}],
    }
    for change in (
        {"epsilon": -AGE},
        {"epsilon": str(AGE)},
        {"horizon": AGE},
        {"seed": -WHOLE},
        {"release_every": [AGE]},
        {"arms": [AGE, BMI]},
        {"arms": [ARM]},
        {"arms": [ARM, ARM]},
        {"arms": ROW},
        {"name": AGE},
        {"name": f"{NAME}\n"},
        {"context": [AGE, BMI]},
        {"context": ROW},
        {"context": [ROW]},
        {"context": [{"name": "age", "value": AGE}]},
        {"context": [{"name": "age", "numeric": [AGE]}]},
        {"context": [{"name": "age", "numeric": [AGE, BMI]}]},
        {"context": [{"name": "age", "numeric": [str(AGE), NAME]}]},
        {"context": [{"name": "age", "ordinal": [AGE, BMI]}]},
        {"auxiliary": [{"name": "b", "epsilon": -AGE, "users": 1}]},
        {"auxiliary": [{"name": "b", "epsilon": 1, "users": AGE}]},
        {"auxiliary": [{"name": "b", "epsilon": 1, "users": 1, "behaviour": [AGE, BMI]}]},
        {"auxiliary": [{"name": "b", "epsilon": 1, "users": 1, "reward": REWARD}]},
        {"method": AGE},
        {"method": NAME},
        {"method": {"name": "whisper", "delta": AGE}},
        {"method": {"name": "whisper", "guarantee": NAME}},
        {"reward": REWARD},
        {"rows": [ROW]},
    ):
        yield JSON, json.dumps({**good, **change}).encode()
    table = 'name = "new"\narms = ["a", "b"]\nepsilon = 1\n'
    for line in (
        f"reward = {REWARD}",
        f"rows = [{AGE}, {BMI}]",
        f'name = "{NAME}"',
        f"age = {AGE} x",
    ):
        yield TOML, f"{table}{line}\n".encode()
    yield TOML, f'{table}[[context]]\nname = "age"\nvalue = {AGE}\n'.encode()


def addresses(path: str, fingerprint: str) -> Iterator[str]:
    """Of one page of the document: as it is meant, and with raw values in it."""
    meant = path.replace("{experiment}", fingerprint).replace("{version}", "1")
    yield meant
    yield f"{meant}?age={AGE}&reward={REWARD}&arm={ARM}&name={NAME}&row={quote(json.dumps(ROW))}"
    for value in (str(AGE), NAME, str(WHOLE)):
        yield f"{meant}/{value}"
        if "{" in path:
            yield re.sub(r"\{\w+\}", value, path)
            yield path.replace("{experiment}", fingerprint).replace("{version}", value)


HEADERS: list[dict[str, str]] = [
    {"Authorization": f"Bearer {NAME}", "X-Age": str(AGE), "X-Reward": str(REWARD)},
    {**ADMIN, "Cookie": f"age={AGE}; arm={ARM}", "User-Agent": NAME, "Referer": f"http://{NAME}"},
    {**ADMIN, "If-None-Match": f'"{AGE}"', "Accept-Encoding": f"gzip;q={REWARD}, {NAME}"},
    {**ADMIN, "Origin": f"http://{NAME}.example", "Access-Control-Request-Headers": f"x-{NAME}"},
    {"Authorization": f"{NAME} {AGE}", "X-Forwarded-For": str(AGE), "Accept": f"text/{NAME}"},
]


def mistakes(served: Service) -> Iterator[Answer]:
    """Make every mistake; return the answers."""
    local = served.local
    reports = [report_for(release_of(local, each)) for each in served.experiments]
    pages = get(local, "/openapi.json").json()["paths"]
    shapes = list(dict.fromkeys(bodies(*reports)))
    assert len(shapes) > 400
    for path in ("/reports", "/reports/batch", "/experiments"):
        for kind, body in shapes:
            yield ask(local, "POST", path, body=body, kind=kind, headers=ADMIN)
    some = shapes[:: len(shapes) // 7]
    fingerprint = served.experiments[0].fingerprint
    for path, method in itertools.product(pages, METHODS):
        for kind, body in some:
            meant = next(addresses(path, fingerprint))
            yield ask(local, method, meant, body=body, kind=kind, headers=ADMIN)
        for address in addresses(path, fingerprint):
            yield ask(local, method, address, headers=ADMIN)
        for headers in HEADERS:
            yield ask(local, method, next(addresses(path, fingerprint)), headers=headers)
    for strange in (f"GET /{AGE} HTTP/9.9", f"{NAME} / HTTP/1.1", f"GET /{AGE}\xff HTTP/1.1"):
        with opened(local) as connection:
            connection.sendall(f"{strange}\r\nHost: {NAME}\r\n\r\n".encode("latin-1"))
            yield Answer(400, {}, connection.recv(4096))
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": NAME}
    yield ask(local, "GET", f"/{AGE}", headers=upgrade)


def test_raw_values_are_refused_and_found_nowhere(tmp_path: Path) -> None:
    with service(tmp_path) as served:
        local = served.local
        for each in served.experiments:
            assert post(local, report_for(release_of(local, each))).status == 200
        answers = 0
        for answer in mistakes(served):
            told = json.dumps(dict(answer.headers)).encode() + answer.body
            assert not canaries_in(told), (answer, canaries_in(told))
            assert answer.status < 500
            answers += 1
        assert answers > 2000
        lengths = [local.store.length(each.fingerprint) for each in served.experiments]
        assert lengths == [1, 1]
        assert len(local.store.experiments()) == len(served.experiments)
        for each in served.experiments:
            local.wait_until_learned(each)
            page = f"/experiments/{each.fingerprint}"
            parts = (
                "status",
                "estimates",
                "certificates",
                "diagnosis",
                "amendments",
                "releases/current",
                "releases",
            )
            shown_at = ["/", page, *(f"{page}/{part}" for part in parts)]
            shown_at += ["/metrics", "/openapi.json"]
            for address in shown_at:
                shown = get(local, address)
                assert shown.status == 200
                assert not canaries_in(shown.body), address
        listed = ask(local, "GET", "/experiments", headers=ADMIN)
        assert not canaries_in(listed.body)
        names = {path.name for path in tmp_path.iterdir()}
        assert {"sottovoce.db", "sottovoce.db-wal", "out.log", "err.log"} <= names
        assert canaries_under(tmp_path) == {}
    assert canaries_under(tmp_path) == {}
    assert "Traceback" not in (tmp_path / "err.log").read_text()


# The check can fail.


@pytest.mark.parametrize("needle", NEEDLES)
def test_the_search_finds_what_is_planted(tmp_path: Path, needle: bytes) -> None:
    (tmp_path / "file.log").write_bytes(b"before " + needle + b" after")
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("CREATE TABLE things (id INTEGER, thing BLOB)")
        packed = zlib.compress(bytes(1000) + needle + bytes(1000))
        database.execute("INSERT INTO things VALUES (1, ?)", (packed,))
    assert canaries_under(tmp_path).keys() == {"file.log", "store.db"}


def test_the_search_finds_what_a_service_was_made_to_store(tmp_path: Path) -> None:
    """With a device that breaks its promise: its numbers are raw."""
    with service(tmp_path) as served:
        of_numbers = report_for(release_of(served.local, served.experiments[1]))
        count = (len(of_numbers) - 38) // 8
        raw = of_numbers[:38] + struct.pack(f"<{count}d", *[REWARD] * count)
        assert post(served.local, raw).status == 200
        found = canaries_under(tmp_path)
        assert "sottovoce.db-wal" in found
        assert any("<d" in each for each in found["sottovoce.db"])
