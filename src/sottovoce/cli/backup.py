"""The commands backup and restore."""

import getpass
from dataclasses import asdict
from pathlib import Path

from sottovoce.cli.app import AsJson, Command, argument, option, say, say_json
from sottovoce.cli.service import HERE, Database
from sottovoce.shared.errors import StoreError


class Backup(Command, extra="server"):
    """Copy the database to a new folder, while the server runs.

    The folder holds one SQLite file, whatever the server runs on, and a manifest. The signing key
    is not in it, unless you ask for it: whoever has the key can publish in your name.
    """

    folder: Path = argument(..., "A new folder for the backup.")
    database: Database = HERE
    with_key: Path | None = option(None, "Put this signing key into the backup, too.")
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.server.backup import back_up
        from sottovoce.server.keys import SigningKey
        from sottovoce.server.store.store import Store

        if self.with_key is not None:
            SigningKey.read(self.with_key)
        store = Store.open(self.database)
        made = back_up(store, self.folder, key=self.with_key)
        store.close()
        if self.as_json:
            say_json(asdict(made))
            return
        for each in made.experiments:
            counts = f"{each.reports:,} reports, {each.release:,} releases"
            say(f"{each.experiment[:16]} ({each.name}): {counts}")
            if each.learned < each.reports:
                say(f"  the learner had counted {each.learned:,} of them")
        kept = "with the signing key" if made.with_key else "without the signing key"
        say(f"{self.folder}: {made.bytes:,} bytes, {kept}.")


class Restore(Command, extra="server"):
    """Fill a database from a backup, and let every experiment go on in a new branch.

    What was published after the backup is lost, and devices may hold it: the first release that the
    server publishes says so, and devices and monitors check it. Stop the server first. Without a
    backup, --declared says that something else has restored the database, such as a failover.
    """

    folder: Path | None = argument(None, "The folder that sottovoce backup has made.")
    database: Database = HERE
    declared: bool = option(
        False, "The database is restored already: only declare the new branches.", "--declared"
    )
    replace: bool = option(
        False, "Take the place of what is there; an SQLite file is put aside.", "--replace"
    )
    by: str | None = option(None, "Who restores; everybody can read it. Your user name, without.")
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.server.restore import declare, restore
        from sottovoce.server.store.store import Store

        if (self.folder is None) != self.declared:
            raise StoreError("restore must get either the folder of a backup or --declared")
        by = self.by or getpass.getuser()
        if self.folder is None:
            store = Store.open(self.database)
            restored = declare(store, by=by)
            store.close()
        else:
            restored = restore(self.folder, self.database, by=by, replace=self.replace)
        if self.as_json:
            say_json([asdict(each) for each in restored])
            return
        for each in restored:
            say(
                f"{each.experiment[:16]} ({each.name}): goes on from release {each.release:,} with"
                f" {each.reports:,} reports, as branch {each.branch[:8]}"
            )
            for amendment in each.left_out:
                say(f"  waited, and is left out: {amendment}. Ask for it again.")
        say("Start the server with the same signing key. If a CDN carries releases, purge it.")
