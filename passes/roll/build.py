"""The graph with loops in the place of segments.

What others need of a loop is what its values are at the end (carried, though perhaps nothing in the
loop reads it) or the rows of all rounds. What is written into a buffer, a part in each round, is
rows, too: they are put into the buffer behind the loop.

    out1 = select(pad(k, low=t), pad(y, low=t), out0)       y of round t is row t;
                                                            out = out0 with rows from low on
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...ir.graph import (
    Builder,
    Graph,
    Node,
    Value,
    all_nodes,
    constant_of,
    control_of,
    freeze,
)
from ...ir.indices.index import Dim, symbol, symbols_of
from ...ir.indices.space import is_transparent
from ...ir.ops.control.region import Looping
from ...ir.ops.table import OPS
from ...ir.record import field, record
from ...ir.types import DType, TensorType
from ..clone import Clone
from ..simplify.rewrite import Rule, matched
from ..simplify.updates import FEWEST
from .affine import affine
from .buffers import SHAPED, Buffer, buffers, side_by_side, written
from .line import CONSTANT, Line
from .segment import Family, Inside, Outside, Segment, Source, Table

_JOINED = Rule("joined", "concatenate(...)", "x")

Slot = tuple[int, tuple[int, ...]]  # a value of a round, and what is read of it before it is made


@record
class Needs:
    """What is needed of a loop: rows of values, and values at its end by how many rounds ago."""

    rows: set[int] = field(default_factory=set)
    ends: dict[int, set[int]] = field(default_factory=dict)


@record(frozen=True)
class Target:
    """A graph that values of loops are made again in; ``outside`` is what it reads a value of the
    new graph as."""

    b: Builder
    outside: Callable[[Value], Value]


class Roller:
    """The new graph under construction."""

    def __init__(self, line: Line, loops: list[Segment],
                 roll: Callable[[Graph, frozenset[str]], Graph], taken: frozenset[str]) -> None:
        self.line, self.loops, self.roll, self.taken = line, loops, roll, taken
        self.clone = Clone(line.graph)
        self.builder = Builder(self.clone.graph, OPS, share=False, fold=False)
        self.spans = sorted((loop.span.start, loop.span.stop, at)
                            for at, loop in enumerate(loops))
        self.needs = [Needs() for _ in loops]
        self.buffers: list[tuple[Buffer, ...]] = [() for _ in loops]
        self.ends: dict[tuple[int, int, int], Value] = {}  # loop, value, rounds ago
        self.rows: dict[tuple[int, int], Value] = {}
        self.tables: dict[Any, Value] = {}  # by their constants
        self.ahead = [invariant(line, loop) for loop in loops]
        self._find_needs()

    # -- what is needed -------------------------------------------------------------------------

    def _loop_of(self, number: int) -> int:
        from bisect import bisect_right

        at = bisect_right(self.spans, (number, 1 << 62, 0)) - 1
        if at >= 0 and number < self.spans[at][1]:
            return self.spans[at][2]
        return -1

    def _find_needs(self) -> None:
        line = self.line
        uses: list[dict[int, set[int]]] = [{} for _ in self.loops]

        def use(number: int) -> None:
            loop = self._loop_of(number)
            if loop >= 0:
                round_, at = self.loops[loop].place(number)
                uses[loop].setdefault(at, set()).add(self.loops[loop].rounds - 1 - round_)

        at = 0
        for loop in [*self.loops, None]:
            for node in line.nodes[at:loop.start if loop else len(line.nodes)]:
                for value in line.inputs(node):
                    use(line.number[value])
            if loop is None:
                break
            at = loop.stop
            for source in (each for sources in loop.sources for each in sources):
                if isinstance(source, Outside):
                    use(source.number)
                elif isinstance(source, Inside):
                    for number in source.first:
                        use(number)
                elif isinstance(source, Family):
                    self._need_rows(source.loop, source.at)
        for value in line.graph.results:
            use(line.number[value])
        for number, (loop, used) in enumerate(zip(self.loops, uses, strict=True)):
            self._settle(number, loop, used)

    def _settle(self, number: int, loop: Segment, used: Mapping[int, set[int]]) -> None:
        """Rows, ends and buffers of a loop."""
        needs = self.needs[number]
        kept = tuple(buffer for buffer in buffers(self.line, loop) if all(
            at not in needs.rows and (at not in used or (
                used[at] == {0} and at == buffer.last)) for at in buffer.members))
        self.buffers[number] = kept
        of_buffers = {at for buffer in kept for at in buffer.members}
        delays: dict[int, int] = {}
        for source in (each for sources in loop.sources for each in sources):
            if isinstance(source, Inside):
                delays[source.at] = max(delays.get(source.at, 0), source.back)
        for at, ago in used.items():
            if at in of_buffers:
                continue
            if max(ago) < max(1, delays.get(at, 0)) and not self._is_made_again(number, at):
                needs.ends[at] = ago
            else:
                self._need_rows(number, at)
        needs.rows.update(part.patch for buffer in kept for part in buffer.parts)

    def _need_rows(self, loop: int, at: int) -> None:
        """Have rows of a value, or of what it is made of anew."""
        if not self._is_made_again(loop, at):
            self.needs[loop].rows.add(at)
            return
        for source in self._sources(loop, at):
            if isinstance(source, Inside):
                self._need_rows(loop, source.at)

    def _node(self, loop: int, at: int) -> int:
        """Which node of a round a value is a result of."""
        return int(self.line.home[self.loops[loop].first + at]) - self.loops[loop].start

    def _sources(self, loop: int, at: int) -> tuple[Source, ...]:
        return self.loops[loop].sources[self._node(loop, at)]

    def _is_made_again(self, loop: int, at: int) -> bool:
        """True for views and what is the same in all rounds: nothing is kept of them."""
        place = self._node(loop, at)
        if place in self.ahead[loop]:
            return True
        return is_transparent(self.line.nodes[self.loops[loop].start + place]) and all(
            isinstance(source, Outside) or (isinstance(source, Inside) and not source.back)
            for source in self._sources(loop, at))

    def again(self, loop: int, at: int, round_: Dim, target: Target) -> Value:
        """A value of some round of another loop, as rows have it or made anew."""
        place, segment = self._node(loop, at), self.loops[loop]
        old = self.line.value(segment.first + at)
        if place in self.ahead[loop]:
            return target.outside(self.clone.values[old])
        if not self._is_made_again(loop, at):
            return row(target.b, target.outside(self.rows[loop, at]), round_, old.shape)
        node = self.line.nodes[segment.start + place]
        inputs = [target.outside(self.get(source.number)) if isinstance(source, Outside)
                  else self.again(loop, source.at, round_, target)
                  for source in segment.sources[place] if isinstance(source, Outside | Inside)]
        attrs = moved(node, self.line.attrs(node), segment.steps[place], round_)
        made = target.b.emit(node.op, inputs, attrs, name=node.name, locs=node.locs)
        return made.results[old.index]

    def table(self, numbers: tuple[Any, ...], dtype: DType) -> Value:
        """An array of constants."""
        key = freeze((dtype.name, *numbers))
        if key not in self.tables:
            b = self.builder
            parts = [b.full(number, TensorType(dtype, (1,))) for number in numbers]
            self.tables[key] = b.concatenate(*parts, axis=0)
        return self.tables[key]

    # -- the new graph --------------------------------------------------------------------------

    def graph(self) -> Graph:
        line, clone = self.line, self.clone
        for param in line.graph.params:
            clone.param(param)
        at = 0
        for number, loop in enumerate(self.loops):
            self._plain(at, loop.start)
            _LoopWriter(self, number, loop).write()
            at = loop.stop
        self._plain(at, len(line.nodes))
        for value in line.graph.results:
            clone.values[value] = self.get(line.number[value])
        return clone.finish()

    def _plain(self, first: int, stop: int) -> None:
        for node in self.line.nodes[first:stop]:
            self.copy(node)

    def copy(self, node: Node) -> None:
        """Append a node as it is."""
        values = self.clone.values
        joined = len(node.inputs) >= FEWEST and matched(_JOINED, node.results[0]) is not None
        for value in self.line.inputs(node):
            if value not in values and not joined:
                values[value] = self.get(self.line.number[value])
        if joined:
            values[node.results[0]] = self._joined(node)
        else:
            made = copied(self.clone, node, [values[value] for value in self.line.inputs(node)],
                          self.line.attrs(node))
            for old, new in zip(node.results, made, strict=True):
                values.setdefault(old, new)

    def _joined(self, node: Node) -> Value:
        """A concatenation in which rounds that follow one another are rows."""
        numbers, axis = [self.line.number[value] for value in node.inputs], node.attrs["axis"]
        parts: list[Value] = []
        at = 0
        with self.builder.like(node):
            while at < len(numbers):
                stop = self._follow(numbers, at)
                rows = self._some_rows(numbers[at], stop - at, numbers[at + 1] < numbers[at],
                                       axis) if stop - at >= FEWEST else None
                stop = at + 1 if rows is None else stop
                parts.append(rows or self.get(numbers[at]))
                at = stop
            return parts[0] if len(parts) == 1 else self.builder.emit(
                node.op, parts, node.attrs, name=node.name).results[0]

    def _follow(self, numbers: Sequence[int], at: int) -> int:
        """How far values are those of one round of a loop after the other."""
        loop, stop = self._loop_of(numbers[at]), at + 1
        if loop >= 0 and stop < len(numbers):
            step = numbers[stop] - numbers[at]
            while stop < len(numbers) and abs(step) == self.loops[loop].values and (
                    numbers[stop] - numbers[stop - 1] == step
                    and self._loop_of(numbers[stop]) == loop):
                stop += 1
        return stop

    def _some_rows(self, number: int, count: int, turned: bool, axis: int) -> Value | None:
        """A value of so many rounds, side by side along an axis, if there are rows of it."""
        loop, shape = self._loop_of(number), self.line.value(number).shape
        round_, at = self.loops[loop].place(number)
        while (loop, at) not in self.rows:
            place = self._node(loop, at)
            source = self.loops[loop].sources[place][:1]
            value = self.line.value(self.loops[loop].first + at)
            if place in self.ahead[loop] or matched(SHAPED, value) is None or not (
                    isinstance(source[0], Inside) and not source[0].back):
                return None
            at = source[0].at
        b, rank = self.builder, len(shape)
        rows = b.reshape(self.rows[loop, at], shape=(self.loops[loop].rounds, *shape))
        some = b.slice(rows, start=(round_, *(0,) * rank), shape=(count, *shape),
                       step=(-1 if turned else 1, *(1,) * rank))
        return side_by_side(b, some, axis)

    def get(self, number: int) -> Value:
        """The new value of an old one."""
        old, values = self.line.value(number), self.clone.values
        if old not in values and number <= CONSTANT:
            assert old.node is not None
            self.clone.node(old.node)
        if old not in values:
            loop = self._loop_of(number)
            round_, at = self.loops[loop].place(number)
            ago = self.loops[loop].rounds - 1 - round_
            end = self.ends.get((loop, at, ago))
            values[old] = end if end is not None else self.again(
                loop, at, round_, Target(self.builder, lambda value: value))
        return values[old]


def row(b: Builder, rows: Value, at: Dim, shape: tuple[Dim, ...]) -> Value:
    """One of the rows of an array."""
    rank = len(shape)
    one = b.slice(rows, start=(at, *(0,) * rank), step=(1,) * (rank + 1), shape=(1, *shape))
    made: Value = b.reshape(one, shape=shape)
    return made


def copied(
    clone: Clone, node: Node, inputs: Sequence[Value], attrs: Mapping[str, Any]
) -> tuple[Value, ...]:
    """The results of a copy of a node that reads new values: the same old value may be several."""
    read = Node(node.op, tuple(inputs), dict(attrs), node.name, node.results, node.device,
                node.locs, node.after)
    clone.nodes[node] = clone.copy(read, {value: value for value in inputs})
    return clone.nodes[node].results


def moved(
    node: Node, attrs: Mapping[str, Any], steps: Sequence[int], round_: Dim
) -> dict[str, Any]:
    """Attributes of the first round, whose places move with the number of the round."""
    step = iter(steps)
    return {name: tuple(place + round_ * by if isinstance(place, int) and (by := next(step))
                        else place for place in value) if name in node.op.moving else value
            for name, value in attrs.items()}


def invariant(line: Line, loop: Segment) -> set[int]:
    """The nodes that are the same in all rounds; those that compute are computed before."""
    found, values = set[int](), set[int]()
    for at, sources in enumerate(loop.sources):
        node = line.nodes[loop.start + at]
        still = not any(loop.steps[at]) and not node.op.foreign and all(
            isinstance(source, Outside) or (
                isinstance(source, Inside) and not source.back and source.at in values)
            for source in sources)
        if still and node.op.control is None:
            found.add(at)
            values.update(line.number[value] - loop.first for value in node.results)
    return found


def names_in(graph: Graph) -> frozenset[str]:
    """The symbols that a graph knows: of sizes, and the indices of its loops."""
    found = frozenset[str]().union(*(symbols_of(dim) for value in graph.values()
                                     for dim in value.shape if not isinstance(dim, int)))
    found |= {control.index for node in all_nodes(graph)
              if isinstance(control := control_of(node), Looping)}
    return found


class _LoopWriter:
    """One loop: its body, and what comes before and after it."""

    def __init__(self, roller: Roller, number: int, loop: Segment) -> None:
        self.roller, self.number, self.loop, self.line = roller, number, loop, roller.line
        self.nodes = self.line.nodes[loop.start:loop.start + loop.period]
        self.needs, self.buffers = roller.needs[number], roller.buffers[number]
        self.index = next(name for k in count() if (name := f"k{k}") not in roller.taken)
        self.body = Clone(self.line.graph)
        self.body.graph = Graph("round")
        self.b = Builder(self.body.graph, OPS, share=False, fold=False)
        self.slots: dict[Slot, Value] = {}
        self.outer: dict[Value, Value] = {}     # new values from around, and their parameters
        self.local: list[Value | None] = [None] * loop.values
        self.skipped = {at for buffer in self.buffers for at in buffer.members}
        self.ahead = roller.ahead[number]

    def write(self) -> None:
        """Append the loop to the new graph."""
        loop, roller, line = self.loop, self.roller, self.line
        for source in self._handed_on():
            for back in range(source.back):
                slot = source.at, source.first[back:]
                if slot not in self.slots:
                    type_ = line.value(loop.first + source.at).type
                    self.slots[slot] = self.body.graph.add_param(type_, f"c{len(self.slots)}")
        for at in sorted(self.needs.ends):
            if not any(slot[0] == at for slot in self.slots):
                type_ = line.value(loop.first + at).type
                self.slots[at, ()] = self.body.graph.add_param(type_, f"c{len(self.slots)}")
        self._write_body()
        rows = sorted(self.needs.rows)
        results = [self._following(slot) for slot in self.slots]
        self.body.graph.results = [*results, *(self._local(at) for at in rows)]
        inits = [self._init(slot) for slot in self.slots]
        body = roller.roll(self.body.graph, roller.taken | {self.index})
        made = roller.builder.emit(OPS["scan"], [*inits, *self.outer], {
            "carried": len(inits), "scanned": 0, "length": loop.rounds, "reverse": False,
            "index": self.index, "body": body}, name="rounds", locs=self.nodes[0].locs)
        for (at, first), result in zip(self.slots, made.results, strict=False):
            roller.ends[self.number, at, max(0, len(first) - 1)] = result
        for at, result in zip(rows, made.results[len(inits):], strict=True):
            roller.rows[self.number, at] = result
        for buffer in self.buffers:
            base = roller.get(buffer.base)
            roller.ends[self.number, buffer.last, 0] = written(
                roller.builder, buffer, base, loop.rounds,
                {part.patch: roller.rows[self.number, part.patch] for part in buffer.parts})

    def _handed_on(self) -> list[Inside]:
        """The operands that come from rounds before."""
        return [source for at, sources in enumerate(self.loop.sources)
                if not self._is_skipped(at) for source in sources
                if isinstance(source, Inside) and source.back]

    def _is_skipped(self, at: int) -> bool:
        return self._number(at) in self.skipped

    def _number(self, at: int) -> int:
        """Which value of the round the first result of a node is."""
        return int(self.line.first_value[self.loop.start + at]) - self.loop.first

    def _outside(self, value: Value) -> Value:
        """The parameter for a value of the new graph."""
        if value not in self.outer:
            self.outer[value] = self.body.graph.add_param(value.type, f"x{len(self.outer)}")
        return self.outer[value]

    def _write_body(self) -> None:
        loop, roller = self.loop, self.roller
        for at, node in enumerate(self.nodes):
            if at in self.ahead:
                roller.copy(node)
                if not is_transparent(node):
                    for k, value in enumerate(node.results):
                        self.local[self._number(at) + k] = self._outside(
                            roller.clone.values[value])
                    continue
            if self._is_skipped(at):
                continue
            made = copied(self.body, node, [self._source(source) for source in loop.sources[at]],
                          moved(node, self.line.attrs(node), loop.steps[at], self._index()))
            self.local[self._number(at):self._number(at) + len(made)] = made

    def _source(self, source: Source) -> Value:
        if isinstance(source, Outside):
            return self._constant(source.number) if source.number <= CONSTANT else (
                self._outside(self.roller.get(source.number)))
        if isinstance(source, Inside):
            return self._local(source.at) if not source.back else self.slots[
                source.at, source.first]
        if isinstance(source, Table):
            return self._constants([self.line.value(number) for number in source.numbers])
        return self.roller.again(source.loop, source.at, self._index() * source.step + source.first,
                                 Target(self.b, self._outside))

    def _constants(self, values: Sequence[Value]) -> Value:
        """The constant of a round: computed if that is exact, else taken from an array of them."""
        numbers = tuple(map(constant_of, values))
        b, round_, type_ = self.b, self._index(), values[0].type
        line = affine(np.array(numbers, type_.dtype.numpy))
        if line is None:
            rows = self.roller.table(numbers, type_.dtype)
            one = row(b, self._outside(rows), round_, ())
        else:
            one = b.cast(b.dim(size=round_ * line.step + line.first), dtype=type_.dtype)
            if line.by is not None:
                one = b.mul(one, b.full(line.by, one.type))
        made: Value = b.broadcast(one, shape=type_.shape, axes=()) if type_.rank else one
        return made

    def _constant(self, number: int) -> Value:
        value = self.line.value(number)
        if value not in self.body.values:
            assert value.node is not None
            self.body.node(value.node)
        return self.body.values[value]

    def _index(self) -> Any:
        return symbol(self.index, self.loop.rounds)

    def _local(self, at: int) -> Value:
        value = self.local[at]
        assert value is not None, "a value that no round makes"
        return value

    def _following(self, slot: Slot) -> Value:
        at, first = slot
        return self.slots[at, first[1:]] if len(first) > 1 else self._local(at)

    def _init(self, slot: Slot) -> Value:
        at, first = slot
        if first:
            return self.roller.get(first[0])
        return self.roller.builder.full(0, self.line.value(self.loop.first + at).type)
