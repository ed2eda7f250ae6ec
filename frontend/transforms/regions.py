"""The nodes of control flow: bodies traced as regions, and what their operands and results are.

``branched`` makes a ``cond`` of two traced bodies, ``rounds`` a ``while`` and ``scanned`` a
``scan``. Values from around a body become operands of the node. What a loop carries keeps its types
from round to round, so a first value that is a Python number takes the dtype that the first round
gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.graph import Builder, Graph, Node, Value, effects_of, writes
from ...ir.indices.dims import differ
from ...ir.indices.index import Dim, symbol, symbols_of
from ...ir.ops.op import Effect
from ...ir.ops.table import OPS
from ...ir.plans.partition import symbols_told_in
from ...ir.types import BOOL, DType, Loc, TensorType
from .. import tree
from ..tracing.active import context_for, current
from ..tracing.operand import cast, matched, to_tracer
from ..tracing.recorder import TraceContext
from ..tracing.rewrites import converted
from ..tracing.source import definition, user_loc
from ..tracing.trace import Region, trace_region
from ..tracing.tracer import Operation, SymbolicDim, Tracer


def branched(
    ctx: TraceContext, condition: Tracer, regions: Sequence[Region],
    operands: Sequence[Tracer] = (),
) -> list[Tracer]:
    """The node of two branches of the same nest, which take the operands, and its results."""
    _check_sizes(regions)
    weak = _agreed(regions)
    regions = _reading_outside(ctx, regions)
    closure = with_closure(regions, [len(operands)] * 2)

    def record() -> list[Tracer]:
        inputs = [ctx.value_of(x) for x in (condition, *operands, *closure)]
        node = ctx.builder.emit(OPS["cond"], inputs,
                                {"then": regions[0].graph, "other": regions[1].graph})
        return results_of(ctx, node, weak)

    return _recorded(ctx, record, regions, "cond")



@dataclass(frozen=True)
class Slot:
    """A parameter of a body."""

    name: str
    type: TensorType
    weak: bool

    @staticmethod
    def of(x: Tracer) -> Slot:
        return Slot(x.name, x.type, x.weak)


class ChangedError(Exception):
    """What a loop of Python's carries, number ``at``, has another type after a round."""

    def __init__(self, at: int, problem: Error) -> None:
        super().__init__(at)
        self.at, self.problem = at, problem


class _PromotedError(Exception):
    """A carried Python number became something else in the first round."""

    def __init__(self, at: int, dtype: DType, weak: bool) -> None:
        super().__init__(at)
        self.at, self.dtype, self.weak = at, dtype, weak


def context_of(args: Any) -> TraceContext:
    ctx = context_for(tree.leaves(args))
    assert ctx is not None
    return ctx


def traced(ctx: TraceContext, nest: Any) -> tuple[list[Tracer], tree.TreeDef]:
    leaves, structure = tree.flatten(nest)
    return ctx.apply(lambda: [to_tracer(leaf) for leaf in leaves], ()), structure


def name_of_body(function: Callable[..., Any], default: str) -> str:
    name = getattr(function, "__name__", default)
    return name if name.isidentifier() else default


def is_size(x: Any) -> bool:
    return isinstance(x, (int, np.integer, SymbolicDim)) and not isinstance(x, bool)


def bound_of(x: Any) -> Tracer:
    tracer = to_tracer(x)
    if tracer.type.shape != () or not tracer.type.dtype.is_int:
        raise error("W112", f"a bound of fori_loop is {tracer.type}", types=[tracer.type],
                    hint="give an integer")
    return tracer


def bounded(first: Tracer, stop: Tracer, limit: int) -> Tracer:
    """The end of a count of at most so many rounds; a longer one fails the step."""
    spare: Tracer = limit - (stop - first)
    return current().emit("ensure", stop, spare, message=(
        f"fori_loop has more rounds than max_iterations={limit}"))


def condition_of(p: Any, what: str) -> Tracer:
    """What decides, as a bool without dims."""
    tracer = to_tracer(p)
    if tracer.type.shape != ():
        raise error("W102", f"the condition of {what} is {tracer.type}, not one bool",
                    types=[tracer.type], hint="reduce it with np.any or np.all")
    if tracer.type.dtype != BOOL:
        raise error("W111", f"the condition of {what} is {tracer.type}, not a bool",
                    types=[tracer.type], hint="compare it: x != 0")
    return tracer


