"""The command that takes a policy out of the service: export."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sottovoce.cli.app import Command, argument, errors, option
from sottovoce.cli.service import HERE, Database
from sottovoce.shared.errors import PolicyError, TransportError, must

if TYPE_CHECKING:
    from sottovoce.device.policy.policy import Policy
    from sottovoce.device.transport import Request, Response

Form = Literal["policy", "rules", "sql", "python"]


class Export(Command, extra="cli"):
    """Take out what was learned, to use without the service: who gets which arm.

    There are four forms, and every person gets the same arm by all of them:

    - rules: Markdown for people to read.

    - sql: a CASE expression for SQLite and PostgreSQL.

    - python: a function that needs no package.

    - policy: a signed file for sv.Policy.

    What was learned comes from the server's database, where --format policy
    needs --signing-key; with --server from a running server; or with --file
    from a policy file, or a signed release that a device or monitor has kept.
    The last two are verified with --key.

    Only the database has estimates, which decide between arms that are still
    compared. So whoever runs the service exports a policy file, and everybody
    else makes the other forms from it.
    """

    experiment: str | None = argument(
        None, "The experiment's name, or its fingerprint; not needed if there is only one."
    )
    form: Form = option("rules", "What to write.", "--format")
    output: Path | None = option(
        None, "The file to write; without it, the text is printed.", "--output", "-o"
    )
    database: Database = HERE
    server: str | None = option(None, "The address of a running server, in place of a database.")
    file: Path | None = option(None, "A policy file or a signed release, in place of a database.")
    key: list[str] | None = option(
        None, "A public key that may sign, for --server and --file, 64 digits; repeatable."
    )
    signing_key: Path = option(
        Path("sottovoce.key"), "The server's signing key, for --format policy from a database."
    )
    release: int | None = option(None, "The version of the release; the newest without.", min=1)
    table: str = option("person", "The table, or its alias, that has the columns of --format sql.")

    def __call__(self) -> None:
        if self.server is not None and self.file is not None:
            raise PolicyError("a policy must come from --server or --file; got both")
        if self.server is not None:
            document, policy = self._from_server(self.server)
        elif self.file is not None:
            document, policy = self._from_file(self.file)
        else:
            document, policy = self._from_database()
        self._warn(policy)
        self._write(self._text(document, policy))

    def _from_server(self, server: str) -> "tuple[bytes, Policy]":
        from sottovoce.device.policy.policy import Policy
        from sottovoce.device.releases import Releases
        from sottovoce.device.transport import run

        if self.experiment is None:
            raise PolicyError("with --server, the fingerprint of the experiment must be given")
        releases = Releases(server, experiment=self.experiment, keys=self._keys())
        asked = releases.current() if self.release is None else releases.version(self.release)
        found = run(asked, _answer)
        return found.document, Policy(found.release)

    def _from_file(self, file: Path) -> "tuple[bytes, Policy]":
        from sottovoce.device.policy.policy import Policy, read_document

        document = read_document(file)
        policy = Policy.load(document, keys=self._keys())
        found = policy.release
        if self.experiment not in (None, found.experiment.fingerprint):
            rule = f"be of experiment {self.experiment}"
            raise PolicyError(must(str(file), rule, found.experiment.fingerprint))
        if self.release not in (None, found.version):
            raise PolicyError(must(str(file), f"be of release {self.release}", found.version))
        return document, policy

    def _from_database(self) -> "tuple[bytes, Policy]":
        from sottovoce.device.policy.policy import Policy
        from sottovoce.server.export import learned
        from sottovoce.server.keys import SigningKey
        from sottovoce.server.store.store import Store
        from sottovoce.shared.policy import policy_to_json

        store = Store.open(self.database)
        try:
            found = learned(store, experiment=self.experiment, version=self.release)
        finally:
            store.close()
        document = b""
        if self.form == "policy":
            text = policy_to_json(found.release, found.estimates)
            document = SigningKey.read(self.signing_key).sign_policy(text).to_json()
        return document, Policy(found.release, estimates=found.estimates)

    def _keys(self) -> list[str]:
        return self.key or []

    def _text(self, document: bytes, policy: "Policy") -> str:
        from sottovoce.device.policy.python_text import python_text
        from sottovoce.device.policy.rules_text import rules_text
        from sottovoce.device.policy.sql_text import sql_text

        match self.form:
            case "policy":
                return document.decode()
            case "rules":
                return rules_text(policy)
            case "python":
                return python_text(policy)
            case "sql":
                return sql_text(policy, table=self.table)

    def _warn(self, policy: "Policy") -> None:
        """Say on the other stream how many bins were not decided by what was learned."""
        from sottovoce.shared.policy import is_estimated

        contested = policy.release.contested
        guessed = [each for each in contested if not is_estimated(each, policy.estimates)]
        if guessed:
            text = (
                f"{len(guessed)} of {len(policy.release.bins)} bins are not settled, and there are"
                " no estimates of their arms: they get the arm that the release gives most often,"
                " or else the first of the experiment"
            )
            errors.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def _write(self, text: str) -> None:
        if self.output is None:
            sys.stdout.write(text)
            return
        try:
            self.output.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            rule = "be a file that can be written"
            raise PolicyError(must(str(self.output), rule, type(error).__name__)) from None


def _answer(request: "Request") -> "Response | None":
    """Send a request; None if no answer came."""
    from sottovoce.device.transport import send

    try:
        return send(request)
    except (TransportError, OSError):
        return None
