"""What a custodian sends, when and how large: nothing of it depends on what is in the rows."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from factories import ARMS, LEVELS, clinic
from sottovoce.device.contribute import contribute as run
from sottovoce.device.contribute import source, summary
from sottovoce.device.contribute.journal import Journal
from sottovoce.device.contribute.rows import Judge
from sottovoce.device.device import Device
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.errors import RowsError, TransportError
from support.custodian_server import CustodianServer
from support.custodians import (
    FakeTime,
    arms_told,
    good_rows,
    hand_in,
    named_arms,
    named_rows,
    write_csv,
)

GOOD = (42, "low", "coach", 1)
UNFIT: list[tuple[Any, ...]] = [
    ("", "low", "coach", 1),
    ("old", "low", "coach", 1),
    (42, "none", "coach", 1),
    (42, "low", "surgery", 1),
    (42, "low", "coach", ""),
    (42, "low", "coach", 7),
    (42, "low", "coach"),
    (42, "low", "coach", 1, "more"),
]


def test_a_row_that_does_not_fit_sends_a_report_for_each_reason(tmp_path: Path) -> None:
    for place, row in enumerate(UNFIT):
        server = CustodianServer(clinic())
        path = write_csv(tmp_path / f"{place}.csv", [GOOD, row, GOOD])
        done = hand_in(server, [path], state=tmp_path / f"journal {place}")
        assert (done.rows, done.sent, done.stored, len(server.log)) == (3, 3, 3, 3)
        assert done.files[0].survey.fitting == 2


def test_rows_with_gaps_of_optional_features_are_reported_like_others(tmp_path: Path) -> None:
    context = [sv.Numeric("age", 18, 90, optional=True), sv.Boolean("smokes", optional=True)]
    server = CustodianServer(clinic(context=context))
    header = ("age", "smokes", "arm", "reward")
    rows = [("", "true", "coach", 1), (42, "", "coach", 0), ("", "", "control", 1)]
    path = write_csv(tmp_path / "rows.csv", rows, header=header)
    done = hand_in(server, [path], state=tmp_path / "journal")
    assert (done.rows, done.sent, done.stored, done.files[0].survey.fitting) == (3, 3, 3, 3)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.sampled_from([GOOD, *UNFIT]), max_size=12).map(lambda some: [*some, GOOD]),
    chunk=st.integers(1, 15),
)
def test_as_many_reports_are_sent_as_there_are_rows(
    rows: list[tuple[Any, ...]], chunk: int
) -> None:
    server = CustodianServer(clinic())
    with tempfile.TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "rows.csv", rows)
        done = hand_in(server, [path], state=Path(folder) / "journal", chunk=chunk)
    assert done.rows == done.sent == done.stored == len(rows) == len(server.log)
    assert server.learner.status().reports["clinic-b"] == len(rows)
    # A chunk has as many reports as rows, wherever the rows are that do not fit.
    whole, rest = divmod(len(rows), chunk)
    assert server.batches == [chunk] * whole + [rest] * (rest > 0)


def test_a_file_in_which_no_row_fits_sends_nothing(tmp_path: Path) -> None:
    server = CustodianServer(clinic())
    path = write_csv(tmp_path / "rows.csv", UNFIT)
    with pytest.raises(RowsError, match="8 of 8 do not: "):
        hand_in(server, [path], state=tmp_path / "journal")
    assert not server.sent


def test_a_row_that_does_not_fit_tells_nothing_of_its_arm(tmp_path: Path) -> None:
    server = CustodianServer(named_arms(200))
    unfit = [(30, "arm 7", ""), (30, "arm 7", 2), ("old", "arm 7", 1)] * 20
    path = write_csv(
        tmp_path / "rows.csv", [(30, "arm 3", 1), *unfit], header=["age", "arm", "reward"]
    )
    hand_in(server, [path], state=tmp_path / "journal", epsilon=60.0)
    told = arms_told(server)
    assert told.total() == 61
    # Pure noise names each arm about as often. More than eight times arm 7, of 60 reports: 3e-11.
    assert told[7] <= 8


class Killed(BaseException):
    """As by a power cut: nothing in the code catches it."""


@pytest.mark.parametrize("step", ["keep", "remove"])
def test_after_a_kill_no_row_is_reported_twice_and_none_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    server = CustodianServer(named_arms(20))
    path = write_csv(tmp_path / "rows.csv", named_rows(20), header=["age", "arm", "reward"])
    action: Callable[..., Any] = getattr(Journal, step)

    def dying(*given: Any, **named: Any) -> Any:
        action(*given, **named)
        raise Killed

    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(Journal, step, dying)
            with pytest.raises(Killed):
                hand_in(server, [path], state=tmp_path / "journal", epsilon=60.0, chunk=3)
        # The rows are never sent before the journal is sure of them.
        assert len(server.log) <= 9
    last = hand_in(server, [path], state=tmp_path / "journal", epsilon=60.0, chunk=3)
    assert 0 < last.files[0].before < 20
    assert last.files[0].before + last.sent == 20
    assert len(server.sent) == len(server.log) == 20
    assert arms_told(server) == Counter(range(20))


# --- moments and sizes ----------------------------------------------------------------------------


class Watcher:
    """Sees each request: when it comes, its method, its page and its size.

    stop: after so many batches, the server is gone until the next run.
    """

    def __init__(self, server: CustodianServer, time: FakeTime) -> None:
        self.server, self.time = server, time
        self.seen: list[tuple[float, str, str, int]] = []
        self.stop: int | None = None

    def __call__(self, request: Request) -> Response:
        page = request.url.rpartition("/")[2]
        moment = round(self.time.now, 9)
        self.seen.append((moment, request.method, page, len(request.body or b"")))
        self.time.now += 0.05  # the network takes its time, too
        if request.method == "POST" and self.stop is not None:
            self.stop -= 1
            if self.stop < 0:
                raise TransportError("no answer")
        return self.server.transport(request)


@contextmanager
def work_takes_time(time: FakeTime, seconds: float) -> Iterator[None]:
    """Let the clock move by what is in the rows, wherever a raw value is touched."""
    judge, logged, reading = Judge.read, Device.report_logged, source.reading

    def read(self: Judge, values: Any) -> Any:
        row = judge(self, values)
        time.now += seconds * (0.1 if isinstance(row, str) else 0.6 + 0.01 * len(row.arm))
        return row

    def report(self: Device, *given: Any, **named: Any) -> Any:
        time.now += 2 * seconds * named["reward"]
        return logged(self, *given, **named)

    @contextmanager
    def slowly(*given: Any) -> Iterator[Iterator[Any]]:
        def each(rows: Iterator[Any]) -> Iterator[Any]:
            for line, values in rows:
                time.now += seconds * len(str(values)) / 100
                yield line, values

        with reading(*given) as rows:
            yield each(rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Judge, "read", read)
        patch.setattr(Device, "report_logged", report)
        patch.setattr(run, "reading", slowly)
        patch.setattr(summary, "reading", slowly)
        yield


def different_files(folder: Path, count: int) -> list[Path]:
    """Files of equal length that differ in every value, and in which rows fit and which do not."""
    first: list[tuple[Any, ...]] = [(20 + i / 7, LEVELS[0], ARMS[0], 1) for i in range(count)]
    second: list[tuple[Any, ...]] = [
        (70.123456 + i / 7, LEVELS[1], ARMS[2], 0.25 * (i % 2)) for i in range(count)
    ]
    third: list[tuple[Any, ...]] = [UNFIT[i % len(UNFIT)] for i in range(count)]
    third[count // 2] = (89, LEVELS[2], ARMS[1], 0.125)
    fourth = [*third[: count // 2], *second[count // 2 :]]
    return [
        write_csv(folder / f"{place}.csv", rows)
        for place, rows in enumerate([first, second, third, fourth])
    ]


@pytest.mark.parametrize("method", ["whisper", "ldpmab"])
@pytest.mark.parametrize("stop", [None, 2])
def test_the_number_the_moments_and_the_sizes_of_requests_do_not_depend_on_the_rows(
    tmp_path: Path, method: str, stop: int | None
) -> None:
    seen = []
    for path in different_files(tmp_path, 70):
        # The public part of both runs is the same: no report changes the release.
        server = CustodianServer(clinic(method=method, release_every=10**6))
        time = FakeTime()
        watcher = Watcher(server, time)
        given = {"state": path.with_suffix(".journal"), "chunk": 20, "clock": time.clock()}
        with work_takes_time(time, 1e-4):
            if stop is not None:
                watcher.stop = stop
                with pytest.raises(TransportError):
                    hand_in(server, [path], transport=watcher, **given)
                watcher.stop = None
            done = hand_in(server, [path], transport=watcher, **given)
        assert len(server.log) == done.rows == 70
        seen.append(watcher.seen)
    assert all(len(each) > 8 for each in seen)
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_what_comes_out_of_a_chunk_is_in_the_order_of_its_nonces(tmp_path: Path) -> None:
    server = CustodianServer(clinic(release_every=10**6))
    path = write_csv(tmp_path / "rows.csv", good_rows(60))
    hand_in(server, [path], state=tmp_path / "journal", chunk=20)
    nonces = list(map(wire.nonce_of, server.log.values()))
    chunks = [nonces[:20], nonces[20:40], nonces[40:]]
    assert all(chunk == sorted(chunk) for chunk in chunks)


# --- what a row costs -----------------------------------------------------------------------------


def test_each_row_spends_the_epsilon_of_its_population_whether_it_fits_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The target's ε is larger than what the custodian agrees to, and does not concern it.
    server = CustodianServer(clinic(epsilon=9.0))
    path = write_csv(tmp_path / "rows.csv", [GOOD, *UNFIT, GOOD])
    spent: list[float] = []

    class Counting:
        def spend(self, epsilon: float, **what: Any) -> None:
            spent.append(epsilon)

    monkeypatch.setattr("sottovoce.device.device.OneReport", Counting)
    done = hand_in(server, [path], state=tmp_path / "journal", epsilon=4.0)
    assert spent == [4.0] * 10
    assert (done.sent, done.epsilon) == (10, 4.0)


def test_a_custodian_agrees_to_its_own_populations_epsilon_only(tmp_path: Path) -> None:
    server = CustodianServer(clinic(epsilon=0.5))
    path = write_csv(tmp_path / "rows.csv", [GOOD])
    with pytest.raises(sv.DeviceError, match="at most epsilon = 1 a row; got 4"):
        hand_in(server, [path], state=tmp_path / "journal", epsilon=1.0)
    assert not server.sent


def test_every_request_says_the_same_of_the_machine(tmp_path: Path) -> None:
    server, agents = CustodianServer(clinic()), Counter[str]()

    def transport(request: Request) -> Response:
        agents[request.headers.get("User-Agent", "whatever the library says")] += 1
        return server.transport(request)

    path = write_csv(tmp_path / "rows.csv", good_rows(30))
    hand_in(server, [path], state=tmp_path / "journal", chunk=10, transport=transport)
    assert set(agents) == {"sottovoce"}
    assert agents.total() > 6