def results_of(ctx: TraceContext, node: Node, weak: Sequence[bool]) -> list[Tracer]:
    """The results of a node, of which some are Python numbers."""
    made = [Tracer(ctx, value, weak=each) for value, each in zip(node.results, weak, strict=True)]
    for tracer in made:
        tracer.ordered = tracer.dense = True
    return made


def _recorded(
    ctx: TraceContext, record: Callable[[], list[Tracer]], regions: Sequence[Region], stem: str
) -> list[Tracer]:
    """Append a node. Variables that its bodies assign are read anew from here on."""
    _check_sizes(regions)
    made: list[Tracer] = ctx.apply(lambda: tuple(record()), (), stem=stem)
    for region in regions:
        for node in region.graph.nodes:
            ctx.forget_reads(each.attrs["var"] for each in effects_of(node) if writes(each))
    return list(made)


def _check_sizes(regions: Sequence[Region]) -> None:
    """Raise UnsupportedError (W113) for results of a size that a queue tells in a body alone."""
    for region in regions:
        told = symbols_told_in(region.graph)
        for value in region.graph.results if told else ():
            if any(not told.isdisjoint(symbols_of(dim)) for dim in value.shape):
                raise error("W113", f"a branch or loop gives {value.type}, whose size only its "
                                    "queue tells", locs=_made(value) or user_loc(),
                            types=[value.type],
                            hint="take elements of known sizes there (dequeue_many), or give what "
                                 "is computed of them, such as a sum")


def or_operation(ctx: TraceContext, made: Any) -> Any:
    """What a node of control flow gives; without a value, an operation to fetch."""
    if tree.leaves(made):
        return made
    node = next(node for node in reversed(ctx.graph.nodes)
                if node.op.control is not None and not node.results)
    return Operation((node,), node.name, ctx)


def with_closure(regions: Sequence[Region], counts: Sequence[int]) -> list[Tracer]:
    """The values from around that any of the bodies reads; all of them get parameters for all,
    after the first ``counts``."""
    closure: dict[Value, Tracer] = {}
    for region in regions:
        for tracer in region.closure:
            closure.setdefault(tracer.value, tracer)
    for region, count in zip(regions, counts, strict=True):
        params = region.graph.params
        own = dict(zip((tracer.value for tracer in region.closure), params[count:], strict=True))
        others = [value for value in closure if value not in own]
        for value in others:
            own[value] = region.graph.add_param(
                value.type, value.name.removesuffix(":0").replace(":", "_"))
        params[count:] = [own[value] for value in closure]
    return list(closure.values())


def _reading_outside(ctx: TraceContext, regions: Sequence[Region]) -> list[Region]:
    """The bodies with variables that none of them assigns read around them: every round reads the
    same, and a gradient has it at hand."""
    nodes = [node for region in regions for node in region.graph.nodes]
    assigned = {each.attrs["var"] for node in nodes for each in effects_of(node) if writes(each)}
    return [_read_outside(ctx, region, assigned) for region in regions]


def _read_outside(ctx: TraceContext, region: Region, assigned: Collection[str]) -> Region:
    graph, closure = region.graph, dict(zip(
        region.graph.params[len(region.graph.params) - len(region.closure):], region.closure,
        strict=True))
    known = {tracer.value: param for param, tracer in closure.items()}
    params: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.op.effect is Effect.READS and node.attrs["var"] not in assigned and not node.after:
            made: Tracer = ctx.apply(ctx.read, (ctx.variable(node.attrs["var"]),))
            if made.value not in known:
                param = known[made.value] = graph.add_param(
                    made.type, made.value.name.removesuffix(":0").replace(":", "_"))
                closure[param] = made
            params[node.results[0]] = known[made.value]
    if params:
        graph.nodes = [node for node in graph.nodes if params.keys().isdisjoint(node.results)]
        for node in graph.nodes:
            node.inputs = tuple(params.get(value, value) for value in node.inputs)
        graph.results = [params.get(value, value) for value in graph.results]
    return replace(region, closure=tuple(closure.values()))


def _cast_result(graph: Graph, at: int, dtype: DType) -> None:
    """Convert a result of a graph that has been traced."""
    builder = Builder(graph, OPS, share=False, fold=False)
    graph.results[at] = builder.emit(OPS["cast"], [graph.results[at]], {"dtype": dtype}).results[0]


