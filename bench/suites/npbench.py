"""NPBench (https://github.com/spcl/npbench): 54 programs in NumPy, of many fields.

A program is a description (``bench_info/NAME.json``), a module that makes its arguments, and one
``..._numpy.py`` with its kernel.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import weft

_ROUNDS = 5


def names(checkout: Path) -> list[str]:
    """Of all programs."""
    return sorted(path.stem for path in (checkout / "bench_info").glob("*.json"))


def run(checkout: Path, name: str, size: str, timed: bool) -> dict[str, str]:
    """One program: what became of it, and a line about that."""
    info = json.loads((checkout / "bench_info" / f"{name}.json").read_text())["benchmark"]
    folder = checkout / "npbench" / "benchmarks" / info["relative_path"]
    sys.path[:0] = [str(checkout), str(folder)]
    values: dict[str, Any] = dict(info["parameters"][size])
    if info.get("init"):
        made = _module(folder / f"{info['module_name']}.py")
        init = getattr(made, info["init"]["func_name"])
        found = init(*[values[each] for each in info["init"]["input_args"]])
        outputs = info["init"]["output_args"]
        values |= dict(zip(outputs, found if len(outputs) > 1 else [found], strict=True))
    module = _module(folder / f"{info['module_name']}_numpy.py")
    function = getattr(module, info["func_name"])
    args = [values[each] for each in info["input_args"]]
    plain = copy.deepcopy(args)
    wanted = function(*plain)
    compiled = weft.compile(function, on_recompile="silent")
    try:
        start = time.perf_counter()
        ours = copy.deepcopy(args)
        result = compiled(*ours)
        first = time.perf_counter() - start
    except weft.Error as problem:
        return {"verdict": "refused", "what": f"{problem.code}: {problem.message}"}
    wrong = differing(("result", result, wanted), *(
        (each, one, other) for each, one, other in zip(
            info["input_args"], ours, plain, strict=True)))
    if wrong:
        return {"verdict": "wrong", "what": wrong}
    told = f"first call {first:.2f} s"
    if timed:
        numpys, wefts = in_turn(function, compiled, args)
        told += (f", NumPy {1e3 * numpys:.3g} ms, Weft {1e3 * wefts:.3g} ms: "
                 f"{numpys / wefts:.3g} times as fast")
    return {"verdict": "right", "what": told}


def in_turn(one: Callable[..., Any], other: Callable[..., Any], args: Any) -> tuple[float, float]:
    """Median seconds of calls of two functions, in turn, each on arguments of its own."""
    spent: tuple[list[float], list[float]] = [], []
    for _ in range(_ROUNDS):
        for function, times in zip((one, other), spent, strict=True):
            given = copy.deepcopy(args)
            start = time.perf_counter()
            function(*given)
            times.append(time.perf_counter() - start)
    return median(spent[0]), median(spent[1])


def differing(*pairs: tuple[str, Any, Any]) -> str:
    """Where results are not NumPy's, up to rounding; '' where all are."""
    for name, found, wanted in pairs:
        ours, theirs = (weft.tree.leaves(nest) for nest in (found, wanted))
        if len(ours) != len(theirs):
            return f"{name} has {len(ours)} parts, not {len(theirs)}"
        for one, other in zip(ours, theirs, strict=True):
            if isinstance(other, (np.ndarray, np.generic, int, float, complex)):
                a, b = np.asarray(one), np.asarray(other)
                scale = 1e-4 if a.dtype.itemsize <= 4 or b.dtype.name in (
                    "float32", "complex64") else 1e-8
                if a.shape != b.shape or a.dtype != b.dtype or not np.allclose(
                        a, b, rtol=scale, atol=scale * float(np.max(np.abs(b), initial=1.0)),
                        equal_nan=True):
                    return f"{name}: {a.dtype}{list(a.shape)} is not {b.dtype}{list(b.shape)}" if (
                        a.shape != b.shape or a.dtype != b.dtype) else f"{name} has other numbers"
    return ""


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
