"""Which loops of known length are loops of the program as well: long ones that branch in each
round, which would be compiled round by round.

    for t in range(len(u)):                the first round is traced as it stands: if it has a
        if u[t] < p: s = -s                branch and there are many of them, the function is traced
        total += s                         again, with a loop whose t is traced
    while t < 90: ...                      the same, once there have been many rounds

What a loop cannot carry from its start may be settled by a first round of its own: a number that
becomes an array, say. And a body may ask for the number itself (``np.zeros(t)``): then the function
is traced once more without such loops. So the body must do nothing but compute.

    for i in range(1, n):                  loops that do not branch as well, where the rounds would
        for j in range(1, m):              draw a thousand nodes: of fewer, equal ones are found in
            T[i, j] = T[i-1, j] + ...      the graph (``passes/roll``)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any

from ....ir.diagnose import error
from ....ir.graph import Graph, Node, Value, control_of
from ....ir.indices.index import product
from ....ir.ops.op import Kind
from ....ir.ops.table import OPS
from ...face.source import user_loc
from ...tracing.arrays.chosen import Chosen
from ...tracing.arrays.growing import GrowingList
from ...tracing.arrays.maybe import is_maybe
from ...tracing.context.active import active, current
from ...tracing.context.request import NONE, GivenUpError, Loops, Need, Start
from ...tracing.values.tracer import Tracer
from ..lists.growing import may_grow
from ..regions.state import UNBOUND, Get, is_array
from .computing import all_compute
from .iterables import Zipped
from .tables import PLAIN, Table

LEAST = 4     # rounds, below which a loop is worth no more than its rounds
NODES = 500   # of all rounds together
LONG = 4000   # rounds, those of loops inside among them: some tenths of a second of tracing
_ROOM = 1 << 23  # numbers in a list of unknown length
PATIENCE = 1000  # nodes: a sixth of a second, about
SIZED = 400      # nodes of rounds that are not found to be equal
LARGE = 100      # elements
FAR = 1 << 20    # numbers of a loop that just counts are smaller


def unrolled(roots: Callable[[], Any] | None, get: Get) -> Callable[[], None]:
    """To be called before each round of a loop that is traced round by round. That gives the trace
    up where rounds draw too much, if the loop only computes."""
    return _nothing if roots is None or _loops().patient else _Patience(get).check


def is_worth_a_loop(
    items: Any, drawn: int, roots: Callable[[], Any], code: CodeType
) -> bool:
    """Whether the elements of a comprehension are a loop of the program, of which the first one has
    drawn so many nodes; ``code`` computes one. Its items are rows of arrays: numbers of Python's
    have more that they can be."""
    loops = _loops()
    if loops.start is Start.NEVER or not loops.straight or code in loops.given_up or not all(
            isinstance(part, Tracer) and part.ndim for part in (
                items.parts if isinstance(items, Zipped) else (items,))):
        return False
    count = len(items)
    worth = count >= LEAST and drawn * count >= NODES and all_compute(roots)
    if worth:
        loops.used, loops.peeled[code] = True, None
    return worth


def _loops() -> Loops:
    """What the trace that goes on does with such loops."""
    ctx = active()
    return NONE.loops if ctx is None else ctx.request.loops


def _nothing() -> None:
    pass


class _Patience:
    """How much of a trace a loop may draw round by round. Rounds that differ in the sizes of their
    arrays alone, as ``x[:i]`` is another one in each, are never found to be equal in the graph, and
    each has kernels of its own. Those that read a large array of which they store a part have a
    version of it each, of which a loop has one. Python's integers that have become large
    (``f *= i``) may be larger still, and no loop of the program has them."""

    def __init__(self, get: Get) -> None:
        self.get, self.first, self.before = get, tuple(get()), len(current().graph.nodes)
        self.ends: tuple[int, int] = (0, 0)  # of the last two rounds, in the nodes of the graph

    def check(self) -> None:
        """Before a round. Raises GivenUpError."""
        ctx = current()
        nodes = ctx.graph.nodes
        size, before = len(nodes) - self.before, self.ends
        self.ends = self.ends[1], len(nodes)
        if size < SIZED or ctx.caught:
            return
        much = size >= PATIENCE or _are_apart(nodes[slice(*before)], nodes[before[1]:])
        if much and not self._have_grown():
            raise GivenUpError(Need(straight=True))

    def _have_grown(self) -> bool:
        """Whether an integer of Python's has become large."""
        return any(type(value) is int and abs(value) > FAR and value != first
                   for value, first in zip(self.get(), self.first, strict=True))


def _are_apart(one: Sequence[Node], other: Sequence[Node]) -> bool:
    """Whether two rounds do the same, but on arrays of other shapes, or each on its own version of
    a large array."""
    shapes = [[[x.type.shape for x in node.results] for node in nodes] for nodes in (one, other)]
    return [node.op for node in one] == [node.op for node in other] and (
        shapes[0] != shapes[1] or _have_versions(other))


def _have_versions(nodes: Sequence[Node]) -> bool:
    """Whether a round reads an array of which it stores a part: as it was, or as it is then."""
    stores = [node for node in nodes if _stores_a_part(node)]
    versions = {value for node in stores for value in (_stored_in(node), *node.results)}
    return any(not versions.isdisjoint(node.inputs) for node in nodes if node not in stores)


def _stored_in(store: Node) -> Value:
    return store.inputs[0 if store.op.kind is Kind.SCATTER else 2]


