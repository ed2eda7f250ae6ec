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
from .reads import Use, sources
from .region import Region, runs_of

Run = list[tuple[str, Dim]]          # axes with their extents, from the outermost in
Uses = Mapping[int, Sequence[Use]]   # of nodes, by identity

SHORT_ROW = 256  # elements from which on few vectors hold the end of a row
FEW = 1024       # elements that are not worth storing
MOST_SPREAD = 4  # elements that may be stored for each that they are made of


def below_sums(graph: Graph) -> set[int]:
    """Views, by identity, that sums read across the ends of short rows."""
    found: set[int] = set()
    for node in graph.nodes:
        if node.op.kind is not Kind.REDUCE or _on_gpu(node):
            continue
        value = node.inputs[0]
        if value.node is None or value.node.op.kind is not Kind.VIEW or _are_few(value.shape):
            continue
        own, dims = natural(value.shape), own_dims(node)
        uses = list(sources(value, own, set()))
        runs = [[(str(own[at]), dims[at]) for at in run] for run in summed_runs(node)]
        if not _spreads(value.type.size, [use.value for use in uses]) and any(
                _jumps(use, run, {}) for run in runs for use in uses):
            found.add(id(value))
    return found


def joins_evenly(
    uses: Uses, node: Node, region: Region, own: Sequence[Dim | None]
) -> bool:
    """Whether a node at ``own`` of a region that it may join reads what it does, and lets the
    region read what that does, along rows."""
    if any(dim is None for dim in own) or _is_little(region):
        return True
    place = tuple(dim or 0 for dim in own)
    runs = [_sized(run, region) for run in runs_of(node, place)]
    return not _jump(uses, node, region, place, _runs(region)) and (
        node.op.kind is not Kind.REDUCE or not _any_jump(uses, region, runs))


def meets_evenly(uses: Uses, wide: Region, narrow: Region, names: Mapping[str, str]) -> bool:
    """Whether each of two regions reads what it does along the rows of the other, where ``names``
    says which axes of the first one those of the second are."""
    if _is_little(wide):
        return True
    back = {new: old for old, new in names.items()}
    theirs = [[(back.get(axis, axis), size) for axis, size in run] for run in _runs(wide)]
    ours = [[(names[axis], size) for axis, size in run] for run in _runs(narrow)]
    return not _any_jump(uses, narrow, theirs) and not _any_jump(uses, wide, ours)


def absorbs_evenly(uses: Uses, region: Region, target: Region) -> bool:
    """Whether a sum over all axes of a region but the first ones reads what that does evenly."""
    if not target.reduced or _is_little(region):
        return True
    count = max(map(len, target.reduced))
    return not _any_jump(uses, region, [[*region.axes.items()][-count:]])


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


def _any_jump(uses: Uses, region: Region, runs: Sequence[Run]) -> bool:
    return any(_jump(uses, node, region, region.own[id(node)], runs) for node in region.nodes
               if id(node) in region.own)


def _jump(uses: Uses, node: Node, region: Region, place: Index, runs: Sequence[Run]) -> bool:
    """Whether a node at ``place`` of a region reads something from outside of it that jumps along
    one of these runs."""
    known = {str(own): dim for own, dim in zip(natural(own_dims(node)), place, strict=False)}
    return any(_jumps(use, run, known) for run in runs for use in uses[id(node)]
               if id(use.value) not in region.index)


def _jumps(use: Use, run: Run, known: Mapping[str, Dim]) -> bool:
    """Whether a read jumps at the ends of the rows of a run: axes with their extents, from the
    outermost in. Its index is in the space of its node, of which ``known`` says where it is."""
    row = run[-1][1] if len(run) > 1 else SHORT_ROW
    if not isinstance(row, int) or row >= SHORT_ROW:
        return False
    index = [substitute(dim, known) for dim in use.index]
    slopes = [coefficient(row_major(index, use.value.shape), axis) for axis, _ in run]
    if any(slope is None for slope in slopes):
        return True
    steps = [slope[0] for slope in slopes if slope is not None]
    offset = row_major(index, use.value.shape)
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


def _spreads(size: Dim, values: Sequence[Value]) -> bool:
    """Whether so many elements are many times as many as what they are read from, as windows are:
    they are not to be stored."""
    sizes = {id(value): value.type.size for value in values}
    whole = sum(size for size in sizes.values() if isinstance(size, int))
    return isinstance(size, int) and size > MOST_SPREAD * whole


def _are_few(dims: Iterable[Dim]) -> bool:
    # Of unknown sizes some are those of a round, of which no array is made.
    size = product(dims)
    return not isinstance(size, int) or size < FEW


def _is_little(region: Region) -> bool:
    """Whether a region is not to be stored, however it reads."""
    return _are_few(region.extents) or _on_gpu(region.nodes[0]) or _spreads(
        product(region.extents), region.outside)


def _on_gpu(node: Node) -> bool:
    return node.device is not None and node.device.kind == "gpu"
