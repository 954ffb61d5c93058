"""The service's commands: demo, serve, replay, key."""

import json
import logging
import os
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.app import app, console
from sottovoce.shared.experiment import Experiment

TOKEN = "SOTTOVOCE_ADMIN_TOKEN"  # noqa: S105  the name of a variable, not a token
Database = Annotated[
    str,
    typer.Option(
        envvar="SOTTOVOCE_DATABASE", help="sqlite:///FILE or postgresql://USER@HOST/NAME."
    ),
]
HERE = "sqlite:///sottovoce.db"


@app.command()
def demo(
    users: Annotated[int, typer.Option(min=100, help="How many simulated people come.")] = 6000,
    forever: Annotated[
        bool, typer.Option("--forever", help="Others come after them, until Ctrl-C.")
    ] = False,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of each report.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Fixes who comes; noise is never fixed.")] = 0,
    port: Annotated[int, typer.Option(min=0, help="The port; 0 for any free one.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("out"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Run a server, let simulated people come to it over HTTP, and draw what it learned."""
    from sottovoce.lab.demo import run

    def tell(page: str) -> None:
        if not as_json:
            console.print(f"Status page: {page}", highlight=False, soft_wrap=True)

    summary = run(
        users=users, epsilon=epsilon, seed=seed, port=port, out=out, forever=forever, tell=tell
    )
    if as_json:
        console.print_json(json.dumps(asdict(summary), default=str))
        return
    console.print(
        f"{summary.users} people took part; each sent one report and spent"
        f" ε = {summary.epsilon:g}.\n"
        f"Reward per person: {summary.reward:.3f}, of the last tenth"
        f" {summary.reward_in_last_tenth:.3f}; arms at random bring {summary.reward_at_random:.3f},"
        f" the best arm for everyone {summary.reward_of_the_best:.3f}.\n"
        f"Release {summary.release} has {summary.bins} bins, {summary.settled_bins} of them"
        f" settled. Replaying the log of {summary.stored} reports gives"
        f" {'the same releases' if summary.agrees else 'OTHER releases'}.\n"
        f"Picture: {summary.picture}"
    )


@app.command()
def serve(
    experiments: Annotated[
        list[Path] | None, typer.Argument(help="TOML files of experiments to begin.")
    ] = None,
    database: Database = HERE,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, help="The port; 0 for any free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Processes that talk to the network.")] = 1,
    key: Annotated[
        Path, typer.Option(help="The file with the signing key; made if it does not exist.")
    ] = Path("sottovoce.key"),
) -> None:
    """Serve: hand out releases, take reports, learn.

    An administrator's token is read from SOTTOVOCE_ADMIN_TOKEN; without it one is made up.
    """
    from sottovoce.server.keys import SigningKey
    from sottovoce.server.serve import Listening
    from sottovoce.server.serve import serve as run
    from sottovoce.server.settings import Settings
    from sottovoce.server.store.store import Store

    begun = tuple(Experiment.from_toml(path) for path in experiments or [])
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    settings = Settings(database=database, key=key, token=token, experiments=begun)
    Store.open(database).close()  # so that a mistake in the address is told here, at once
    public = SigningKey.read_or_create(key).public.hex()
    listening = Listening.on(host, port)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    lines = [f"Serving at {listening.url} (Ctrl-C to stop)", f"Public key   {public}"]
    if not os.environ.get(TOKEN):
        lines.append(f"Admin token  {token} (for this run; set {TOKEN} to keep one)")
    lines += [
        f"Experiment   {each.name}: {listening.url}/experiments/{each.fingerprint}"
        for each in begun
    ]
    console.print("\n".join(lines), highlight=False, soft_wrap=True)
    run(settings, listening, workers=workers)


@app.command()
def replay(
    experiment: Annotated[
        str | None, typer.Argument(help="The fingerprint of one experiment; all without.")
    ] = None,
    database: Database = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Work out every release from the log again, and say where the database disagrees.

    Ends with 1 where it does.
    """
    from rich.console import Console

    from sottovoce.server.replay import replay as run
    from sottovoce.server.store.store import Store

    store = Store.open(database)
    names = [experiment] if experiment else [fingerprint for fingerprint, _ in store.experiments()]
    with Console(stderr=True).status("replaying") as shown:
        results = [
            run(store, name, each=lambda n: shown.update(f"replaying: {n:,} reports"))
            for name in names
        ]
    if as_json:
        console.print_json(json.dumps([asdict(each) for each in results]))
    else:
        for each in results:
            console.print(
                f"{each.experiment} ({each.name}): {each.reports:,} reports,"
                f" {each.releases:,} releases: {'agrees' if each.agrees else 'DISAGREES'}",
                highlight=False,
            )
            for trouble in each.troubles:
                console.print(f"  {trouble}", highlight=False, soft_wrap=True)
    if not all(each.agrees for each in results):
        raise typer.Exit(1)


@app.command()
def key(
    file: Annotated[Path, typer.Argument(help="The file with the key; made if it is new.")],
) -> None:
    """Make a signing key, or show the public part of one: what devices have to trust."""
    from sottovoce.server.keys import SigningKey

    console.print(SigningKey.read_or_create(file).public.hex(), highlight=False)
