"""Reads that jump where short rows end, while what reads them goes on as along one row.

A sum over adjacent axes is one sum, of which a vector may hold the end of a row and the beginning
of the next one; so are the columns of a convolution, the pixels of an image:

    y = sum over (k, l) of x[i, k + 1, l + 1]      kl in 676:  x[i, kl//26 + 1, kl mod 26 + 1]

Where the elements lie side by side all the same, that is nothing. Where they do not, each vector
takes divisions and a gather: a nanosecond an element on a CPU, where to store them first, row by
row, takes a fifth of that. A GPU has a thread for each element anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...ir.graph import Graph, Node, Value
from ...ir.indices.affine import coefficient
from ...ir.indices.index import Dim, product, row_major, symbols_of
from ...ir.indices.runs import step_along
from ...ir.indices.space import Index, natural, own_dims, summed_runs
from ...ir.indices.walk import substitute
from ...ir.ops.op import Kind
from ...ir.record import record
from .reads import Use, sources
from .region import Region, runs_of

Run = list[tuple[str, Dim]]  # axes with their extents, from the outermost in

SHORT_ROW = 256  # elements from which on few vectors hold the end of a row; unknown ones are short
FEW = 1024       # elements that are not worth storing
MOST_SPREAD = 4  # elements that may be stored for each that they are made of


@record
class Walks:
    """How the nodes of a graph go through what they read; ``uses`` are theirs, by identity."""

    graph: Graph
    uses: Mapping[int, Sequence[Use]]
    _sizes: frozenset[str] = frozenset()  # of which arrays are made: not those of a round

    def __post_init__(self) -> None:
        self._sizes = frozenset().union(*(symbols_of(dim) for value in self.graph.params
                                          for dim in value.shape))

    def below_sums(self) -> set[int]:
        """Views, by identity, that sums read across the ends of short rows."""
        found: set[int] = set()
        for node in self.graph.nodes:
            if node.op.kind is not Kind.REDUCE:
                continue
            value, dims = node.inputs[0], own_dims(node)
            if value.node is None or value.node.op.kind is not Kind.VIEW:
                continue
            own = natural(value.shape)
            uses = list(sources(value, own, set()))
            if not self._may_store(node, value.type.size, [use.value for use in uses]):
                continue
            runs = [[(str(own[at]), dims[at]) for at in run] for run in summed_runs(node)]
            if any(_jumps(use, run, {}) for run in runs for use in uses):
                found.add(id(value))
        return found

    def joins_evenly(self, node: Node, region: Region, own: Sequence[Dim | None]) -> bool:
        """Whether a node at ``own`` of a region that it may join reads what it does, and lets the
        region read what that does, along rows."""
        if any(dim is None for dim in own) or not self._may_be_apart(region):
            return True
        place = tuple(dim or 0 for dim in own)
        runs = [_sized(run, region) for run in runs_of(node, place)]
        return not self._jump(node, region, place, _runs(region)) and (
            node.op.kind is not Kind.REDUCE or not self._any_jump(region, runs))

    def meet_evenly(self, wide: Region, narrow: Region, names: Mapping[str, str]) -> bool:
        """Whether each of two regions reads what it does along the rows of the other, where
        ``names`` says which axes of the first one those of the second are."""
        if not self._may_be_apart(wide):
            return True
        back = {new: old for old, new in names.items()}
        theirs = [[(back.get(axis, axis), size) for axis, size in run] for run in _runs(wide)]
        ours = [[(names[axis], size) for axis, size in run] for run in _runs(narrow)]
        return not self._any_jump(narrow, theirs) and not self._any_jump(wide, ours)

    def absorbs_evenly(self, region: Region, target: Region) -> bool:
        """Whether a sum over all axes of a region but the first ones reads what that does
        evenly."""
        if not target.reduced or not self._may_be_apart(region):
            return True
        count = max(map(len, target.reduced))
        return not self._any_jump(region, [[*region.axes.items()][-count:]])

    def _any_jump(self, region: Region, runs: Sequence[Run]) -> bool:
        return any(self._jump(node, region, region.own[id(node)], runs) for node in region.nodes
                   if id(node) in region.own)

    def _jump(self, node: Node, region: Region, place: Index, runs: Sequence[Run]) -> bool:
        """Whether a node at ``place`` of a region reads something from outside of it that jumps
        along one of these runs."""
        known = {str(own): dim for own, dim in zip(natural(own_dims(node)), place, strict=False)}
        return any(_jumps(use, run, known) for run in runs for use in self.uses[id(node)]
                   if id(use.value) not in region.index)

    def _may_be_apart(self, region: Region) -> bool:
        return self._may_store(region.nodes[0], product(region.extents), region.outside)

    def _may_store(self, node: Node, size: Dim, values: Sequence[Value]) -> bool:
        """Whether so many elements may be stored that are made of ``values``: there is an array of
        that size, they are worth it, and not many times as many, as windows are."""
        if node.device is not None and node.device.kind == "gpu":
            return False
        if not isinstance(size, int):
            return symbols_of(size) <= self._sizes
        sizes = {id(value): value.type.size for value in values}
        known = [each for each in sizes.values() if isinstance(each, int)]
        return size >= FEW and (len(known) < len(sizes) or size <= MOST_SPREAD * sum(known))


def _runs(region: Region) -> list[Run]:
    """The axes of a region that are gone along as one: of sums, and the last ones of a product that
    belong to one of its operands alone."""
    found = [_sized(run, region) for run in region.reduced]
    if Kind.CONTRACT in region.kinds:
        last: Run = []
        for axis, size in reversed(region.axes.items()):
            if axis in region.par:
                if axis in region.batch or (
                        last and (axis in region.columns) != (last[0][0] in region.columns)):
                    break
                last.insert(0, (axis, size))
        found.append(last)
    return found


def _sized(run: Iterable[str], region: Region) -> Run:
    return [(axis, region.axes[axis]) for axis in run]


def _jumps(use: Use, run: Run, known: Mapping[str, Dim]) -> bool:
    """Whether a read jumps at the ends of the rows of a run: axes with their extents, from the
    outermost in. Its index is in the space of its node, of which ``known`` says where it is."""
    row = run[-1][1] if len(run) > 1 else SHORT_ROW
    if isinstance(row, int) and row >= SHORT_ROW:
        return False
    index = [substitute(dim, known) for dim in use.index]
    offset = row_major(index, use.value.shape)
    slopes = [coefficient(offset, axis) for axis, _ in run]
    if any(slope is None for slope in slopes):
        return True
    steps = [slope[0] for slope in slopes if slope is not None]
    along = {axis for axis, _ in run}
    if any(step_along(offset, axis) == 1 for axis in symbols_of(offset) - along):
        return False  # vectors lie along that one
    if not use.exact:
        return True
    if all(step == 0 for step in steps):
        return False
    wanted: Dim = 1
    for step, (_, extent) in zip(reversed(steps), reversed(run), strict=True):
        if step != wanted:
            return True
        wanted = wanted * extent
    return False
