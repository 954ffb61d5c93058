"""A custodian's run: exactly one report of each row, whatever happens."""

import csv
import json
import shutil
import sqlite3
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import clinic
from sottovoce.device import transport as http
from sottovoce.device.contribute.contribute import default_state
from sottovoce.device.contribute.journal import Journal
from sottovoce.device.contribute.rows import Columns, Row, renamed_columns
from sottovoce.device.contribute.summary import describe
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.errors import OutboxError, RowsError, SignatureError, TransportError
from support.custodian_server import CustodianServer, serving
from support.custodians import good_rows, hand_in, write_csv

# The public key of RFC 8032, 7.1, test 1.
OTHER_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


@pytest.fixture
def server() -> CustodianServer:
    return CustodianServer(clinic())


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Twenty-five rows, of which three do not fit."""
    wrong = [("old", "low", "coach", 1), (42, "?", "coach", 1), (42, "low", "coach", 7)]
    return write_csv(tmp_path / "rows.csv", [*good_rows(11), *wrong, *good_rows(11, first=11)])


def count(server: CustodianServer) -> int:
    """The reports that were stored, each sent in one form only."""
    assert {nonce for nonce, _ in server.sent} >= server.log.keys()
    assert len(server.sent) == len({nonce for nonce, _ in server.sent})
    return len(server.log)


def test_each_row_is_reported_once_whether_it_fits_or_not(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    told: list[Any] = []

    def tell(*progress: Any) -> None:
        told.append(progress)

    done = hand_in(server, [rows], state=state, chunk=10, progress=tell)
    assert (done.rows, done.sent, done.stored, done.repeated, done.refused) == (25, 25, 25, 0, {})
    assert done.epsilon == 4
    (file,) = done.files
    assert {reason: refused.lines for reason, refused in file.survey.refused.items()} == {
        "age is not a number": (13,),
        "activity is not a level of the schema": (14,),
        "reward is not in [0, 1]": (15,),
    }
    assert told == [(str(rows), 10, 25), (str(rows), 20, 25), (str(rows), 25, 25)]
    assert not file.finished
    assert count(server) == 25
    assert server.learner.status().reports == {"target": 0, "clinic-b": 25}
    assert json.loads(json.dumps(asdict(done)))["files"][0]["survey"]["fitting"] == 22


def test_a_check_says_what_fits_and_sends_nothing(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    checked = hand_in(server, [rows], state=state, only_check=True)
    assert (checked.rows, checked.sent, checked.stored) == (25, 0, 0)
    assert checked.files[0].survey.fitting == 22
    assert not checked.files[0].finished
    assert count(server) == 0
    hand_in(server, [rows], state=state)
    assert hand_in(server, [rows], state=state, only_check=True).files[0].finished
    assert count(server) == 25


def test_a_finished_file_sends_nothing_under_any_name(
    server: CustodianServer, rows: Path, state: Path, tmp_path: Path
) -> None:
    hand_in(server, [rows, rows], state=state)
    copy = Path(shutil.copy(rows, tmp_path / "copy.csv"))
    again = hand_in(server, [rows, copy], state=state)
    assert [file.finished for file in again.files] == [True, True]
    assert (again.sent, again.stored) == (0, 0)
    assert count(server) == 25


def test_a_file_that_changed_since_it_was_begun_is_refused(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    hand_in(server, [rows], state=state)
    with rows.open("a") as file:
        file.write("42,low,coach,1\n")
    with pytest.raises(RowsError, match=r"rows\.csv must be as it was when it was begun"):
        hand_in(server, [rows], state=state)
    assert count(server) == 25


def test_a_file_of_which_nothing_was_sent_may_still_change(
    server: CustodianServer, rows: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "keep", dies(Journal.keep, at=1, after=False))
        with pytest.raises(Killed):
            hand_in(server, [rows], state=state)
    with rows.open("a") as file:
        file.write("42,low,coach,1\n")
    assert hand_in(server, [rows], state=state).sent == 26
    assert count(server) == 26


@pytest.mark.parametrize("together", [True, False])
def test_a_file_that_grew_under_another_name_is_refused(
    server: CustodianServer, rows: Path, state: Path, tmp_path: Path, together: bool
) -> None:
    grown = tmp_path / "grown.csv"
    grown.write_bytes(rows.read_bytes() + b"42,low,coach,1\n")
    if not together:
        hand_in(server, [rows], state=state)
    with pytest.raises(RowsError, match=r"grown\.csv must hold new rows only"):
        hand_in(server, [rows, grown] if together else [grown], state=state)
    assert count(server) == (0 if together else 25)


def test_other_columns_than_before_are_refused(
    server: CustodianServer, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = ["age", "height", "activity", "arm", "reward"]
    mistaken = Columns(renamed={"age": "height"})
    path = write_csv(tmp_path / "rows.csv", [(42, 180, "low", "coach", 1)], header=header)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "keep", dies(Journal.keep, at=1, after=False))
        with pytest.raises(Killed):
            hand_in(server, [path], state=state, columns=mistaken)
    # Nothing was sent: the mistake can still be mended.
    hand_in(server, [path], state=state)
    with pytest.raises(RowsError, match=r"columns of .* as they were when it was begun"):
        hand_in(server, [path], state=state, columns=mistaken)


def test_one_bad_file_keeps_all_others_from_being_sent(
    server: CustodianServer, rows: Path, state: Path, tmp_path: Path
) -> None:
    bad = write_csv(tmp_path / "bad.csv", [(1, 2)], header=["a", "b"])
    with pytest.raises(RowsError, match="lacks"):
        hand_in(server, [rows, bad], state=state)
    assert count(server) == 0
    assert hand_in(server, [rows], state=state).sent == 25


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"epsilon": 3.99}, sv.DeviceError, r"at most epsilon = 3.99 a row; got 4"),
        ({"population": "clinic-c"}, sv.ExperimentError, r"\['target', 'clinic-b'\]"),
        ({"experiment": "0" * 64}, sv.ExperimentError, "have experiment 0000000000000000"),
        ({"experiment": "walking"}, sv.ExperimentError, "64 hexadecimal digits"),
        ({"keys": ["11" * 31]}, SignatureError, "64 hexadecimal digits"),
        ({"keys": [OTHER_KEY]}, SignatureError, "be signed by one of"),
        ({"keys": []}, SignatureError, "at least one"),
        ({"epsilon": 0}, sv.ExperimentError, "epsilon"),
        ({"chunk": 0}, sv.ExperimentError, "chunk"),
    ],
)
def test_what_cannot_be_agreed_on_is_refused_before_anything_is_read(
    server: CustodianServer,
    state: Path,
    settings: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        hand_in(server, [Path("/nowhere/rows.csv")], state=state, **settings)
    assert not state.exists()


def test_a_release_that_was_tampered_with_is_refused(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    def forge(request: Request) -> Response:
        response = server.transport(request)
        text = server.document().replace(b"clinic-b", b"clinic-c")
        return Response(response.status, response.headers, text)

    with pytest.raises(SignatureError):
        hand_in(server, [rows], state=state, transport=forge)


def test_releases_are_followed_as_they_move(state: Path, tmp_path: Path) -> None:
    server = CustodianServer(
        clinic(auxiliary=[sv.Population("clinic-b", 8.0, 5000)], release_every=100)
    )
    path = write_csv(tmp_path / "rows.csv", good_rows(3000))
    hand_in(server, [path], epsilon=8, state=state, chunk=300)
    used = releases(server)
    assert used == sorted(used)
    assert set(used) <= set(server.releases)
    assert len(set(used)) > 1
    assert server.releases == sorted(server.releases)
    assert count(server) == 3000


def releases(server: CustodianServer) -> list[int]:
    """The release of each report, in the order in which they came."""
    return [server.versions[wire.release_of(body)] for body in server.log.values()]


def test_an_older_release_from_a_cache_is_left_aside(state: Path, tmp_path: Path) -> None:
    server = CustodianServer(
        clinic(auxiliary=[sv.Population("clinic-b", 8.0, 5000)], release_every=100)
    )
    old = server.document()
    seen = 0

    def stale(request: Request) -> Response:
        nonlocal seen
        seen = max(seen, server.learner.release().version)
        if request.method == "GET" and seen > 3:
            return Response(200, {}, old)
        return server.transport(request)

    path = write_csv(tmp_path / "rows.csv", good_rows(3000))
    hand_in(server, [path], epsilon=8, state=state, chunk=100, transport=stale)
    assert seen > 3
    assert releases(server) == sorted(releases(server))
    assert releases(server)[-1] > 1


def test_what_the_server_refuses_is_counted_by_reason(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    def spoil(request: Request) -> Response:
        if request.method == "GET":
            return server.transport(request)
        answer = {"stored": 23, "repeated": 0}
        reasons = [{"index": 3, "reason": "implausible"}, {"index": 7, "reason": "Lindqvist"}]
        return Response(200, {}, json.dumps({**answer, "refused": reasons}).encode())

    done = hand_in(server, [rows], state=state, transport=spoil)
    assert (done.sent, done.stored) == (25, 23)
    assert done.refused["implausible"] == 1
    assert sum(done.refused.values()) == 1
    assert sum(done.put_off.values()) == 1  # for a reason that is not known: it stays
    assert "Lindqvist" not in repr(done)
    assert hand_in(server, [rows], state=state).waited == 1


class Killed(BaseException):
    """As by a power cut: nothing in the code catches it."""


def dies(action: Callable[..., Any], *, at: int, after: bool) -> Callable[..., Any]:
    """Die at one call, just before or just after it has its effect."""
    calls = 0

    def dying(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at and not after:
            raise Killed
        result = action(*given, **named)
        if calls == at:
            raise Killed
        return result

    return dying


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("where", ["network", "begin", "keep", "remove"])
def test_a_run_that_dies_at_any_step_goes_on_without_a_second_report(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, after: bool
) -> None:
    for at in range(1, 100):
        server, state = CustodianServer(clinic()), tmp_path / f"{where}{after}{at}"
        transport = server.transport
        with monkeypatch.context() as patch:
            if where == "network":
                transport = dies(server.transport, at=at, after=after)
            else:
                patch.setattr(Journal, where, dies(getattr(Journal, where), at=at, after=after))
            try:
                hand_in(server, [rows], state=state, chunk=4, transport=transport)
            except Killed:
                died = True
            else:
                died = False
        last = hand_in(server, [rows], state=state, chunk=4)
        assert count(server) == 25
        # A report is sent again only where the answer to it was not noted.
        again = sum(server.sent.values()) - 25
        assert again == last.repeated
        assert again <= 4
        if not died:
            assert at > 1
            return
    pytest.fail("it never lived")


def test_a_server_without_answer_ends_patience_and_loses_nothing(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    answers = iter([None, (503, {"Retry-After": "1"})])
    server.hook = lambda stage: next(answers, None) if stage == "before" else None
    with pytest.raises(TransportError, match=r"status 503\. Nothing is lost: start again"):
        hand_in(server, [rows], state=state, chunk=10)
    assert count(server) == 10
    # The raw file is not needed for what was privatised already: rows 11 to 20.
    assert hand_in(server, [], state=state).stored == 10
    done = hand_in(server, [rows], state=state)
    assert done.files[0].before == 20
    assert count(server) == 25


def test_a_journal_is_for_one_process_at_a_time(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    def second(*progress: object) -> None:
        with pytest.raises(OutboxError, match="one process at a time; another has it now"):
            hand_in(server, [rows], state=state)

    hand_in(server, [rows], state=state, chunk=10, progress=second)
    assert count(server) == 25


def test_a_journal_is_for_one_experiment_and_population(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    hand_in(server, [rows], state=state)
    with pytest.raises(OutboxError, match=r"population 'clinic-b', ε = 4, as .*got .*'target'"):
        hand_in(server, [rows], state=state, population="target")
    other = CustodianServer(clinic(name="another"))
    with pytest.raises(OutboxError, match=r"be for experiment .* as it was made"):
        hand_in(other, [rows], state=state)
    assert count(other) == 0


def test_what_is_no_journal_is_refused_and_left_alone(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    for content in (b"", b"notes", sqlite()):
        state.write_bytes(content)
        with pytest.raises(OutboxError):
            hand_in(server, [rows], state=state)
        assert state.read_bytes() == content
    assert count(server) == 0


def test_a_journal_that_cannot_be_made_is_refused(server: CustodianServer, rows: Path) -> None:
    with pytest.raises(OutboxError, match="must be a file that can be made"):
        hand_in(server, [rows], state=rows / "journal")
    assert count(server) == 0


def sqlite() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE pinned (experiment, population, epsilon)")
        return database.serialize()


def test_a_journal_has_one_place_wherever_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/var/custodian")
    first, second = (default_state("0" * 16, name) for name in ("clinic-b", "clinic/c"))
    assert first != second
    assert first.parent == second.parent == Path("/var/custodian/sottovoce")


def test_refused_rows_are_listed_in_full(
    server: CustodianServer, rows: Path, state: Path, tmp_path: Path
) -> None:
    target = tmp_path / "refused.csv"
    for _ in range(2):
        hand_in(server, [rows], state=state, refused=target)
        with target.open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file)) == [
                ["file", "line", "reason"],
                [str(rows), "13", "age is not a number"],
                [str(rows), "14", "activity is not a level of the schema"],
                [str(rows), "15", "reward is not in [0, 1]"],
            ]


@pytest.mark.parametrize("name", ["rows.csv", "journal.sqlite", "../{here}/rows.csv"])
def test_the_list_of_refused_rows_never_overwrites_what_is_read(
    server: CustodianServer, rows: Path, state: Path, tmp_path: Path, name: str
) -> None:
    before = rows.read_bytes()
    with pytest.raises(RowsError, match="a file of its own"):
        hand_in(server, [rows], state=state, refused=tmp_path / name.format(here=tmp_path.name))
    assert rows.read_bytes() == before


SECRETS = ["61.73205081", "Lindqvist", "0.57721566", "(61.", "coach"]


def test_no_raw_value_reaches_the_journal_the_progress_the_summary_or_an_error(
    state: Path, tmp_path: Path
) -> None:
    server = CustodianServer(clinic(method="ldpmab"))
    good = ("61.73205081", "low", "coach", "0.57721566", "Lindqvist")
    header = ["age", "activity", "arm", "reward", "name"]
    bad = [
        ("61.73205081 Lindqvist", *good[1:]),
        (good[0], "Lindqvist", *good[2:]),
        (*good[:2], "Lindqvist", *good[3:]),
        (*good[:3], "61.73205081", good[4]),
        (*good, "Lindqvist"),
    ]
    path = write_csv(tmp_path / "rows.csv", [*[good] * 30, *bad], header=header)
    told: list[Any] = []

    def tell(*progress: Any) -> None:
        told.append(progress)

    def lose(request: Request) -> Response:
        if request.method == "GET" or len(told) < 2:
            return server.transport(request)
        raise TransportError("no answer")

    with pytest.raises(TransportError) as caught:
        hand_in(server, [path], state=state, chunk=7, transport=lose, progress=tell)
    text = [repr(told), "".join(traceback.format_exception(caught.value))]
    with closing(sqlite3.connect(state)) as database:
        dump = "\n".join(database.iterdump())
        assert 'INSERT INTO "waiting"' in dump
        text += [dump, *(repr(row) for row in database.execute("SELECT * FROM files"))]
    listed = tmp_path / "refused.csv"
    text.append(repr(hand_in(server, [path], state=state, refused=listed, progress=tell)))
    text.append(listed.read_text())
    text += describe(hand_in(server, [path], state=state))
    raw = state.read_bytes()
    for secret in SECRETS:
        assert not any(secret in each for each in text), secret
        assert secret.encode() not in raw
    assert str(path) not in dump


def test_a_row_has_no_repr() -> None:
    row = Row({"age": 61.73205081}, "coach", 0.57721566)
    assert not any(secret in repr(row) for secret in SECRETS)


def test_a_summary_says_what_became_of_the_rows(
    server: CustodianServer, rows: Path, state: Path
) -> None:
    first = describe(hand_in(server, [rows], state=state))
    assert first == [
        f"{rows}: 25 rows, of which 22 fit the schema; the others send a report that"
        " says nothing, so that their number stays private.",
        "  1 × age is not a number (line 13)",
        "  1 × activity is not a level of the schema (line 14)",
        "  1 × reward is not in [0, 1] (line 15)",
        "25 rows were privatised with ε = 4 each and sent; the server stored 25 reports.",
    ]
    second = hand_in(server, [rows], state=state)
    assert "  It was contributed before; nothing is sent a second time." in describe(second)
    assert describe(second, only_check=True)[-1] == "Nothing was sent."
    third = describe(replace(second, waited=3, repeated=2, refused={"implausible": 1}))
    assert "3 reports of an earlier run were waiting." in third
    assert third[-2].endswith("the server stored 0 reports and had 2 already.")
    assert third[-1] == "The server refused 1: implausible."


def test_columns_may_have_other_names_than_features(tmp_path: Path, state: Path) -> None:
    header = ["years", "how=active", "given", "outcome"]
    path = write_csv(tmp_path / "rows.csv", good_rows(5), header=header)
    renamed = renamed_columns(["age=years", "activity=how=active"])
    columns = Columns("given", "outcome", renamed)
    with serving(clinic()) as server:
        done = hand_in(server, [path], state=state, transport=http.send, columns=columns)
        assert done.stored == 5


@pytest.mark.parametrize("wrong", ["age", "age=", "=years"])
def test_a_renamed_column_must_say_of_which_feature(wrong: str) -> None:
    with pytest.raises(RowsError, match="feature=column"):
        renamed_columns([wrong])
