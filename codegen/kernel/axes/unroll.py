"""A short axis written out: one statement for each of its elements, and its sums as expressions.

    %1 = x[i, c]                     %1 = x[i, 0]    %2 = x[i, 1]    %3 = x[i, 2]
    %2 = reduce max %1 over c   ->   %4 = max %1, %2
    y[i] = %2                        %5 = max %4, %3;   y[i] = %5

So a sum of coordinates inside a loop over particles needs no loop of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ....ir.indices.affine import coefficient
from ....ir.indices.index import symbols_of
from ....ir.indices.walk import substitute
from ....ir.kernels.combine import identity
from ....ir.kernels.kernel import (
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
)
from ....ir.kernels.operands import offset_of
from ....ir.record import replace
from ..live import live

SHORT = 8  # elements
STACKED = 4  # arrays along a last axis
_KNOWN: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType({
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "and_": operator.and_, "or_": operator.or_})


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


def with_stacks_unrolled(kernel: Kernel) -> Kernel:
    """The kernel of a map without an axis of a few elements that lie side by side where they are
    stored, and are computed in other ways: what is stacked along a last axis. All are stored at
    once then.

        par i in n, par k in 2: y[i, k] = k < 1 ? a[i] : b[i]   ->   y[i, 0] = a[i];  y[i, 1] = b[i]
    """
    if not all(isinstance(stmt, (Const, Index, Load, Apply, Store)) for stmt in kernel.body):
        return kernel
    stores = [stmt for stmt in kernel.body if isinstance(stmt, Store)]
    for axis in kernel.axes:
        if axis.kind == "par" and axis.extent in range(2, STACKED + 1) and not any(
                stmt.guard or stmt.meets for stmt in stores):
            assert isinstance(axis.extent, int)
            slopes = [coefficient(offset_of(kernel, stmt), axis.name) for stmt in stores]
            chosen = any(isinstance(stmt, Index) and symbols_of(stmt.expr) == {axis.name}
                         for stmt in kernel.body)
            if chosen and all(slope is not None and slope[0] == 1 for slope in slopes):
                return _Unroll(kernel, axis.name, axis.extent).kernel()
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
        self.known: dict[str, Any] = {}  # numbers, by the new names of what they are

    def kernel(self) -> Kernel:
        source = self.source
        for at, stmt in enumerate(source.body):
            if self.axis in stmt.summed:
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
        return replace(source, body=live(self.body), axes=tuple(
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
        moved = self._folded(rename_values(stmt, self.names[element]))
        if isinstance(moved, str):
            for names in into:
                names[stmt.name] = moved
            return
        if not stmt.name:
            self.body.append(moved)
            return
        name = self._define(moved)
        if isinstance(moved, Const):
            self.known[name] = moved.value
        for names in into:
            names[stmt.name] = name

    def _folded(self, stmt: Stmt) -> Stmt | str:
        """A statement without what the element decides: a condition that is known, and what is
        chosen by one, which may be the name of a value."""
        known = self.known
        if isinstance(stmt, Apply) and stmt.prim == "select" and stmt.args[0] in known:
            return stmt.args[1] if known[stmt.args[0]] else stmt.args[2]
        if isinstance(stmt, Apply) and stmt.prim in _KNOWN and known.keys() >= set(stmt.args):
            value = _KNOWN[stmt.prim](*(known[arg] for arg in stmt.args))
            return Const(stmt.name, stmt.dtype, value)
        if isinstance(stmt, Load) and stmt.guard in known:
            return replace(stmt, guard=None) if known[stmt.guard] else Const(
                stmt.name, stmt.dtype, identity("add", stmt.dtype))
        return stmt

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
