"""Schedules of sorts for a CPU: the algorithm of a row, and the runs that threads sort of one."""

from __future__ import annotations

from ...ir.cost.limits import AWAKE
from ...ir.kernels.intrinsics import INTRINSICS
from ...ir.kernels.kernel import Kernel
from ...ir.kernels.rows import Algorithm, Ranked, Sort, columns_for, row_stmt
from ...ir.machine import Machine
from ...ir.plans.plan import tasks_of
from ...ir.record import replace

# Bytes of keys of a run: what it takes to wake a thread is saved several times.
RUN_BYTES = 8 * AWAKE // INTRINSICS["sort"].cost * 4


def schedule_rows(kernel: Kernel, target: Machine) -> Kernel:
    """The kernel with the algorithm of what it sorts."""
    stmt = row_stmt(kernel)
    if isinstance(stmt, Sort):
        by = _of_sort(kernel, stmt, target)
    elif isinstance(stmt, Ranked) and not stmt.whole:
        by = Algorithm("quick" if target.mask_registers else "radix")
    else:
        return kernel
    return replace(kernel, body=(*kernel.body[:-1], replace(stmt, algorithm=by)))


def _of_sort(kernel: Kernel, stmt: Sort, target: Machine) -> Algorithm:
    length, run = kernel.axis(stmt.axis).extent, RUN_BYTES // stmt.dtype.itemsize
    long = tasks_of(kernel) == 1 and (not isinstance(length, int) or length >= 2 * run)
    columns = columns_for(stmt.records, length) if target.mask_registers else 0
    if columns:
        return Algorithm("columns", columns)
    return Algorithm("quick" if target.mask_registers else "radix", runs=run if long else 0)
