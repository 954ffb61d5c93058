"""The command that changes a running experiment: amend."""

from typing import Any

import typer

from sottovoce.cli.app import AsJson, Command, argument, errors, option, say, say_json
from sottovoce.cli.device import TRY_LATER
from sottovoce.cli.service import TOKEN
from sottovoce.shared.amendment import (
    ADD_ARM,
    ARCHIVE,
    EXTEND_HORIZON,
    KINDS,
    PAUSE,
    RESUME,
    RETIRE_ARM,
    STOP,
)
from sottovoce.shared.errors import ExperimentError, TransportError, must

CHANGES = {kind.replace(" ", "-"): kind for kind in KINDS}
"""Kinds of amendments, as they are written on the command line."""

# What can never be taken back, and what it means: asked before it is done.
FOR_GOOD = {
    RETIRE_ARM: "Nobody will get {arm!r} any more, and it cannot come back.",
    STOP: "Stopping is for good: nobody reports any more, and nothing is decided.",
    ARCHIVE: "Archiving is for good: reports are refused, also those that are on their way.",
}
# What it means for people, once it is in force.
MEANING = {
    ADD_ARM: "Devices follow within about an hour; from then on some people get {arm!r}.",
    RETIRE_ARM: "Devices follow within about an hour; until then some people still get {arm!r}.",
    EXTEND_HORIZON: "Nothing changes for people; the learner takes longer to decide.",
    PAUSE: "Devices follow within about an hour: people get arms as before, and nobody reports.",
    RESUME: "Devices follow within about an hour. The learner goes on with all that it knows.",
    STOP: "Devices follow within about an hour: people get arms as before, and nobody reports.",
    ARCHIVE: "Reports are refused from now on. The releases and the status page stay.",
}


class Amend(Command, extra="cli"):
    """Change a running experiment: its arms, its horizon, or whether it runs.

    CHANGE is add-arm, retire-arm, extend-horizon, pause, resume, stop or archive; ABOUT is the arm
    or the new horizon. The administrator's token is read from SOTTOVOCE_ADMIN_TOKEN. An amendment
    is public: every release carries it, with who made it and when. Sent again after a failure, it
    is not made twice. Exit code 75: the server could not be reached; try again later.
    """

    experiment: str = argument(..., "Its fingerprint, or its name if no other has that name.")
    change: str | None = argument(None, "What to change; nothing to list what was changed.")
    about: str | None = argument(None, "The arm that is added or retired, or the new horizon.")
    server: str = option(..., "The server's address.")
    by: str | None = option(None, "Who makes the amendment, as everybody will see.")
    cap: str | None = option(
        None, "add-arm: the most of a bin's people who get it while it is compared, such as 10%."
    )
    token: str | None = option(None, "The administrator's token.", envvar=TOKEN)
    yes: bool = option(False, "Do not ask, whatever cannot be taken back.", "--yes")
    history: bool = option(False, "Only list the amendments so far.", "--list")
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.cli.administrator import Administrator

        server = Administrator(self.server, self.token or "")
        try:
            if self.history or self.change is None:
                self._list(server)
            else:
                self._amend(server, self._wanted(self.change))
        except TransportError as error:
            errors.print(f"error: {error}", style="red", highlight=False, markup=False)
            raise typer.Exit(TRY_LATER) from None

    def _wanted(self, change: str) -> dict[str, Any]:
        """Return what to ask the server for; it checks whether that can be."""
        if change not in CHANGES:
            raise ExperimentError(must("the change", f"be one of {list(CHANGES)}", repr(change)))
        if self.by is None:
            raise ExperimentError(must("an amendment", "say --by whom it is made", "nothing"))
        if not self.token:
            rule = f"be in the variable {TOKEN}"
            raise ExperimentError(must("the administrator's token", rule, "nothing"))
        kind, key = CHANGES[change], KINDS[CHANGES[change]]
        if (key is None) != (self.about is None):
            rule = f"say which {key}" if key else "say nothing more"
            raise ExperimentError(must(change, rule, repr(self.about)))
        about: Any = _whole(self.about) if key == "horizon" else self.about
        wanted = {"kind": kind, "by": self.by, **({key: about} if key else {})}
        return wanted if self.cap is None else {**wanted, "cap": _share(self.cap)}

    def _amend(self, server: Any, wanted: dict[str, Any]) -> None:
        fingerprint = server.fingerprint(self.experiment)
        now = server.amendments(fingerprint)
        if wanted["kind"] in FOR_GOOD and not self.yes:
            warning = FOR_GOOD[wanted["kind"]].format(**wanted)
            typer.confirm(f"{now['name']}: {warning} Go on?", abort=True, err=True)
        made = server.amend(fingerprint, wanted, after=len(now["amendments"]))
        if self.as_json:
            say_json(made)
            return
        say(f"{now['name']}: {_line(made)}")
        say(MEANING[wanted["kind"]].format(**wanted))

    def _list(self, server: Any) -> None:
        now = server.amendments(server.fingerprint(self.experiment))
        if self.as_json:
            say_json(now)
            return
        say(f"{now['name']} ({now['experiment'][:16]}) is {now['state']}.")
        for each in now["amendments"]:
            document = each["amendment"]
            say(f"{_line(each)}  [{document['by']}, {document['made']}]")


def _line(made: dict[str, Any]) -> str:
    where = "waits for the learner"
    if made["release"] is not None:
        where = f"in release {made['release']:,}, after {made['position']:,} reports"
    return f"amendment {made['number']}, {where}: {made['words']}"


def _whole(text: str | None) -> int:
    digits = (text or "").replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise ExperimentError(must("the horizon", "be a whole number", repr(text)))
    return int(digits)


def _share(text: str) -> float:
    """Read a share such as 10% or 0.1."""
    number = text.strip().removesuffix("%").strip()
    try:
        share = float(number)
    except ValueError:
        raise ExperimentError(must("the cap", "be a share such as 10%", repr(text))) from None
    # 10% is the double nearest to 0.1, as 0.1 is.
    return float(f"{number}e-2") if text.strip().endswith("%") and "e" not in number else share
