"""Iteration spaces: which axes the dims of a node are, when several nodes are computed together.

A node has dims of its own: those of a MAP's result, of a REDUCE's operand, the letters of a
CONTRACT. Of a fused region each dim of each node is an axis of the region, written as a letter; a
dim of size 1 is ``1``, and ``-`` is a node that is computed wherever it is read, or a result that
has the elements of others at other places and is stored where those are computed. A GATHER
from a value of the region has one letter more: the axis along which it looks for its element.

    s = contract q, k {dims = "md,nd->mn"}     i j k       "ijk,ij,ij"; sums over k
    m = max s {axes = (1,)}                    i j         reduces j
    d = sub s, m                               i j
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache

from ..graph import Graph, Node, Value
from ..kernels.build import KernelBuilder
from ..kernels.kernel import Index as IndexStmt
from ..letters import LETTERS
from ..ops.axes.reduce import contract_places, contract_sizes, is_matrix_product
from ..ops.op import Kind
from ..record import record
from .index import Dim, Expr, Symbol, bounds, symbol, symbols_of
from .walk import substitute

Index = tuple[Dim, ...]

UNPLACED = "-"


def natural(shape: Sequence[Dim]) -> Index:
    """The index of a value in its own space: a symbol for each dim, 0 for a dim of 1."""
    return tuple(0 if dim == 1 else _axis(at, dim) if isinstance(dim, int)
                 else symbol(f"@{at}", dim) for at, dim in enumerate(shape))


@lru_cache(1 << 12)
def _axis(at: int, size: int) -> Dim:
    return symbol(f"@{at}", size)


def is_transparent(node: Node) -> bool:
    """Views and constants: repeated wherever they are read."""
    return node.op.kind is Kind.VIEW or (node.op.kind is Kind.MAP and not node.inputs)


def own_dims(node: Node) -> tuple[Dim, ...]:
    """The dims of a node's own space; a loop that is one kernel has its own axes."""
    if node.op.control is not None:
        return ()
    if node.op.kind is Kind.REDUCE:
        return node.inputs[0].shape
    if node.op.kind is Kind.CONTRACT:
        left, right = node.inputs
        return contract_sizes(node.attrs["dims"], left.shape, right.shape)
    return node.results[0].shape


def operand_index(node: Node, at: int, own: Index) -> Index:
    """Where operand ``at`` is read, for an index ``own`` of the node's own space."""
    if node.op.kind is Kind.CONTRACT:
        return tuple(own[place] for place in contract_places(node.attrs["dims"])[at])
    if node.op.kind is Kind.GATHER and at:  # the indices, which have the first dims of the result
        return own[:node.inputs[at].type.rank]
    return own


@record(frozen=True)
class Part:
    """Elements that a result has at other places: of ``source``, moved by ``views``, the last one
    first, each with the number of the operand that leads on."""

    source: Value
    views: tuple[tuple[Node, int], ...] = ()

    def moved(self, index: Index) -> Index:
        """Where an element of the source is in the result."""
        for view, at in reversed(self.views):
            assert view.op.back is not None
            types = tuple(operand.type for operand in view.inputs)
            index = view.op.back(index, types, view.results[0].type, at, **view.attrs)
        return index


def parts_of(value: Value, placed: Container[int]) -> list[Part]:
    """What the elements of a value are, in order; nodes that are ``placed``, by identity, are
    computed where they are."""
    found: list[Part] = []
    pending = [Part(value)]
    while pending:
        part = pending.pop()
        node = part.source.node
        if node is None or node.op.back is None or id(node) in placed:
            found.append(part)
        else:
            pending += [Part(operand, (*part.views, (node, at)))
                        for at, operand in reversed(list(enumerate(node.inputs)))]
    return found


def searched_axis(node: Node) -> int | None:
    """The only axis of its operand that a GATHER has an index for that must be computed; None if
    there are several. The others are known from the place of the element, as in x[arange(n), i]."""
    own = natural(node.results[0].shape)
    computed = [axis for axis, dim in zip(node.attrs["axes"], known_indices(node, own),
                                          strict=True) if dim is None]
    return computed[0] if len(computed) == 1 else None


