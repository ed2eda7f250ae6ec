"""When each value of a fused graph is first and last needed, its bodies included.

Calls are counted in order, whatever they are nested in. A body's parameters that only name a value
from outside, or a row of one, are *aliases*; what a body reads from outside lives through the whole
loop, as another round may come. A carried parameter is a value of its own, made when the loop
starts.

    0  kernel            x: 0 .. 4
    1  loop (h) (x)      h: 1 .. 2
    2    kernel h, x -> r        r: 2 .. 4, the end of the round
    3    kernel ...
    4  end
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...ir.diagnose import error
from ...ir.graph import Graph, Value
from ...ir.indices.index import Dim, symbol
from ...ir.ops.op import Kind
from ...ir.plans.calls import Body, BranchCall, Call, GroupCall, HostCall, LoopCall, MeasureCall
from ...ir.plans.plan import KernelCall
from ...ir.record import field, record
from ...ir.types import CPU0, Device


@record(frozen=True)
class Alias:
    """A parameter of a body that is the memory of a value outside, or a row of it; the result of
    an ALIAS node."""

    value: Value
    indices: tuple[Dim, ...] = ()


@record(eq=False)
class Lives:
    """See the module docstring. ``spans`` are the moments of each call: its first and its last."""

    graph: Graph
    first: dict[Value, int] = field(default_factory=dict)
    last: dict[Value, int] = field(default_factory=dict)
    aliases: dict[Value, Alias] = field(default_factory=dict)
    carried: set[Value] = field(default_factory=set)     # parameters of bodies
    rows: set[Value] = field(default_factory=set)        # what loops read or write row by row
    spans: dict[Call, tuple[int, int]] = field(default_factory=dict)
    end: int = 0
    _named: dict[Graph, dict[str, Value]] = field(default_factory=dict)

    def of(self, graph: Graph, name: str) -> Value:
        """The value of a graph by its name."""
        value = self._values(graph).get(name)
        if value is None:
            raise error("W601", f"graph @{graph.name} has no value {name}")
        return value

    def _values(self, graph: Graph) -> dict[str, Value]:
        if graph not in self._named:
            self._named[graph] = {value.name: value for value in graph.values()}
        return self._named[graph]

    def owner(self, value: Value) -> Value:
        """The value whose memory an alias names; the value itself if it is none."""
        while value in self.aliases:
            value = self.aliases[value].value
        return value

    def born(self, graph: Graph, call: KernelCall) -> list[Value]:
        """The values that a kernel call makes, in the order of its parameters."""
        moment = self.spans[call][0]
        made = (self.of(graph, name) for name in written(call))
        return [value for value in made if self.first[value] == moment]

    def device(self, graph: Graph, call: KernelCall) -> Device:
        """Where the values that the call writes are placed."""
        node = next((self.of(graph, name).node for name in written(call)), None)
        return (node.device if node is not None else None) or CPU0

    # -- one walk over the tree -----------------------------------------------------------------

    def walk(self, graph: Graph, calls: Sequence[Call]) -> None:
        """Count the calls of a graph, of which all parameters are known."""
        for node in graph.nodes:
            if node.op.kind is Kind.ALIAS:
                self.aliases[node.results[0]] = Alias(node.inputs[0])
        for call in calls:
            start = self.end
            match call:
                case KernelCall():
                    self._kernel(graph, call)
                case GroupCall():
                    for each in call.calls:
                        self._kernel(graph, each)
                        self.spans[each] = (start, start)
                case LoopCall():
                    self._loop(graph, call)
                case BranchCall():
                    self._branch(graph, call)
                case HostCall():
                    self._use_all([self.of(graph, name) for name in call.inputs])
                    for name in call.results:
                        self._make(self.of(graph, name))
                case MeasureCall():
                    self._use_all([self.of(graph, call.number)])
            self.spans[call] = (start, self.end)
            self.end += 1
        for value in graph.results:
            self._use(value, f"no kernel writes the result {value.name}")

    def _use(self, value: Value, problem: str) -> None:
        owner = self.owner(value)
        if owner not in self.first:
            raise error("W601", problem)
        self.last[owner] = max(self.last.get(owner, 0), self.end)

    def _make(self, value: Value) -> None:
        self.first.setdefault(value, self.end)
        self.last[value] = max(self.last.get(value, 0), self.end)

    def _kernel(self, graph: Graph, call: KernelCall) -> None:
        outputs = written(call)
        rooms = {name: Value(type_, name) for name, type_ in call.rooms}
        self._values(graph).update(rooms)
        for name in outputs:
            value = self.of(graph, name)
            if value.node is None and name not in rooms:
                raise error("W601", f"kernel {call.kernel.name} writes the parameter {name}")
        for name in (*call.args, *(base for _, base in call.updates)):
            if name not in outputs:
                self._use(self.of(graph, name),
                          f"kernel {call.kernel.name} reads {name} before it is written")
        for name in outputs:
            self._make(self.of(graph, name))

    def _loop(self, graph: Graph, call: LoopCall) -> None:
        inputs = [self.of(graph, name) for name in call.inputs]
        results = [self.of(graph, name) for name in call.results]
        self._use_all(inputs)
        params = call.body.graph.params
        for param in params[:call.carried]:
            self.carried.add(param)
            self._make(param)
        for value in results[call.carried:]:
            self._make(value)
            self.rows.add(value)
        index = symbol(call.index)
        row = call.count - 1 - index if call.reverse and call.count is not None else index
        scanned = call.carried + call.scanned
        for at, (param, value) in enumerate(zip(params, inputs, strict=True)):
            if at >= call.carried:
                self.aliases[param] = Alias(value, (row,) if at < scanned else ())
                if at < scanned:
                    self.rows.add(self.owner(value))
        self.end += 1
        if call.test is not None:
            for param, twin in zip(call.test.graph.params, params, strict=True):
                self.aliases[param] = Alias(twin)
            self._body(call.test)
        self._body(call.body)
        self._use_all([*inputs[call.carried:], *results[call.carried:]])
        for value in results[:call.carried]:
            self._make(value)

    def _branch(self, graph: Graph, call: BranchCall) -> None:
        inputs = [self.of(graph, name) for name in call.inputs]
        results = [self.of(graph, name) for name in call.results]
        self._use_all([self.of(graph, call.condition), *inputs])
        for value in results:
            self._make(value)
        self.end += 1
        for body in call.bodies:
            for param, value in zip(body.graph.params, inputs, strict=True):
                self.aliases[param] = Alias(value)
            self._body(body)
        self._use_all([*inputs, *results])

    def _body(self, body: Body) -> None:
        self.walk(body.graph, body.calls)
        self.end += 1

    def _use_all(self, values: Iterable[Value]) -> None:
        for value in values:
            self._use(value, f"{value.name} is read before it is written")


def lives_of(graph: Graph, calls: Sequence[Call]) -> Lives:
    """The lives of all values. Raises VerifyError (W601) for calls that are not in order."""
    lives = Lives(graph)
    for value in graph.params:
        lives.first[value] = lives.last[value] = 0
    lives.walk(graph, calls)
    return lives


def written(call: KernelCall) -> list[str]:
    """The values that a call writes, in the order of its parameters."""
    return list(dict.fromkeys(arg for param, arg in zip(call.kernel.params, call.args, strict=True)
                              if param.mutable))
