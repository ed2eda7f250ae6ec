"""From a fused region to a kernel: the value of every result at an index, as statements.

Evaluation is driven by demand: ``value(v, index)`` asks for one graph value at one index. A MAP
asks for its operands at the same index, a VIEW at mapped ones, a REDUCE at the index with the loop
axis put in, a GATHER at indices that are themselves values. Equal demands meet in the builder, so
softmax's two uses of ``x`` are one load. Schedules (``lower_*``) name the axes and the results.

Evaluators are generators that yield demands, run by one explicit stack: regions of any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...ir.graph import Graph, Node, Value
from ...ir.index import Dim, Expr, bounds, product, symbol, symbols_of
from ...ir.kernel import Axis, AxisKind, Kernel, KernelBuilder, Param, Scalar, is_ordered
from ...ir.ops.op import Kind
from ...ir.ops.reduce import contract_letters, is_matrix_product
from ...ir.ops.view import Condition, unravel
from ...ir.plan import CheckSite, KernelCall
from ...ir.types import I64
from .order import order_of

Demand = tuple[Value, tuple[Dim, ...], Scalar | None]
Evaluator = Generator[Demand, Scalar, Scalar]


@dataclass
class Lowering:
    """One region being lowered: its body, the statements so far, and the loop axis if any."""

    body: Graph
    checks: list[CheckSite] = field(default_factory=list)
    builder: KernelBuilder = field(default_factory=KernelBuilder)
    axes: list[Axis] = field(default_factory=list)
    loop: Expr | None = None                 # the symbol of the axis a product runs over
    loop_dims: tuple[Dim, ...] = ()          # the dims it was collapsed from
    runs: list[str] = field(default_factory=list)  # the axes that reductions run over
    inner: dict[int, Dim] = field(default_factory=dict)  # the index at each reduced axis
    _known: dict[tuple[int, tuple[Dim, ...], str], Scalar] = field(default_factory=dict)
    _params: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = set(self.dims)
        for at, param in enumerate(self.body.params):
            name = f"x{at}"
            while name in taken:
                name += "_"
            self._params[id(param)] = name

    @property
    def dims(self) -> frozenset[str]:
        """Symbolic dims of the body's values; axes must not take their names."""
        return frozenset().union(*(symbols_of(dim) for value in self.body.values()
                                   for dim in value.shape))

    def axis(self, stem: str, extent: Dim, kind: AxisKind = "par") -> Expr:
        """Add an axis and return its symbol."""
        taken = self.dims | {axis.name for axis in self.axes}
        while stem in taken:
            stem += "_"
        self.axes.append(Axis(stem, extent, kind))
        return symbol(stem, extent)

    def loop_axis(self, stem: str, dims: tuple[Dim, ...]) -> None:
        """Add the axis that reductions run over, for dims collapsed into one."""
        self.loop, self.loop_dims = self.axis(stem, product(dims), "seq"), dims

    def reduced_axes(self, shape: tuple[Dim, ...], axes: tuple[int, ...]) -> None:
        """Add a loop axis for each run of neighbours among the reduced axes of an operand.

        Which axes are one follows from the shape alone, so it fixes the order of a sum.
        """
        runs: list[list[int]] = []
        for axis in sorted(axes):
            if runs and runs[-1][-1] == axis - 1:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        for at, run in enumerate(runs):
            dims = tuple(shape[axis] for axis in run)
            loop = self.axis("r" if len(runs) == 1 else f"r{at}", product(dims), "seq")
            self.runs.append(str(loop))
            self.inner.update(zip(run, unravel(loop, dims), strict=True))

    def reduce(self, combine: str, value: Scalar, loop: str) -> Scalar:
        """A value reduced over a loop axis, in the order that its extent and dtype give it."""
        order = None
        if is_ordered(combine, value.dtype):
            extent = next(axis.extent for axis in self.axes if axis.name == loop)
            order = order_of(extent, value.dtype)
        return self.builder.reduce(combine, value, loop, order)

    def value(self, wanted: Value, index: tuple[Dim, ...]) -> Scalar:
        """The value of ``wanted`` at ``index``: the hook through which schedules load."""
        stack: list[tuple[tuple[int, tuple[Dim, ...], str], Evaluator]] = []
        answer: Scalar | None = None
        demand: Demand | None = (wanted, index, None)
        while True:
            if demand is not None:
                value, at, guard = demand
                key = (id(value), at, guard.name if guard else "")
                answer = self._known.get(key)
                if answer is None:
                    stack.append((key, self._evaluate(value, at, guard)))
            if answer is not None and not stack:
                return answer
            key, evaluator = stack[-1]
            try:
                demand = evaluator.send(answer) if answer is not None else next(evaluator)
                answer = None
            except StopIteration as done:
                stack.pop()
                answer, demand = done.value, None
                self._known[key] = done.value

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
        return self.builder.and_(a, b) if a is not None and b is not None else a or b

    def checked_index(
        self, node: Node, index: Scalar, extent: Dim, guard: Scalar | None, place: tuple[Dim, ...]
    ) -> tuple[Dim, Scalar]:
        """An index value made non-negative, and the guard that it is in range (checked).

        ``place`` is where it stands among the indices of ``node``.
        """
        s = self.builder
        guard = self.both(guard, self._indexed(node, index, place))
        index = s.cast(index, I64)
        size, zero = s.index(extent), s.const(0, I64)
        wrapped = s.select(s.lt(index, zero), s.add(index, size), index)
        inside = s.and_(s.ge(wrapped, zero), s.lt(wrapped, size))
        self.check(inside, guard, CheckSite(
            "W124", f"index out of range in an axis of {extent}", node.locs))
        inside_ = self.both(guard, inside)
        assert inside_ is not None
        return symbol(wrapped.name), inside_

    def check(self, holds: Scalar, guard: Scalar | None, site: CheckSite) -> None:
        """Let the step fail where ``holds`` is false and the guard, if any, is true."""
        s = self.builder
        self.checks.append(site)
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
        return Kernel("", (), tuple(self.axes), tuple(self.builder.body)).value_axes[value.name]

    def finish(self, name: str, results: Sequence[tuple[Value, tuple[Dim, ...]]]) -> Kernel:
        """Store each result at its index and give the kernel, without unused parameters."""
        outputs = []
        for at, (value, index) in enumerate(results):
            scalar = self.value(value, index)
            out = Param(f"y{at}", value.type, mutable=True)
            outputs.append(out)
            self.builder.store(out.name, index, scalar)
        return self.kernel(name, outputs)

    def kernel(self, name: str, outputs: Sequence[Param]) -> Kernel:
        """The kernel of the statements written so far."""
        inputs = [Param(self._params[id(param)], param.type) for param in self.body.params]
        locs = dict.fromkeys(loc for node in self.body.nodes for loc in node.locs)
        return Kernel(name, (*inputs, *outputs), tuple(self.axes), tuple(self.builder.body),
                      tuple(locs))


