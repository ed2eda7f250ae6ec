"""What follows from the ranges of integers (``ranges``) is known before the program runs.

    for t0 in 30: for t1 in 30:                              for t0 in 30: for t1 in 30:
        %2 = add dim {t0}, 1; unwrapped %2                       %5 = slice %T {shape = (1, 1),
        %5 = gather %T, sub(%2, 1), add(dim {t1}, 1)                         start = (t0, t1 + 1)}

    unwrapped %s, %a, %b        %s, where the sum does not leave its dtype
    checked %d, ne(%d, 0)       %d, where it is not 0; likewise "ensure"
    lt %a, %b                   true or false, where it is always that
    cond true, ...              the nodes of its way
    maximum %a, 0; mod %a, 9    %a, where it is not negative; where it is below 9, too
    mod %a, 7                   that of unsigned numbers, where %a is not negative
    gather %x, %i               gather {inside = ("all",)}, where no index is out of range, or
                                ("low",), where none is negative: nothing of that is checked
    while t1 < t0               scan {length = t0}: a loop of so many rounds
    while that stores at one    while that carries the element there (``promote``)
    while that reads the last   while that carries what it has stored (``following``)

Sums and multiples of the numbers of rounds, of which there are as many as is known, become dims;
and elements at such places are views, which cost nothing and can be chosen from (``choose``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...ir.graph import (
    Builder,
    Graph,
    Node,
    Value,
    can_fail,
    constant_of,
    control_of,
    with_bodies,
)
from ...ir.indices.affine import coefficient
from ...ir.indices.index import Dim, Expr, is_natural, positive, symbols_of, terms_of
from ...ir.indices.rounds import Counts
from ...ir.ops.control.region import Branching, Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.record import record
from ...ir.types import BOOL, I64, as_dtype
from ..clone import Clone
from ..patches import stored_in_rounds
from .boxes import box, of_some
from .carried import Bound, Carried, carried
from .following import Following, followed, followings
from .induction import ROUNDS
from .joining import join, join_truth, take_over, way_taken
from .learning import decided, fits, learn_node
from .promote import Promotion, promoted, promotions
from .ranges import Ranges

_CHOICES = OPS["maximum"], OPS["minimum"], OPS["mod"]  # whose result may be an operand
_TRIALS = 2  # after which nothing is taken on trial
_DEEP = 2    # loops around one in which nothing is: each trial is one of all loops inside
_DIVISIONS = OPS["mod"], OPS["floordiv"]
_ASKED = OPS["checked"], OPS["ensure"]


def known_places(graph: Graph) -> Graph:
    """The graph without what follows from ranges; one without loops and branches is left for
    ``marked_places``, when equal parts of it have become loops."""
    if all(node.op.control is None for node in graph.nodes):
        return graph
    return _Walk(graph, MappingProxyType({}), Ranges(), False).graph()


def marked_places(graph: Graph) -> Graph:
    """The same, and reads and stores say what of their indices needs no check, which passes that
    change nodes do not know."""
    return _Walk(stored_in_rounds(graph), MappingProxyType({}), Ranges(), True).graph()


class _Walk:
    """One graph: what is known of its values so far."""

    def __init__(self, graph: Graph, counts: Counts, ranges: Ranges, mark: bool,
                 failing: Iterable[Value] = (), depth: int = 0) -> None:
        self.old, self.counts, self.ranges, self.mark = graph, counts, ranges, mark
        self.clone = Clone(graph)
        self.builder = Builder(self.clone.graph, OPS, share=False, fold=False)
        self.made: dict[Dim, Value] = {}
        self.failing: set[Value] = set(failing)  # values of which computing them may fail
        self.given = frozenset(self.failing)     # parameters among them
        self.depth = depth  # loops around
        # Of loops that carry elements, those and the walk through their body.
        self.promoted: dict[Node, tuple[list[Promotion], _Walk]] = {}
        self.followed: dict[Node, tuple[list[Following], _Walk]] = {}
        self.counted: dict[Node, Dim] = {}  # how many rounds a loop has that asks before each

    def graph(self) -> Graph:
        """The new graph."""
        self.clone.params()
        for value in self.old.params:
            if value in self.ranges.exprs and self.old.nodes:
                self._replaced(value, self.old.nodes[0])
        for node in self.old.nodes:
            self._node(node)
        return self.clone.finish()

    def _node(self, node: Node) -> None:
        control = control_of(node)
        if isinstance(control, Branching):
            way = way_taken(node, control, self.clone.values[node.inputs[0]])
            if way is not None:
                self._take(node, way)
                return
        self._note_failing(node)
        if node.op.control is not None:
            self._control(node)
            return
        learn_node(self.ranges, node)
        plain = len(node.results) == 1 and not node.after
        if not plain or not (self._is_known(node) or self._is_decided(node)
                             or self._is_operand(node) or self._is_checked(node)
                             or self._is_cast(node)
                             or self._is_view(node) or self._is_unsigned(node)):
            copy = self.clone.node(node)
            if self.mark and "inside" in node.op.facts:
                copy.attrs = self._marked(node)

    def _take(self, node: Node, way: Graph) -> None:
        """A branch that always takes one way is the nodes of that."""
        ranges = self.ranges.inside()
        self._tell(ranges, way.params, node.inputs[1:])
        walk = _Walk(way, self.counts, ranges, self.mark, self._failing_in(
            way.params, node.inputs[1:]), self.depth)
        made = walk.graph()
        values = {param: self.clone.values[value] for param, value in zip(
            made.params, node.inputs[1:], strict=True)}
        for inner in made.nodes:
            self.clone.copy(inner, values, inner.device or node.device)
        for result, old, new in zip(node.results, way.results, made.results, strict=True):
            self.clone.values[result] = values[new]
            if old in walk.failing:
                self.failing.add(result)
            take_over(self.ranges, result, old, ranges)

    def _note_failing(self, node: Node) -> None:
        checked = can_fail(node)
        if checked and node.op is OPS["unwrapped"]:
            checked = not fits(self.ranges, node)
        if checked and node.op is OPS["narrow"]:
            checked = not self._fits(node)
        if checked and node.op in _ASKED:
            checked = not self._holds(node)
        if checked or not self.failing.isdisjoint(node.inputs):
            self.failing.update(node.results)

    def _control(self, node: Node) -> None:
        attrs = self._bodies(node)
        if node in self.counted:
            copy = self.clone.node(node)
            copy.op, copy.attrs = OPS["scan"], {
                "carried": attrs["carried"], "scanned": 0, "length": self.counted.pop(node),
                "reverse": False, "index": attrs["index"], "body": attrs["body"]}
            return
        control = node.op.control(**attrs) if node.op.control else None
        if node in self.promoted and isinstance(control, Looping):
            elements, walk = self.promoted.pop(node)
            promoted(self.clone, self.builder, node, attrs, control, elements, walk.clone)
        elif node in self.followed and isinstance(control, Looping):
            reads, walk = self.followed.pop(node)
            followed(self.clone, self.builder, node, attrs, control, reads, walk.clone)
        else:
            self.clone.node(node).attrs = attrs

    def _bodies(self, node: Node) -> dict[str, Any]:
        """The attributes of a node, with what is known in its bodies."""
        control = control_of(node)
        for value in node.inputs:
            if value.dtype.is_int:
                self.ranges.expr(value)
        if isinstance(control, Looping):
            return self._rounds(node, control)
        if isinstance(control, Branching):
            return self._branches(node, control)
        return with_bodies(node, lambda body: _Walk(
            body, self.counts, self.ranges.inside(), self.mark,
            body.params if not self.failing.isdisjoint(node.inputs) else (), self.depth).graph())

    def _failing_in(self, params: Sequence[Value], operands: Sequence[Value]) -> set[Value]:
        """The parameters of a body that stand for what may fail."""
        return {param for param, value in zip(params, operands, strict=True)
                if value in self.failing}

    def _branches(self, node: Node, control: Branching) -> dict[str, Any]:
        known = self.ranges.truths.get(node.inputs[0], ((), ()))
        made: dict[int, Graph] = {}
        ways: list[tuple[Graph, Ranges]] = []
        for body, facts in zip((control.then, control.other), known, strict=True):
            ranges = self.ranges.inside()
            ranges.learn(facts)
            self._tell(ranges, body.params, node.inputs[1:])
            made[id(body)] = _Walk(body, self.counts, ranges, self.mark, self._failing_in(
                body.params, node.inputs[1:]), self.depth).graph()
            ways.append((body, ranges))
        for at, result in enumerate(node.results):
            if result.dtype.is_int:
                join(self.ranges, result, [(body.results[at], ranges) for body, ranges in ways])
            elif result.dtype == BOOL:
                join_truth(self.ranges, node, at, known, ways)
        return with_bodies(node, lambda body: made[id(body)])

    def _rounds(self, node: Node, control: Looping) -> dict[str, Any]:
        """What is known in a loop, and in what is taken of it on trial (``carried``). What a round
        makes of what it carries may fail, and so may that of the next round."""
        dropped: frozenset[Bound] | None = frozenset() if self.depth < _DEEP else None
        failing: frozenset[Value] = frozenset()
        for trial in itertools.count():
            known = self._looked_at(node, control, dropped, failing)
            broken, fails = known.bounds.broken(known.inner.ranges), frozenset(
                param for param, result in zip(
                    control.body.params[:control.carried],
                    control.body.results[:control.carried], strict=True)
                if result in known.inner.failing)
            if not broken and fails <= failing | known.inner.given:
                break
            last = trial >= _TRIALS
            dropped = None if last or dropped is None else dropped | broken
            failing |= frozenset(control.body.params[:control.carried]) if last else fails
        known.bounds.learn_ends(self.ranges, node)
        found = [each for each in promotions(control, known.inner.ranges) if self._is_there(
            node, control, known.inner.ranges, each)] if self.mark else []
        reads = followings(control, known.inner.ranges, self.ranges) if self.mark else []
        if found:
            self.promoted[node] = found, known.inner
        elif reads:
            self.followed[node] = reads, known.inner
        elif control.test is not None and control.count is None and (
                known.length is not None and self._is_size(known.length)):
            self.counted[node] = known.length
        return with_bodies(node, lambda body: known.made[id(body)])

    def _looked_at(
        self, node: Node, control: Looping, dropped: frozenset[Bound] | None,
        failing: frozenset[Value]
    ) -> _Loop:
        """The bodies of a loop. A test may be asked once more than there are rounds, and holds
        where there is one."""
        body, test, index = control.body, control.test, control.index
        ranges, count, own = self.ranges.inside(index), control.count, control.carried
        ranges.bound(index, (0,), (ROUNDS if count is None else of_some(count) - 1,))
        first = own + control.scanned
        fails = failing | self._failing_in(body.params, node.inputs)
        bounds = carried(node, control, self.ranges, ranges, fails, dropped)
        self._tell(ranges, body.params[first:], node.inputs[first:])
        made: dict[int, Graph] = {}
        length: Dim | None = None
        if test is not None:
            asked = ranges.inside()
            asked.bound(index, (0,), (ROUNDS if count is None else count,))
            self._tell(asked, test.params[own:], node.inputs[own:])
            for param, same in zip(test.params[:own], body.params[:own], strict=True):
                if param.dtype.is_int:
                    asked.exprs[param] = ranges.exprs[same]
            walk = _Walk(test, self._counts(control, True), asked, self.mark, [
                param for param, same in zip(test.params, body.params, strict=True)
                if same in fails])
            made[id(test)] = walk.graph()
            length = _length(test, asked, index) if walk.failing.isdisjoint(test.results) else None
            ranges.learn(asked.truths.get(test.results[0], ((), ()))[0])
        if count is not None:  # where there is a round, there is more than none
            ranges.learn((of_some(count) - 1,))
        counts = dict(self._counts(control, False))
        if length is not None and self._is_size(length) and length != 0:
            counts[index] = of_some(length)
        inner = _Walk(body, counts, ranges, self.mark, fails, self.depth + 1)
        made[id(body)] = inner.graph()
        return _Loop(made, inner, bounds, length)

    def _is_there(
        self, node: Node, control: Looping, ranges: Ranges, found: Promotion
    ) -> bool:
        """Whether a place is in its array, though there be no round."""
        array, params = control.body.params[found.at], control.body.params
        return all(self._inside(
            self.ranges.expr(node.inputs[params.index(index)]) if index in params
            else ranges.expr(index), array.shape[axis]) == "all"
            for axis, index in zip(found.store.attrs["axes"], found.indices, strict=True))

    def _counts(self, loop: Looping, tests: bool) -> Counts:
        rest = {name: count for name, count in self.counts.items() if name != loop.index}
        if loop.count is not None and loop.count != 0:
            rest[loop.index] = of_some(loop.count) + tests
        return rest

    def _tell(self, ranges: Ranges, params: Sequence[Value], operands: Sequence[Value]) -> None:
        """Parameters of a body are what they are outside."""
        for param, value in zip(params, operands, strict=True):
            expr = ranges.exprs.get(value)
            # What may fail to be there is asked for, though the rounds tell what it would be.
            if expr is not None and not (value in self.failing and self._is_told(expr)):
                ranges.exprs[param] = expr

    # -- numbers --------------------------------------------------------------------------------

    def _is_known(self, node: Node) -> bool:
        """Whether a node is a number that is told by rounds; then it stands for that."""
        return node.results[0] not in self.failing and self._replaced(node.results[0], node)

    def _replaced(self, value: Value, node: Node) -> bool:
        if value.type.shape or value.type.dtype != I64 or value not in self.ranges.exprs:
            return False
        expr = self.ranges.exprs[value]
        if not isinstance(expr, Expr) or not self._is_told(expr):
            return False
        if expr not in self.made:
            with self.builder.like(node):
                self.made[expr] = self.builder.emit(
                    OPS["dim"], (), {"size": expr}, name=node.name).results[0]
        self.clone.values[value] = self.made[expr]
        return True

    def _is_told(self, expr: Dim) -> bool:
        """Whether an expression has numbers of rounds alone, of loops of so many rounds."""
        return symbols_of(expr) <= self.counts.keys() and all(
            len(atoms) <= 1 for atoms, _ in terms_of(expr))

    def _is_size(self, expr: Dim) -> bool:
        """Whether an expression has sizes and the numbers of rounds alone."""
        return all(name in self.counts or (name[0] != "%" and name not in self.ranges.limits)
                   for name in symbols_of(expr))

    def _is_decided(self, node: Node) -> bool:
        """Whether a comparison is always the same; then it is that."""
        if node.results[0].dtype != BOOL or node.results[0] in self.failing:
            return False
        answer = decided(self.ranges, node)
        if answer is None:
            return False
        with self.builder.like(node):
            self.clone.values[node.results[0]] = self.builder.full(answer, node.results[0].type)
        return True

    def _is_operand(self, node: Node) -> bool:
        """Whether a node only says what is known, or chooses what is chosen."""
        if not node.results[0].dtype.is_int:
            return False
        (result,), ranges = node.results, self.ranges
        if node.op is OPS["unwrapped"]:
            same = [node.inputs[0]] if fits(ranges, node) else []
        elif node.op in _CHOICES:
            same = [value for value in node.inputs if result in ranges.exprs
                    and ranges.expr(value) == ranges.exprs[result]
                    and self.failing.isdisjoint(set(node.inputs) - {value})]
        else:
            return False
        for value in same:
            if value.type == result.type:
                self.clone.values[result] = self.clone.values[value]
                return True
        return False

    def _is_checked(self, node: Node) -> bool:
        """Whether what a node asks of its operand always holds; then it is that."""
        holds = node.op in _ASKED and self._holds(node)
        if holds:
            self.clone.values[node.results[0]] = self.clone.values[node.inputs[0]]
        return holds

    def _holds(self, node: Node) -> bool:
        asked = node.inputs[1]
        if asked in self.failing:
            return False
        if node.op is OPS["ensure"]:
            return asked.dtype.is_int and self.ranges.holds(self.ranges.expr(asked)) is True
        return constant_of(asked) is True or (
            asked.node is not None and decided(self.ranges, asked.node) is True)

    def _fits(self, node: Node) -> bool:
        """Whether an integer surely is one of the dtype that it becomes."""
        return self.ranges.fits(self.ranges.expr(node.inputs[0]), node.results[0].dtype)

    def _is_cast(self, node: Node) -> bool:
        """Whether nothing needs to be checked of an integer in another dtype."""
        if node.op is not OPS["narrow"] or not self._fits(node):
            return False
        with self.builder.like(node):
            self.clone.values[node.results[0]] = self.builder.cast(
                self.clone.values[node.inputs[0]], dtype=node.results[0].dtype)
        return True

    def _is_unsigned(self, node: Node) -> bool:
        """Whether a division has no signs to look at."""
        (result,), ranges = node.results, self.ranges
        if not self.mark or node.op not in _DIVISIONS or result.dtype.kind != "i" or not all(
                ranges.holds(ranges.expr(value)) for value in node.inputs):
            return False
        dtype = as_dtype(f"u{result.dtype.bits}")
        with self.builder.like(node):
            operands = [self.builder.cast(self.clone.values[value], dtype=dtype)
                        for value in node.inputs]
            self.clone.values[result] = self.builder.cast(self.builder.emit(
                node.op, operands, node.attrs).results[0], dtype=result.dtype)
        return True

    def _marked(self, node: Node) -> dict[str, Any]:
        """The attributes of a read or a store, with what is known of its indices."""
        x, axes = node.inputs[0], node.attrs["axes"]
        known = tuple([self._word(value, x.shape[axis]) for axis, value in zip(
            axes, node.inputs[-len(axes):], strict=True)])
        return {**node.attrs, "inside": known} if any(known) else dict(node.attrs)

    def _word(self, index: Value, extent: Dim) -> str:
        return self._inside(self.ranges.expr(index), extent)

    def _inside(self, expr: Dim, extent: Dim) -> str:
        if not self.ranges.holds(expr):
            return ""
        return "all" if self.ranges.holds(extent - 1 - expr) else "low"

    # -- reads ----------------------------------------------------------------------------------

    def _is_view(self, node: Node) -> bool:
        """Whether a node reads at known places of some axes; then these are a view."""
        if node.op.kind is not Kind.GATHER or "axes" not in node.attrs or any(
                value.type.shape for value in node.inputs[1:]):
            return False
        x, *indices = node.inputs
        axes = node.attrs["axes"]
        starts = {axis: start for axis, value in zip(axes, indices, strict=True)
                  if (start := self._start(value, x.shape[axis])) is not None}
        if not starts:
            return False
        new = self.clone.values[x]
        with self.builder.like(node):
            part = self.builder.slice(
                new, start=tuple(starts.get(axis, 0) for axis in range(len(x.shape))),
                step=(1,) * len(x.shape),
                shape=tuple(1 if axis in starts else dim for axis, dim in enumerate(x.shape)))
            part = self.builder.reshape(part, shape=tuple(
                dim for axis, dim in enumerate(x.shape) if axis not in starts))
            rest = [(axis - sum(other < axis for other in starts), self.clone.values[value])
                    for axis, value in zip(axes, indices, strict=True) if axis not in starts]
            if rest:
                part = self.builder.emit(
                    node.op, (part, *(value for _, value in rest)),
                    {**node.attrs, "axes": tuple(axis for axis, _ in rest)}).results[0]
        self.clone.values[node.results[0]] = part
        return True

    def _start(self, value: Value, extent: Dim) -> Dim | None:
        """Where a view begins that has the element at a place; None if that is not known."""
        if not value.dtype.is_int or value in self.failing:
            return None
        expr = self.ranges.expr(value)
        low, high = box(expr, self.counts) if self._is_size(expr) else (None, None)
        if low is None or high is None:
            return None
        if is_natural(low) and is_natural(extent - 1 - high):
            return expr
        return expr + extent if is_natural(low + extent) and is_natural(-1 - high) else None


@record(frozen=True)
class _Loop:
    """A loop that was looked at: its new bodies, the walk over the one of its rounds, what is known
    of what it carries, and how many rounds there are where the test tells."""

    made: Mapping[int, Graph]
    inner: _Walk
    bounds: Carried
    length: Dim | None


def _length(test: Graph, asked: Ranges, index: str) -> Dim | None:
    """How many rounds there are of a loop whose test compares what the number of the round tells;
    None if that is not known."""
    known = asked.truths.get(test.results[0], ((), ()))[0]
    if len(known) != 1 or len(asked.truths[test.results[0]][1]) != 1:
        return None
    slope, rest = coefficient(known[0], index) or (0, 0)  # rest + slope * index >= 0
    return positive(rest + 1) if slope == -1 and index not in symbols_of(rest) else None