def _stores_a_part(node: Node) -> bool:
    if node.op.kind is Kind.SCATTER:
        return True
    mask = node.inputs[0].node if node.op is OPS["masked"] else None
    size = node.results[0].type.size if mask is not None else 0
    return mask is not None and mask.op is OPS["pad"] and isinstance(size, int) and size >= LARGE


@contextmanager
def in_program(code: CodeType) -> Iterator[None]:
    """Around the trace of a loop of the program: the innermost one that cannot be is why a trace
    has failed."""
    asked = current().asked
    try:
        yield
    except Exception:
        asked.loop = asked.loop or code
        raise


class Rounds:
    """A loop that may be one of the program, and what its first round adds to the graph."""

    def __init__(self, count: int | None, code: CodeType, get: Get, names: Sequence[str],
                 loops: Loops, rows: Any = None) -> None:
        self.count, self.code, self.get, self.loops = count, code, get, loops
        self.names, self.rows = names, rows  # of which a round takes one by its number
        self.nodes = current().graph.nodes
        self.before = len(self.nodes)
        self.asked = current().asked
        self.begun = self.asked.rounds
        self.refused = False

    @classmethod
    def of(
        cls, items: Any, roots: Callable[[], Any] | None, body: Callable[[Any], Any], get: Get,
        names: Sequence[str],
    ) -> Rounds | None:
        """None for a loop that is short, or may do more than compute."""
        loops = _loops()
        if loops.start is Start.NEVER or roots is None or not isinstance(
                items, (range, Tracer, Zipped, *PLAIN)) or (
                    isinstance(items, Tracer) and not items.ndim) or len(items) < LEAST or (
                        not all_compute(roots)):
            return None
        rows = Table.of(items, get()) if isinstance(items, PLAIN) else items
        return None if rows is None else cls(
            len(items), body.__code__, get, names, loops, rows)

    @classmethod
    def of_while(
        cls, roots: Callable[[], Any] | None, body: Callable[[], Any], get: Get,
        names: Sequence[str],
    ) -> Rounds | None:
        """None for a loop that may do more than compute, or is differentiated: to go back through
        it, its rounds must be known."""
        loops = _loops()
        if loops.start is Start.NEVER or roots is None or current().derivatives or (
                not all_compute(roots)):
            return None
        return cls(None, body.__code__, get, names, loops)

    def begin(self) -> bool:
        """Before the first round: whether the loop is one of the program."""
        known = self.code in self.loops.found and self._are_carried()
        self.loops.used |= known
        return known

    def go_on(self, at: int) -> bool:
        """Before round number ``at``: whether the others are a loop of the program. Raises
        GivenUpError where the first one should have been a round of it."""
        self.asked.rounds += 1
        if self.refused:
            return False
        if not self._is_long(at):
            if not self._takes_long(at):
                return False
            self.loops.long = True
        self.refused = self.code in self.loops.found or (
            self.code in self.loops.given_up) or not self._are_carried()
        if self.refused:
            return False
        if self.loops.start is not Start.LATER and self.code not in self.loops.peeled:
            self.loops.found[self.code] = None
            raise GivenUpError(Need(loop=True))
        self.loops.used = True
        return True

    def end(self) -> None:
        """After the loop. Raises TracerError (W201) for lists with room for far more items than
        there may be: rounds that are traced one by one may tell that there are a few
        (``if k % 100 == 0: frames.append(u)``)."""
        for name, value in zip(self.names, self.get(), strict=True):
            if not isinstance(value, GrowingList) or value.known is not None:
                continue
            sizes = [product(row.type.shape) for row in value.rows]
            if sum(size for size in sizes if isinstance(size, int)) > _ROOM:
                raise error("W201", f"{name} would need room for an item of each round",
                            locs=user_loc(), hint="append to it outside of the loop")

    def _is_long(self, at: int) -> bool:
        """Whether rounds are many nodes, as those so far show: those that branch as the first one
        does, unless it has nothing to do."""
        straight = self.loops.straight  # whether those that do not branch count
        if at & (at - 1) and not (self.count is not None and straight):
            return False
        added = self.nodes[self.before:]
        size = sum(map(_size, added))
        parted = any(control_of(node) is not None for node in added)
        if self.count is None:
            return at >= LEAST and (parted or straight) and size >= NODES
        if straight:  # rounds of several steps each are not fused with one another
            return size * self.count >= (NODES // 4 if parted else NODES) * at
        # Inside of a loop that was worth being one, few nodes are many.
        few = NODES // 4 if self.loops.straight else NODES
        return parted and size * (self.count - at) >= few * at

    def _takes_long(self, at: int) -> bool:
        """Whether there are so many rounds, with those of loops inside, that native code is faster
        than Python, even if all of their numbers are known and no round draws a node."""
        if at < LEAST or at & (at - 1) or current().request.short:
            return False
        run = self.asked.rounds - self.begun
        return run * (at if self.count is None else self.count) >= LONG * at

    def _are_carried(self) -> bool:
        return all(_is_carried(value) or may_grow(name, value)
                   for name, value in zip(self.names, self.get(), strict=True))


def _size(node: Node) -> int:
    """How many nodes it is with those inside of it."""
    bodies = (body for body in node.attrs.values() if isinstance(body, Graph))
    return 1 + sum(_size(inner) for body in bodies for inner in body.nodes)


def _is_carried(value: Any) -> bool:
    """Whether a name has what a loop can carry, or what stays as it is."""
    if type(value) in (list, tuple, dict):
        return all(map(_is_carried, value.values() if type(value) is dict else value))
    return value is None or value is UNBOUND or is_array(value) or is_maybe(value) or isinstance(
        value, (str, Chosen))