def _map(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    operands = []
    for operand in node.inputs:
        operands.append((yield operand, index, guard))
    assert node.op.body is not None
    check = node.op.check
    if check is not None:
        site = CheckSite(check.code, check.message(**node.attrs), node.locs)
        low.check(check.holds(low.builder, *operands, **node.attrs), guard, site)
    place = {"index": index} if node.op.indexed else {}
    result: Scalar = node.op.body(low.builder, *operands, **place, **node.attrs)
    return result


def _view(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    assert node.op.view is not None
    out = node.results[0]
    types = tuple(value.type for value in node.inputs)
    choices: list[tuple[Scalar | None, Scalar]] = []
    for piece in node.op.view(index, types, out.type, **node.attrs):
        holds: Scalar | None = None
        for condition in piece.conditions:
            holds = low.both(holds, low.condition(condition))
        choice = yield node.inputs[piece.operand], piece.indices, low.both(guard, holds)
        choices.append((holds, choice))
        if holds is None:
            break
    result = (low.builder.const(node.attrs["value"], out.dtype)
              if "value" in node.attrs else choices[-1][1])
    for holds, choice in reversed(choices):
        result = choice if holds is None or choice is result else (
            low.builder.select(holds, choice, result))
    return result


def _reduce(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    operand, kept = node.inputs[0], iter(index)
    full = tuple(low.inner[axis] if axis in low.inner else next(kept)
                 for axis in range(len(operand.shape)))
    value: Scalar = yield operand, full, guard
    for loop in reversed(low.runs):  # none for an empty tuple of axes
        value = low.reduce(node.op.combine, value, loop)
    return value


def _contract(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    lhs, rhs, out = contract_letters(node.attrs["dims"])
    at: dict[str, Dim] = dict(zip(out, index, strict=True))
    summed = [c for c in lhs if c not in at]
    places = unravel(low.loop, low.loop_dims) if low.loop is not None else (0,) * len(summed)
    at.update(zip(summed, places, strict=True))
    left = yield node.inputs[0], tuple(at[c] for c in lhs), guard
    right = yield node.inputs[1], tuple(at[c] for c in rhs), guard
    if low.loop is None:
        return low.builder.mul(left, right)
    if is_matrix_product(node.attrs["dims"], node.inputs[0].shape, node.inputs[1].shape):
        return low.builder.contract(left, right, str(low.loop))
    return low.reduce("add", low.builder.mul(left, right), str(low.loop))


def _gather(low: Lowering, node: Node, index: tuple[Dim, ...], guard: Scalar | None) -> Evaluator:
    x, *indices = node.inputs
    axes, rank = node.attrs["axes"], len(indices[0].shape)
    at: dict[int, Dim] = {}
    for axis, operand in zip(axes, indices, strict=True):
        wanted = yield operand, index[:rank], guard
        at[axis], guard = low.checked_index(node, wanted, x.shape[axis], guard, index[:rank])
    rest = iter(index[rank:])
    full = tuple(at[axis] if axis in at else next(rest) for axis in range(len(x.shape)))
    return (yield x, full, guard)


_EVALUATORS: Mapping[Kind, Callable[..., Evaluator]] = {
    Kind.MAP: _map, Kind.VIEW: _view, Kind.REDUCE: _reduce, Kind.CONTRACT: _contract,
    Kind.GATHER: _gather,
}


def lower_map(low: Lowering, name: str) -> Kernel:
    """One par axis for each dim of the results, which have one shape."""
    shape = low.body.results[0].shape
    index = tuple(low.axis(f"i{at}", dim) for at, dim in enumerate(shape))
    return low.finish(name, [(value, index) for value in low.body.results])


def lower_reduce(low: Lowering, name: str) -> Kernel:
    """Kept dims are par axes; the reduced ones are loop axes, shared by all reductions.

    Results have the shape of the reduced operand or of the reduction (dims of size 1 aside).
    """
    anchor = next(node for node in low.body.nodes if node.op.kind is Kind.REDUCE)
    full, axes = anchor.inputs[0].shape, anchor.attrs["axes"]
    kept = tuple(low.axis(f"i{at}", dim) for at, dim in enumerate(full) if at not in axes)
    low.reduced_axes(full, axes)
    rest = iter(kept)
    whole = tuple(low.inner[at] if at in low.inner else next(rest) for at in range(len(full)))
    results = []
    for value in low.body.results:
        source, dims = (whole, full) if value.shape == full else (
            kept, tuple(dim for at, dim in enumerate(full) if at not in axes))
        wide = iter(index for index, dim in zip(source, dims, strict=True) if dim != 1)
        results.append((value, tuple(0 if dim == 1 else next(wide) for dim in value.shape)))
    return low.finish(name, results)


def lower_contract(low: Lowering, name: str) -> Kernel:
    """A par axis for each letter of the result, one loop axis for the summed letters."""
    anchor = next(node for node in low.body.nodes if node.op.kind is Kind.CONTRACT)
    lhs, rhs, out = contract_letters(anchor.attrs["dims"])
    operands = (*anchor.inputs[0].shape, *anchor.inputs[1].shape)
    sizes = dict(zip(lhs + rhs, operands, strict=True))
    at = {letter: low.axis(letter, sizes[letter]) for letter in out}
    summed = tuple(sizes[letter] for letter in lhs if letter not in at)
    if product(summed) != 1:
        low.loop_axis("k", summed)
    index = tuple(at[letter] for letter in out)
    return low.finish(name, [(value, index) for value in low.body.results])


def lower_scatter(low: Lowering, name: str) -> Kernel:
    """Rows of updates in order (seq), the dims that are not indexed in parallel."""
    anchor = low.body.nodes[-1]
    base, updates, *indices = anchor.inputs
    axes = anchor.attrs["axes"]
    rest = [low.axis(f"i{at}", dim) for at, dim in enumerate(base.shape) if at not in axes]
    shape = indices[0].shape
    low.loop_axis("u", shape)
    assert low.loop is not None
    row = unravel(low.loop, shape)
    at: dict[int, Dim] = {}
    guard: Scalar | None = None
    for axis, operand in zip(axes, indices, strict=True):
        at[axis], guard = low.checked_index(
            anchor, low.value(operand, row), base.shape[axis], guard, row)
    value = low.value(updates, (*row, *rest))
    assert guard is not None
    if str(low.loop) not in low.axes_under(guard) | low.axes_under(value):
        # The same number to the same place each time: a store runs over the axes it depends on.
        s = low.builder
        guard = s.and_(guard, s.ge(s.index(low.loop), s.const(0, I64)))
    others = iter(rest)
    target = tuple(at[axis] if axis in at else next(others) for axis in range(len(base.shape)))
    out = Param("y0", base.type, mutable=True)
    low.builder.store("y0", target, value, accumulate=True, guard=guard)
    return low.kernel(name, [out])


SCHEDULES: Mapping[str, Callable[[Lowering, str], Kernel]] = {
    "map": lower_map, "reduce": lower_reduce, "contract": lower_contract, "scatter": lower_scatter,
}


def lower(node: Node, name: str) -> KernelCall:
    """Lower a fused node to one kernel call."""
    body: Graph = node.attrs["body"]
    low = Lowering(body)
    kernel = SCHEDULES[node.attrs["anchor"]](low, name)
    values = [*(v.name for v in node.inputs), *(v.name for v in node.results)]
    used = {getattr(stmt, "param", "") for stmt in kernel.body}
    kept = [at for at, param in enumerate(kernel.params) if param.name in used or param.mutable]
    updates: tuple[tuple[str, str], ...] = ()
    if node.attrs["anchor"] == "scatter":
        base = body.params.index(body.nodes[-1].inputs[0])
        updates = ((node.results[0].name, node.inputs[base].name),)
    kernel = replace(kernel, params=tuple(kernel.params[at] for at in kept))
    return KernelCall(kernel, tuple(values[at] for at in kept), updates, tuple(low.checks))
