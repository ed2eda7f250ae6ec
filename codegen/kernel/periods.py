"""An axis along which accesses come again, or stay for a while, as two axes.

    par i in 2000: y[i] = x[i mod 1000]   ->   par i in 2, par i_ in 1000: y[1000*i + i_] = x[i_]

What is read at a remainder or a quotient is gathered; at an index of its own it is walked as it
lies. So are arrays that are tiled, reshaped or repeated in long runs. Short ones stay: the loop
over them would cost what it saves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...ir.indices.index import (
    Dim,
    Quotient,
    Remainder,
    parts_of,
    plain_symbol,
    symbol,
    symbols_of,
    terms_of,
)
from ...ir.kernels.kernel import Axis, Kernel, Sort, Store, index_exprs
from .axes import rewrite_indices

SHORTEST = 64  # elements of a run that is worth a loop of its own


def with_periods(kernel: Kernel) -> Kernel:
    """The kernel of a map with two axes for each whose elements come in runs of one length."""
    if kernel.loop_axes or kernel.locals or any(
            isinstance(stmt, Sort) or (isinstance(stmt, Store) and stmt.meets)
            for stmt in kernel.body):
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
        for expr in index_exprs(stmt):
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
