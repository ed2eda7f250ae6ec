"""numpy-benchmarks (https://github.com/serge-sans-paille/numpy-benchmarks): short functions that
people have asked about.

A program is one file; its comments ``#setup:`` and ``#run:`` say how its arguments are made and
how it is called. There is one size.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from .program import Function, Program, module

SMALLEST = ""


def names(checkout: Path) -> list[str]:
    """Of all programs."""
    return sorted(path.stem for path in _folder(checkout).glob("[!_]*.py"))


def load(checkout: Path, name: str, size: str) -> Program:
    """One program, with the arguments of its comments."""
    path = _folder(checkout) / f"{name}.py"
    text = path.read_text()
    setup, run = (re.findall(rf"^#{word}: (.*)$", text, re.MULTILINE)[0]
                  for word in ("setup", "run"))
    scope: dict[str, Any] = {}
    exec(setup, scope)
    # The call is made with a function that keeps what it is given.
    scope[name] = lambda *args: args
    args = eval(run, scope)

    def numbas() -> Function:
        jit = importlib.import_module("numba").njit
        made = module(path)
        for each, value in inspect.getmembers(made, inspect.isfunction):
            if value.__module__ == made.__name__:
                setattr(made, each, jit(value))
        function: Function = getattr(made, name)
        return function

    return Program(getattr(module(path), name), args,
                   [f"argument {at}" for at, _ in enumerate(args, 1)], {"numba": numbas})


def _folder(checkout: Path) -> Path:
    return checkout / "numpy_benchmarks" / "benchmarks"
