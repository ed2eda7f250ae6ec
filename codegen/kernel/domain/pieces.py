"""A map cut where its conditions on indices turn: each piece knows what holds in it.

What is joined, padded or shifted asks at each element which of its parts it comes from:

    par j in 518                          split j at 3, 515
      %1 = lt j, 3                        j < 3:           y[j] = x[3 - j]
      %2 = x[3 - j] if %1                 3 <= j < 515:    y[j] = x[j - 3]
      ...                                 515 <= j:        y[j] = x[1027 - j]
      y[j] = select %1, %2, select ...

In a piece a condition that always holds there is gone, with what is read where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

from ....ir.cost.statements import is_composite
from ....ir.indices.affine import coefficient
from ....ir.indices.index import Dim, bounds, symbol, symbols_of
from ....ir.indices.walk import substitute
from ....ir.kernels.kernel import (
    Apply,
    Axis,
    Check,
    Const,
    Index,
    Kernel,
    Load,
    Stmt,
    Store,
    rename_values,
)
from ....ir.kernels.schedule import Split
from ....ir.record import replace
from ....ir.types import BOOL
from ..live import live

Ranges = Mapping[str, tuple[Dim, Dim]]  # from and to of axes

SMALL_MAP = 1024  # elements for which a cut is not worth its code
MOST_PIECES = 64
MOST_STMTS = 256  # of all pieces together
GROWTH = 3        # times what the kernel has
COMPOSITE = 16    # statements that a composite one counts as
# Comparisons as ``difference + shift < 0``, turned round where the flag says so.
_ORDERS: Mapping[str, tuple[int, bool]] = {
    "lt": (0, False), "ge": (0, True), "le": (-1, False), "gt": (-1, True)}


def ranges_of(axis: Axis, split: Split) -> list[tuple[Dim, Dim]]:
    """The pieces of an axis, in order."""
    return list(pairwise((0, *split.points, axis.extent)))


def piece(kernel: Kernel, ranges: Ranges) -> Kernel:
    """What a map without loops computes where axes are within ``ranges``."""
    places: dict[str, Dim] = {
        axis: first + symbol(axis, last - first) for axis, (first, last) in ranges.items()}
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    known: dict[str, bool] = {}
    names: dict[str, str] = {}
    body: list[Stmt] = []
    asked = _asked(kernel)
    for old in kernel.body:
        stmt = rename_values(old, names) if not names.keys().isdisjoint(old.operands) else old
        if isinstance(stmt, Const) and stmt.dtype == BOOL:
            known[stmt.name] = bool(stmt.value)
        guard = stmt.guard if isinstance(stmt, (Load, Store)) else ""
        if guard in known:
            if not known[guard] and isinstance(stmt, Store):
                continue
            stmt = (replace(stmt, guard="") if known[guard] else
                    Const(stmt.name, stmt.dtype, _zero(stmt)))
        elif isinstance(stmt, Check) and known.get(stmt.value):
            continue
        elif isinstance(stmt, Apply) and stmt.name not in asked:
            found = _decided(stmt, by_name, places) if stmt.prim in _ORDERS else (
                _simplified(stmt, known))
            if isinstance(found, bool):
                known[stmt.name] = found
                stmt = Const(stmt.name, BOOL, found)
            elif found is not None:
                names[stmt.name] = found
                continue
        body.append(stmt)
    return replace(kernel, body=live(body))


def _asked(kernel: Kernel) -> set[str]:
    """What checks ask for, and the truth values it is made of: where a piece has no element, none
    of it fails, so it stays with the elements."""
    found: set[str] = set()
    for stmt in reversed(kernel.body):
        if isinstance(stmt, Check):
            found.add(stmt.value)
        elif stmt.name in found and isinstance(stmt, Apply):
            found.update(stmt.operands)
    return found


def _zero(stmt: Stmt) -> bool | int | float:
    return {"b": False, "f": 0.0}.get(stmt.dtype.kind, 0)


def _decided(
    stmt: Apply, by_name: Mapping[str, Stmt], places: Mapping[str, Dim]
) -> bool | None:
    """The value of a comparison of indices that is the same at all places."""
    difference = _difference(stmt, by_name)
    if difference is None:
        return None
    shift, turned = _ORDERS[stmt.prim]
    low, high = bounds(substitute(difference, places) + shift)
    if high is not None and high < 0:
        return not turned
    return turned if low is not None and low >= 0 else None


def _difference(stmt: Apply, by_name: Mapping[str, Stmt]) -> Dim | None:
    """What the first operand of a comparison is more than the second, if both are indices."""
    sides: list[Dim] = []
    for name in stmt.args:
        operand = by_name[name]
        if isinstance(operand, Index):
            sides.append(operand.expr)
        elif isinstance(operand, Const) and operand.dtype.is_int:
            sides.append(int(operand.value))
        else:
            return None
    if any(name.startswith("%") for side in sides for name in symbols_of(side)):
        return None
    return sides[0] - sides[1]


def _simplified(stmt: Apply, known: Mapping[str, bool]) -> bool | str | None:
    """The value of what is made of known conditions, or the operand that it is."""
    if stmt.prim == "select" and stmt.args[0] in known:
        return stmt.args[1 if known[stmt.args[0]] else 2]
    if stmt.dtype != BOOL:
        return None
    if stmt.prim == "not_" and stmt.args[0] in known:
        return not known[stmt.args[0]]
    if stmt.prim in ("and_", "or_"):
        strong = stmt.prim == "or_"  # the value that decides alone
        if any(known.get(name) is strong for name in stmt.args):
            return strong
        rest = [name for name in stmt.args if name not in known]
        return (not strong) if not rest else rest[0] if len(rest) == 1 else None
    return None


def turning_points(kernel: Kernel) -> dict[str, list[Dim]]:
    """For each par axis the indices, in order, at which a condition on it alone turns."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    axes = {axis.name: axis for axis in kernel.axes if axis.kind == "par"}
    found: dict[str, list[Dim]] = {}
    asked = _asked(kernel)
    for stmt in kernel.body:
        if not isinstance(stmt, Apply) or stmt.prim not in _ORDERS or stmt.name in asked:
            continue
        difference = _difference(stmt, by_name)
        moving = [] if difference is None else [
            axis for name, axis in axes.items() if name in symbols_of(difference)]
        if difference is not None and len(moving) == 1:
            point = _turns(difference + _ORDERS[stmt.prim][0], moving[0].name)
            if point is not None:
                _insert(found.setdefault(moving[0].name, []), point, moving[0].extent)
    return {name: points for name, points in found.items() if points}


