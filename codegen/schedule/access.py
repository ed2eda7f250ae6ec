"""Along which axis an operand of a contraction is read in vectors."""

from __future__ import annotations

from typing import Literal

from ...ir.indices.index import symbols_of
from ...ir.indices.runs import WHOLE
from ...ir.kernels.kernel import Kernel
from ...ir.kernels.operands import lanes_along, loads_behind, offset_of, run_along, stride_across
from .gemm_plan import Access


def operand_access(kernel: Kernel, name: str, free: str, k: str) -> Access:
    """How an operand is best read along its free axis and k: along the axis on which most of its
    loads are contiguous, or longest."""
    score, runs = {"free": 0, "k": 0}, {"free": WHOLE, "k": WHOLE}
    for load in loads_behind(kernel, name):
        offset = offset_of(kernel, load)
        weight = 2 if {free, k} <= symbols_of(offset) else 1  # one number for a row is little
        for side, axis in (("free", free), ("k", k)):
            run = lanes_along(offset, axis)
            if run:
                score[side] += weight
                runs[side] = min(runs[side], run)
    if (score["k"], runs["k"]) > (score["free"], runs["free"]):
        return access_along(kernel, name, free, k, "k")
    return access_along(kernel, name, free, k, "free" if score["free"] else None)


def access_along(
    kernel: Kernel, name: str, free: str, k: str, lanes: Literal["free", "k"] | None
) -> Access:
    """How an operand lies in memory where it is read along one of its axes."""
    if lanes is None:
        return Access()
    along, across = (free, k) if lanes == "free" else (k, free)
    return Access(lanes, stride_across(kernel, name, along, across),
                  run_along(kernel, name, along))
