"""The sides of products: the axes that their tiles have rows and columns of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ....ir.kernels.kernel import Axis, Carry, Contract, Kernel, Reduce
from ....ir.record import record, replace
from .rewrite import joined

UNKNOWN = 1 << 20  # stands in for an extent that is known at run time only


def sides_of(
    kernel: Kernel, stmt: Contract, rows: str = "", among: frozenset[str] | None = None
) -> tuple[str, str] | None:
    """The axes of a product's rows and columns, the largest of each side (of those ``among`` some
    axes, if there are any) or ``rows``; None where an operand is the same for all rows or columns,
    or something is carried past the product: that is a loop."""
    if any(isinstance(other, Carry) for other in kernel.body):
        return None
    left, right = (kernel.value_axes[name] - {stmt.axis} for name in (stmt.lhs, stmt.rhs))
    m, n = (rows if rows in side else largest(kernel, (side & (among or side)) or side)
            for side in (left - right, right - left))
    either = kernel.value_axes[stmt.lhs] | kernel.value_axes[stmt.rhs]
    return (m, n) if m is not None and n is not None and stmt.axis in either else None


@record(frozen=True)
class Grouping:
    """A kernel some of whose axes are one, and those that are the sides of its product."""

    kernel: Kernel
    sides: tuple[str, str]


def groupings(kernel: Kernel) -> Iterator[Grouping]:
    """The kernel as it is, whose sides are the largest axes of each, and with the last axes of a
    side as one: the pixels of an image, of all images of a batch. What stands for the inner ones
    divides by their extents, so these are known."""
    stmt = next(stmt for stmt in kernel.body if isinstance(stmt, Contract))
    sides = sides_of(kernel, stmt)
    assert sides is not None
    left, right = (kernel.value_axes[name] - {stmt.axis} for name in (stmt.lhs, stmt.rhs))
    axes = [tuple(axis for axis in kernel.axes if axis.name in side and axis.kind == "par")
            for side in (left - right, right - left)]
    for groups in itertools.product(*map(_last_axes, axes)):
        grouped, names = kernel, list(sides)
        for at, group in enumerate(groups):
            if group:
                grouped, names[at] = joined(grouped, group)
        yield Grouping(grouped, (names[0], names[1]))


def _last_axes(axes: tuple[Axis, ...]) -> Iterator[tuple[str, ...]]:
    """No axes, the last two, three and so on."""
    yield ()
    for count in range(2, len(axes) + 1):
        if not isinstance(axes[1 - count].extent, int):
            return
        yield tuple(axis.name for axis in axes[-count:])


def largest(kernel: Kernel, names: frozenset[str]) -> str | None:
    """The axis of a side that is tiled; the others are walked one index at a time."""
    sized = [(extent_of(kernel, axis.name), at, axis.name)
             for at, axis in enumerate(kernel.axes) if axis.name in names]
    return max(sized)[2] if sized else None


def extent_of(kernel: Kernel, name: str) -> int:
    """The extent of an axis for what is to be estimated."""
    extent = kernel.axis(name).extent
    return extent if isinstance(extent, int) else UNKNOWN


def with_whole_rows(kernel: Kernel) -> tuple[Kernel, str, frozenset[str]]:
    """The kernel whose tasks do all that happens to their rows, the axis of these rows, and those
    of columns that may be separate tasks too, as nothing runs along them."""
    products = [stmt for stmt in kernel.body if isinstance(stmt, Contract)]
    # What has an axis only after the sums would let each of its tasks compute them all again.
    par = frozenset(axis.name for axis in kernel.axes if axis.kind == "par").intersection(
        *(kernel.value_axes[stmt.name] for stmt in kernel.body
          if isinstance(stmt, (Reduce, Contract))))
    left, right = (kernel.value_axes[name] & par for name in (products[0].lhs, products[0].rhs))
    assert left ^ right, "the rows of a product that is reduced are separate tasks"
    sums = {stmt.axis for stmt in products}
    whole = replace(kernel, axes=tuple(
        axis if axis.name in par or (axis.name in sums and not _is_reduced(kernel, axis.name))
        else replace(axis, kind="lane", block=0) for axis in kernel.axes))
    choices = sorted(left ^ right, key=lambda name: (
        extent_of(kernel, name), kernel.axes.index(kernel.axis(name))), reverse=True)
    found = ((rows, _columns(whole, products, rows, par)) for rows in choices)
    rows, columns = next(((rows, columns) for rows, columns in found if columns is not None),
                         (choices[0], frozenset[str]()))
    return whole, rows, columns


def _columns(
    kernel: Kernel, products: Sequence[Contract], rows: str, par: frozenset[str]
) -> frozenset[str] | None:
    """The axes of columns that may be separate tasks, of blocks of ``rows``; None where a task
    would have a single column of some product. Tiles lie along the sides of a product: what else
    its results run along is walked one index at a time."""
    lanes = frozenset(axis.name for axis in kernel.axes if axis.kind == "lane")
    for among in (None, lanes):
        sides = [{*found} - {rows} for stmt in products
                 if (found := sides_of(kernel, stmt, rows, among)) is not None]
        columns = par.intersection(*sides, *(
            kernel.value_axes[stmt.lhs] ^ kernel.value_axes[stmt.rhs] for stmt in products))
        if all(each & (lanes | columns) for each in sides):
            return columns - {rows}
    return None


def _is_reduced(kernel: Kernel, axis: str) -> bool:
    """True if an axis is more than what one contraction sums over."""
    return any(axis in axes for axes in kernel.effect_axes.values()) or any(
        (isinstance(stmt, Reduce) and stmt.axis == axis)
        or (isinstance(stmt, Contract) and axis in kernel.value_axes[stmt.name])
        for stmt in kernel.body)
