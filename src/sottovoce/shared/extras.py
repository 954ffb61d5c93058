"""Names that are loaded when they are first used, and what to install where that fails.

The package itself needs the standard library only. Each room brings its own dependencies, as an
extra: ``pip install 'sottovoce[server]'``.
"""

from collections.abc import Mapping
from importlib import import_module

from sottovoce.shared.errors import MissingExtra

EXTRAS = {
    "sottovoce.cli": "cli",
    "sottovoce.estimate": "learner",
    "sottovoce.lab.local_server": "lab,server",
    "sottovoce.lab": "lab",
    "sottovoce.server": "server",
}
"""The extras that modules need, by the first words of their names. Others need none."""


def load(name: str, modules: Mapping[str, str], *, package: str) -> object:
    """Return a public name of a package.

    modules: the public names, with spaces between them, that each module has.
    """
    for module, names in modules.items():
        if name in names.split():
            try:
                return getattr(import_module(module), name)
            except ModuleNotFoundError as error:
                extras = [EXTRAS[words] for words in EXTRAS if module.startswith(words)]
                raise missing(error, who=name, extra=next(iter(extras), None)) from None
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def missing(error: ModuleNotFoundError, *, who: str, extra: str | None) -> ImportError:
    """Say in one line what to install. A missing module of this package stays the error it is.

    who: what cannot be used without it.
    """
    module = (error.name or "").split(".")[0]
    if extra is None or module in ("", "sottovoce"):
        return error
    return MissingExtra(f"{who} needs {module}: pip install 'sottovoce[{extra}]'")
