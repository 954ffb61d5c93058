"""Compile plain functions for the lab, as they stand.

``estimate``, ``device`` and ``shared`` know nothing of compilers. Here their plain functions are
handed to numba unchanged. There is no second copy of any rule that could drift.

Most of them make no arrays, and are compiled without numba's runtime for these. With it, each call
counts references to every array of a tuple that it is handed, which takes longer than the work. To
compile a function that does make arrays is then an error; ``allocate`` allows it.

Compiled code is kept in a folder named after the source it was made from, so that an edited rule
never meets a stale kernel.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numba

from sottovoce.lab.sources import source_digest

try:
    import fcntl
except ImportError:  # a system without it: each process compiles for itself
    fcntl = None  # type: ignore[assignment]

Function = Callable[..., Any]


def compile_rules(
    *modules: ModuleType,
    inline: bool,
    allocate: bool = False,
    replace: Mapping[Function, Function] | None = None,
) -> dict[Function, Function]:
    """Compile all functions of some modules; return the compiled form of each.

    Each function keeps the globals of its own module. Only functions that are compiled here are
    replaced in them, by their compiled form, whatever name they go by.

    inline: into each of their callers, for small functions; large ones take long to compile so.
    allocate: whether some of them make arrays.
    replace: functions to be called in place of some of the modules' own; compiled ones.
    """
    forms: dict[Function, Function] = dict(replace or {})
    # numba keeps forms of a function apart on disk by its qualified name alone.
    name = "inlined." * inline + "allocating." * allocate
    name += "".join(sorted({form.__module__ + "." for form in forms.values()}))
    worlds = [dict(vars(module)) for module in modules]
    for module, world in zip(modules, worlds, strict=True):
        for function in vars(module).values():
            own = isinstance(function, FunctionType) and function.__module__ == module.__name__
            if own and function not in forms:
                copy = _copy(function, world, name)
                forms[function] = _compile(copy, inline=inline, allocate=allocate)
    for world in worlds:
        for word, value in world.items():
            if isinstance(value, FunctionType) and value in forms:
                world[word] = forms[value]
    return forms


def compile_for(name: str, function: Function, replace: Mapping[str, Any]) -> Function:
    """Compile one function with some of its globals replaced; ``name`` tells its forms apart."""
    return compiled(_copy(function, {**function.__globals__, **replace}, f"{name}."))


def compiled(function: Function) -> Function:
    """Compile one of the lab's own functions, which makes no arrays."""
    return _compile(function, inline=False, allocate=False)


def inlined(function: Function) -> Function:
    """Compile a small function into each of its callers; a call would cost more than its work."""
    return _compile(function, inline=True, allocate=False)


def compiled_once(kernel: Any) -> Function:
    """Compile a kernel at its first call, while no other process compiles one.

    Processes that begin together would otherwise all do the same work, each for itself. Those that
    had to wait find the kernel on disk.
    """

    def call(*arguments: Any) -> Any:
        if not kernel.signatures:
            folder = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "lock").open("w") as lock:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                kernel.compile(tuple(map(numba.typeof, arguments)))
        return kernel(*arguments)

    return call


def _compile(function: Function, *, inline: bool, allocate: bool) -> Function:
    runtime: Any = {"_nrt": allocate}  # an option that numba's types do not know
    kernel: Function = numba.njit(cache=True, forceinline=inline, **runtime)(function)
    return kernel


def _copy(function: Any, world: dict[str, Any], name: str) -> FunctionType:
    """Return the same function with other globals, and a name before its own."""
    copy = FunctionType(function.__code__, world, function.__name__, function.__defaults__)
    copy.__qualname__ = name + function.__qualname__
    return copy


def _keep_kernels() -> None:
    """Choose the cache folder by the source of all that makes up a kernel."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = home / "sottovoce" / source_digest()
    if not folder.exists():
        print("compiling the crowd, once (about a minute) …", file=sys.stderr, flush=True)
    # numba makes its settings at run time, where mypy does not see them.
    numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]


_keep_kernels()
