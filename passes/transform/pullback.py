"""The gradient of a body, and what it needs of the forward pass: saved, or computed again.

A pullback is a graph of the body's nodes followed by those of its gradient. What depends on no
cotangent is known when the body has been run; the rest is run later, and reads known values:

    body(%h, %x, %w)                 pullback: what the later half (d...) reads is h, w and n
      %y = contract %h, %w             %t = mul %n, %n
      %s = add %y, %x                  %u = sub 1, %t
      %n = tanh %s                     %dy = mul %dn, %u      dn is the cotangent
      return %n                        %dh = contract %dy, %w;  %dw = contract %h, %dy

The rule of what is saved. Views and elementwise nodes of at most ``STORED`` additions (a division
or a square root, but no exponential) are computed again, anything else is saved, and so is what a
loop carries. But a value that the later half reads is saved itself where all that it is computed
from, and is not saved already, has more elements.
What stands behind a barrier, as ``remat`` has it, is computed again in any case, and masks that the
gradient makes are computed then as elementwise nodes are. So is what counts on a size that the body
measures (``sized``).
Above: h and n are saved; t and u are computed again, from n.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...ir.cost.limits import STORED
from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.index import Dim, Expr, symbols_of
from ...ir.indices.walk import evaluate
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.plans.partition import sizes_measured
from ...ir.types import BOOL, TensorType
from ..clone import Clone, substituted
from ..control.bodies import live_values
from .sized import enclosed
from .sums import added_to_parts
from .support import Part, Reach, Support

_ASSUMED = 32  # a size that is not known

Pull = Callable[..., list[Part]]  # see ``reverse``


class Pullback:
    """A body with its gradient; see the module docstring. ``cotangents`` are parameters, by the
    numbers of the results, and so are ``masks`` of the results ``left``, which says how far they
    reach (``support``); ``found`` are the cotangents of parameters, by their numbers, and
    ``taken`` the masks of those that are asked for, where not all is taken."""

    def __init__(
        self, body: Graph, outputs: Iterable[int], inputs: Iterable[int], pull: Pull,
        left: Mapping[int, Reach], asks: Collection[int], *, rounds: bool = False,
    ) -> None:
        body = enclosed(body, sizes_measured(body.nodes))
        clone = Clone(body)
        self.graph = graph = clone.graph
        self.given = [clone.param(value) for value in body.params]
        for node in body.nodes:
            clone.node(node)
        self.own = set(graph.nodes)
        graph.results = [clone.values[value] for value in body.results]
        self.cotangents = {at: graph.add_param(graph.results[at].type, f"d{at}") for at in outputs}
        self.masks = {at: graph.add_param(graph.results[at].type.with_dtype(BOOL), f"m{at}")
                      for at in self.cotangents if at in left}
        numbers = list(inputs)
        found = pull(
            Builder(graph, OPS), [graph.results[at] for at in self.cotangents],
            list(self.cotangents.values()), [self.given[at] for at in numbers],
            left=[Support(self.masks[at], left[at]) if at in left else None
                  for at in self.cotangents], asks=[self.given[at] for at in asks])
        if rounds:
            added_to_parts(graph)
        self.found = {at: part for at, (part, _) in zip(numbers, found, strict=True)
                      if part is not None}
        self.reach = {at: mask.reach for at, (part, mask) in zip(numbers, found, strict=True)
                     if part is not None and mask is not None and at in asks}
        self.taken = {at: mask.mask() for at, (_, mask) in zip(numbers, found, strict=True)
                      if at in self.reach and mask is not None}
        self.later = {*self.cotangents.values(), *self.masks.values()}
        for node in graph.nodes:
            if not self.later.isdisjoint(node.inputs):
                self.later.update(node.results)

    def reads(self) -> list[Value]:
        """What the later half reads of the known one."""
        made = (*self.found.values(), *self.taken.values())
        live = live_values(self.graph, set(made))
        read = [value for node in self.graph.nodes
                if not live.isdisjoint(node.results) and not self.later.isdisjoint(node.results)
                for value in node.inputs]
        return [value for value in dict.fromkeys((*read, *made)) if value not in self.later]

    def saved(self, free: Collection[Value], index: str = "") -> list[Value]:
        """The known values to save, by the rule above; ``free`` ones are at hand in any case.

        ``index`` is that of a loop whose rounds are not counted the other way, so that what knows
        the number of its round is saved too.
        """
        roots: dict[Value, frozenset[Value]] = {
            value: frozenset() if value in free else frozenset((value,)) for value in self.given}
        again: set[Value] = set()  # what the user wants to be computed again
        for node in self.graph.nodes:
            if self.later.isdisjoint(node.results):
                if node.op is OPS["barrier"] or not again.isdisjoint(node.inputs):
                    again.update(node.results)
                cheap = (is_cheap(node) or self._is_of_masks(node)
                         or not again.isdisjoint(node.results)) and (
                    index not in symbols_within(tuple(node.attrs.values())))
                below = frozenset[Value]().union(*(roots[value] for value in node.inputs))
                roots.update({value: frozenset() if value in free else below if cheap
                              else frozenset((value,)) for value in node.results})
        order = {value: at for at, value in enumerate(self.graph.values())}
        found: dict[Value, None] = {}
        for value in self.reads():
            more = [root for root in roots[value] if root not in found]
            own = value not in again and elements([value]) < elements(more)
            found.update(dict.fromkeys([value] if own else sorted(more, key=order.__getitem__)))
        return list(found)

    def _is_of_masks(self, node: Node) -> bool:
        """Masks are computed where they are asked for, from indices rather than by rows."""
        return node not in self.own and node.results[0].dtype == BOOL

    def invariant(self, still: Collection[Value], index: str) -> set[Value]:
        """Of known values that are worth it, those that depend on nothing but ``still`` and may be
        computed where nothing else of the body is: a failing check must not come from there."""
        fixed, worth = set(still), set[Value]()
        for node in self.graph.nodes:
            if (node.op.kind in (Kind.MAP, Kind.VIEW, Kind.REDUCE, Kind.CONTRACT)
                    and node.op.check is None and fixed.issuperset(node.inputs)
                    and index not in symbols_within(tuple(node.attrs.values()))):
                fixed.update(node.results)
                if node.inputs and not is_cheap(node):
                    worth.update(node.results)
        return worth

    def forward(self, extra: Sequence[Value]) -> Clone:
        """The body with more results, as a clone that maps this graph."""
        clone = Clone(self.graph)
        for value in self.given:
            clone.param(value)
        live = live_values(self.graph, [*self.graph.results, *extra])
        for node in self.graph.nodes:
            if node in self.own or not live.isdisjoint(node.results):
                clone.node(node)
        clone.graph.results = [clone.values[value] for value in (*self.graph.results, *extra)]
        return clone


def is_cheap(node: Node) -> bool:
    """Whether a node is rather computed again than its results are kept."""
    return node.op.kind is Kind.VIEW or (node.op.kind is Kind.MAP and node.op.cost <= STORED)


def needed(
    graph: Graph, targets: Iterable[Value], ready: Collection[Value]
) -> tuple[list[Node], list[Value]]:
    """The nodes that compute ``targets`` from what is ready, and what of that they read."""
    wanted = dict.fromkeys(targets)
    nodes = []
    for node in reversed(graph.nodes):
        if any(value in wanted and value not in ready for value in node.results):
            nodes.append(node)
            wanted.update(dict.fromkeys(node.inputs))
    return nodes[::-1], [value for value in wanted if value in ready]


def copy_nodes(clone: Clone, nodes: Iterable[Node], places: Mapping[str, Dim]) -> None:
    """Copy nodes of a pullback that wait for nothing, with other places of its rounds."""
    for node in nodes:
        copy = clone.node(node)
        copy.after = ()
        if not places.keys().isdisjoint(symbols_within(tuple(node.attrs.values()))):
            copy.attrs = {name: substituted(attr, places) for name, attr in node.attrs.items()}
        for value in copy.results:
            value.type = substituted(value.type, places)


def symbols_within(attr: object) -> frozenset[str]:
    """Names of symbolic dims in an attribute, or in those of the nodes of a body."""
    if isinstance(attr, Expr):
        return symbols_of(attr)
    if isinstance(attr, TensorType):
        attr = attr.shape
    if isinstance(attr, Graph):
        attr = tuple(each for node in attr.nodes for each in node.attrs.values())
    if isinstance(attr, tuple):
        return frozenset[str]().union(*map(symbols_within, attr))
    return frozenset()


def elements(values: Iterable[Value]) -> int:
    """How many elements values have, with a guess of sizes that are not known."""
    sizes = [value.type.size for value in values]
    return sum(size if isinstance(size, int) else evaluate(
        size, dict.fromkeys(symbols_of(size), _ASSUMED)) for size in sizes)
