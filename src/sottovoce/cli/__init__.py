"""The command line: arguments only."""

from rich.console import Console

from sottovoce.cli import compare, device, lab, service
from sottovoce.cli.app import app
from sottovoce.shared.errors import SottovoceError

__all__ = ["app", "compare", "device", "lab", "main", "service"]


def main() -> None:
    """Run the command line; an error of this package is one line, not a traceback."""
    try:
        app()
    except SottovoceError as error:
        Console(stderr=True).print(f"error: {error}", style="red", highlight=False, markup=False)
        raise SystemExit(2) from None
