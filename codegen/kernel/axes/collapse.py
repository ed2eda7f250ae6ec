"""As few axes as a kernel can have, before it is tiled for any target.

A lowered kernel has one par axis for each dim. Here axes of extent 1 go, those of a contraction's
sum become one, and so do adjacent axes that every access walks as one.

    par i0 in 64, i1 in 1024: y[i0,i1] = x[i0,i1]   ->   par i0 in 65536: y[i0] = x[i0]
"""

from __future__ import annotations

from ....ir.indices.affine import coefficient
from ....ir.indices.index import Dim, row_major, symbol
from ....ir.indices.walk import substitute
from ....ir.kernels.kernel import Axis, Index, Kernel, Load, Stmt, Store
from ....ir.record import replace
from .rewrite import with_joined_sums, without_unit_axes


def with_few_axes(kernel: Kernel) -> Kernel:
    """The kernel with no more axes than its accesses tell apart."""
    return _collapse(with_joined_sums(without_unit_axes(kernel)))


def does_nothing(kernel: Kernel) -> bool:
    """True if all that a kernel stores runs over an axis without elements: it has no tasks then,
    and indices into no elements mean nothing."""
    empty = {axis.name for axis in kernel.axes if axis.extent == 0}
    return bool(empty) and not any(empty.isdisjoint(axes) for at, axes in kernel.effect_axes.items()
                                   if isinstance(kernel.body[at], Store))


def offsets(kernel: Kernel) -> list[Dim]:
    """Linear offsets of all accesses, and all index values: what a change of axes must keep."""
    exprs: list[Dim] = []
    for stmt in kernel.body:
        if isinstance(stmt, (Load, Store)):
            exprs.append(row_major(stmt.indices, kernel.param(stmt.param).type.shape))
        else:
            exprs += stmt.exprs
    return exprs


def _collapse(kernel: Kernel) -> Kernel:
    """Make one axis of adjacent par axes wherever every access walks them as one."""
    axes = [axis for axis in kernel.axes if axis.kind == "par"]
    rest = [axis for axis in kernel.axes if axis.kind != "par"]
    exprs = offsets(kernel)
    at, changed = 0, False
    while at + 1 < len(axes):
        outer, inner = axes[at], axes[at + 1]
        joined = [_join(expr, outer, inner) for expr in exprs]
        if any(expr is None for expr in joined):
            at += 1
            continue
        exprs = [expr for expr in joined if expr is not None]
        axes[at:at + 2] = [replace(outer, extent=outer.extent * inner.extent)]
        changed = True
    if not changed:
        return kernel
    # Accesses become linear: the shape that gave them several indices is gone.
    moved = iter(exprs)
    sizes = {axis.name: symbol(axis.name, axis.extent) for axis in (*axes, *rest)}
    body: list[Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, (Load, Store)):
            stmt = replace(stmt, indices=(substitute(next(moved), sizes),))
        elif isinstance(stmt, Index):
            stmt = replace(stmt, expr=substitute(next(moved), sizes))
        body.append(stmt)
    params = tuple(replace(param, type=param.type.with_shape((param.type.size,)))
                   for param in kernel.params)
    return replace(kernel, axes=(*axes, *rest), params=params, body=tuple(body))


def _join(expr: Dim, outer: Axis, inner: Axis) -> Dim | None:
    """``expr`` with outer*extent + inner as the symbol ``outer``; None if it is not such a walk."""
    a, z = coefficient(expr, outer.name), coefficient(expr, inner.name)
    if a is None or z is None or a[0] != z[0] * inner.extent:
        return None
    both = coefficient(a[1], inner.name)
    if both is None:
        return None
    return symbol(outer.name) * z[0] + both[1]
