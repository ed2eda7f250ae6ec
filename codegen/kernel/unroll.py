"""A short axis written out: one statement for each of its elements, and its sums as expressions.

    %1 = x[i, c]                     %1 = x[i, 0]    %2 = x[i, 1]    %3 = x[i, 2]
    %2 = reduce max %1 over c   ->   %4 = max %1, %2
    y[i] = %2                        %5 = max %4, %3;   y[i] = %5

So a sum of coordinates inside a loop over particles needs no loop of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.indices.walk import substitute
from ...ir.kernels.combine import identity
from ...ir.kernels.kernel import (
    Apply,
    Carry,
    Const,
    Contract,
    Index,
    Kernel,
    Load,
    Reduce,
    Stmt,
    Store,
    rename_values,
    summed_axes,
)
from ...ir.record import replace

SHORT = 8  # elements


def with_short_axes_unrolled(kernel: Kernel) -> Kernel:
    """The kernel without the short axes that it loops over inside of another loop."""
    loops = [axis for axis in kernel.axes if axis.kind == "seq"]
    if any(isinstance(stmt, (Contract, Carry)) for stmt in kernel.body):
        return kernel
    for axis in sorted(loops, key=lambda axis: axis.extent if isinstance(axis.extent, int) else 0):
        if (len(loops) > 1 and isinstance(axis.extent, int) and 0 < axis.extent <= SHORT
                and _is_inner(kernel, axis.name)):
            kernel = _Unroll(kernel, axis.name, axis.extent).kernel()
            loops.remove(axis)
    return kernel


def _is_inner(kernel: Kernel, axis: str) -> bool:
    """True if nothing that is summed over an axis is itself a sum over another one; or if a sum
    over another axis is one for each index of this one, so that no order of loops would do."""
    sums: set[str] = set()  # values that sums over other axes are behind
    inner = True
    for stmt in kernel.body:
        behind = not sums.isdisjoint(stmt.operands)
        if isinstance(stmt, Reduce):
            if axis in kernel.value_axes[stmt.name]:
                return True
            if stmt.axis != axis:
                sums.add(stmt.name)
            elif behind:
                inner = False
        elif behind:
            sums.add(stmt.name)
    return inner


class _Unroll:
    def __init__(self, kernel: Kernel, axis: str, extent: int) -> None:
        self.source, self.axis, self.extent = kernel, axis, extent
        self.body: list[Stmt] = []
        self.names: list[dict[str, str]] = [{} for _ in range(extent)]  # of each element's values

    def kernel(self) -> Kernel:
        source = self.source
        for at, stmt in enumerate(source.body):
            if self.axis in summed_axes(stmt):
                assert isinstance(stmt, Reduce)
                total = self._combined(stmt)
                for names in self.names:
                    names[stmt.name] = total
            elif self.axis in (source.value_axes[stmt.name] if stmt.name
                               else source.effect_axes[at]):
                for element, names in enumerate(self.names):
                    self._copy(stmt, element, [names])
            else:
                self._copy(stmt, 0, self.names)
        return replace(source, body=tuple(self.body), axes=tuple(
            axis for axis in source.axes if axis.name != self.axis))

    def _define(self, stmt: Stmt) -> str:
        name = f"%{len(self.body)}"
        self.body.append(replace(stmt, name=name))
        return name

    def _copy(self, stmt: Stmt, element: int, into: Sequence[dict[str, str]]) -> None:
        place = {self.axis: element}
        if isinstance(stmt, (Load, Store)):
            stmt = replace(stmt, indices=tuple(substitute(d, place) for d in stmt.indices))
        elif isinstance(stmt, Index):
            expr = substitute(stmt.expr, place)
            stmt = (Const(stmt.name, stmt.dtype, expr) if isinstance(expr, int)
                    else replace(stmt, expr=expr))
        moved = rename_values(stmt, self.names[element])
        if not stmt.name:
            self.body.append(moved)
            return
        name = self._define(moved)
        for names in into:
            names[stmt.name] = name

    def _combined(self, stmt: Reduce) -> str:
        """The elements of a reduction combined in its order."""
        start = identity(stmt.combine, stmt.dtype)
        terms = [names[stmt.value] for names in self.names]
        if stmt.order is not None and stmt.combine == "add":  # accumulators start from 0.0
            zero = self._define(Const("", stmt.dtype, start))
            terms = [self._define(Apply("", stmt.dtype, "add", (zero, term))) for term in terms]
        while len(terms) > 1:
            half = 1 << (len(terms) - 1).bit_length() - 1
            pairs = list(zip(terms, terms[half:], strict=False))
            terms = [self._define(Apply("", stmt.dtype, stmt.combine, pair)) for pair in pairs] + (
                terms[len(pairs):half])
        return terms[0]