def _agreed(regions: Sequence[Region]) -> list[bool]:
    """Give the results of both branches the same types; which of them are Python numbers."""
    one, two = regions
    weak = []
    for at, pair in enumerate(zip(one.graph.results, two.graph.results, strict=True)):
        kinds = one.weak[at], two.weak[at]
        a, b = pair
        if not agree((a, kinds[0]), (b, kinds[1])):
            path = tree.paths(one.out_tree)[at]
            raise _disagreement(f"cond: one branch returns {a.type}"
                                f"{f' at {path}' if path else ''}, the other {b.type}", a, b)
        if a.type.dtype != b.type.dtype:
            wanted = _common(a.type.dtype, b.type.dtype, kinds)
            for region, value in zip(regions, pair, strict=True):
                if wanted is not None and value.type.dtype != wanted:
                    _cast_result(region.graph, at, wanted)
        weak.append(all(kinds))
    return weak


def agree(one: tuple[Value, bool], two: tuple[Value, bool]) -> bool:
    """Whether two values, of which some are Python numbers, can be one result of two branches."""
    (a, *_), (b, *_), weak = one, two, (one[1], two[1])
    return a.shape == b.shape and (a.type.dtype == b.type.dtype or (
        any(weak) and _common(a.type.dtype, b.type.dtype, weak) is not None))


def disagreement(name: str, a: Value, b: Value) -> Error:
    """The error for a variable of the user's of other types on two ways."""
    return _disagreement(f"{name} is {a.type} on one way and {b.type} on the other", a, b)


def _disagreement(message: str, a: Value, b: Value) -> Error:
    same = a.shape == b.shape
    return error("W111" if same else "W102", message, locs=_made(b) or user_loc(),
                 types=[a.type, b.type],
                 hint="return the same shape and dtype from both: " + (
                     "np.where, or rows of an array of the larger shape" if not same else
                     converted(_made(b), a.type.dtype) or "x.astype(y.dtype)"))


def _variable(path: str) -> str:
    """The user's variable behind the key ``['x']``."""
    return path.removeprefix("['").removesuffix("']")


def _common(a: DType, b: DType, weak: tuple[bool, bool]) -> DType | None:
    """The dtype of two of which one is that of a Python number, if there is one for both."""
    if all(weak):
        return max(a, b, key=lambda dtype: "biufc".index(dtype.kind))
    strong, number = (b, a) if weak[0] else (a, b)
    python = {"b": False, "i": 0, "c": 0j}.get(number.kind, 0.0)
    return strong if np.result_type(strong.numpy, python) == strong.numpy else None


def _made(value: Value) -> tuple[Loc, ...]:
    return value.node.locs[:1] if value.node is not None else ()


# -- loops --------------------------------------------------------------------------------------


def _index_name(ctx: TraceContext) -> str:
    """A symbol for the number of the round that is no dim, and no index of a loop around."""
    depth, root = 0, ctx
    while root.parent is not None:
        depth, root = depth + 1, root.parent
    taken = {name for value in root.graph.params for dim in value.shape for name in symbols_of(dim)}
    name = f"t{depth}"
    while name in taken:
        name += "_"
    return name


def _index(name: str) -> Tracer:
    """The number of the round, which promotes as a Python integer."""
    ctx = current()
    made: Tracer = ctx.apply(lambda: Tracer(ctx, ctx.dim(symbol(name)), weak=True), ())
    return made


