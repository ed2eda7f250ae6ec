"""NPBench (https://github.com/spcl/npbench): 54 programs in NumPy, of many fields.

A program is a description (``bench_info/NAME.json``), a module that makes its arguments, and one
``..._numpy.py`` with its kernel; ``..._numba_n.py`` and ``..._jax.py`` are beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .program import Function, Program, module

SMALLEST = "S"


def names(checkout: Path) -> list[str]:
    """Of all programs."""
    return sorted(path.stem for path in (checkout / "bench_info").glob("*.json"))


def load(checkout: Path, name: str, size: str) -> Program:
    """One program, with the arguments of one of its sizes."""
    info = json.loads((checkout / "bench_info" / f"{name}.json").read_text())["benchmark"]
    folder = checkout / "npbench" / "benchmarks" / info["relative_path"]
    sys.path[:0] = [str(checkout), str(folder)]
    values: dict[str, Any] = dict(info["parameters"][size])
    if info.get("init"):
        init = getattr(module(folder / f"{info['module_name']}.py"), info["init"]["func_name"])
        found = init(*[values[each] for each in info["init"]["input_args"]])
        outputs = info["init"]["output_args"]
        values |= dict(zip(outputs, found if len(outputs) > 1 else [found], strict=True))

    def version(of: str) -> Function:
        path = folder / f"{info['module_name']}_{of}.py"
        made: Function = getattr(module(path), info["func_name"])
        return made

    given = info["input_args"]
    return Program(version("numpy"), [values[each] for each in given], given,
                   {"numba": lambda: version("numba_n"), "jax": lambda: version("jax")})