def known_indices(node: Node, own: Index) -> list[Dim | None]:
    """The indices of a GATHER at ``own`` that need no computing, for each of its axes: those that
    are in range wherever in its result an element is."""
    x, *indices = node.inputs
    shape = indices[0].shape
    places = natural(shape)
    here = dict(zip(map(str, places), own, strict=False))
    found: list[Dim | None] = []
    for axis, operand in zip(node.attrs["axes"], indices, strict=True):
        expr = _constant_index(operand, places)
        along = any(expr == place and dim == x.shape[axis] for place, dim in zip(
            places, shape, strict=True))
        found.append(substitute(expr, here) if expr is not None and (
            along or _is_below(expr, x.shape[axis])) else None)
    return found


def known_stores(node: Node) -> list[Dim | None] | None:
    """The indices of a SCATTER that need no computing, for each of its axes, where they say that no
    two updates are at one place: each of their dims has an axis to itself. None elsewhere."""
    base, _, *indices = node.inputs
    shape = indices[0].shape
    places = natural(shape)
    found: list[Dim | None] = []
    apart: set[str] = set()
    known = node.attrs.get("inside", ("",) * len(indices))
    for axis, operand, told in zip(node.attrs["axes"], indices, known, strict=True):
        expr = _constant_index(operand, places)
        inside = expr is not None and (told == "all" or _is_below(expr, base.shape[axis]))
        found.append(expr if inside else None)
        if inside and isinstance(expr, Expr) and all(
                not atoms or (len(atoms) == 1 and isinstance(atoms[0], Symbol))
                for atoms in dict(expr.terms)):
            apart |= symbols_of(expr) if len(symbols_of(expr)) == 1 else set()
    return found if shape and {str(place) for place in places if place != 0} <= apart else None


def _is_below(expr: Dim, extent: Dim) -> bool:
    """Whether an index is surely one of an axis of this extent, by its bounds."""
    low, high = bounds(expr)
    return (low is not None and low >= 0 and high is not None
            and isinstance(extent, int) and high < extent)


def _constant_index(value: Value, index: Index) -> Dim | None:
    """The element of ``value`` at ``index`` as an index expression, if that is what it is."""
    node = value.node
    while node is not None and node.op.view is not None:
        types = tuple(operand.type for operand in node.inputs)
        pieces = node.op.view(index, types, node.results[0].type, **node.attrs)
        if len(pieces) != 1 or pieces[0].conditions:
            return None
        index, node = pieces[0].indices, node.inputs[pieces[0].operand].node
    if node is None or node.inputs or not node.op.indexed or node.op.body is None:
        return None
    builder = KernelBuilder()
    node.op.body(builder, index=index, **node.attrs)
    first = builder.body[0]
    return first.expr if isinstance(first, IndexStmt) else None


def operand_place(node: Node, own: Index) -> Index | None:
    """Where a GATHER reads its array, the axis that it searches being the last of ``own``."""
    rank, axes = len(node.inputs[1].shape), node.attrs["axes"]
    known = known_indices(node, own[:-1])
    if known.count(None) != 1:
        return None
    at = {axis: own[-1] if dim is None else dim for axis, dim in zip(axes, known, strict=True)}
    rest = iter(own[rank:-1])
    return tuple(at[axis] if axis in at else next(rest)
                 for axis in range(len(node.inputs[0].shape)))


def result_index(node: Node, own: Index) -> Index:
    """Where the result of a node is computed, for an index ``own`` of its own space."""
    if node.op.kind is Kind.CONTRACT:
        return tuple(own[place] for place in contract_places(node.attrs["dims"])[2])
    if node.op.kind is Kind.REDUCE:
        return tuple(dim for at, dim in enumerate(own) if at not in node.attrs["axes"])
    return own[:len(node.results[0].shape)]


