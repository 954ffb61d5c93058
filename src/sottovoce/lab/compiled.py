"""Compile the estimator's rules as they stand, for the lab's crowd.

``estimate`` knows nothing of compilers. Here its rules, plain functions that call each other, are
handed to numba unchanged: each gets the others in their compiled form as its globals. There is no
second copy of any rule that could drift.

Compiled code is kept in a folder named after the source it was made from, so that an edited rule
never meets a stale kernel.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numba

from sottovoce.lab.sources import source_digest


def compile_rules(*modules: ModuleType, inline: bool) -> SimpleNamespace:
    """Return the functions of modules that call each other, compiled.

    inline: into each of their callers, for small functions; large ones take long to compile so.
    """
    mine = {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if isinstance(function, FunctionType) and function.__module__ == module.__name__
    }
    world = {name: value for module in modules for name, value in vars(module).items()}
    for name, function in mine.items():
        copy = FunctionType(function.__code__, world, name, function.__defaults__)
        world[name] = numba.njit(cache=True, forceinline=inline)(copy)
    return SimpleNamespace(**{name: world[name] for name in mine})


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile one of the lab's own functions."""
    kernel: Callable[..., Any] = numba.njit(cache=True)(function)
    return kernel


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into each of its callers; a call would cost more than its work."""
    kernel: Callable[..., Any] = numba.njit(cache=True, forceinline=True)(function)
    return kernel


def _keep_kernels() -> None:
    """Choose the cache folder by the source of all that makes up a kernel."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = home / "sottovoce" / source_digest()
    if not folder.exists():
        print("compiling the crowd, once (about half a minute) …", file=sys.stderr, flush=True)
    # numba makes its settings at run time, where mypy does not see them.
    numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]


_keep_kernels()
