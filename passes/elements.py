"""Elements of rows at places of the program are elements of the array: no row is taken for them.

    gather(gather(x, i), j)                   ->  gather(x, i, j)
    scatter(x, scatter(row i, v, j), i)       ->  scatter(x, v, i, j)          row i: gather(x, i)
    scatter(x, row i with v at 3, i)          ->  scatter(x, v, i, 3)
    x with scatter(x[3], v, j) as its row 3   ->  scatter(x, v, 3, j)
    gather(scatter(x, v, i), i)               ->  v
    scatter(scatter(x, v, i), w, i)           ->  scatter(x, w, i)
    scatter(x, row i with v at 1:9, i)        ->  scatter(x, v, i, 1 + iota)

So ``dp[i][j] = v`` costs one element, as ``dp[i, j] = v`` does, and not the row that a view is.
What has been stored as a row is that row of the array from there on. Elements are read from the
array only until it is stored to: later, it would have to be kept beside what becomes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

from ..ir.graph import Graph, Node, Value
from ..ir.indices.index import Dim
from ..ir.ops.table import OPS
from ..ir.record import record
from ..ir.types import I64, TensorType
from .clone import map_bodies
from .patches import store_patch
from .simplify.rewrite import Match, Rewriter, Rule, Table, by_op, rewrite
from .simplify.written import Update, Written

_INDICES = "yzw"


def elements_of_rows(graph: Graph) -> Graph:
    """The graph without rows of which only elements are read or stored; in bodies as well."""
    graph = map_bodies(graph, elements_of_rows)  # recursion is by nesting of bodies only
    if not any(map(_has_place, graph.nodes)):
        return graph
    fired = Counter[str]()
    for rules in _tables():
        made, _ = rewrite(graph, rules, fired)
        graph = made if fired else graph
    return graph


def _has_place(node: Node) -> bool:
    """Whether a node takes or stores a part at a place of the program."""
    return (node.op is OPS["gather"] or node.op is OPS["scatter"]) and not node.inputs[-1].shape


@cache
def _tables() -> tuple[Table, ...]:
    return by_op(ELEMENTS), by_op(STORES)


@record(frozen=True)
class _Part:
    """An element of an array, or what is left of it, at one place in each of some axes."""

    array: Value
    axes: tuple[int, ...]
    indices: tuple[Value, ...]

    @property
    def shape(self) -> tuple[Dim, ...]:
        return tuple(dim for axis, dim in enumerate(self.array.shape) if axis not in self.axes)

    def within(self, outer: _Part) -> _Part:
        """This part, of an array that is ``outer``, as a part of what that is one of."""
        left = [axis for axis in range(len(outer.array.shape)) if axis not in outer.axes]
        return _Part(outer.array, (*outer.axes, *(left[axis] for axis in self.axes)),
                     (*outer.indices, *self.indices))

    def key(self) -> object:
        """What parts that surely are the same have in common."""
        return self.array, sorted((axis, id(index)) for axis, index in zip(
            self.axes, self.indices, strict=True))


class _Rows:
    """What is a part of an array, and which arrays have been stored to, in a graph so far."""

    def __init__(self) -> None:
        self._stored: dict[Value, _Part] = {}
        self._over: set[Value] = set()
        self._seen = 0

    def note(self, row: Value, part: _Part) -> None:
        """A value has become a part of an array."""
        if row.shape:
            self._stored[row] = part

    def part(self, r: Rewriter, value: Value) -> _Part | None:
        """The part of an array that a value is; None where it is none."""
        self._look(r.builder.graph.nodes)
        bare = _without_units(value)
        for row in (value, bare):
            found = self._stored.get(row)
            if found is not None and found.shape == value.shape:
                return found
        node = value.node
        if node is not None and node.op is OPS["gather"]:
            return _part(node.inputs[0], node.attrs["axes"], node.inputs[1:])
        return None if bare.node is None else _sliced(r, value, bare.node)

    def flat(self, r: Rewriter, part: _Part) -> _Part:
        """A part of an array that is no part itself."""
        while (outer := self.part(r, part.array)) is not None and outer.array is not part.array:
            part = part.within(outer)
        return part

    def is_stored_to(self, r: Rewriter, array: Value) -> bool:
        self._look(r.builder.graph.nodes)
        return array in self._over

    def _look(self, nodes: Sequence[Node]) -> None:
        for node in nodes[self._seen:]:
            if node.op is OPS["scatter"]:
                array, value, *indices = node.inputs
                part = _part(node.results[0], node.attrs["axes"], indices)
                self._over.add(array)
                if part is not None:
                    self.note(value, part)
            elif node.op is OPS["scatter_add"]:
                self._over.add(node.inputs[0])
            elif node.op is OPS["select"]:
                self._over.add(node.inputs[2])
            elif node.op.control is not None:
                self._over.update(node.inputs)
        self._seen = len(nodes)


def _part(array: Value, axes: Sequence[int], indices: Sequence[Value]) -> _Part | None:
    """A part, if there is one of it."""
    if any(index.shape for index in indices):
        return None
    return _Part(array, tuple(axes), tuple(indices))


def _without_units(value: Value) -> Value:
    """What a value is a reshape of that only puts in or leaves out dims of 1."""
    node = value.node
    if node is None or node.op is not OPS["reshape"]:
        return value
    x = node.inputs[0]
    own, other = ([dim for dim in one.shape if dim != 1] for one in (value, x))
    return x if own == other else value


def _sliced(r: Rewriter, value: Value, node: Node) -> _Part | None:
    """A part that is a slice: one index of some axes, and all of the others."""
    if node.op is not OPS["slice"]:
        return None
    x, start, step = node.inputs[0], node.attrs["start"], node.attrs["step"]
    axes = [axis for axis, dim in enumerate(x.shape)
            if dim != 1 and node.results[0].shape[axis] == 1]
    whole = all(start[axis] == 0 and step[axis] == 1 and node.results[0].shape[axis] == dim
                for axis, dim in enumerate(x.shape) if axis not in axes)
    if not axes or not whole or not all(isinstance(start[axis], int) for axis in axes):
        return None
    part = _Part(x, tuple(axes), _numbers(r, [start[axis] for axis in axes]))
    return part if part.shape == value.shape else None


def _numbers(r: Rewriter, places: Sequence[int]) -> tuple[Value, ...]:
    return tuple(r.builder.full(place, TensorType(I64, ())) for place in places)


def _gather_row(r: Rewriter, match: Match) -> Value | None:
    """An element of a row."""
    rows, row = r.held(_Rows), match.inner[0]
    own, outer = _own(row, match), rows.part(r, row)
    if own is None or outer is None or rows.is_stored_to(r, outer.array):
        return None
    part = own.within(outer)
    made: Value = r.gather(part.array, *part.indices, axes=part.axes)
    r.fails_with(made, row)
    return made


def _gather_stored(r: Rewriter, match: Match) -> Value | None:
    """An element that is what was stored last."""
    node, own = match.inner[0].node, _own(match.inner[0], match)
    assert node is not None
    _, value, *indices = node.inputs
    there = _part(match.inner[0], node.attrs["axes"], indices)
    if own is None or there is None or own.axes != there.axes or own.key() != there.key():
        return None
    return value


def _scatter_stored(r: Rewriter, match: Match) -> Value | None:
    """A part that is stored anew before anybody has read it."""
    first, axes = match.inner[0], match.attrs[0]["axes"]
    node = first.node
    assert node is not None
    array, _, *indices = node.inputs
    own = [match[letter] for letter in _INDICES if letter in match.values]
    if axes != node.attrs["axes"] or r.uses[first] > 1 or not all(map(_alike, own, indices)):
        return None
    made: Value = r.scatter(array, match["v"], *own, axes=axes)
    r.fails_with(made, first)
    return made


def _alike(a: Value, b: Value) -> bool:
    """Whether two indices surely are the same: one value, or views and constants of one."""
    x, y = a.node, b.node
    return a is b or (
        x is not None and y is not None and x.op is y.op and x.attrs == y.attrs
        and (x.op.view is not None or not x.inputs) and all(map(_alike, x.inputs, y.inputs)))


def _scatter_row(r: Rewriter, match: Match) -> Value | None:
    """A row of which an element is new."""
    whole = _own(match["x"], match)
    return None if whole is None else _stored(r, whole, match.inner[0])


def _update_row(r: Rewriter, match: Match) -> Value | None:
    """A row at a known place, of which an element is new."""
    x, update = match["x"], _update(match)
    if update is None:
        return None
    axes = [axis for axis, dim in enumerate(x.shape) if dim != 1 and update.count[axis] == 1]
    if not axes or any(update.count[axis] != dim or update.step[axis] != 1
                       for axis, dim in enumerate(x.shape) if axis not in axes):
        return None
    row, left = match["y"], tuple(dim for axis, dim in enumerate(x.shape) if axis not in axes)
    bare = _without_units(row)
    if bare.shape != left or bare.node is None or bare.node.op is not OPS["scatter"]:
        return None
    return _stored(r, _Part(x, tuple(axes), _numbers(r, [update.low[axis] for axis in axes])), bare)


def _update(match: Match) -> Update | None:
    """The update that a select is; what is stored has its own places."""
    mask, patch = match.attrs[1], match.attrs[2]
    sizes = match["k"].shape
    count = tuple(size for size in sizes if isinstance(size, int))
    if match.constant("k") is not True or mask["value"] or len(count) < len(sizes) or any(
            mask[key] != patch[key] for key in ("low", "high", "interior")) or not all(
            isinstance(n, int) for n in (*mask["low"], *mask["interior"])):
        return None
    return Update(match["x"], match["y"], None, mask["low"],
                  tuple(gap + 1 for gap in mask["interior"]), count)


def _stored(r: Rewriter, whole: _Part, row: Value) -> Value | None:
    """The array with a row stored, if that is the one which is there with one element new."""
    found, rows = _element(r, row), r.held(_Rows)
    if found is None:
        return _patched(r, whole, row)
    value, element = found
    taken = rows.part(r, element.array)
    if taken is None or rows.flat(r, taken).key() != rows.flat(r, whole).key():
        return None
    part = element.within(whole)
    made: Value = r.scatter(part.array, value, *part.indices, axes=part.axes)
    r.fails_with(made, row)
    rows.note(row, _Part(made, whole.axes, whole.indices))
    return made


def _patched(r: Rewriter, whole: _Part, row: Value) -> Value | None:
    """The array with parts of a row stored, as ``x[i, 1:-1] = v`` has it."""
    update, rows = r.held(Written).update(row), r.held(_Rows)
    if update is None or update.patch is None or 0 in update.count:
        return None
    taken = rows.part(r, update.base)
    if taken is None or rows.flat(r, taken).key() != rows.flat(r, whole).key():
        return None
    some = [dim for axis, dim in enumerate(row.shape) if update.count[axis] != dim]
    if not some or not all(isinstance(dim, int) for dim in some):
        return None
    made = store_patch(r, whole.array, update.patch, update, dict(zip(
        whole.axes, whole.indices, strict=True)))
    r.fails_with(made, row)
    rows.note(row, _Part(made, whole.axes, whole.indices))
    return made


def _element(r: Rewriter, row: Value) -> tuple[Value, _Part] | None:
    """What was stored in a row last, and in which part of what it was before."""
    node = row.node
    if node is not None and node.op is OPS["scatter"]:
        array, value, *indices = node.inputs
        part = _part(array, node.attrs["axes"], indices)
        return None if part is None else (value, part)
    update = r.held(Written).update(row)
    if update is None or update.patch is None:
        return None
    axes = [axis for axis, size in enumerate(row.shape) if size != 1]
    if not axes or any(update.count[axis] != 1 for axis in axes):
        return None
    value = r.reshape(update.patch, shape=tuple(1 for size in row.shape if size == 1))
    return value, _Part(update.base, tuple(axes), _numbers(r, [update.low[axis] for axis in axes]))


def _own(array: Value, match: Match) -> _Part | None:
    """The part of an array that the root of a match is about."""
    return _part(array, match.attrs[0]["axes"],
                 [match[letter] for letter in _INDICES if letter in match.values])


def _rules(name: str, pattern: str,
           replace: Callable[[Rewriter, Match], Value | None]) -> tuple[Rule, ...]:
    """A rule for one and for two indices."""
    return tuple(Rule(f"{name}-{count}", f"{pattern}, {', '.join(_INDICES[:count])})", replace)
                 for count in (1, 2))


ELEMENTS: tuple[Rule, ...] = (
    *_rules("gather-gather", "gather(gather(...)", _gather_row),
    *_rules("gather-reshape", "gather(reshape(...)", _gather_row),
    *_rules("gather-scatter", "gather(scatter(...)", _gather_stored),
    *_rules("gather-row", "gather(scatter(...)", _gather_row),
    *_rules("gather-update", "gather(select(...)", _gather_row),
    *_rules("scatter-scatter", "scatter(x, scatter(...)", _scatter_row),
    *_rules("scatter-update", "scatter(x, select(...)", _scatter_row),
    Rule("update-scatter", "select(pad(k), pad(y), x)", _update_row))
# Of what is left then: who has read it may have been given what was stored.
STORES: tuple[Rule, ...] = _rules("scatter-stored", "scatter(scatter(...), v", _scatter_stored)