def summed_runs(node: Node) -> tuple[tuple[int, ...], ...]:
    """The own dims that a node sums over, those next to each other in its operands as one run.

    A run is one axis of a sum, so the order of its terms follows from the node alone. Dims of one
    element take no part.
    """
    dims = own_dims(node)
    if node.op.kind is Kind.REDUCE:
        parts: tuple[Sequence[int], ...] = (range(len(dims)),)
        summed = set(node.attrs["axes"])
    elif node.op.kind is Kind.CONTRACT:
        *parts_, out = contract_places(node.attrs["dims"])
        parts = tuple(parts_)
        summed = set(range(len(dims))).difference(out)
    else:
        return ()
    runs: list[list[int]] = []
    for at in parts[0]:
        if at not in summed or dims[at] == 1:
            continue
        if runs and all(_neighbours(part, runs[-1][-1], at, dims) for part in parts):
            runs[-1].append(at)
        else:
            runs.append([at])
    return tuple(map(tuple, runs))


def _neighbours(part: Sequence[int], one: int, other: int, dims: Sequence[Dim]) -> bool:
    """True if nothing but dims of one element lies between two dims of an operand."""
    between = part[part.index(one) + 1:part.index(other)] if (
        part.index(one) < part.index(other)) else [other]
    return all(dims[at] == 1 for at in between)


def is_chain(node: Node) -> bool:
    """True for a contraction that is a product of matrices: chains of multiply-adds."""
    return is_matrix_product(node.attrs["dims"], *(value.shape for value in node.inputs))


def space_text(places: Sequence[Index | None]) -> str:
    """The letters of placed nodes; ``places`` are own indices over axis symbols."""
    names: dict[str, str] = {}
    words = []
    for own in places:
        if own is None:
            words.append(UNPLACED)
            continue
        letters = ["1" if dim == 0 else names.setdefault(str(dim), _letter(len(names)))
                   for dim in own]
        words.append("".join(letters))
    return ",".join(words)


def _letter(at: int) -> str:
    # i, j, k, ... as one writes indices; then the letters before them.
    return (LETTERS[8:26] + LETTERS[:8] + LETTERS[26:])[at]


def placed_nodes(body: Graph) -> list[Node]:
    """The nodes of a region that its space says something of, in order."""
    stored = {id(value) for value in body.results}
    return [node for node in body.nodes if not is_transparent(node)
            or any(id(value) in stored for value in node.results)]


def space_problem(body: Graph, space: str) -> str:
    """What is wrong with the space of a region, or nothing."""
    nodes, words = placed_nodes(body), space.split(",")
    if not nodes and not space:
        return ""
    if len(nodes) != len(words):
        return f"a space of {len(words)} nodes for {len(nodes)}"
    extents: dict[str, Dim] = {}
    placed: set[int] = set()
    for node, word in zip(nodes, words, strict=True):
        dims = own_dims(node)
        if word == UNPLACED:
            if node.op.kind in (Kind.REDUCE, Kind.CONTRACT, Kind.SCAN):
                return f"{node.name} needs axes"
            continue
        placed.add(id(node))
        axis = searched_axis(node) if node.op.kind is Kind.GATHER else None
        if axis is not None and len(word) > len(dims):
            dims = (*dims, node.inputs[0].shape[axis])
        if len(word) != len(dims) or len(set(word) - {"1"}) != len(word) - word.count("1"):
            return f"{node.name} has {len(dims)} dims, its axes are '{word}'"
        for letter, dim in zip(word, dims, strict=True):
            if (letter == "1") != (dim == 1) or extents.setdefault(letter, dim) != dim:
                return f"axis '{letter}' of {node.name} is {dim} and {extents.get(letter, 1)}"
    for result in body.results:
        stored = all(id(part.source.node) in placed for part in parts_of(result, placed))
        if not stored and result.node is not None:
            return f"{result.node.name} is stored, but nothing says where"
    return ""


def separate_space(body: Graph) -> str:
    """A space in which no two nodes share an axis."""
    letters, words = iter(LETTERS), []
    for node in placed_nodes(body):
        dims = own_dims(node)
        words.append("".join("1" if dim == 1 else next(letters) for dim in dims))
    return ",".join(words)
