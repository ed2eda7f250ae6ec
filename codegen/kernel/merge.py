"""Kernels of single values that are run in turn, as one kernel.

    launch @cell(%x, %h)            y0[] = %3           a1[] = %3
    launch @kept(%h, %all)     and  %0 = x0[]     ->    a2[t0] = %3
                                    y0[t0] = %0
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...ir.indices.index import Dim, symbols_of
from ...ir.indices.walk import substitute
from ...ir.kernels.kernel import (
    Apply,
    Check,
    Const,
    Index,
    Kernel,
    Load,
    Param,
    Stmt,
    Store,
    rename_values,
)
from ...ir.plans.plan import Window
from ...ir.record import replace

_SIMPLE = (Const, Index, Load, Apply, Store, Check)


def merge(
    launches: Sequence[tuple[Kernel, Sequence[Window]]]
) -> tuple[Kernel, dict[str, Window]] | None:
    """One kernel that does what these do in turn, and what its parameters are; None where they are
    more than single values, or see a buffer in several ways. What one leaves for the next goes
    there without memory; checks are those of its body, whatever their numbers."""
    windows = dict.fromkeys(arg for _, args in launches for arg in args)
    if len({arg.buffer for arg in windows}) < len(windows) or not all(
            kernel.is_single and not kernel.locals and all(
                isinstance(stmt, _SIMPLE) for stmt in kernel.body) for kernel, _ in launches):
        return None
    names = {arg: f"a{at}" for at, arg in enumerate(windows)}
    params, body = dict[str, Param](), list[Stmt]()
    found = dict[Hashable, str]()  # what has been computed
    left = dict[str, str]()  # what was stored last to a parameter that is one element
    for kernel, args in launches:
        own = {param.name: names[arg] for param, arg in zip(kernel.params, args, strict=True)}
        for param in kernel.params:
            name = own[param.name]
            before = params.get(name)
            if before is not None and before.type != param.type:
                return None
            params[name] = Param(name, param.type, param.mutable or (
                before is not None and before.mutable))
        values = dict[str, str]()
        for stmt in kernel.body:
            now = _placed(rename_values(stmt, values), kernel)
            if isinstance(now, (Load, Store)):
                now = replace(now, param=own[now.param])
            if isinstance(now, Load) and not now.indices and not now.guard and now.param in left:
                values[stmt.name] = left[now.param]
                continue
            if isinstance(now, Store):
                left.pop(now.param, None)
                if not now.indices and not now.guard and not now.accumulate:
                    left[now.param] = now.value
            known = _key(now)
            if known is not None and known in found:
                values[stmt.name] = found[known]
                continue
            if stmt.name:
                values[stmt.name] = f"%{len(body)}"
                now = replace(now, name=values[stmt.name])
            if known is not None:
                found[known] = now.name
            body.append(now)
    return Kernel("merged", tuple(params.values()), (), tuple(body)), {
        name: arg for arg, name in names.items()}


def _key(stmt: Stmt) -> Hashable:
    """What statements have in common that compute the same, or ask; None for other effects."""
    match stmt:
        case Const():
            return Const, stmt.dtype, repr(stmt.value)
        case Index():
            return Index, stmt.expr
        case Apply():
            return Apply, stmt.dtype, stmt.prim, stmt.args
        case Check():
            return Check, stmt.value
    return None


def _placed(stmt: Stmt, kernel: Kernel) -> Stmt:
    """A statement at the one index that each axis has."""
    axes: dict[str, Dim] = {axis.name: 0 for axis in kernel.axes}

    def placed(expr: Dim) -> Dim:
        found = symbols_of(expr) & axes.keys()
        return substitute(expr, {name: axes[name] for name in found}) if found else expr

    if isinstance(stmt, Index):
        return replace(stmt, expr=placed(stmt.expr))
    if isinstance(stmt, (Load, Store)):
        return replace(stmt, indices=tuple(map(placed, stmt.indices)))
    return stmt
