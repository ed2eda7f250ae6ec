"""Whether the sums of a region go into one nest of loops.

A sum over k that there is for each j is in a loop over j; one over j that there is for each k
would have to be around it:

    r = sum x[i,j,k] over k          i, j outside of k
    c = sum x[i,j,k] over j          i, k outside of j: no nest has both

What is short is written out instead of being a loop, so it is no obstacle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...ir.indices.index import Dim, product
from ...ir.ops.op import Kind
from .region import Region, Runs, axes_of, runs_of

SHORT = 8  # elements of a reduction that is unrolled beside another one

Sum = tuple[Runs, frozenset[str]]  # what is summed over, the last one innermost, of what axes


def sums_of(region: Region, names: Mapping[str, str] | None = None) -> Iterator[Sum]:
    """The reductions of a region, its axes under other names if any are given."""
    for node in region.nodes:
        if node.op.kind is Kind.REDUCE:
            own = region.own[id(node)]
            runs, axes = runs_of(node, own), axes_of(own)
            if names is not None:
                runs = tuple(tuple(names[axis] for axis in run) for run in runs)
                axes = frozenset(names[axis] for axis in axes)
            yield runs, axes


def loops_nest(extents: Mapping[str, Dim], sums: Iterable[Sum]) -> bool:
    """Whether one order of the loops suits all sums: each inside of those that its terms have."""
    sums = list(sums)
    loops = {run for runs, _ in sums for run in runs if not _is_short(extents, run)}
    around: dict[tuple[str, ...], set[tuple[str, ...]]] = {run: set() for run in loops}
    for runs, axes in sums:
        rest = set(axes)
        for run in reversed(runs):
            rest.difference_update(run)
            if run in loops:
                around[run] |= {loop for loop in loops if not rest.isdisjoint(loop)}
    while around:
        outer = next((run for run, others in around.items() if not others), None)
        if outer is None:
            return False
        del around[outer]
        for others in around.values():
            others.discard(outer)
    return True


def _is_short(extents: Mapping[str, Dim], run: tuple[str, ...]) -> bool:
    size = product(extents[axis] for axis in run)
    return isinstance(size, int) and size <= SHORT
