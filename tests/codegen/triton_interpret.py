"""Runs cases of ``triton_kernels`` and ``triton_checks``, by their names, in Triton's interpreter
and prints what differs, as JSON.

A script of its own: TRITON_INTERPRET=1 must be set before triton is imported.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import on_gpu
from triton_checks import CASES, FAILING, FINE
from triton_kernels import Case

import weft
from weft.ir.diagnose import Error
from weft.ir.interp.graph import run_plan
from weft.ir.interp.kernel import ChecksFailedError, run_kernel
from weft.ir.machine import GPU
from weft.ir.types import number_kind


def difference(case: Case) -> str:
    """The first disagreement with the NumPy interpreter or the expected results; "" if none."""
    wanted = {name: buffer.copy() for name, buffer in case.buffers.items()}
    given = {name: buffer.copy() for name, buffer in case.buffers.items()}
    failed, sites = (failures(run, case, buffers)
                     for run, buffers in ((run_kernel, wanted), (on_gpu.run_kernel, given)))
    if failed != set(case.sites) or not sites <= failed or bool(sites) != bool(failed):
        return f"checks {set(sites)} failed, for NumPy {set(failed)}, should be {case.sites}"
    rooms = {name for stmt in case.kernel.body for name in stmt.stores[1:]}  # left as they are
    for name, want in (*wanted.items(), *case.expected.items()):
        if name in rooms:
            continue
        wrong = ~equal(given[name], want, case)
        if wrong.any():
            at = tuple(int(place[0]) for place in np.nonzero(np.atleast_1d(wrong)))
            return (f"{name}{list(at)} is {given[name][at]!r}, should be {want[at]!r} "
                    f"({wrong.sum()} of {wrong.size} differ)")
    return ""


def failures(
    run: Callable[..., None], case: Case, buffers: dict[str, NDArray[Any]]
) -> frozenset[int]:
    """The checks that are said to have failed; the kernel has run to its end in any case."""
    try:
        run(case.kernel, buffers, case.dims)
    except ChecksFailedError as problem:
        return problem.sites
    return frozenset()


def message(name: str) -> str:
    """The error of a program that fails, as both ways to run its kernels give it."""
    function, arguments, _ = FAILING[name]
    plan = weft.compile(function).lower(*arguments).stages.plan_for(GPU)
    texts = []
    for runner in (run_kernel, on_gpu.run_kernel):
        try:
            run_plan(plan, list(map(np.asarray, arguments)), kernel_runner=runner)
        except Error as problem:
            texts.append(str(problem))
    return texts[0] if len(texts) == 2 and texts[0] == texts[1] else f"they differ: {texts}"


def wrong_result(name: str) -> str:
    """The results of a program whose checks hold, if they are not those of the CPU; else ""."""
    function, arguments = FINE[name]
    plan = weft.compile(function).lower(*arguments).stages.plan_for(GPU)
    (given,) = run_plan(plan, list(map(np.asarray, arguments)), kernel_runner=on_gpu.run_kernel)
    want = np.asarray(weft.compile(function)(*arguments))
    return "" if np.array_equal(given, want) else f"{given}, should be {want}"


def equal(given: NDArray[Any], want: NDArray[Any], case: Case) -> NDArray[np.bool_]:
    """Where elements agree: bit for bit but for NaN, or within the tolerance of the case."""
    if number_kind(given.dtype) != "f":
        return np.asarray(given == want)
    with np.errstate(all="ignore"):
        same = (given == want) & (np.signbit(given) == np.signbit(want))
        finite = np.where(np.isfinite(want), np.abs(want), 0)
        near = np.abs(given - want) <= np.maximum(
            case.ulp * np.spacing(finite), case.error * finite.max(initial=0))
        tolerant = near & ((case.ulp > 0) | (case.error > 0))
    return np.asarray(same | tolerant | (np.isnan(given) & np.isnan(want)))


def main(names: list[str]) -> None:
    report = {}
    for prefix, known, tell in (("", CASES, lambda name: difference(CASES[name]())),
                                ("error of ", FAILING, message),
                                ("result of ", FINE, wrong_result)):
        for name in sorted(known.keys() & set(names)):
            try:
                report[prefix + name] = tell(name)
            except Exception:
                report[prefix + name] = traceback.format_exc(limit=-3)
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
