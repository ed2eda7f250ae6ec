"""A graph as boxes in boxes: what is drawn, before anything has a place.

A kernel of a fused graph is a box around its operations; a loop or branch is a box with one for
each body, in which what is carried and scanned are boxes of their own. Values that come from
outside of a body as they are, and those of kernels, are edges through its border. Constants are no
boxes: they stand as text in their readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...ir.cost.nodes import OPERATIONS
from ...ir.graph import Graph, Node, Value, control_of
from ...ir.loc import Loc
from ...ir.ops.control.region import Branching, Calling, Looping
from ...ir.ops.op import Kind
from ...ir.record import field, record
from ...ir.types import TensorType
from ...passes.placement.costs import Costs

CONTAINERS = ("graph", "scope", "segment", "body")  # may hold any boxes; others hold their own


@record(eq=False)
class Item:
    """A box: ``kind`` says which, ``facts`` has what is known of it, as JSON has it."""

    kind: str
    label: str
    parent: Item | None = None
    children: list[Item] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    locs: tuple[Loc, ...] = ()
    scope: tuple[str, ...] = ()  # the name scopes that it is in, inside of its parent
    id: int = -1                 # in the page

    def add(self, child: Item) -> Item:
        """Put a box into this one."""
        child.parent = self
        self.children.append(child)
        return child

    def around(self) -> Iterator[Item]:
        """The boxes that it is in, innermost first."""
        item = self.parent
        while item is not None:
            yield item
            item = item.parent


@record(frozen=True, eq=False)
class Edge:
    """A value on its way from the box that makes it to one that reads it; ``kind`` is value, order
    (something runs first, no value goes along) or send (to another device)."""

    source: Item
    target: Item
    text: str = ""
    kind: str = "value"


@record
class Drawing:
    """Boxes and edges of one stage. ``costs`` knows sizes; ``kernels`` has facts of the kernels
    that compute values, by the names of these."""

    costs: Costs
    kernels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    root: Item = field(default_factory=lambda: Item("graph", ""))
    edges: list[Edge] = field(default_factory=list)
    _makers: dict[Value, tuple[Item, ...]] = field(default_factory=dict)
    _constants: dict[Value, str] = field(default_factory=dict)

    # -- what values come from ------------------------------------------------------------------

    def same(self, inner: Value, outer: Value) -> None:
        """A value of a body that is one from outside."""
        if outer in self._constants:
            self._constants[inner] = self._constants[outer]
        self._makers[inner] = self.makers(outer)

    def made(self, value: Value, *items: Item) -> None:
        """The boxes that give a value."""
        self._makers[value] = items

    def makers(self, value: Value) -> tuple[Item, ...]:
        """The boxes that give a value; none for a constant."""
        return self._makers.get(value, ())

    def read(self, item: Item, values: Iterable[Value], kind: str = "value") -> None:
        """Edges from what gives values to a box; constants become a text of it."""
        for value in values:
            if value in self._constants:
                item.facts.setdefault("with", []).append(self._constants[value])
            for maker in self.makers(value):
                self.edges.append(Edge(maker, item, str(value.type), kind))

    # -- graphs ---------------------------------------------------------------------------------

    def whole(self, graph: Graph) -> None:
        """A graph with its parameters and results."""
        states = {value: name for name, value in graph.var_params.items()}
        for value in graph.params:
            what = "variable" if value in states else "parameter"
            self.made(value, self.root.add(self.pill("param", value.name, value.type, what)))
        self.body(graph, self.root, "")
        for value in graph.results:
            self.read(self.root.add(self.pill("result", value.name, value.type, "result")),
                      [value])

    def pill(self, kind: str, name: str, type_: TensorType, what: str) -> Item:
        """A small box for a value that enters or leaves."""
        name = name.removesuffix(":0")
        return Item(kind, name.rpartition("/")[2], facts={
            "name": name, "op": what, "type": str(type_), "bytes": self._bytes([type_])})

    def body(self, graph: Graph, into: Item, path: str, *, scoped: bool = True) -> None:
        """The nodes of a graph, whose parameters have makers, as boxes; ``path`` is where the
        graph is, so that names in it can be told from those outside."""
        boxes: dict[Node, Item] = {}
        read = {value for node in graph.nodes for value in node.inputs} | set(graph.results)
        scopes = _scopes(graph.nodes) if scoped else frozenset()
        for node in graph.nodes:
            if node.op.constant and node.results[0] in read:
                self._constants[node.results[0]] = _short(node.attrs["value"])
                continue
            item = into.add(self._item(node, path))
            item.scope = _scope(node.name, scopes) if scoped else ()
            boxes[node] = item
            for earlier in node.after:
                if earlier in boxes:
                    self.edges.append(Edge(boxes[earlier], item, "", "order"))

    def _item(self, node: Node, path: str) -> Item:
        """The box of a node, with its edges and all that is in it."""
        control = control_of(node)
        kind = ("op" if node.op.kind is not Kind.REGION else "region" if control is None else
                "loop" if isinstance(control, Looping) else
                "branch" if isinstance(control, Branching) else "call")
        item = Item(kind, node.name.rpartition("/")[2], locs=node.locs)
        item.facts = {"name": node.name, "key": path + node.name, "op": node.op.name,
                      "family": node.op.kind.value,
                      "type": ", ".join(str(value.type) for value in node.results)}
        if node.device is not None:
            item.facts["device"] = str(node.device)
        attrs = [f"{name} = {_short(value)}" for name, value in node.attrs.items()
                 if not isinstance(value, Graph)]
        if attrs:
            item.facts["attrs"] = ", ".join(attrs)
        match control:
            case Branching():
                self._branch(node, control, item, path)
            case Looping():
                self._loop(node, control, item, path)
            case _ if kind == "op":
                self.read(item, node.inputs)
                for value in node.results:
                    self.made(value, item)
                self._cost(item, node)
            case _:
                body = control.body if isinstance(control, Calling) else node.attrs["body"]
                self._inline(node, body, item, path)
        return item

    def _inline(self, node: Node, body: Graph, item: Item, path: str) -> None:
        """A kernel or call: what it reads goes straight to the nodes in it."""
        for inner, outer in zip(body.params, node.inputs, strict=False):
            self.same(inner, outer)
        self.body(body, item, path, scoped=False)
        for outer, inner in zip(node.results, body.results, strict=True):
            if inner in self._constants and inner.node is not None:  # which the kernel writes
                self.read(item, [inner])
                self.made(outer, item)
            else:
                self.same(outer, inner)
        item.facts |= self.kernels.get(path + node.results[0].name, {})

    def _branch(self, node: Node, control: Branching, item: Item, path: str) -> None:
        self.read(item, node.inputs[:1])
        ends: list[list[Item]] = []
        for name, body in (("then", control.then), ("else", control.other)):
            box = item.add(Item("body", name, facts={"op": "where it is "
                                                           f"{'true' if not ends else 'false'}"}))
            for inner, outer in zip(body.params, node.inputs[1:], strict=True):
                self.same(inner, outer)
            ends.append(self._ending(body, box, f"{path}{node.name}/{name}/",
                                     ["result"] * len(body.results)))
        for value, pair in zip(node.results, zip(*ends, strict=True), strict=True):
            self.made(value, *pair)

    def _loop(self, node: Node, control: Looping, item: Item, path: str) -> None:
        pilled = control.carried + control.scanned
        count = "while its test holds" if control.count is None else f"{control.count} rounds"
        item.facts["rounds"] = count if control.test is None or control.count is None else (
            f"at most {count}")
        tested = () if control.test is None else (("test", control.test),)
        for name, body in (*tested, ("body", control.body)):
            box = item.add(Item("body", name, facts={"op": count if name == "body" else
                                                     "before each round"}))
            for at, (inner, outer) in enumerate(zip(body.params, node.inputs, strict=True)):
                if at >= pilled:
                    self.same(inner, outer)
                    continue
                what = "carried" if at < control.carried else "a row for each round"
                start = box.add(self.pill("param", inner.name, inner.type, what))
                self.read(start, [outer])
                self.made(inner, start)
            ends = self._ending(body, box, f"{path}{node.name}/{name}/", [
                "to the next round" if at < control.carried else "stacked"
                for at in range(len(body.results))] if name == "body" else ["goes on"])
            for value, end in zip(node.results, ends, strict=False):
                self.made(value, end)

    def _ending(self, body: Graph, box: Item, path: str, what: Sequence[str]) -> list[Item]:
        """The nodes of a body in its box, and a box for each of its results."""
        self.body(body, box, path)
        ends = [box.add(self.pill("result", value.name, value.type, each))
                for value, each in zip(body.results, what, strict=True)]
        for value, end in zip(body.results, ends, strict=True):
            self.read(end, [value])
        return ends

    # -- costs ----------------------------------------------------------------------------------

    def _bytes(self, types: Iterable[TensorType]) -> int:
        return int(sum(self.costs.bytes(type_) for type_ in types))

    def _cost(self, item: Item, node: Node) -> None:
        """Operations of a node and bytes that it reads and writes, if it stood alone."""
        count = OPERATIONS.get(node.op.kind)
        if count is not None:
            item.facts["ops"] = int(count(node, self.costs.size))
            item.facts["bytes"] = self._bytes(
                value.type for value in (*node.inputs, *node.results))
        elif node.op.kind is Kind.VIEW:
            item.facts["ops"] = 0


def _scopes(nodes: Iterable[Node]) -> frozenset[str]:
    """Every name scope of some nodes, by its whole name."""
    found: set[str] = set()
    for node in nodes:
        parts = node.name.split("/")
        found.update("/".join(parts[:end]) for end in range(1, len(parts)))
    return frozenset(found)


def _scope(name: str, scopes: frozenset[str]) -> tuple[str, ...]:
    """The scopes that a node is in; the last node of a composite goes by the composite's name."""
    parts = name.split("/")
    return tuple(parts if name in scopes else parts[:-1])


def _short(value: Any, most: int = 60) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= most else f"{text[:most - 1]}…"
