"""A graph for one example, as nodes for a batch of them: what ``weft.vmap`` does.

``batch`` walks the nodes in order. A value that depends on the batch has one more axis, the first;
all others are computed once. The rules follow from the kind of an op:

    ops that take a batch              as they are (``examples``)
    cond of a batch of conditions      both bodies, and select
    while, tested for each example     rounds until none is left; what is done keeps its state:
                                       while any(test(s)): s = select(test(s), body(s), s)
                                       (a test that is dear is computed once, and carried)
    other control flow                 the same, of bodies for a batch
    what counts on an example's size   a call of it all (``sized``)
    else, such calls among them        a scan over the batch
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from ...ir.diagnose import error
from ...ir.graph import (
    Builder,
    Graph,
    Node,
    Value,
    apart,
    control_of,
    effects_of,
    with_bodies,
    writes,
)
from ...ir.indices.index import Dim, symbol
from ...ir.ops.control.region import ENDLESS, Branching, Calling, Custom, Looping
from ...ir.ops.op import Effect, Kind
from ...ir.ops.table import OPS
from ...ir.plans.partition import sizes_measured
from ...ir.record import record, replace
from ...ir.types import I64, TensorType
from ..clone import renamed
from ..control.bodies import live_values
from .dependence import EVERYTHING
from .examples import Batched, Examples
from .harmless import guarded, harmless
from .pullback import is_cheap
from .rounds import most_rounds
from .sized import enclosed
from .support import CARRYING, leaving_out


def batch(
    builder: Builder, graph: Graph, operands: Sequence[Batched], size: Dim
) -> list[Batched]:
    """Append the nodes of a graph for ``size`` examples; its results.

    What does not depend on the batch is assigned once. Raises W113 for other assignments: examples
    have no order.
    """
    return _Batch(builder, size).graph(graph, operands)


@record(frozen=True)
class _Batch(Examples):
    """A graph to which nodes for examples are added; ``indices`` are the symbols of the loops
    around it. Where not all examples come by, ``active`` says which do: what the others compute is
    not asked for, and must not fail."""

    indices: tuple[str, ...] = ()
    active: Value | None = None

    def graph(self, graph: Graph, operands: Sequence[Batched]) -> list[Batched]:
        """The nodes of a graph; its results."""
        graph = enclosed(graph, _sizes_of_examples(graph, [x.is_batched for x in operands]))
        known = dict(zip(graph.params, operands, strict=True))
        written = [value for node in graph.nodes if writes(node) for value in node.inputs]
        live = live_values(graph, [*graph.results, *written])
        for node in graph.nodes:
            if writes(node) or any(value in live for value in node.results):
                with self.builder.like(node):
                    self.builder.stem = node.name
                    made = self.node(node, [known[value] for value in node.inputs])
                known.update(zip(node.results, made, strict=True))
        return [known[value] for value in graph.results]

    def inside(
        self, graph: Graph, given: Sequence[bool], *index: str
    ) -> tuple[_Batch, list[Batched]]:
        """A graph for the batch of a body, with parameters of which the marked ones have its axis.
        The last says which examples come by, where not all do."""
        made = Graph(graph.name)
        params = [
            Batched(made.add_param(self.type_of(value.type) if mark else value.type,
                                   value.name.removesuffix(":0").replace(":", "_")), mark)
            for value, mark in zip(graph.params, given, strict=True)]
        return _Batch(Builder(made, OPS, share=False, fold=False), self.size,
                      (*self.indices, *index),
                      None if self.active is None else params[-1].value), params

    def body(
        self, graph: Graph, given: Sequence[bool], wanted: Sequence[bool], *index: str
    ) -> Graph:
        """A body for a batch; ``wanted`` says which results are to have its axis."""
        inner, params = self.inside(graph, given, *index)
        results = inner.graph(graph, params)
        made = inner.builder.graph
        made.results = [inner.whole(x) if mark else x.value
                        for x, mark in zip(inner.left_out(results), wanted, strict=True)]
        return made

    def left_out(self, given: Sequence[Batched]) -> Sequence[Batched]:
        """The values, of which those of examples that do not come by have the gradient 0 whatever
        the slopes around them. Ops that carry no masks get them here (``support``)."""
        if self.active is None:
            return given
        return [Batched(leaving_out(self.builder, self.builder.broadcast(
            self.active, shape=x.value.shape, axes=(0,)), x.value), True)
            if x.is_batched and x.value.dtype.is_inexact else x for x in given]

    # -- nodes ----------------------------------------------------------------------------------

    def node(self, node: Node, operands: Sequence[Batched]) -> list[Batched]:
        """The results of one node for a batch, or for once."""
        if not any(x.is_batched for x in operands) and not (
                node.op.effect is Effect.ASSERTS and self.active is not None):
            if node.op.control is None:
                operands = self._harmless(node, operands)
            return self.all(False, self.builder.emit(
                node.op, [x.value for x in operands], node.attrs).results)
        if node.op.kind not in CARRYING:
            operands = self.left_out(operands)
        if node.op.control is not None:
            return self._control(node, operands)
        if node.op.effect is Effect.ASSERTS:
            return self._asserted(node, operands[0].value)
        if node.op.kind is Kind.EXTENT:
            raise error("W113", "a size depends on the batch of a vmap: its examples would be "
                                "arrays of several sizes", locs=node.locs,
                        hint="keep whole arrays in it: x[mask].sum() or np.where(mask, x, 0)")
        if writes(node):
            raise error("W113", f"{node.name} assigns a value that depends on the batch of a vmap, "
                                "whose examples have no order", locs=node.locs,
                        hint="return the value, and assign a sum or a mean of all outside")
        given = self._harmless(node, operands)
        made = self.computed(node, given)
        return self._one_by_one(node, given) if made is None else made

    def _asserted(self, node: Node, holds: Value) -> list[Batched]:
        """What has to hold, does for each example that comes by."""
        b = self.builder
        if self.active is not None:
            holds = b.or_(b.not_(self.active), self.whole(Batched(holds, holds.type.rank > 0)))
        return self.all(False, b.emit(node.op, [b.all(holds, axes=(0,))], node.attrs).results)

    def _harmless(self, node: Node, operands: Sequence[Batched]) -> Sequence[Batched]:
        """Operands with which a node does not fail for examples that do not come by."""
        if self.active is None or not node.op.can_fail:
            return operands
        made = harmless(self.builder, node, self.active,
                        [(x.value, x.is_batched) for x in operands])
        return [Batched(value, x.is_batched) for value, x in zip(made, operands, strict=True)]

    def _among(self, condition: Value) -> _Batch:
        """The same graph, for those of the examples that come by here."""
        return replace(self, active=condition if self.active is None else
                       self.builder.and_(self.active, condition))

    def _one_by_one(self, node: Node, operands: Sequence[Batched]) -> list[Batched]:
        """A scan over the batch whose body is the node."""
        if (node.op.foreign or apart(node)) and self.active is not None:
            body, operands = guarded(node), [*operands, Batched(self.active, True)]
        else:
            body = Graph(node.op.name)
            inner = Builder(body, OPS, share=False, fold=False)
            inputs = [body.add_param(x.type, f"x{at}") for at, x in enumerate(node.inputs)]
            with inner.like(node):
                body.results = list(inner.emit(node.op, inputs, node.attrs).results)
        order = sorted(range(len(operands)), key=lambda at: not operands[at].is_batched)
        body.params = [body.params[at] for at in order]
        index = next(f"e{at}" for at in range(len(self.indices) + 1)
                     if f"e{at}" not in self.indices)
        made = self.builder.emit(OPS["scan"], [operands[at].value for at in order], {
            "carried": 0, "scanned": sum(x.is_batched for x in operands), "length": self.size,
            "reverse": False, "index": index, "body": body})
        return self.all(True, made.results)

    # -- control flow ---------------------------------------------------------------------------

    def _control(self, node: Node, operands: Sequence[Batched]) -> list[Batched]:
        control, given = control_of(node), [x.is_batched for x in operands]
        if isinstance(control, Calling) and control.custom is not None:
            return replace(self, active=None)._custom(node, operands, given, control.custom)
        if isinstance(control, Calling) and _sizes_of_examples(control.body, given):
            self._check_effects(node)
            return self._one_by_one(node, operands)
        if self.active is not None:
            node = _with_active(node, self.active)
            operands = [*operands, Batched(self.active, True)]
        given = [x.is_batched for x in operands]
        match control_of(node):
            case Branching(then, other) if given[0]:
                self._check_effects(node)
                return self._both(operands, then, other)
            case Branching():
                out = EVERYTHING.of_results(node, given)
                return self._same(node, operands, given, out, [False, *given[1:]])
            case Looping() as loop:
                inside = EVERYTHING.in_body(loop, given)
                if loop.test is not None and EVERYTHING.of_graph(loop.test, inside)[0]:
                    self._check_effects(node)
                    return self._masked(node, operands, loop, loop.test)
                return self._loop(node, operands, loop, inside)
            case _:
                return self._same(node, operands, given, EVERYTHING.of_results(node, given), given)

    def _check_effects(self, node: Node) -> None:
        """Examples that go different ways may take numbers of a counter, as all of them do then."""
        if any(each.op.effect not in (Effect.READS, Effect.ASSERTS) and not each.op.taking
               for each in effects_of(node)):
            raise error("W113", f"{node.name} assigns a variable where examples of a vmap go "
                                "different ways", locs=node.locs, hint="assign before it")

    def _same(
        self, node: Node, operands: Sequence[Batched], wanted: Sequence[bool],
        out: Sequence[bool], inside: Sequence[bool],
    ) -> list[Batched]:
        """The op of bodies for a batch. ``wanted`` says which operands are to have its axis,
        ``out`` which results have it."""
        control = control_of(node)
        attrs = dict(node.attrs)
        skipped = 1 if isinstance(control, Branching) else 0  # the condition
        for name, body in node.attrs.items():
            if isinstance(body, Graph):
                test = isinstance(control, Looping) and body is control.test
                index = (control.index,) if isinstance(control, Looping) else ()
                attrs[name] = self._test(body, inside, *index) if test else self.body(
                    body, inside[skipped:], out, *index)
        inputs = [self.whole(x) if mark else x.value
                  for x, mark in zip(operands, wanted, strict=True)]
        made = self.builder.emit(node.op, inputs, attrs)
        return [Batched(value, mark) for value, mark in zip(made.results, out, strict=True)]

    def _test(self, graph: Graph, given: Sequence[bool], *index: str) -> Graph:
        """The test of a loop that goes on for all examples or none: for none where none comes by,
        as what is kept from failing then may never end it."""
        inner, params = self.inside(graph, given, *index)
        (holds,) = inner.graph(graph, params)
        made = inner.builder.graph
        made.results = [holds.value if inner.active is None else inner.builder.and_(
            holds.value, inner.builder.any(inner.active, axes=(0,)))]
        return made

    def _both(self, operands: Sequence[Batched], then: Graph, other: Graph) -> list[Batched]:
        """Both bodies, and for each example the results of one."""
        condition, *rest = operands
        ways = (self._among(condition.value).graph(then, rest),
                self._among(self.builder.not_(condition.value)).graph(other, rest))
        pairs = zip(*ways, strict=True)
        return [Batched(self._chosen(condition.value, self.whole(a), self.whole(b)), True)
                for a, b in pairs]

    def _chosen(self, condition: Value, a: Value, b: Value) -> Value:
        """For each example one of two values."""
        made: Value = self.builder.masked(
            self.builder.broadcast(condition, shape=a.shape, axes=(0,)), a, b)
        return made

    def _loop(
        self, node: Node, operands: Sequence[Batched], loop: Looping, inside: Sequence[bool]
    ) -> list[Batched]:
        """A loop of as many rounds for all examples."""
        out = EVERYTHING.of_graph(loop.body, inside)
        out[:loop.carried] = inside[:loop.carried]
        rows = range(loop.carried, loop.carried + loop.scanned)
        moved = [Batched(self.moved(x.value, 0, 1), True) if at in rows and x.is_batched else x
                 for at, x in enumerate(operands)]
        return self._unstacked(loop, self._same(node, moved, inside, out, inside))

    def _unstacked(self, loop: Looping, results: Sequence[Batched]) -> list[Batched]:
        """Rows of a batch have the axis of rows first."""
        return [Batched(self.moved(x.value, 1, 0), True) if x.is_batched and at >= loop.carried
                else x for at, x in enumerate(results)]

    def _masked(
        self, node: Node, operands: Sequence[Batched], loop: Looping, test: Graph
    ) -> list[Batched]:
        """Rounds until no example is left; those that are done keep their state.

        Who is left is computed twice, for the test and in the round, where that is cheap, and else
        carried to the next round. What counts rounds for each example counts no rows, so a loop
        that stacks some also counts for all. The most rounds that each example may have are seen
        here, as the test of all shows them no more."""
        given = [at < loop.carried or x.is_batched for at, x in enumerate(operands)]
        inputs = [self.whole(x) if mark else x.value
                  for x, mark in zip(operands, given, strict=True)]
        begin = [Batched(value, mark) for value, mark in zip(inputs, given, strict=True)]
        more: list[tuple[str, Value]] = []  # that is carried besides
        if carries := _is_dear(test):
            more.append(("left", self._those(*self.graph(renamed(test, {loop.index: 0}), begin))))
        if len(node.results) > loop.carried:
            more.append(("rounds", self.builder.full(0, TensorType(I64, ()))))
        asks, asked = self.inside(test, given, loop.index)
        inner, params = self.inside(loop.body, given, loop.index)
        (some, own), (body, kept) = (
            (each.builder.graph, {name: each.builder.graph.add_param(x.type, name)
                                  for name, x in more}) for each in (asks, inner))
        here, left = (own["left"], kept["left"]) if carries else (
            asks._those(*asks.graph(test, asked)), inner._those(*inner.graph(test, params)))
        some.results = [asks.builder.any(here, axes=(0,))]
        after = replace(inner, active=left).graph(loop.body, params)
        rows = replace(inner, active=left).left_out(after[loop.carried:])
        body.results = [*(inner._chosen(left, inner.whole(new), params[at].value)
                          for at, new in enumerate(after[:loop.carried])), *map(inner.whole, rows)]
        ends: dict[str, Value] = {}
        if carries:
            state = [Batched(value, True) for value in body.results[:loop.carried]]
            (again,) = inner.graph(renamed(test, {loop.index: symbol(loop.index) + 1}),
                                   [*state, *params[loop.carried:]])
            ends["left"] = inner.builder.and_(left, inner.whole(again))
        if "rounds" in kept:
            ends["rounds"] = inner.builder.add(kept["rounds"], 1)
        at, count = loop.carried, len(more)
        known = most_rounds(node, loop) if loop.count is None else loop.count
        body.results[at:at] = [ends[name] for name, _ in more]
        for graph in (some, body):
            graph.params[at:] = [*graph.params[len(given):], *graph.params[at:len(given)]]
        results = list(self.builder.emit(
            node.op, [*inputs[:at], *(value for _, value in more), *inputs[at:]],
            {**node.attrs, "carried": at + count, "test": some, "body": body,
             "limit": ENDLESS if known is None else known}).results)
        del results[at:at + count]
        return self._unstacked(loop, self.all(True, results))

    def _those(self, left: Batched) -> Value:
        """Which examples are left, of those that come by."""
        return self.whole(left) if self.active is None else self.builder.and_(
            self.active, self.whole(left))

    def _custom(
        self, node: Node, operands: Sequence[Batched], given: Sequence[bool], custom: Custom
    ) -> list[Batched]:
        """All three graphs for a batch. An operand that all examples share has the sum of their
        cotangents."""
        count = len(node.results)
        _, more = custom.counts(count)
        both = (EVERYTHING.of_graph(graph, given) for graph in (node.attrs["body"], custom.forward))
        out = [any(each) for each in zip_longest(*both, fillvalue=False)]
        out, saved = out[:count], out[count:]
        inner, params = self.inside(custom.backward, [*saved, *out, *given[len(given) - more:]])
        cotangents = inner.graph(custom.backward, params)
        backward = inner.builder.graph
        backward.results = [
            inner.whole(x) if given[at] else inner.builder.sum(inner.whole(x), axes=(0,))
            if any(out) else x.value for at, x in zip(custom.wrt, cotangents, strict=True)]
        made = self.builder.emit(node.op, [x.value for x in operands], {
            "body": self.body(node.attrs["body"], given, out), "wrt": custom.wrt,
            "forward": self.body(custom.forward, given, [*out, *saved]), "backward": backward})
        return [Batched(value, mark) for value, mark in zip(made.results, out, strict=True)]


def _sizes_of_examples(graph: Graph, given: Sequence[bool]) -> frozenset[str]:
    """The sizes that a graph measures of numbers that depend on the marked parameters."""
    measuring = [node for node in graph.nodes if node.op.kind is Kind.EXTENT]
    marked = [value for value, mark in zip(graph.params, given, strict=True) if mark]
    found = EVERYTHING.of_nodes(graph.nodes, marked) if measuring else set()
    return sizes_measured([node for node in measuring if not found.isdisjoint(node.inputs)])


def _with_active(node: Node, active: Value) -> Node:
    """A node whose bodies have one more parameter: whether an example comes by."""
    def known(body: Graph) -> Graph:
        made = Graph(body.name, list(body.params), body.nodes, body.results)
        made.add_param(active.type.with_shape(()), "active")
        return made

    return replace(node, inputs=(*node.inputs, active), attrs=with_bodies(node, known))


def _is_dear(test: Graph) -> bool:
    """Whether a test is worth it to be kept, and may be computed once more after the last round."""
    return not all(map(is_cheap, test.nodes)) and all(
        node.op.check is None and node.op.control is None for node in test.nodes)