@dataclass(frozen=True)
class _Carry:
    """What a loop carries: parameters of its body, and how its nest is put together."""

    what: str
    function: Callable[..., Any]
    slots: tuple[Slot, ...]
    structure: tree.TreeDef

    def fitted(self, nest: Any) -> list[Tracer]:
        """The leaves of a carry after a round, in the types that they had before it."""
        nest = tree.map(lambda leaf: None if isinstance(leaf, Operation) else leaf, nest)
        found = tree.structure(nest)
        try:
            leaves = tree.matched(self.structure, nest)
        except Error:
            raise error("W102", f"{self.what}: the carry is {self.structure!r}, after a round "
                                f"{found!r}", locs=definition(self.function),
                        hint="return a carry of the nest of the first one") from None
        paths = tree.paths(self.structure)
        return [self._fit(at, leaf, path) for at, (leaf, path) in enumerate(
            zip(leaves, paths, strict=True))]

    def _fit(self, at: int, leaf: Any, path: str) -> Tracer:
        ctx, slot = current(), self.slots[at]
        tracer: Tracer = ctx.apply(to_tracer, (leaf,))
        if tracer.type == slot.type:
            if slot.weak and not tracer.weak:
                raise _PromotedError(at, slot.type.dtype, False)
            return tracer
        shape, wanted = tracer.type.shape, slot.type.shape
        if shape != wanted and len(shape) == len(wanted) and not any(
                map(differ, shape, wanted)):
            tracer = ctx.apply(matched, (tracer, wanted))
        dtype = tracer.type.dtype
        if tracer.type.shape == wanted and dtype != slot.type.dtype:
            common = _common(slot.type.dtype, dtype, (slot.weak, tracer.weak)) if (
                slot.weak or tracer.weak) else None
            if common == slot.type.dtype:
                return ctx.apply(cast, (tracer, common))  # type: ignore[no-any-return]
            if slot.weak and common is not None:
                raise _PromotedError(at, common, tracer.weak)
        if tracer.type == slot.type:
            return tracer
        problem = self._changed(tracer, slot, path)
        raise ChangedError(at, problem) if self.what in ("while", "for") else problem

    def _changed(self, tracer: Tracer, slot: Slot, path: str) -> Error:
        code = "W111" if tracer.type.shape == slot.type.shape else "W102"
        python = self.what in ("while", "for")
        hint = (f"convert it: x.astype(np.{slot.type.dtype.numpy}), or start from a value of "
                f"{tracer.type.dtype.numpy}" if code == "W111" else
                "make it of its last shape before the loop, and set rows: out[i] = row" if python
                else "keep its shape, or stack rows as a second result of scan")
        message = (f"{_variable(path)} is {slot.type} before the loop and {tracer.type} after a "
                   "round" if python else
                   f"{self.what}: the carry{path} is {slot.type}, after a round {tracer.type}")
        return error(code, message, locs=_made(tracer.value) or definition(self.function),
                     types=[slot.type, tracer.type], hint=hint)


def _until_stable(
    ctx: TraceContext, carry: _Carry, leaves: list[Tracer],
    trace: Callable[[_Carry], Region],
) -> tuple[_Carry, list[Tracer], Region]:
    """Trace a body; again with other first values where Python numbers among them promote."""
    while True:
        try:
            return carry, leaves, trace(carry)
        except _PromotedError as found:
            slots, at = list(carry.slots), found.at
            made: Tracer = ctx.apply(cast, (leaves[at], found.dtype))
            leaves[at] = Tracer(ctx, made.value, weak=found.weak)
            slots[at] = replace(slots[at], type=leaves[at].type, weak=found.weak)
            carry = replace(carry, slots=tuple(slots))


def scanned(
    what: str, f: Callable[[Any, Any, Any], Any], function: Callable[..., Any], init: Any,
    xs: Any, length: Dim | None, reverse: bool, ctx: TraceContext,
) -> tuple[Any, Any]:
    """Rounds of ``f(carry, x, index)``, which calls the user's ``function``."""
    leaves, structure = traced(ctx, init)
    rows, row_tree = traced(ctx, xs)
    count = _count(rows, row_tree, length)
    rows = [ctx.apply(matched, (x, (count, *x.type.shape[1:]))) for x in rows]
    row_slots = [Slot(x.name, x.type.with_shape(x.type.shape[1:]), False) for x in rows]
    name = _index_name(ctx)
    args = tree.structure((tree.unflatten(structure, [0] * len(leaves)),
                           tree.unflatten(row_tree, [0] * len(rows))))

    def trace(carry: _Carry) -> Region:
        def body(state: Any, x: Any) -> Any:
            out = f(state, x, _index(name) if what == "fori_loop" else None)
            if not (isinstance(out, tuple) and len(out) == 2):
                raise error("W102", f"{what}: the body returns {type(out).__name__}, not (carry, "
                                    "y)", locs=definition(function),
                            hint="return a pair; y may be None")
            return carry.fitted(out[0]), out[1]

        return trace_region(body, [*carry.slots, *row_slots], args, name_of_body(function, what))

    first = _Carry(what, function, tuple(Slot.of(x) for x in leaves), structure)
    carry, leaves, region = _until_stable(ctx, first, leaves, trace)
    (region,) = _reading_outside(ctx, [region])
    closure = with_closure([region], [len(leaves) + len(rows)])

    def record() -> list[Tracer]:
        inputs = [ctx.value_of(x) for x in (*leaves, *rows, *closure)]
        node = ctx.builder.emit(OPS["scan"], inputs, {
            "carried": len(leaves), "scanned": len(rows), "length": count, "reverse": reverse,
            "index": name, "body": region.graph})
        weak = [slot.weak for slot in carry.slots]
        return results_of(ctx, node, weak + [False] * (len(node.results) - len(weak)))

    made = _recorded(ctx, record, [region], what)
    return (tree.unflatten(structure, made[:len(leaves)]),
            tree.unflatten(region.out_tree.children[1], made[len(leaves):]))


