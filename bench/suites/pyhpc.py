"""pyhpc-benchmarks (https://github.com/dionhaefner/pyhpc-benchmarks): kernels of an ocean model.

A program is a package with ``generate_inputs(size)`` and one module for each library, such as
``..._numpy.py``, of which ``run`` is called. A size is a number of elements.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from .program import Function, Program

SMALLEST = "4096"


def names(checkout: Path) -> list[str]:
    """Of all programs."""
    return sorted(path.parent.name for path in (checkout / "benchmarks").glob("*/__init__.py"))


def load(checkout: Path, name: str, size: str) -> Program:
    """One program, with arguments of about ``size`` elements."""
    sys.path.insert(0, str(checkout))
    package = importlib.import_module(f"benchmarks.{name}")
    args = package.generate_inputs(int(size))

    def version(of: str) -> Function:
        path, = (checkout / "benchmarks" / name).glob(f"*_{of}.py")
        made: Function = importlib.import_module(f"benchmarks.{name}.{path.stem}").run
        return made

    return Program(version("numpy"), args, [f"argument {at}" for at, _ in enumerate(args, 1)],
                   {"numba": lambda: version("numba"), "jax": lambda: version("jax")})
