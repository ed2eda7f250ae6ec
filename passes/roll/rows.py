"""Parts of one row of an array are written into the row, which then is written whole.

    u1 = u0 with a at [t, 1:-1]        r0 = u0[t]; r1 = r0 with a at [1:-1]
    s = u1[t, 1]                       s = r1[1]
    u2 = u1 with b at [t, 0]      ->   r2 = r1 with b at [0]
    v = u2[t - 1, 2:]                  v = (the row t - 1 when it was written)[2:]
                                       u2 = u0 with r2 at [t]

So what a simulation with boundaries keeps in a table of all its states is read from row to row, and
rounds hand on a row, not the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.graph import Builder, Graph, Node, Value, live_nodes
from ...ir.ops.table import OPS
from ...ir.record import record
from ...ir.types import BOOL, TensorType
from ..clone import Clone
from ..simplify.rewrite import Rule, matched
from ..simplify.written import Update, update_of

FAR = 16  # rows behind which one may be found

_SLICE = Rule("slice", "slice(x)", "x")


@record
class _Group:
    """Updates of the row ``index`` of ``axis``, one after the other."""

    base: Value                # what the first one changes
    places: Mapping[int, int]  # the axes along which all of them write at one index, with that
    members: list[tuple[Value, Update]]

    @property
    def axis(self) -> int:
        return min(self.places)

    @property
    def index(self) -> int:
        return self.places[self.axis]

    @property
    def is_partial(self) -> bool:
        """True if they are not just a row or an element."""
        own = self.axis
        sizes = [[(n, whole) for at, (n, whole) in enumerate(
            zip(update.count, value.shape, strict=True)) if at != own]
            for value, update in self.members]
        return any(n != whole for each in sizes for n, whole in each) and (
            len(sizes) > 1 or any(n != 1 for n, _ in sizes[0]))


@record(frozen=True)
class _State:
    """An array after an update: a row of it is known. Rows beside ``hull`` are those of ``root``.
    """

    group: _Group
    row: Value
    root: Value
    hull: range


def with_rows(graph: Graph, least: int) -> Graph:
    """The graph with whole rows; the same one if there are fewer of them."""
    groups = [group for group in _groups(graph) if group.is_partial]
    return _Writer(graph, groups).graph() if len(groups) >= least else graph


def _groups(graph: Graph) -> list[_Group]:
    found: list[_Group] = []
    last: dict[Value, _Group] = {}
    for node in graph.nodes:
        if len(node.inputs) != 3 or not node.results or (
                update := update_of(node.results[0])) is None:
            continue
        value = node.results[0]
        places = {at: low for at, (low, n) in enumerate(zip(update.low, update.count, strict=True))
                  if n == 1 != value.shape[at]}
        group = last.pop(update.base, None)
        shared = {} if group is None else dict(places.items() & group.places.items())
        if group is not None and shared:
            group.places = shared
        elif places:
            group = _Group(update.base, places, [])
            found.append(group)
        else:
            continue
        group.members.append((value, update))
        last[value] = group
    return found


class _Writer:
    """The new graph under construction."""

    def __init__(self, graph: Graph, groups: Sequence[_Group]) -> None:
        self.clone = Clone(graph)
        self.b = Builder(self.clone.graph, OPS, share=False, fold=False)
        self.of = {value: (group, update) for group in groups for value, update in group.members}
        self.states: dict[Value, _State] = {}

    def graph(self) -> Graph:
        for param in self.clone.old.params:
            self.clone.param(param)
        for node in self.clone.old.nodes:
            self._node(node)
        for value in self.clone.old.results:
            self._whole(value)
        made = self.clone.finish()
        made.nodes = live_nodes(made)
        return made

    def _node(self, node: Node) -> None:
        values = self.clone.values
        if len(node.results) == 1 and node.results[0] in self.of:
            with self.b.like(node):
                self._update(node.results[0])
        elif node.inputs and node.inputs[0] in self.states and _is_slice(node):
            start, step, shape = (node.attrs[name] for name in ("start", "step", "shape"))
            with self.b.like(node):
                values[node.results[0]] = self._slice(node.inputs[0], start, step, shape)
        else:
            for value in node.inputs:
                if value not in values:
                    with self.b.like(node):
                        self._whole(value)
            self.clone.node(node)

    def _update(self, value: Value) -> None:
        group, update = self.of[value]
        axis, shape = group.axis, tuple(1 if at == group.axis else n
                                        for at, n in enumerate(value.shape))
        before = self.states.get(update.base)
        if value is group.members[0][0]:
            row = self._slice(update.base, tuple(group.index if at == axis else 0
                                                 for at in range(len(shape))),
                              (1,) * len(shape), shape)
        else:
            assert before is not None
            row = before.row
        patch = self._whole(update.patch) if update.patch is not None else None
        row = self._put(row, patch, update, tuple(0 if at == axis else low
                                                  for at, low in enumerate(update.low)))
        root, hull = group.base, range(group.index, group.index + 1)
        if before is not None and before.group.axis == axis:
            root = before.root
            hull = range(min(hull.start, before.hull.start), max(hull.stop, before.hull.stop))
        self.states[value] = _State(group, row, root, hull)
        if value is group.members[-1][0]:
            self._whole(value)

    def _put(self, base: Value, patch: Value | None, update: Update, low: tuple[int, ...]) -> Value:
        """An array with the patch of an update, or its constant, at a place."""
        count = update.count
        if patch is not None and patch.shape == base.shape:
            return patch
        gap = tuple([by - 1 for by in update.step])
        high = tuple([whole - first - n - (n - 1) * by for whole, first, n, by in zip(
            base.shape, low, count, gap, strict=True)])
        widths = {"low": low, "high": high, "interior": gap}
        mask = self._emit("pad", self.b.full(True, TensorType(BOOL, count)), **widths, value=False)
        inside = self.b.full(update.number, base.type) if patch is None else self._emit(
            "pad", patch, **widths, value=0)
        return self._emit("select", mask, inside, base)

    def _emit(self, op: str, *operands: Value, **attrs: Any) -> Value:
        return self.b.emit(OPS[op], operands, attrs).results[0]

    def _whole(self, value: Value) -> Value:
        """The new value of an old one: of an array, with its row."""
        values, pending = self.clone.values, [value]
        while (base := pending[-1]) not in values:
            pending.append(self.states[base].group.base)
        for each in reversed(pending[:-1]):
            state = self.states[each]
            group = state.group
            low = tuple(group.index if at == group.axis else 0 for at in range(len(each.shape)))
            count = tuple(n for n in state.row.shape if isinstance(n, int))
            values[each] = self._put(values[group.base], state.row, Update(
                group.base, None, None, low, (1,) * len(low), count), low)
        return values[value]

    def _slice(
        self, value: Value, start: tuple[Any, ...], step: tuple[Any, ...], shape: tuple[Any, ...]
    ) -> Value:
        """A slice of an old value: of a row of it, if it lies in one that has been written."""
        for _ in range(FAR):
            state = self.states.get(value)
            axis = state.group.axis if state is not None else 0
            if state is None or not all(isinstance(n, int) for n in (
                    start[axis], step[axis], shape[axis])):
                break
            part = range(start[axis], start[axis] + step[axis] * shape[axis], step[axis])
            if list(part) == [state.group.index]:
                inner = tuple(0 if at == axis else n for at, n in enumerate(start))
                return self._cut(state.row, inner, step, shape)
            if state.group.index in part or not part:
                break
            beside = min(part) >= state.hull.stop or max(part) < state.hull.start
            value = state.root if beside else state.group.base
        return self._cut(self._whole(value), start, step, shape)

    def _cut(self, value: Value, start: Any, step: Any, shape: tuple[Any, ...]) -> Value:
        return value if value.shape == shape else self._emit(
            "slice", value, start=start, step=step, shape=shape)


def _is_slice(node: Node) -> bool:
    """True for slices."""
    return len(node.results) == 1 and matched(_SLICE, node.results[0]) is not None
