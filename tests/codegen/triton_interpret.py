"""Runs every case of ``triton_kernels`` in Triton's interpreter and prints what differs, as JSON.

A script of its own: TRITON_INTERPRET=1 must be set before triton is imported.
"""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
from typing import Any

import numpy as np
from numpy.typing import NDArray
from triton_kernels import CASES, Case

from weft.codegen.gpu.build import run_kernel_triton
from weft.ir.interp.kernel import ChecksFailedError, run_kernel


def difference(case: Case) -> str:
    """The first disagreement with the NumPy interpreter or the expected results; "" if none."""
    wanted = {name: buffer.copy() for name, buffer in case.buffers.items()}
    with contextlib.suppress(ChecksFailedError):  # a Triton kernel goes on with zeros instead
        run_kernel(case.kernel, wanted, case.dims)
    given = {name: buffer.copy() for name, buffer in case.buffers.items()}
    run_kernel_triton(case.kernel, given, case.dims)
    for name, want in (*wanted.items(), *case.expected.items()):
        wrong = ~equal(given[name], want, case)
        if wrong.any():
            at = tuple(int(place[0]) for place in np.nonzero(np.atleast_1d(wrong)))
            return (f"{name}{list(at)} is {given[name][at]!r}, should be {want[at]!r} "
                    f"({wrong.sum()} of {wrong.size} differ)")
    return ""


def equal(given: NDArray[Any], want: NDArray[Any], case: Case) -> NDArray[np.bool_]:
    """Where elements agree: bit for bit but for NaN, or within the tolerance of the case."""
    if given.dtype.kind != "f":
        return np.asarray(given == want)
    with np.errstate(all="ignore"):
        same = (given == want) & (np.signbit(given) == np.signbit(want))
        finite = np.where(np.isfinite(want), np.abs(want), 0)
        near = np.abs(given - want) <= np.maximum(
            case.ulp * np.spacing(finite), case.error * finite.max(initial=0))
        tolerant = near & ((case.ulp > 0) | (case.error > 0))
    return np.asarray(same | tolerant | (np.isnan(given) & np.isnan(want)))


def main() -> None:
    report = {}
    for name, make in CASES.items():
        try:
            report[name] = difference(make())
        except Exception:
            report[name] = traceback.format_exc(limit=-3)
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
