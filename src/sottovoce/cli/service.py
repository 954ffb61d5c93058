"""The service's commands: demo, serve, replay, key."""

import logging
import os
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.app import (
    AsJson,
    Command,
    Epsilon,
    argument,
    console,
    errors,
    option,
    say,
    say_json,
)
from sottovoce.shared.amendment import RUNNING
from sottovoce.shared.durations import duration
from sottovoce.shared.experiment import Experiment

logger = logging.getLogger(__name__)

TOKEN = "SOTTOVOCE_ADMIN_TOKEN"  # noqa: S105  the name of a variable, not a token
Database = Annotated[
    str,
    typer.Option(
        envvar="SOTTOVOCE_DATABASE", help="sqlite:///FILE or postgresql://USER@HOST/NAME."
    ),
]
HERE = "sqlite:///sottovoce.db"
Port = Annotated[int, typer.Option(min=0, help="The port; 0 for any free one.")]


class Demo(Command, extra="lab,server"):
    """Run a server, let simulated people come to it over HTTP, and draw what it learned."""

    users: int = option(6000, "How many simulated people come.", min=100)
    forever: bool = option(False, "Others come after them, until Ctrl-C.", "--forever")
    epsilon: Epsilon = 1.0
    seed: int = option(0, "Fixes who comes; noise is never fixed.", min=0)
    port: Port = 0
    out: Path = option(Path("out"), "Where the picture goes.")
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.lab.demo import run

        summary = run(
            users=self.users,
            epsilon=self.epsilon,
            seed=self.seed,
            port=self.port,
            out=self.out,
            forever=self.forever,
            tell=lambda page: None if self.as_json else say(f"Status page: {page}"),
        )
        if self.as_json:
            say_json(asdict(summary))
            return
        console.print(
            f"{summary.users} people took part; each sent one report and spent"
            f" ε = {summary.epsilon:g}.\n"
            f"Reward per person: {summary.reward:.3f}, of the last tenth"
            f" {summary.reward_in_last_tenth:.3f}; arms at random bring"
            f" {summary.reward_at_random:.3f}, the best arm for everyone"
            f" {summary.reward_of_the_best:.3f}.\n"
            f"Release {summary.release} has {summary.bins} bins, {summary.settled_bins} of them"
            f" settled. Replaying the log of {summary.stored} reports gives"
            f" {'the same releases' if summary.agrees else 'OTHER releases'}.\n"
            f"Picture: {summary.picture}"
        )


class Serve(Command, extra="server"):
    """Serve: hand out releases, take reports, learn.

    An administrator's token is read from SOTTOVOCE_ADMIN_TOKEN; without it one is made up.
    """

    experiments: list[Path] | None = argument(None, "TOML files of experiments to begin.")
    database: Database = HERE
    host: str = option("127.0.0.1", "The address to listen on.")
    port: Port = 8000
    workers: int = option(1, "Processes that talk to the network.", min=1)
    key: Path = option(
        Path("sottovoce.key"), "The file with the signing key; made if it does not exist."
    )

    new_key: bool = option(
        False, "Sign with another key than before; make it if it does not exist.", "--new-key"
    )
    new_database: bool = option(
        False, "Begin with a new database where there was another one.", "--new-database"
    )
    keep_reports: str | None = option(
        None, "Erase reports that are older, such as 90d; without it all are kept."
    )

    def __call__(self) -> None:
        from sottovoce.server.amendments import as_amended
        from sottovoce.server.beginning import check_database, key_for
        from sottovoce.server.marks import Marks
        from sottovoce.server.outlook import warning
        from sottovoce.server.retention import whole_days
        from sottovoce.server.serve import Listening, serve
        from sottovoce.server.settings import ServerSettings
        from sottovoce.server.store.store import Store

        begun = tuple(Experiment.from_toml(path) for path in self.experiments or [])
        token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
        keep = None
        if self.keep_reports is not None:
            keep = whole_days(duration(self.keep_reports, what="keep-reports"))
        settings = ServerSettings(
            database=self.database,
            key=self.key,
            token=token,
            experiments=begun,
            keep_reports=keep,
            new_key=self.new_key,
        )
        store = Store.open(self.database)  # so that a mistake in the address is told here, at once
        key = key_for(store, self.key, is_new=self.new_key)
        check_database(store, Marks(self.key, self.database), is_new=self.new_database)
        now = as_amended(store, begun)
        store.close()
        public = key.public.hex()
        listening = Listening.on(self.host, self.port)
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
        say(f"Serving at {listening.url} (Ctrl-C to stop)")
        say(f"Public key   {public}")
        if not os.environ.get(TOKEN):
            say(f"Admin token  {token} (for this run; set {TOKEN} to keep one)")
        for each in now:
            say(f"Experiment   {each.name}: {listening.url}/experiments/{each.fingerprint}")
            if each.state != RUNNING:
                say(f"             {each.name} is {each.state}")
            elif few := warning(each):
                logger.warning(few)
        serve(settings, listening, workers=self.workers)


class Replay(Command, extra="server"):
    """Work out every release from the log again, and say where the database disagrees.

    Ends with 1 where it does.
    """

    experiment: str | None = argument(None, "The fingerprint of one experiment; all without.")
    database: Database = HERE
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.server.replay import replay
        from sottovoce.server.store.store import Store

        store = Store.open(self.database)
        every = [fingerprint for fingerprint, _ in store.experiments()]
        names = [self.experiment] if self.experiment else every
        with errors.status("replaying") as shown:
            results = [
                replay(store, name, each=lambda n: shown.update(f"replaying: {n:,} reports"))
                for name in names
            ]
        if self.as_json:
            say_json([asdict(each) for each in results])
        else:
            for each in results:
                verdict = "agrees" if each.agrees else "DISAGREES"
                counts = f"{each.reports:,} reports, {each.releases:,} releases"
                say(f"{each.experiment[:16]} ({each.name}): {counts}: {verdict}")
                if each.folded:
                    say(
                        f"  begins at a checkpoint after {each.folded:,} reports, which are erased;"
                    )
                    say(f"  their hash, with all folds so far: {each.folded_hash}")
                for amendment in each.amendments:
                    say(f"  {amendment}")
                for trouble in each.troubles:
                    say(f"  {trouble}")
        if not all(each.agrees for each in results):
            raise typer.Exit(1)


class Key(Command, extra="server"):
    """Make a signing key, or show the public part of one: what devices have to trust."""

    file: Path = argument(..., "The file with the key; made if it is new.")

    def __call__(self) -> None:
        from sottovoce.server.keys import SigningKey

        say(SigningKey.read_or_create(self.file).public.hex())
