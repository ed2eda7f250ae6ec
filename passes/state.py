"""Make state explicit: variables become parameters and results, and the graph purely functional.

Each variable has a current value, which reads return and writes replace:

    %0 = read_var {var = "w"}              graph(..., %w) -> (..., %1) {
    %1 = sub %0, %g                 ==>      %1 = sub %w, %g
    assign_var %1 {var = "w"}                return ..., %1
                                           }      var_params w: %w, var_results w: the last one

Assertions are a variable that holds no more than 1, as long as all hold. It starts from 1, and no
one reads it in the end but the first result, or the first new value of a variable where there is
none, which so depends on all of them:

    assert_true %c {message = "..."}  ==>    %a = asserted (or (cast %c), (xor %before, 1)) {...}
                                             %held = and_ %before, %a
                                             return awaiting(..., %held)

What bodies of control flow read becomes an operand of their node; what they assign becomes a result
of it, and of a loop something that it carries.

The runtime passes the value before the step, and stores the value after it when the step has
succeeded: so a step is atomic, and variables need no rules of their own anywhere later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.diagnose import error
from ..ir.graph import Builder, Graph, Node, Value, control_of, effects_of, talks
from ..ir.ops.control.region import Looping
from ..ir.ops.op import Effect
from ..ir.ops.table import OPS
from ..ir.record import field, record
from ..ir.types import I64, Device, TensorType
from .clone import Clone

Read = Callable[[str, TensorType], Value]


def resolve_state(graph: Graph) -> Graph:
    """The same computation without EFFECT nodes, and without control dependencies but those of what
    talks to resources.

    Parameters of variables that are read before they are written come after the ordinary ones,
    in order of first read; new values of written variables come after the ordinary results, in
    order of first write. ``var_params`` and ``var_results`` say which is which. A graph without
    EFFECT nodes is returned as it is. Raises UnsupportedError (W113) for assertions in a graph
    whose results have no elements.
    """
    if all(next(effects_of(node), None) is None for node in graph.nodes):
        return graph
    clone = Clone(graph)
    clone.params()
    asserted = {each.attrs["var"]: each for node in graph.nodes for each in effects_of(node)
                if each.op.effect is Effect.ASSERTS}
    clone.graph.variables = {var: type_ for var, type_ in graph.variables.items()
                             if var not in asserted}
    clone.graph.homes = _homes(graph)

    def first(var: str, type_: TensorType) -> Value:
        if var in asserted:
            return state.builder.full(1, type_)
        clone.graph.var_params[var] = clone.graph.add_param(type_, var)
        return clone.graph.var_params[var]

    state = _State(clone, first)
    state.walk(graph.nodes)
    clone.graph.results = [clone.values[value] for value in graph.results]
    count = len(clone.graph.results)
    for var in [var for var in state.written if var not in asserted]:
        clone.graph.var_results[var] = len(clone.graph.results)
        clone.graph.results.append(state.current[var])
    for var, node in asserted.items():
        some = [at for at, value in enumerate(clone.graph.results) if value.type.size]
        if not some:
            raise error("W113", "this assertion is of a function whose results have no elements, "
                                "of which nothing is computed", locs=node.locs,
                        hint="return a value")
        with state.builder.like(node):
            _depend(state.builder, clone.graph, [at for at in some if at < count] or some,
                    state.current[var])
    return clone.graph


def _homes(graph: Graph) -> dict[str, Device]:
    """Where variables live: what was asked for where they were made, and where they are assigned.

    Raises Error (W401) for assignments that ask for devices that cannot be one.
    """
    homes, said = dict(graph.homes), dict[str, Node]()
    for each in (each for node in graph.nodes for each in effects_of(node)):
        if each.op.effect is not Effect.WRITES or each.device is None:
            continue
        var = each.attrs["var"]
        both = each.device.meet(homes.get(var))
        if both is None:
            locs = [loc for node in (each, said.get(var, each)) for loc in node.locs[:1]]
            raise error("W401", f"variable '{var}' is assigned on {each.device}, but lives on "
                                f"{homes[var]}", locs=list(dict.fromkeys(locs)),
                        hint="make the variable inside of weft.device(...): it is assigned there, "
                             "wherever that is written")
        homes[var] = both
        said.setdefault(var, each)
    return homes


def _depend(b: Builder, graph: Graph, results: Sequence[int], held: Value) -> None:
    """Let one of some results depend on what is 1; the one with the fewest elements is the
    cheapest."""
    at = min(results, key=lambda at: (graph.results[at].type.rank != 0, at))
    result = graph.results[at]
    if result.shape:
        held = b.broadcast(held, shape=result.shape, axes=())
    graph.results[at] = b.awaiting(result, held)


@record
class _State:
    """A graph being rebuilt, and the current values of variables; ``first`` gives one that no node
    of the graph has read or written yet."""

    clone: Clone
    first: Read
    current: dict[str, Value] = field(default_factory=dict)
    written: dict[str, None] = field(default_factory=dict)  # a dict for its order

    def __post_init__(self) -> None:
        self.builder = Builder(self.clone.graph, OPS, share=False, fold=False)

    def read(self, var: str, type_: TensorType) -> Value:
        if var not in self.current:
            self.current[var] = self.first(var, type_)
        return self.current[var]

    def walk(self, nodes: Sequence[Node]) -> None:
        """Rebuild nodes in order; recursion is by nesting of bodies only."""
        for node in nodes:
            effect = node.op.effect
            if effect is None and next(effects_of(node), None) is not None:
                self._control(node)
            elif effect is None:
                self.clone.node(node).after = self._order(node)
            elif effect is Effect.READS:
                value = self.read(node.attrs["var"], node.attrs["type"])
                self.clone.values[node.results[0]] = value
            else:
                self._write(node)

    def _order(self, node: Node) -> tuple[Node, ...]:
        """What a node that talks to a resource waits for. Variables change when the step ends, so
        of what waits for them just what they wait for counts."""
        found: dict[Node, None] = {}
        pending = list(node.after) if talks(node) else []
        while pending:
            each = pending.pop()
            if each.op.effect is None:
                found[self.clone.nodes[each]] = None
            else:
                pending += [*each.after, *(value.node for value in each.inputs
                                           if value.node is not None)]
        return tuple(found)

    def _write(self, node: Node) -> None:
        operand, var = self.clone.values[node.inputs[0]], node.attrs["var"]
        if node.op.effect is Effect.ASSERTS:
            base, b = self.read(var, node.attrs["type"]), self.builder
            with b.like(node):  # it holds where one before it does not: that one is to be told
                one = b.or_(b.cast(operand, dtype=I64), b.xor(base, 1))
                operand = b.and_(base, b.asserted(one, message=node.attrs["message"]))
        if node.op.update:
            base, row = self.read(var, node.attrs["type"]), OPS[node.op.update]
            with self.builder.like(node):
                operand = self.builder.emit(row, (base, operand), name=node.name).results[0]
        self.current[var] = operand
        self.written[var] = None

    def _control(self, node: Node) -> None:
        """A node whose bodies have effects, with operands and results for the variables."""
        used: dict[str, TensorType] = {}
        changed: dict[str, None] = {}
        for each in effects_of(node):
            used.setdefault(each.attrs["var"], each.attrs["type"])
            if each.op.effect is not Effect.READS:
                changed[each.attrs["var"]] = None
        kept = [var for var in used if var not in changed]
        control = control_of(node)
        inputs = [self.clone.values[value] for value in node.inputs]
        attrs: dict[str, Any] = dict(node.attrs)
        if isinstance(control, Looping):
            place, at = control.carried, control.carried
            attrs["carried"] = at + len(changed)
        else:  # the condition is no operand of the bodies
            place, at = len(node.inputs) - 1, len(node.results)
        for name, value in node.attrs.items():
            if isinstance(value, Graph):
                assigns = value is not getattr(control, "test", None)
                attrs[name] = _body(value, place, at if assigns else None, used, list(changed),
                                    kept)
        split = place if isinstance(control, Looping) else len(node.inputs)
        inputs = [*inputs[:split], *(self.read(var, used[var]) for var in changed),
                  *inputs[split:], *(self.read(var, used[var]) for var in kept)]
        with self.builder.like(node):
            made = self.builder.emit(node.op, inputs, attrs, name=node.name)
        results = list(made.results)
        for var, value in zip(changed, results[at:at + len(changed)], strict=True):
            self.current[var] = value
            self.written[var] = None
        self.clone.values.update(zip(
            node.results, results[:at] + results[at + len(changed):], strict=True))
        self.clone.nodes[node] = made
        made.after = self._order(node)


def _body(
    body: Graph, place: int, at: int | None, used: dict[str, TensorType], changed: list[str],
    kept: list[str],
) -> Graph:
    """A body with parameters for variables: those that are changed from ``place`` on, the others
    at the end. The values of the changed ones are results from ``at`` on (None: of a test)."""
    clone = Clone(body)
    current: dict[str, Value] = {}
    for value in body.params[:place]:
        clone.param(value)
    for var in changed:
        current[var] = clone.graph.add_param(used[var], var)
    for value in body.params[place:]:
        clone.param(value)
    for var in kept:
        current[var] = clone.graph.add_param(used[var], var)

    def first(var: str, type_: TensorType) -> Value:
        raise AssertionError(f"variable {var} is not among the operands")

    state = _State(clone, first, current)
    state.walk(body.nodes)
    results = [clone.values[value] for value in body.results]
    if at is not None:
        results[at:at] = [state.current[var] for var in changed]
    clone.graph.results = results
    return clone.graph
