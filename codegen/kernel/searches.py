"""The index of an extreme in one pass: what is asked for twice along an axis is searched for once.

    %1 = reduce max %0 over j
    %4 = eq %0, %1                        ->   %11 = search max %0 over j
    %10 = select %4, j, 2147483647
    %11 = reduce min %10 over j
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.indices.index import plain_symbol
from ...ir.kernels.combine import identity
from ...ir.kernels.kernel import Apply, Const, Index, Kernel, Reduce, Search, Stmt
from ...ir.record import replace
from ...ir.types import I32, I64
from .live import live

BITS = (32, 64)  # of values whose pairs fill vectors as their indices do


def with_searches(kernel: Kernel) -> Kernel:
    """The kernel with a search for each first index of an extreme that it looks for."""
    if not any(isinstance(stmt, Reduce) and stmt.combine == "min" for stmt in kernel.body):
        return kernel
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    body = [_search(by_name, stmt) or stmt for stmt in kernel.body]
    found = any(isinstance(stmt, Search) for stmt in body)
    return replace(kernel, body=live(body)) if found else kernel


def _search(by_name: Mapping[str, Stmt], stmt: Stmt) -> Search | None:
    if not isinstance(stmt, Reduce) or stmt.combine != "min" or stmt.dtype not in (I32, I64):
        return None
    chosen = by_name[stmt.value]
    if not isinstance(chosen, Apply) or chosen.prim != "select":
        return None
    hit, place, beyond = (by_name[name] for name in chosen.args)
    if isinstance(place, Apply) and place.prim == "cast":
        place = by_name[place.args[0]]
    if not isinstance(place, Index) or plain_symbol(place.expr) != stmt.axis or not (
            isinstance(beyond, Const) and beyond.value == identity("min", stmt.dtype)):
        return None
    extreme = _extreme(by_name, hit, stmt.axis)
    if extreme is None or by_name[extreme.value].dtype.bits not in BITS:
        return None
    return Search(stmt.name, stmt.dtype, extreme.combine, extreme.value, stmt.axis)


def _extreme(by_name: Mapping[str, Stmt], hit: Stmt, axis: str) -> Reduce | None:
    """The extreme along an axis that a value is compared with, of floats also with being NaN."""
    parts = [hit]
    if isinstance(hit, Apply) and hit.prim == "or_":
        parts = [by_name[name] for name in hit.args]
    if not isinstance(parts[0], Apply) or parts[0].prim != "eq":
        return None
    value, best = parts[0].args
    extreme = by_name[best]
    if isinstance(extreme, Apply) and extreme.prim == "add":  # zero, for the sign of zeros
        extreme = by_name[extreme.args[1]]
    if not isinstance(extreme, Reduce) or extreme.combine not in ("max", "min") or (
            extreme.axis != axis or extreme.value != value):
        return None
    nan = parts[1] if len(parts) > 1 else None
    asks = isinstance(nan, Apply) and nan.prim == "ne" and nan.args == (value, value)
    return extreme if asks == by_name[value].dtype.is_float else None
