"""What becomes of a program: it is right, wrong, refused, or cannot be run by NumPy either."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import numpy as np

import weft

from .program import Program
from .timing import in_turn


def judge(program: Program, timed: bool) -> dict[str, str]:
    """The verdict, and a line about it."""
    plain = copy.deepcopy(program.args)
    start = time.perf_counter()
    try:
        wanted = program.function(*plain)
    except Exception as problem:
        return {"verdict": "cannot", "what": f"NumPy: {type(problem).__name__}: {problem}"}
    # For who has stopped waiting: Weft's turn has begun.
    print(json.dumps({"numpy": time.perf_counter() - start}), flush=True)
    compiled = weft.compile(on_recompile="silent")(program.function)
    ours = copy.deepcopy(program.args)
    start = time.perf_counter()
    try:
        result = compiled(*ours)
    except weft.Error as problem:
        return {"verdict": "refused", "what": _refusal(problem)}
    told = f"first call {time.perf_counter() - start:.2f} s"
    wrong = differing(("result", result, wanted), *zip(program.names, ours, plain, strict=True))
    if wrong:
        return {"verdict": "wrong", "what": wrong}
    if timed:
        told += f"; {in_turn(program, compiled)}"
    return {"verdict": "right", "what": told}


def _refusal(problem: weft.Error) -> str:
    places = [f" (line {loc.line}: {loc.source.strip()})" for loc in problem.locs[:1]]
    return f"{problem.code}: {problem.message}{''.join(places)}"


def differing(*pairs: tuple[str, Any, Any]) -> str:
    """Where results are not NumPy's, up to rounding; '' where all are."""
    for name, found, wanted in pairs:
        ours, theirs = (weft.tree.leaves(nest) for nest in (found, wanted))
        if len(ours) != len(theirs):
            return f"{name} has {len(ours)} parts, not {len(theirs)}"
        for one, other in zip(ours, theirs, strict=True):
            if isinstance(other, (np.ndarray, np.generic, int, float, complex)):
                a, b = np.asarray(one), np.asarray(other)
                if a.shape != b.shape or a.dtype != b.dtype:
                    return f"{name}: {a.dtype}{list(a.shape)} is not {b.dtype}{list(b.shape)}"
                if not _close(a, b):
                    return f"{name} has other numbers"
    return ""


def _close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    scale = 1e-4 if a.dtype.name in ("float16", "float32", "complex64") else 1e-8
    largest = float(np.max(np.abs(b), initial=1.0, where=np.isfinite(b)))
    return np.allclose(a, b, rtol=scale, atol=scale * largest, equal_nan=True)
