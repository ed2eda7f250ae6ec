"""The runs of the accesses of a kernel, as vectors of its operands and results take them."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.indices.affine import coefficient
from ...ir.indices.runs import longest_run, walked
from ...ir.kernels.kernel import Kernel, Load, Stmt, Store
from ...ir.kernels.operands import offset_of
from ..kernel.axes.rewrite import rewrite_indices


def in_runs(kernel: Kernel, axis: str, run: int) -> Kernel:
    """The kernel with the index of an axis as its run and its place in the run; the header has
    the axis still."""
    return rewrite_indices(kernel, {axis: walked(axis, run)}, kernel.axes)


def stored_run(kernel: Kernel, axis: str) -> int:
    """Elements that lie side by side along an axis in the stores of a kernel."""
    return min((longest_run(offset_of(kernel, stmt), axis) for stmt in kernel.body
                if isinstance(stmt, Store)), default=0)


def common_run(kernel: Kernel, stmts: Sequence[Stmt], axis: str) -> int:
    """The runs along an axis in which every access walks contiguous memory or stays where it is;
    0 if there are none, or if the whole axis is one."""
    offsets = (offset_of(kernel, stmt) for stmt in stmts if isinstance(stmt, (Load, Store)))
    return min((longest_run(offset, axis) for offset in offsets
                if coefficient(offset, axis) is None), default=0)