def _turns(difference: Dim, axis: str) -> Dim | None:
    """The index of an axis from which on ``difference < 0`` is another truth than before."""
    slope, rest = coefficient(difference, axis) or (0, 0)
    if not isinstance(slope, int) or slope == 0:
        return None
    if not isinstance(rest, int) and abs(slope) != 1:
        return None
    return -(rest // slope) if slope > 0 else rest // -slope + 1


def _insert(points: list[Dim], point: Dim, extent: Dim) -> None:
    """Add a point inside of the axis in its order, if that is known."""
    (least, most), left = bounds(point), bounds(extent - point)[1]
    if point in points or least is None or least < 0 or most == 0 or (
            left is not None and left <= 0):
        return
    place = 0
    for at, other in enumerate(points):
        low, high = bounds(point - other)
        if low is not None and low >= 0:
            place = at + 1
        elif high is None or high > 0:
            return
    points.insert(place, point)


def splits_of(kernel: Kernel, vector: str | None, lanes: int) -> tuple[Split, ...]:
    """Where to cut a map: at all of its turning points, as long as the pieces are worth it."""
    total: Dim = 1
    for axis in kernel.axes:
        total = total * axis.extent
    if kernel.loop_axes or kernel.locals or (isinstance(total, int) and total < SMALL_MAP) or any(
            isinstance(stmt, Store) and stmt.meets for stmt in kernel.body):
        return ()
    points = turning_points(kernel)
    if vector in points:
        extent = kernel.axis(vector).extent
        if isinstance(extent, int) and extent < lanes * (len(points[vector]) + 1):
            del points[vector]  # its pieces would not fill the vectors
    splits = [Split(name, tuple(points[name])) for name in (axis.name for axis in kernel.axes)
              if name in points]
    most = min(MOST_STMTS, GROWTH * _size(kernel))
    while splits and not _is_worth(kernel, splits, most):
        splits.pop(0)
    return tuple(splits)


def _is_worth(kernel: Kernel, splits: Sequence[Split], most: int) -> bool:
    count = 1
    for split in splits:
        count *= len(split.points) + 1
    if count > MOST_PIECES:
        return False
    size = 0
    for ranges in all_ranges(kernel, splits):
        size += _size(piece(kernel, ranges))
        if size > most:
            return False
    return True


def all_ranges(kernel: Kernel, splits: Sequence[Split]) -> Iterator[Ranges]:
    """The ranges of each piece."""
    names = [split.axis for split in splits]
    for ranges in product(*(ranges_of(kernel.axis(split.axis), split) for split in splits)):
        yield dict(zip(names, ranges, strict=True))


def _size(kernel: Kernel) -> int:
    return sum(COMPOSITE if is_composite(stmt) else 1 for stmt in kernel.body)
