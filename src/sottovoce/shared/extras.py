"""Names that are loaded when they are first used, and what to install where that fails.

The package itself needs the standard library only. Each room brings its own dependencies, as an
extra: ``pip install 'sottovoce[server]'``.
"""

from collections.abc import Mapping
from importlib import import_module

from sottovoce.shared.errors import MissingExtra

EXTRAS = {"cli": "cli", "estimate": "learner", "lab": "lab", "server": "server"}
"""The extra that each room needs; the other rooms need none."""


def load(name: str, modules: Mapping[str, str], *, package: str) -> object:
    """Return a public name of a package from the module that has it.

    modules: the module of each public name.
    """
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    room = modules[name].split(".")[1]
    try:
        return getattr(import_module(modules[name]), name)
    except ModuleNotFoundError as error:
        raise missing(error, who=name, extra=EXTRAS.get(room)) from None


def missing(error: ModuleNotFoundError, *, who: str, extra: str | None) -> ImportError:
    """Say in one line what to install. A missing module of this package stays the error it is.

    who: what cannot be used without it.
    """
    module = (error.name or "").split(".")[0]
    if extra is None or module in ("", "sottovoce"):
        return error
    return MissingExtra(f"{who} needs {module}: pip install 'sottovoce[{extra}]'")
