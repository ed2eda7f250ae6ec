"""What is left to choose of a kernel for a GPU: the axes that Triton can have, and its programs."""

from __future__ import annotations

from math import prod

from ...ir.kernels.kernel import Contract, Kernel
from ...ir.kernels.schedule import Program
from ...ir.record import replace
from .layout import Layout, layout_of, with_atomics, with_units

PIPELINE = 3  # rounds of a loop under way: one computes, two load
UNROLLED = 8  # rounds of a loop that adds what it loads: each loads one number
ALONE = 32    # elements of a warp whose threads have one each


def schedule_programs(kernel: Kernel, chunks: int = 0) -> Kernel:
    """The kernel with the axes that Triton has, its warps, and the chunks of sums that a program
    takes side by side, where its loops take one number for each thread; raises ValueError for a
    schedule that Triton cannot have."""
    layout = layout_of(with_units(kernel))
    loops = any(axis.kind == "seq" for axis in layout.kernel.axes)
    program = Program(_warps(layout, ALONE), UNROLLED, chunks) if chunks else Program(
        _warps(layout), PIPELINE if loops else 1)
    return with_atomics(replace(layout.kernel, program=program))


def _warps(layout: Layout, each: int = 256) -> int:
    """Warps of 32 threads that give each thread eight elements of the largest tile, or so many for
    a warp; 16 for ``tl.dot``, which reads its operands once for all elements of a thread (32
    spill)."""
    kernel = layout.kernel
    dots = any(isinstance(stmt, Contract) and stmt.dot for stmt in kernel.body)
    largest = max((prod(layout.size(axis) for axis in layout.tile_axes(names))
                   for names in (*kernel.value_axes.values(), *kernel.effect_axes.values())),
                  default=1)
    return min(8, max(1, largest // (512 if dots else each)))
