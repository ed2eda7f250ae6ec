"""From a fused region to a kernel: the value of every result at an index, as statements.

Evaluation is driven by demand: ``value(v, index)`` asks for one graph value at one index. A MAP
asks for its operands at the same index, a VIEW at mapped ones, a REDUCE at the index with the axes
put in that the region's space gives it, a GATHER at indices that are themselves values. Equal
demands meet in the builder, so softmax's two uses of ``x`` are one load.

An axis is ``par`` if all stores run over it and nothing is summed over it, else ``seq``.
Evaluators are generators that yield demands, run by one explicit stack: regions of any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cached_property

from ...ir.diagnose import error
from ...ir.graph import Graph, Node, Value
from ...ir.indices.index import Dim, Expr, bounds, plain_symbol, product, symbol, symbols_of
from ...ir.indices.runs import PAIR
from ...ir.indices.space import (
    UNPLACED,
    Index,
    is_chain,
    known_indices,
    operand_index,
    operand_place,
    own_dims,
    parts_of,
    placed_nodes,
    result_index,
    searched_axis,
    summed_runs,
)
from ...ir.kernels.build import KernelBuilder, Scalar
from ...ir.kernels.combine import identity, is_ordered
from ...ir.kernels.kernel import Axis, AxisKind, Carry, Kernel, Param, Store
from ...ir.ops.axes.reduce import contract_places
from ...ir.ops.axes.sort import steps_of
from ...ir.ops.op import Kind, widened
from ...ir.ops.places.view import Condition, unravel
from ...ir.plans.plan import CheckSite
from ...ir.record import field, record, replace
from ...ir.types import I64
from ...ir.verify.graph import symbols_in
from .nest import nested_axes
from .order import chunk_of, order_of

Demand = tuple[Value, tuple[Dim, ...], Scalar | None]
Evaluator = Generator[Demand, Scalar, Scalar]


@record
class Lowering:
    """One region being lowered: its body, where its nodes are computed, the statements so far."""

    body: Graph
    space: str | None = None
    checks: list[tuple[CheckSite, Node]] = field(default_factory=list)
    builder: KernelBuilder = field(default_factory=KernelBuilder)
    axes: dict[str, Axis] = field(default_factory=dict)
    _places: dict[int, Index] = field(default_factory=dict)  # own index of each placed node
    _runs: dict[Index, str] = field(default_factory=dict)    # the axis of a run of own dims
    _known: dict[tuple[int, Index], dict[str, Scalar]] = field(default_factory=dict)  # by guard
    _made_of: dict[str, frozenset[str]] = field(default_factory=dict)  # the conditions of guards
    _params: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = set(self.dims)
        for at, param in enumerate(self.body.params):
            name = f"x{at}"
            while name in taken:
                name += "_"
            self._params[id(param)] = name
        if self.space is not None:
            nodes = placed_nodes(self.body)
            words = self.space.split(",") if nodes else []
            self._settle(dict(zip(nodes, words, strict=True)))

    def param_name(self, value: Value) -> str:
        """What the kernel calls a parameter of the body."""
        return self._params[id(value)]

    @cached_property
    def dims(self) -> frozenset[str]:
        """Symbolic dims of the body, of its values and of attributes such as the size of a ``dim``;
        axes must not take their names."""
        shapes = frozenset().union(*(symbols_of(dim) for value in self.body.values()
                                     for dim in value.shape))
        return shapes.union(*(symbols_in(attr) for node in self.body.nodes
                              for attr in node.attrs.values()))

    def axis(self, stem: str, extent: Dim, kind: AxisKind = "par") -> Expr:
        """Add an axis and return its symbol."""
        while stem in self.dims or stem in self.axes:
            stem += "_"
        self.axes[stem] = Axis(stem, extent, kind)
        return symbol(stem, extent)

    def _settle(self, words: Mapping[Node, str]) -> None:
        """Give each letter of the space its index: an axis, or its part in the axis of a run."""
        extents: dict[str, Dim] = {"1": 1}
        runs: dict[str, None] = {}
        for node, word in words.items():
            if word != UNPLACED:
                extents.update(zip(word, own_dims(node), strict=False))
                if not (node.op.kind is Kind.CONTRACT and is_chain(node)):
                    runs.update(dict.fromkeys("".join(word[at] for at in run)
                                              for run in summed_runs(node)))
        places: dict[str, Dim] = {"1": 0}
        for run in runs:
            dims = tuple(extents[letter] for letter in run)
            where = unravel(self.axis(run, product(dims)), dims)
            if not places.keys().isdisjoint(run):
                raise error("W601", f"sums over '{run}' and over a part of it in one region")
            places.update(zip(run, where, strict=True))
            self._runs[where] = next(reversed(self.axes))
        for letter, extent in extents.items():
            if letter not in places:
                places[letter] = self.axis(letter, extent)
                self._runs[(places[letter],)] = next(reversed(self.axes))
        self._places = {id(node): tuple(places[letter] for letter in word)
                        for node, word in words.items() if word != UNPLACED}

    def place(self, node: Node) -> Index:
        """The own index of a node that the region computes at one place."""
        return self._places[id(node)]

    def reduce(self, combine: str, value: Scalar, axis: str) -> Scalar:
        """A value reduced over an axis, in the order that its extent and dtype give it."""
        ordered = is_ordered(combine, value.dtype)
        order = order_of(self.axes[axis].extent, value.dtype) if ordered else None
        return self.builder.reduce(combine, value, axis, order)

    def widened(self, value: Scalar) -> Scalar:
        """A value in the dtype it is computed in."""
        wide: Scalar = widened(self.builder, value)
        return wide

    def searched(self, node: Node) -> Dim | None:
        """The axis along which a gather looks for an element of a value of the region."""
        own = self._places.get(id(node), ())
        return own[-1] if len(own) > len(node.results[0].shape) else None

    def run_of(self, place: Dim) -> str:
        """The name of an axis that stands for one dim."""
        return self._runs[place,]

    def runs(self, node: Node) -> list[str]:
        """The axes that a node sums over, in order."""
        own = self.place(node)
        runs = [tuple(own[at] for at in run) for run in summed_runs(node)]
        if all(run in self._runs for run in runs):
            return [self._runs[run] for run in runs]
        # The axes of a chain stay apart where no run makes them one.
        return [self._runs[place,] for run in runs for place in run]

    def value(self, wanted: Value, index: tuple[Dim, ...]) -> Scalar:
        """The value of ``wanted`` at ``index``: the hook through which schedules load.

        What is known where fewer conditions hold serves where more do. And what is asked for under
        a second guard, and is there without any, is computed for all: else a chain in which each
        value reads the one before under two guards would take time exponential in its length.
        """
        stack: list[tuple[dict[str, Scalar], str, Evaluator]] = []
        answer: Scalar | None = None
        demand: Demand | None = (wanted, index, None)
        while True:
            if demand is not None:
                value, at, guard = demand
                known = self._known.setdefault((id(value), at), {})
                answer = self._serving(known, guard)
                if answer is None:
                    guard = None if known and self._is_inside(value, at) else guard
                    stack.append((known, guard.name if guard else "",
                                  self._evaluate(value, at, guard)))
            if answer is not None and not stack:
                return answer
            known, name, evaluator = stack[-1]
            try:
                demand = evaluator.send(answer) if answer is not None else next(evaluator)
                answer = None
            except StopIteration as done:
                stack.pop()
                answer, demand = done.value, None
                known[name] = done.value

    def _serving(self, known: Mapping[str, Scalar], guard: Scalar | None) -> Scalar | None:
        """A value that was computed under no more conditions than the guard has."""
        if guard is None or "" in known:
            return known.get("")
        conditions = self._conditions(guard)
        return next((value for name, value in known.items()
                     if self._made_of.get(name, frozenset((name,))) <= conditions), None)

    def _conditions(self, guard: Scalar | None) -> frozenset[str]:
        return frozenset() if guard is None else self._made_of.get(
            guard.name, frozenset((guard.name,)))

    def _is_inside(self, value: Value, index: Index) -> bool:
        """True if an index is surely one of the value."""
        for place, size in zip(index, value.shape, strict=True):
            low, high = bounds(place)
            axis = self.axes.get(plain_symbol(place) or "")
            if (axis is None or axis.extent != size) and (
                    low is None or low < 0 or high is None or not isinstance(size, int)
                    or high >= size):
                return False
        return True

    def _evaluate(self, value: Value, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
        node = value.node
        if node is None:
            return self._load(value, index, guard)
        return _EVALUATORS[node.op.kind](self, node, index, guard)

    def _load(self, value: Value, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
        yield from ()
        return self.builder.load(self._params[id(value)], value.dtype, index, guard)

    def condition(self, condition: Condition) -> Scalar | None:
        """``low <= expr < high`` as a bool value; None when it always holds."""
        expr, low, high = condition
        s = self.builder
        first, last = bounds(expr)
        result = None
        if not (first is not None and isinstance(low, int) and first >= low):
            result = s.ge(s.index(expr), s.index(low))
        if not (last is not None and isinstance(high, int) and last < high):
            below = s.lt(s.index(expr), s.index(high))
            result = below if result is None else s.and_(result, below)
        return result

    def both(self, a: Scalar | None, b: Scalar | None) -> Scalar | None:
        """The conjunction of two guards."""
        if a is None or b is None:
            return a or b
        both: Scalar = self.builder.and_(a, b)
        self._made_of[both.name] = self._conditions(a) | self._conditions(b)
        return both

    def checked_index(
        self, node: Node, at: int, index: Scalar, guard: Scalar | None, place: tuple[Dim, ...]
    ) -> tuple[Dim, Scalar | None]:
        """The index of axis number ``at`` of those that are indexed, made non-negative, and the
        guard that it is in range (checked), unless all are known to be.

        ``place`` is where it stands among the indices of ``node``.
        """
        s = self.builder
        extent = node.inputs[0].shape[node.attrs["axes"][at]]
        known = node.attrs.get("inside", ("",) * (at + 1))[at]
        index = s.cast(index, I64)
        if known == "all":
            return symbol(index.name), guard
        guard = self.both(guard, self._indexed(node, index, place))
        size, zero = s.index(extent), s.const(0, I64)
        if known:
            wrapped, inside = index, s.lt(index, size)
        else:
            wrapped = s.select(s.lt(index, zero), s.add(index, size), index)
            inside = s.and_(s.ge(wrapped, zero), s.lt(wrapped, size))
        site = CheckSite("W124", f"index out of range in an axis of {extent}")
        self.check(inside, guard, site, node)
        return symbol(wrapped.name), self.both(guard, inside)

    def check(
        self, holds: Scalar, guard: Scalar | None, site: CheckSite, node: Node
    ) -> None:
        """Let the step fail where ``holds`` is false and the guard, if any, is true."""
        s = self.builder
        self.checks.append((site, node))
        s.check(holds if guard is None else s.or_(s.not_(guard), holds), len(self.checks))

    def _indexed(self, node: Node, index: Scalar, place: tuple[Dim, ...]) -> Scalar | None:
        """That a node has indices at all, where the value of one does not say so: an index that is
        the same at all places of an empty array is never out of range."""
        count = product(node.inputs[-1].shape)
        if isinstance(count, int) and count > 0:
            return None
        moving = frozenset[str]().union(*map(symbols_of, place))
        if count != 0 and moving <= self.axes_under(index):
            return None
        return self.builder.lt(self.builder.const(0, I64), self.builder.index(count))

    def axes_under(self, value: Scalar) -> frozenset[str]:
        """The axes that a value depends on."""
        kernel = Kernel("", (), tuple(self.axes.values()), tuple(self.builder.body))
        return kernel.value_axes[value.name]

    def where(self, value: Value) -> list[tuple[Value, Index, Index]]:
        """What the parts of a result are, where they are computed, and where they are stored."""
        found = []
        for part in parts_of(value, self._places):
            node = part.source.node
            if node is None or id(node) not in self._places:
                raise error("W601", f"the space does not say where {value.name} is")
            index = result_index(node, self.place(node))
            found.append((part.source, index, part.moved(index)))
        return found

    def finish(self, name: str) -> Kernel:
        """Store each result where it is computed, and give the kernel."""
        outputs = []
        places = [self.where(value) for value in self.body.results]
        for at, (value, parts) in enumerate(zip(self.body.results, places, strict=True)):
            out = Param(f"y{at}", value.type, mutable=True)
            outputs.append(out)
            if len(parts) == PAIR:  # the parts of complex numbers are stored side by side
                for source, index, _ in parts:
                    self.value(source, index)
            for source, index, target in parts:
                self.builder.store(out.name, target, self.value(source, index))
        kernel = self.kernel(name, outputs)
        stores = [axes for at, axes in kernel.effect_axes.items()
                  if isinstance(kernel.body[at], Store)]
        used = frozenset[str]().union(*kernel.value_axes.values(), *stores)
        summed = {axis for stmt in kernel.body for axis in stmt.summed} | {
            stmt.axis for stmt in kernel.body if isinstance(stmt, Carry)}
        par = frozenset.intersection(*stores) - summed if stores else frozenset[str]()
        wide = [name for parts in places for _, index, _ in parts for dim in index
                for name in sorted(symbols_of(dim))]
        order = sorted(dict.fromkeys((*wide, *self.axes)), key=lambda axis: axis not in par)
        return replace(kernel, axes=tuple(
            replace(self.axes[axis], kind="par" if axis in par else "seq")
            for axis in nested_axes(kernel, order) if axis in used | summed))

    def kernel(self, name: str, outputs: Sequence[Param]) -> Kernel:
        """The kernel of the statements written so far."""
        inputs = [Param(self._params[id(param)], param.type) for param in self.body.params]
        locs = dict.fromkeys(loc for node in self.body.nodes for loc in node.locs)
        return Kernel(name, (*inputs, *outputs), tuple(self.axes.values()),
                      tuple(self.builder.body), tuple(locs))


def _map(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    # What is read in part comes last: what others have read in full serves it. What is awaited
    # comes first: of several checks the first counts, and it may guard an index.
    found: dict[int, Scalar] = {}
    inputs = node.inputs[::-1] if node.op.awaits else node.inputs
    for operand in sorted(inputs, key=_is_partial):
        found[id(operand)] = yield operand, index, guard
    operands = [found[id(operand)] for operand in node.inputs]
    check = node.op.check
    if check is not None:
        site = CheckSite(check.code or node.attrs["code"], check.message(**node.attrs))
        holds = check.holds(low.builder, *map(low.widened, operands), **node.attrs)
        low.check(holds, guard, site, node)
    place = {"index": index} if node.op.indexed else {}
    result: Scalar = node.op.computed(low.builder, operands, node.results[0].dtype, **place,
                                      **node.attrs)
    return result


def _is_partial(value: Value) -> bool:
    """True for views that read their operands under conditions."""
    node = value.node
    return node is not None and node.op.kind is Kind.VIEW and (
        "value" in node.attrs or len(node.inputs) > 1)


def _never(condition: Condition) -> bool:
    """True if an index that is known does not fulfil a condition."""
    expr, low, high = condition
    return isinstance(expr, int) and (
        (isinstance(low, int) and expr < low) or (isinstance(high, int) and expr >= high))


def _view(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    assert node.op.view is not None
    out = node.results[0]
    types = tuple(value.type for value in node.inputs)
    choices: list[tuple[Scalar | None, Scalar]] = []
    pieces = node.op.view(index, types, out.type, **node.attrs)
    for piece in [each for each in pieces if not any(map(_never, each.conditions))] or pieces:
        holds: Scalar | None = None
        for condition in piece.conditions:
            holds = low.both(holds, low.condition(condition))
        choice = yield node.inputs[piece.operand], piece.indices, low.both(guard, holds)
        choices.append((holds, choice))
        if holds is None:
            break
    result = (low.builder.const(node.attrs["value"], out.dtype)
              if "value" in node.attrs and choices[-1][0] is not None else choices[-1][1])
    for holds, choice in reversed(choices):
        result = choice if holds is None or choice is result else (
            low.builder.select(holds, choice, result))
    return result


def _reduce(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    own, kept, axes = low.place(node), iter(index), node.attrs["axes"]
    full = tuple(place if at in axes else next(kept) for at, place in enumerate(own))
    value = low.widened((yield node.inputs[0], full, guard))
    runs, combine = low.runs(node), node.op.combine
    for axis in reversed(runs):
        value = low.reduce(combine, value, axis)
    if value.dtype.is_float and (
            combine in ("max", "min") or (combine == "add" and axes and not runs)):
        # A sum is from 0.0 on, even of one term: that of -0.0 is 0.0. Of zeros the extreme is 0.0,
        # as its sign would show in which order they came.
        value = low.builder.add(low.builder.const(0.0, value.dtype), value)
    return low.builder.cast(value, node.results[0].dtype)


def _contract(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    out = contract_places(node.attrs["dims"])[2]
    asked = dict(zip(out, index, strict=True))
    own = tuple(asked.get(at, place) for at, place in enumerate(low.place(node)))
    left = low.widened((yield node.inputs[0], operand_index(node, 0, own), guard))
    right = low.widened((yield node.inputs[1], operand_index(node, 1, own), guard))
    axes = low.runs(node)
    if is_chain(node):
        chunk = chunk_of((low.axes[axis].extent for axis in axes), left.dtype)
        value = low.builder.contract(left, right, tuple(axes), chunk)
    else:
        value = low.builder.mul(left, right)
        if not axes and value.dtype.is_float:  # as of one term in ``_reduce``
            value = low.builder.add(low.builder.const(0.0, value.dtype), value)
        for axis in reversed(axes):
            value = low.reduce("add", value, axis)
    return low.builder.cast(value, node.results[0].dtype)


def _gather(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    x, *indices = node.inputs
    axes, rank = node.attrs["axes"], len(indices[0].shape)
    at: dict[int, Dim] = {}
    known = known_indices(node, index)
    for number, (axis, operand) in enumerate(zip(axes, indices, strict=True)):
        if (place := known[number]) is not None:
            at[axis] = place
            continue
        wanted = yield operand, index[:rank], guard
        at[axis], guard = low.checked_index(node, number, wanted, guard, index[:rank])
    along = low.searched(node)
    if along is not None:
        return (yield from _searched(low, node, (*index, along), at))
    rest = iter(index[rank:])
    full = tuple(at[axis] if axis in at else next(rest) for axis in range(len(x.shape)))
    return (yield x, full, guard)


def _searched(low: Lowering, node: Node, own: Index, at: Mapping[int, Dim]) -> Evaluator:
    """An element of a value of the region: the only one that is not masked, along its axis."""
    s, place, axis = low.builder, operand_place(node, own), searched_axis(node)
    assert place is not None and axis is not None
    value = low.widened((yield node.inputs[0], place, None))
    hit = s.eq(s.index(own[-1]), s.index(at[axis]))
    none = s.const(identity("max", value.dtype), value.dtype)
    found = low.reduce("max", s.select(hit, value, none), low.run_of(own[-1]))
    return s.cast(found, node.results[0].dtype)


def _scan(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    # No guard: what one index skipped would be missing at all that follow.
    place, operands = low.place(node), []
    for operand in node.inputs:
        operands.append(low.widened((yield operand, place, None)))
    assert node.op.body is not None and node.op.start is not None
    dtype, along, body = operands[0].dtype, place[node.attrs["axis"]], node.op.body

    def step(held: Scalar) -> Scalar:
        made: Scalar = body(low.builder, held, *operands, **node.attrs)
        return made

    start = low.builder.const(node.op.start(dtype), dtype)
    last = step(start) if along == 0 else low.builder.carry(start, low.run_of(along), step)
    return low.builder.cast(last, node.results[0].dtype)


def _search(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    """Forward by ever smaller steps, as long as what is there comes before the value."""
    s, (x, values) = low.builder, node.inputs
    value = low.widened((yield values, index, guard))
    (extent,) = x.shape
    place, comes_before = s.const(0, I64), node.op.body
    assert comes_before is not None
    for step in steps_of(extent):
        there = s.add(place, s.const(step, I64))
        inside = low.both(guard, s.le(there, s.index(extent)))
        element = low.widened((yield x, (symbol(there.name) - 1,), inside))
        before = comes_before(s, element, value, **node.attrs)
        place = s.select(s.and_(inside, before) if inside else before, there, place)
    return place


_EVALUATORS: Mapping[Kind, Callable[..., Evaluator]] = {
    Kind.MAP: _map, Kind.VIEW: _view, Kind.REDUCE: _reduce, Kind.CONTRACT: _contract,
    Kind.GATHER: _gather, Kind.SCAN: _scan, Kind.SEARCH: _search,
}
