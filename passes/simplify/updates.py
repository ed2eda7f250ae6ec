"""Elements that were written are read from what was written, not from the whole array.

    slice of y inside of the region    ->   slice of v
    slice of y outside of the region   ->   slice of x
    updates side by side               ->   concatenate(v0, v1, ...)
    a few elements, taken apart        ->   each computed by itself

So a buffer that a loop fills element by element costs no pass through memory for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...ir.graph import Builder, Graph, Node, Value, can_fail, constant_of, live_nodes
from ...ir.indices.index import product
from ...ir.ops.op import Kind, OpDef
from ...ir.ops.table import OPS
from ...ir.record import record
from ..clone import Clone
from .rewrite import Match, Rewriter, Rule
from .written import Update, Written, region_of, within

LETTERS = "xyz"
SMALL = 8   # elements that are computed one by one where one of them is asked for
FEWEST = 4  # patches that are joined: a loop's, or as many lines of code
OFTEN = 4   # concatenations that a patch may be a part of: each of n values of one buffer would be
            # n patches


def _slice_update(r: Rewriter, match: Match) -> Any:
    attrs = match.attrs[0]
    start, step, shape = attrs["start"], attrs["step"], attrs["shape"]
    if not all(isinstance(n, int) for part in (start, step, shape) for n in part):
        region = region_of(match.inner[0])  # of a size that is no number: just what was written
        if region is None or (region.low, region.step, region.count) != (start, step, shape):
            return None
        return r.builder.full(region.number, match.type) if region.patch is None else region.patch
    parts = [range(first, first + by * count, by)
             for first, by, count in zip(start, step, shape, strict=True)]
    whole, written = match.inner[0], r.held(Written)
    value = written.behind(whole, parts)
    update = written.update(value)
    regions = [update.part(at) for at in range(len(parts))] if update is not None else []
    if update is not None and all(map(within, parts, regions)):
        if update.patch is None:
            return r.builder.full(update.number, match.type)
        begin = tuple((part[0] - region[0]) // region.step if part else 0
                      for part, region in zip(parts, regions, strict=True))
        steps = tuple(by // region.step if len(part) > 1 else 1
                      for by, part, region in zip(step, parts, regions, strict=True))
        return r.slice(update.patch, start=begin, step=steps, shape=shape)
    return None if value is whole else r.slice(value, start=start, step=step, shape=shape)


def _slice_concatenate(r: Rewriter, match: Match) -> Any:
    """A slice that lies in one part is a slice of that."""
    node, attrs = match.inner[0].node, match.attrs[0]
    assert node is not None
    axis, first = node.attrs["axis"], attrs["start"][node.attrs["axis"]]
    last = first + (attrs["shape"][axis] - 1) * attrs["step"][axis]
    if not (isinstance(first, int) and isinstance(last, int)):
        return None
    before = 0
    for part in node.inputs:
        size = part.shape[axis]
        if not isinstance(size, int):
            return None
        if min(first, last) >= before and max(first, last) < before + size:
            start = (*attrs["start"][:axis], first - before, *attrs["start"][axis + 1:])
            return r.slice(part, start=start, step=attrs["step"], shape=attrs["shape"])
        before += size
    return None


def _slice_units(r: Rewriter, match: Match) -> Any:
    """A slice of a reshape that only puts in or leaves out dims of 1."""
    x, attrs, outer = match["x"], match.attrs[0], match.inner[0].shape
    wide = [at for at, dim in enumerate(outer) if dim != 1]
    own = [at for at, dim in enumerate(x.shape) if dim != 1]
    if [outer[at] for at in wide] != [x.shape[at] for at in own] or any(
            attrs["shape"][at] != 1 for at in range(len(outer)) if at not in wide):
        return None
    place = dict(zip(own, wide, strict=True))
    start, step, shape = (tuple(attrs[key][place[at]] if at in place else default
                                for at in range(len(x.shape)))
                          for key, default in (("start", 0), ("step", 1), ("shape", 1)))
    return r.reshape(r.slice(x, start=start, step=step, shape=shape), shape=attrs["shape"])


def _slice_broadcast(r: Rewriter, match: Match) -> Any:
    """A slice of what repeats x is what repeats a slice of x."""
    attrs, axes = match.attrs[0], match.attrs[1]["axes"]
    inner = r.slice(match["x"], start=tuple(attrs["start"][axis] for axis in axes),
                    step=tuple(attrs["step"][axis] for axis in axes),
                    shape=tuple(attrs["shape"][axis] for axis in axes))
    return r.broadcast(inner, shape=attrs["shape"], axes=axes)


def _slice_map(op: OpDef) -> Any:
    def replace(r: Rewriter, match: Match) -> Any:
        """Of a few elements that are computed, one is computed by itself: a state of three numbers,
        whose numbers a simulation takes apart and puts together in each step."""
        size = product(match.inner[0].shape)
        taken = product(match.type.shape)
        if not isinstance(size, int) or size > SMALL or taken == size:
            return None
        attrs, node = match.attrs[0], match.inner[0].node
        assert node is not None
        parts = [r.slice(operand, **attrs) for operand in node.inputs]
        return r.make(op, parts, node.attrs)[0]

    return replace


def _map_concatenate(op: OpDef, at: int) -> Any:
    def replace(r: Rewriter, match: Match) -> Any:
        """A few elements that were put together are computed one by one, too: what takes them apart
        again then reads the numbers."""
        joined = match.inner[0]
        size, node = product(joined.shape), joined.node
        assert node is not None
        if not isinstance(size, int) or size > SMALL or joined.shape != match.type.shape:
            return None
        assert op.arity is not None
        operands = [match[letter] for letter in LETTERS[:op.arity - 1]]
        operands.insert(at, joined)
        axis, parts, before = node.attrs["axis"], [], 0
        for part in node.inputs:
            start = tuple(before if each == axis else 0 for each in range(len(part.shape)))
            parts.append(r.make(op, [part if value is joined else r.slice(
                value, start=start, step=(1,) * len(start), shape=part.shape)
                for value in operands], match.attrs[0])[0])
            before += part.shape[axis]
        return r.concatenate(*parts, axis=axis)

    return replace


def _reshape_concatenate(r: Rewriter, match: Match) -> Any:
    """Dims of 1 are put in or left out of the few parts."""
    joined, shape = match.inner[0], match.type.shape
    size, node = product(joined.shape), joined.node
    assert node is not None
    wide = [at for at, dim in enumerate(shape) if dim != 1]
    own = [at for at, dim in enumerate(joined.shape) if dim != 1]
    axis = node.attrs["axis"]
    if not isinstance(size, int) or size > SMALL or axis not in own or [
            shape[at] for at in wide] != [joined.shape[at] for at in own]:
        return None
    place = wide[own.index(axis)]
    return r.concatenate(*(r.reshape(part, shape=(
        *shape[:place], part.shape[axis], *shape[place + 1:])) for part in node.inputs),
        axis=place)


def _with_joined(op: OpDef, at: int) -> str:
    """The pattern of an op with a concatenation as operand ``at``."""
    assert op.arity is not None
    args = list(LETTERS[:op.arity - 1])
    args.insert(at, "concatenate(...)")
    return f"{op.name}({', '.join(args)})"


_SLICED = tuple(op for op in OPS.values() if op.kind is Kind.MAP and op.arity
                and op.arity <= 3 and not op.indexed and op.check is None)

UPDATES: tuple[Rule, ...] = (
    Rule("slice-update", "slice(select(c, x, y))", _slice_update),
    Rule("slice-units", "slice(reshape(x))", _slice_units),
    Rule("slice-broadcast", "slice(broadcast(x))", _slice_broadcast),
    Rule("slice-concatenate", "slice(concatenate(...))", _slice_concatenate),
    Rule("reshape-concatenate", "reshape(concatenate(...))", _reshape_concatenate),
    *(Rule(f"slice-{op.name}", f"slice({op.name}(...))", _slice_map(op)) for op in _SLICED),
    *(Rule(f"{op.name}-concatenate-{at}", _with_joined(op, at), _map_concatenate(op, at))
      for op in _SLICED for at in range(op.arity or 0)),
)


def join_updates(graph: Graph) -> Graph:
    """The graph with updates that lie side by side along one axis as concatenations."""
    readers: dict[Value, list[Node]] = {}
    nodes = live_nodes(graph)
    for node in nodes:
        for value in node.inputs:
            readers.setdefault(value, []).append(node)
    chains: dict[Node, _Side] = {}
    written, joined_in = Written(), Counter[Value]()
    results = set(graph.results)
    for node in reversed(nodes):
        if node.results and written.update(node.results[0]) is not None and not _goes_on(
                node, readers, results, written):
            side = _chain(node.results[0], written)
            if side is not None and joined_in[side.last] < OFTEN:
                chains[node] = side
                joined_in.update(side.members)
    if not chains:
        return graph
    clone = Clone(graph)
    builder = Builder(clone.graph, OPS, share=True, fold=True)
    for param in graph.params:
        clone.param(param)
    for node in nodes:
        if node in chains:
            with builder.like(node):
                value = _joined(builder, chains[node], clone.values, node)
            clone.values[node.results[0]] = value
            assert value.node is not None
            clone.nodes[node] = value.node
        else:
            clone.node(node)
    joined = clone.finish()
    joined.nodes = live_nodes(joined)
    live = set(joined.nodes)
    lost = any(can_fail(node) and clone.nodes[node] not in live for node in nodes)
    return graph if lost else joined  # a base that could fail, all of which is written over


def _joined(
    builder: Builder, side: _Side, values: Mapping[Value, Value], node: Node
) -> Value:
    """The concatenation of patches and of what of the base is between them."""
    base, shape, axis = values[side.base], list(side.base.shape), side.axis
    parts: list[Value] = []

    def emit(op: str, *operands: Value, **attrs: Any) -> Value:
        return builder.emit(OPS[op], operands, attrs).results[0]

    def of_base(first: int, stop: Any) -> None:
        if stop == first:
            return
        own = tuple(stop - first if at == axis else dim for at, dim in enumerate(shape))
        fill = constant_of(base)
        start = tuple(first if at == axis else 0 for at in range(len(shape)))
        parts.append(builder.full(fill, base.type.with_shape(own)) if fill is not None else emit(
            "slice", base, start=start, step=(1,) * len(shape), shape=own))

    at = 0
    for update in side.patches:
        of_base(at, update.low[axis])
        if update.patch is not None:
            parts.append(values[update.patch])
        else:
            parts.append(builder.full(update.number, base.type.with_shape(update.count)))
        at = update.low[axis] + update.count[axis]
    of_base(at, shape[axis])
    return builder.emit(OPS["concatenate"], parts, {"axis": axis}, name=node.name).results[0]


def _goes_on(node: Node, readers: dict[Value, list[Node]], results: set[Value],
             written: Written) -> bool:
    """True if an update is nothing but the base of another one."""
    value = node.results[0]
    if value in results:
        return False
    return all(update is not None and update.base is value for update in (
        written.update(reader.results[0]) if reader.results else None
        for reader in readers.get(value, ())))


@record(frozen=True)
class _Side:
    """Updates along an axis, by their first index, and what they are put into."""

    axis: int
    patches: tuple[Update, ...]
    base: Value
    members: tuple[Value, ...]  # the values that they make, the last one first

    @property
    def last(self) -> Value:
        return self.members[0]


def _chain(value: Value, written: Written) -> _Side | None:
    """Updates of whole cross-sections, one after the other; None if they are too few."""
    axis, found, taken, members = -1, list[Update](), set[int](), list[Value]()
    shape = value.shape
    while (update := written.update(value)) is not None:
        narrow = [at for at, size in enumerate(update.count)
                  if size != shape[at] or update.step[at] != 1]
        along = narrow[0] if narrow else max(axis, 0)
        part = update.part(along)
        if len(narrow) > 1 or part.step != 1 or (axis not in (-1, along)) or not part or (
                not taken.isdisjoint(part)):
            break
        axis = along
        taken.update(part)
        found.append(update)
        members.append(value)
        value = update.base
    if len(found) < FEWEST:
        return None
    patches = tuple(sorted(found, key=lambda update: update.low[axis]))
    return _Side(axis, patches, value, tuple(members))