def _count(rows: Sequence[Tracer], structure: tree.TreeDef, length: Dim | None) -> Dim:
    """The number of rows of what is scanned."""
    count, known = length, "length"
    for x, path in zip(rows, tree.paths(structure), strict=True):
        if x.ndim == 0:
            raise error("W102", f"scan: xs{path} is a scalar and has no rows", locs=user_loc(),
                        types=[x.type], hint="give arrays, or take it from around the body")
        if count is None:
            count, known = x.type.shape[0], f"xs{path}"
        elif differ(count, x.type.shape[0]):
            raise error("W102", f"scan: xs{path} has {x.type.shape[0]} rows, {known} says {count}"
                        if known == "length" else
                        f"scan: xs{path} has {x.type.shape[0]} rows, {known} has {count}",
                        locs=user_loc(), types=[x.type], hint="give arrays with equal first axes")
    if count is None:
        raise error("W102", "scan: neither xs nor length says how many rounds there are",
                    locs=user_loc(), hint="give length=")
    if isinstance(count, int) and count < 0:
        raise error("W102", f"scan: length={count} is negative", locs=user_loc(),
                    hint="give 0 or more")
    return count


def rounds(
    what: str, cond: Callable[[Any, Any], Any], body: Callable[[Any, Any], Any],
    function: Callable[..., Any], init: Any, limit: Dim, ctx: TraceContext, flag: Any = None,
) -> Any:
    """Rounds of ``body(carry, index)``, which calls the user's ``function``; ``flag`` is what
    ``cond`` gave for ``init``, where that is known."""
    leaves, structure = traced(ctx, init)
    name = _index_name(ctx)
    args = tree.structure((tree.unflatten(structure, [0] * len(leaves)),))

    def index() -> Tracer | None:
        return _index(name) if what in ("fori_loop", "for") else None

    def trace(carry: _Carry) -> Region:
        return trace_region(lambda state: carry.fitted(body(state, index())), carry.slots, args,
                            name_of_body(function, "body"))

    def tested(state: Any) -> Tracer:
        found = cond(state, index())
        made: Tracer = current().apply(condition_of, (found, what))
        return made

    first = _Carry(what, function, tuple(Slot.of(x) for x in leaves), structure)
    carry, leaves, region = _until_stable(ctx, first, leaves, trace)
    test = trace_region(tested, carry.slots, args, "test")
    if any(writes(each) for node in test.graph.nodes for each in effects_of(node)):
        return _tested_at_the_end(what, cond, body, function, tree.unflatten(
            structure, leaves), limit, ctx, flag)
    test, region = _reading_outside(ctx, [test, region])
    closure = with_closure([test, region], [len(leaves)] * 2)

    def record() -> list[Tracer]:
        inputs = [ctx.value_of(x) for x in (*leaves, *closure)]
        node = ctx.builder.emit(OPS["while"], inputs, {
            "carried": len(leaves), "limit": limit, "index": name, "test": test.graph,
            "body": region.graph})
        return results_of(ctx, node, [slot.weak for slot in carry.slots])

    return tree.unflatten(structure, _recorded(ctx, record, [region], what))


def _tested_at_the_end(
    what: str, cond: Callable[[Any, Any], Any], body: Callable[[Any, Any], Any],
    function: Callable[..., Any], init: Any, limit: Dim, ctx: TraceContext, flag: Any,
) -> Any:
    """Rounds whose condition assigns variables, as one that draws does. A test has no effects, so
    the condition is computed before the first round, and at the end of each for the next one:

        go = cond(x)
        while go: x = body(x); go = cond(x)
    """
    def tested(state: Any) -> Any:
        found = cond(state, None)
        return current().apply(condition_of, (found, what))

    def whole(carry: Any, index: Any) -> Any:
        state = body(carry[0], index)
        return state, tested(state)

    first = tested(init) if flag is None else ctx.apply(condition_of, (flag, what))
    return rounds(what, lambda carry, _: carry[1], whole, function, (init, first), limit, ctx)[0]
