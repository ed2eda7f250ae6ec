"""Parser of graphs, kernels and plans: the exact inverse of ``printer``.

    graph   = "graph" @name "(" {%id: type} ")" "->" "(" {%id: type} ")" "{" {var} {node}
              "return" {%id} "}"
    var     = "var" string [":" type] ["in" %id] ["out" number] ["on" device]
    node    = [{%id: type} "="] op {%id} ["{" {name "=" attr} "}"] ["on" device]
              ["after" {string}] ["//" string {file:line ["in" function]}]

Without a note a node is named after its result (``%y``) or its op. Attributes, kernels and plans
are in ``text.attrs``, ``text.kernel`` and ``text.plan``. Text is only read here: ``verify`` says if
the IR is sound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..graph import Graph, Node, Value
from ..kernels.kernel import Kernel
from ..ops.table import OPS
from ..plans.plan import Plan
from ..types import TensorType
from .attrs import AttrReader
from .kernel import kernel_item
from .plan import plan_item
from .scanner import Scanner

_OP = re.compile(r"[^\W\d]\w*")
_OPERAND = re.compile(r"[ \t]+(?=%)")
_NOTE = re.compile(r'//\s(?=")')


def parse(text: str) -> list[Graph | Kernel | Plan]:
    """All items of a file, in order. A plan takes the kernels between the last plan and itself.

    Raises TextError (W501) with the line and a caret where the text cannot be read.
    """
    return items_of(Scanner(text))


def items_of(scanner: Scanner) -> list[Graph | Kernel | Plan]:
    """What ``parse`` gives; the scanner knows then where each item and each part of it stands."""
    items: list[Graph | Kernel | Plan] = []
    kernels: dict[str, Kernel] = {}
    while not scanner.finished:
        if scanner.accept("graph"):
            items.append(_GraphReader(scanner).item())
        elif scanner.accept("kernel"):
            kernel = kernel_item(scanner)
            kernels[kernel.name] = kernel
            items.append(kernel)
        elif scanner.accept("plan"):
            items.append(plan_item(scanner, kernels))
            kernels = {}
        else:
            raise scanner.problem("expected 'graph', 'kernel' or 'plan'")
    return items


def parse_graph(text: str) -> Graph:
    """The graph of a text that holds one graph and nothing else."""
    scanner = Scanner(text)
    scanner.expect("graph")
    graph = _GraphReader(scanner).item()
    _finish(scanner)
    return graph


def parse_kernel(text: str) -> Kernel:
    """The kernel of a text that holds one kernel and nothing else."""
    scanner = Scanner(text)
    scanner.expect("kernel")
    kernel = kernel_item(scanner)
    _finish(scanner)
    return kernel


def parse_plan(text: str, kernels: Mapping[str, Kernel] | None = None) -> Plan:
    """The plan of a text that holds one plan, after its kernels if they are not given."""
    scanner = Scanner(text)
    own: dict[str, Kernel] = dict(kernels or {})
    while scanner.accept("kernel"):
        kernel = kernel_item(scanner)
        own[kernel.name] = kernel
    scanner.expect("plan")
    plan = plan_item(scanner, own)
    _finish(scanner)
    return plan


def _finish(scanner: Scanner) -> None:
    if not scanner.finished:
        raise scanner.problem("expected the end of the text")


class _GraphReader:
    """Reads one graph; nested graphs get a reader of their own, because ids are local."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.values: dict[str, Value] = {}
        self.nodes: dict[str, Node] = {}
        self.stems: set[str] = set()

    def item(self) -> Graph:
        """What follows the word ``graph``."""
        scanner, start = self.scanner, self.scanner.at
        scanner.expect("@")
        self.graph = graph = scanner.mark(Graph(scanner.name("a graph name")), start)
        for label, type_ in self.scanner.listed(self._typed):
            self._param(label, type_)
        scanner.expect("->")
        results = self.scanner.listed(self._typed)
        scanner.expect("{")
        while scanner.accept("var"):
            self._variable()
        while not scanner.accept("return"):
            self._node()
        start = scanner.at
        graph.results = self._operands()
        stated = [(self._defined(label, start), type_) for label, type_ in results]
        if [(value, value.type) for value in graph.results] != stated:
            raise scanner.problem("these are not the results of the graph's first line", start)
        scanner.expect("}")
        return graph

    def _typed(self) -> tuple[str, TensorType]:
        label = self.scanner.label()
        self.scanner.expect(":")
        return label, self.scanner.type()

    def _define(self, label: str, value: Value) -> None:
        if label in self.values:
            raise self.scanner.problem(f"{label} is defined twice")
        self.values[label] = value

    def _defined(self, label: str, at: int) -> Value:
        value = self.values.get(label)
        if value is None:
            raise self.scanner.problem(f"{label} is not defined above", at)
        return value

    def _param(self, label: str, type_: TensorType) -> None:
        name = self.scanner.unquote(label[1:])
        if re.search(r":[0-9]+\Z", name):
            stem = name.rpartition(":")[0]
        else:
            stem, name = name, f"{name}:0"
        value = Value(type_, name)
        self._reserve(stem)
        self._define(label, value)
        self.graph.params.append(value)

    def _reserve(self, stem: str) -> None:
        if stem not in self.stems:
            self.stems.add(stem)
            self.graph.unique_name(stem)

    def _variable(self) -> None:
        scanner = self.scanner
        var = scanner.string("the name of a variable")
        if scanner.accept(":"):
            self.graph.variables[var] = scanner.type()
        if scanner.accept("in"):
            label = scanner.label()
            self.graph.var_params[var] = self._defined(label, scanner.at - len(label))
        if scanner.accept("out"):
            self.graph.var_results[var] = scanner.number()
        if scanner.accept("on"):
            self.graph.homes[var] = scanner.device()

    def _operands(self) -> list[Value]:
        # On the same line only: the next line may begin with a value of its own.
        scanner = self.scanner
        gap = _OPERAND.match(scanner.text, scanner.at)
        values: list[Value] = []
        while gap or (values and scanner.accept(",")):
            gap = None
            label = scanner.label()
            values.append(self._defined(label, scanner.at - len(label)))
        return values

    def _node(self) -> None:
        scanner = self.scanner
        begin = scanner.position()
        results: list[tuple[str, TensorType]] = []
        if scanner.peek("%"):
            results.append(self._typed())
            while scanner.accept(","):
                results.append(self._typed())
            scanner.expect("=")
        op_name = scanner.take(_OP, "an op or 'return'")
        op = OPS.get(op_name)
        if op is None:
            raise scanner.problem(f"no op named '{op_name}'", scanner.at - len(op_name))
        inputs = tuple(self._operands())
        attrs = AttrReader(scanner, self._nested).attrs() if scanner.accept("{") else {}
        device = scanner.device() if scanner.accept("on") else None
        after = self._after() if scanner.accept("after") else ()
        start = scanner.at
        if scanner.match(_NOTE):
            name = scanner.string("the name of the node")
            places = scanner.text[scanner.at:scanner.at + 1] == " "
            locs = scanner.locs() if places else ()
            if name in self.stems:
                raise scanner.problem(f"the name '{name}' is used twice", start)
            self._reserve(name)
        else:
            label = results[0][0][1:] if results else ""
            name = self.graph.unique_name(label if _OP.fullmatch(label) else op_name)
            self.stems.add(name)
            locs = ()
        node = scanner.mark(
            Node(op, inputs, attrs, name, device=device, locs=locs, after=after), begin)
        node.results = tuple(Value(type_, f"{name}:{at}", node, at)
                             for at, (_, type_) in enumerate(results))
        for (label, _), value in zip(results, node.results, strict=True):
            self._define(label, value)
        self.graph.nodes.append(node)
        self.nodes[name] = node

    def _nested(self) -> Graph:
        return _GraphReader(self.scanner).item()

    def _after(self) -> tuple[Node, ...]:
        scanner = self.scanner
        earlier: list[Node] = []
        while not earlier or scanner.accept(","):
            name = scanner.string("the name of a node")
            if name not in self.nodes:
                raise scanner.problem(f"no node named '{name}' above")
            earlier.append(self.nodes[name])
        return tuple(earlier)
