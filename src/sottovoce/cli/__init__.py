"""The command line: arguments only. Internal: the commands are public, the modules are not."""

import sys

from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.extras import EXTRAS, missing


def main() -> None:
    """Run the command line; an error of this package is one line, not a traceback."""
    try:
        try:
            from sottovoce.cli.commands import app
        except ModuleNotFoundError as error:
            raise missing(error, who="the command line", extra=EXTRAS[__name__]) from None
        app()
    except SottovoceError as error:
        red, plain = ("\033[31m", "\033[0m") if sys.stderr.isatty() else ("", "")
        print(f"{red}error: {error}{plain}", file=sys.stderr)
        raise SystemExit(2) from None
