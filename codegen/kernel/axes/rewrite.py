"""Axes of a kernel replaced by index expressions, for both back ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....ir.indices.index import (
    Dim,
    Quotient,
    Remainder,
    parts_of,
    plain_symbol,
    product,
    symbol,
    symbols_of,
    terms_of,
)
from ....ir.indices.walk import substitute
from ....ir.kernels.kernel import (
    Axis,
    Contract,
    Index,
    Kernel,
    Load,
    Stmt,
    Store,
)
from ....ir.kernels.rows import row_stmt
from ....ir.ops.places.view import unravel
from ....ir.record import replace

SHORTEST = 64  # elements of a run that is worth a loop of its own


def rewrite_indices(kernel: Kernel, values: Mapping[str, Dim], axes: Sequence[Axis]) -> Kernel:
    """The kernel with index symbols substituted and other axes."""
    def moved(stmt: Stmt) -> Stmt:
        if isinstance(stmt, (Load, Store)):
            return replace(stmt, indices=tuple(substitute(dim, values) for dim in stmt.indices))
        if isinstance(stmt, Index):
            return replace(stmt, expr=substitute(stmt.expr, values))
        return stmt

    return replace(kernel, axes=tuple(axes), body=tuple(map(moved, kernel.body)))


def with_joined_sums(kernel: Kernel) -> Kernel:
    """The kernel with one axis for the axes that a contraction sums over, in row-major order."""
    for stmt in kernel.body:
        if isinstance(stmt, Contract) and len(stmt.axes) > 1:
            names = stmt.axes
            one, name = joined(kernel, names)
            return with_joined_sums(replace(one, body=tuple(
                replace(stmt, axes=(name,)) if isinstance(stmt, Contract) and stmt.axes == names
                else stmt for stmt in one.body)))
    return kernel


def joined(kernel: Kernel, names: tuple[str, ...]) -> tuple[Kernel, str]:
    """The kernel with one axis, in row-major order, for several, and its name. But for the first
    of them their extents are known."""
    axes = [kernel.axis(name) for name in names]
    name = "_".join(names)
    while name in kernel.dims:
        name += "_"
    one = replace(axes[0], name=name, extent=product(axis.extent for axis in axes))
    places = unravel(symbol(name, one.extent), tuple(axis.extent for axis in axes))
    return rewrite_indices(kernel, dict(zip(names, places, strict=True)), [
        one if axis.name == names[0] else axis for axis in kernel.axes
        if axis.name not in names[1:]]), name


def without_unit_axes(kernel: Kernel) -> Kernel:
    """The kernel without its par axes of one element, whose index is 0."""
    gone = {axis.name for axis in kernel.axes if axis.kind == "par" and axis.extent == 1}
    if not gone:
        return kernel
    return rewrite_indices(kernel, dict.fromkeys(gone, 0),
                           [axis for axis in kernel.axes if axis.name not in gone])


def with_periods(kernel: Kernel) -> Kernel:
    """The kernel of a map with two axes for each along which accesses come again, or stay.

        par i in 200: y[i] = x[i mod 100]   ->   par i in 2, par j in 100: y[100*i + j] = x[j]

    What is read at a remainder or a quotient is gathered; at an index of its own it is walked as it
    lies. So are arrays that are tiled, reshaped or repeated in long runs. Short ones stay: the loop
    over them would cost what it saves.
    """
    if kernel.loop_axes or kernel.locals or row_stmt(kernel) is not None or any(
            isinstance(stmt, Store) and stmt.meets for stmt in kernel.body):
        return kernel
    pending = [axis.name for axis in kernel.axes]
    while pending:
        axis = kernel.axis(pending.pop())
        run = _run(kernel, axis)
        if run is None:
            continue
        inner = f"{axis.name}_"
        while inner in kernel.dims or any(other.name == inner for other in kernel.axes):
            inner += "_"
        assert isinstance(axis.extent, int)
        rounds = axis.extent // run
        place = symbol(axis.name, rounds) * run + symbol(inner, run)
        axes = [part for other in kernel.axes for part in (
            [replace(axis, extent=rounds), Axis(inner, run, "par")] if other is axis else [other])]
        kernel = rewrite_indices(kernel, {axis.name: place}, axes)
        pending += [axis.name, inner]  # runs may be made of runs
    return kernel


def _run(kernel: Kernel, axis: Axis) -> int | None:
    """The longest run of an axis: by it alone its index is divided, without a rest."""
    found: set[int] = set()
    for stmt in kernel.body:
        for expr in stmt.exprs:
            for numerator, denominator in _divisions(expr):
                if axis.name not in symbols_of(numerator):
                    continue
                if symbols_of(numerator) != {axis.name} or not isinstance(denominator, int):
                    return None
                if plain_symbol(numerator) is not None:  # of others the parts are asked, too
                    found.add(denominator)
    extent, run = axis.extent, max(found, default=0)
    whole = isinstance(extent, int) and SHORTEST <= run < extent and extent % run == 0
    return run if whole and all(run % other == 0 for other in found) else None


def _divisions(expr: Dim) -> Iterator[tuple[Dim, Dim]]:
    for monomial, _ in terms_of(expr):
        for atom in monomial:
            if isinstance(atom, (Quotient, Remainder)):
                yield atom.numerator, atom.denominator
            for part in parts_of(atom):
                yield from _divisions(part)
