"""Cut a graph to one (feeds, fetches) set: partial execution, as TensorFlow has it.

A fed value becomes a parameter, whatever computed it; what only served to compute it is gone.
Only nodes that the fetches need stay, through operands and control dependencies:

    x -> relu -> logits -> loss        feed relu, fetch logits:   relu' -> logits
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..ir.diagnose import error
from ..ir.graph import Graph, Node, Value, effects_of
from ..ir.indices.dims import Told, solve
from ..ir.indices.index import Expr, plain_symbol, symbol, symbols_of
from ..ir.ops.op import MEASURED, Kind
from ..ir.plans.partition import symbols_of_node
from ..ir.record import record
from .clone import Clone


@record(frozen=True, eq=False)
class Pruned:
    """The smaller graph, and where the values and nodes of the old one that it keeps went."""

    graph: Graph
    values: dict[Value, Value]
    nodes: dict[Node, Node]


def prune(
    graph: Graph,
    feeds: Sequence[Value],
    fetches: Sequence[Value | Node],
    implicit: Collection[Value] = (),
) -> Pruned:
    """The part of ``graph`` that computes ``fetches`` from ``feeds``.

    Parameters of the result are the feeds in their order, then those of ``implicit`` (captured
    arrays) that are used, in graph order. Results are the fetched values in their order; a fetched
    node gives no result but stays. Raises FeedError: W302 names a parameter that is needed but not
    fed, W301 a feed or fetch that is not in the graph, or a feed given twice. Raises ShapeError
    (W105) for a size that is needed and that no feed tells, with the parameter that would.
    """
    _check_members(graph, feeds, fetches)
    fed = set(feeds)
    wanted, readers = _needed(graph, fed, fetches)
    hidden = set(implicit)
    clone = Clone(graph)
    for value in feeds:
        clone.param(value)
    for value in graph.params:
        if value in readers and value not in fed:
            if value not in hidden:
                raise _not_fed(value, readers[value])
            clone.param(value)
    users = _sizes(graph, wanted, fetches)
    for name in sorted(users.keys() - _told((*feeds, *readers))):
        raise _not_told(graph, name, users[name], feeds)
    for node in graph.nodes:
        if node in wanted:
            clone.node(node)
    used = {each.attrs["var"] for node in wanted for each in effects_of(node)}
    clone.graph.variables = {name: type_ for name, type_ in graph.variables.items() if name in used}
    clone.graph.homes = {name: home for name, home in graph.homes.items() if name in used}
    clone.graph.results = [clone.values[f] for f in fetches if isinstance(f, Value)]
    return Pruned(clone.graph, clone.values, clone.nodes)


def parameters_of(graph: Graph, fetches: Sequence[Value | Node]) -> list[Value]:
    """The parameters that ``fetches`` need if nothing else is fed, in the graph's order: those that
    are read, and those that tell the sizes."""
    wanted, readers = _needed(graph, set(), fetches)
    needed = set(readers)
    for name in sorted(_sizes(graph, wanted, fetches)):
        if name not in _told(needed):
            needed.update(_telling(graph, name, needed)[:1])
    return [value for value in graph.params if value in needed]


def _sizes(
    graph: Graph, wanted: Collection[Node], fetches: Sequence[Value | Node]
) -> dict[str, Node | Value]:
    """The sizes that arguments have to tell, each with what counts on it."""
    found: dict[str, Node | Value] = {}
    for item in (*(node for node in graph.nodes if node in wanted), *fetches):
        names = (symbols_of_node(item) if isinstance(item, Node)
                 else {name for dim in item.type.shape for name in symbols_of(dim)})
        for name in names:
            found.setdefault(name, item)
    for node in wanted:
        if node.op.kind in MEASURED:
            for value in node.results:
                for name in (name for dim in value.type.shape for name in symbols_of(dim)):
                    found.pop(name, None)
    return found


def _told(values: Iterable[Value]) -> set[str]:
    """The sizes that follow from the shapes of some values."""
    found, _ = solve([Told(dim, symbol(str(dim)), value.name) for value in values
                      for dim in value.type.shape if isinstance(dim, Expr)])
    return set(found)


def _telling(graph: Graph, name: str, known: Collection[Value]) -> list[Value]:
    """The other parameters that have a size, those first of which it is a dim by itself."""
    having = [value for value in graph.params if value not in known
              and any(name in symbols_of(dim) for dim in value.type.shape)]
    return sorted(having, key=lambda value: name not in map(plain_symbol, value.type.shape))


def _not_told(graph: Graph, name: str, user: Node | Value, feeds: Collection[Value]) -> Exception:
    holders = _telling(graph, name, feeds)
    who = f", as '{holders[0].name.removesuffix(':0')}' would" if holders else ""
    return error("W105", f"'{user.name}' needs the size {name}, which no fed value tells{who}",
                 locs=user.locs if isinstance(user, Node) else (),
                 types=[value.type for value in holders[:1]],
                 hint=_feeding(holders[0]) if holders else
                 f"feed a value that has {name} as a dim")


def _feeding(value: Value) -> str:
    return f"add {value.name!r}: value to feed_dict, where value is {value.type}"


def _needed(
    graph: Graph, fed: set[Value], fetches: Sequence[Value | Node]
) -> tuple[set[Node], dict[Value, Node | None]]:
    """The nodes to keep, and the parameters to keep with one node that reads each."""
    wanted: set[Node] = set()
    readers: dict[Value, Node | None] = {}

    def need(value: Value, reader: Node | None) -> None:
        if value not in fed:
            if value.node is None:
                readers[value] = reader
            else:
                wanted.add(value.node)

    for fetch in fetches:
        if isinstance(fetch, Node):
            wanted.add(fetch)
        else:
            need(fetch, None)
    told = {name: node for node in graph.nodes if node.op.kind is Kind.EXTENT
            for name in symbols_of_node(node)}
    for node in reversed(graph.nodes):
        if node in wanted:
            wanted.update(node.after)
            if told:
                wanted.update(told[name] for name in symbols_of_node(node) & told.keys())
            for value in node.inputs:
                need(value, node)
    return wanted, readers


def _check_members(
    graph: Graph, feeds: Sequence[Value], fetches: Sequence[Value | Node]
) -> None:
    known: set[Value | Node] = {*graph.values(), *graph.nodes}
    for item in (*feeds, *fetches):
        if item not in known:
            raise error("W301", f"{item.name} is not in graph {graph.name}",
                        hint="feed and fetch values of the graph that is run")
    if len(set(feeds)) != len(feeds):
        twice = next(value for at, value in enumerate(feeds) if value in feeds[:at])
        raise error("W301", f"{twice.name} is fed twice", hint="give each value one feed")


def _not_fed(value: Value, reader: Node | None) -> Exception:
    name = value.name.removesuffix(":0")
    use = f"'{reader.name}' needs it" if reader is not None else "it is fetched"
    return error("W302", f"placeholder '{name}' is not fed, but {use}",
                 locs=reader.locs if reader is not None else (), types=[value.type],
                 hint=_feeding(value))
