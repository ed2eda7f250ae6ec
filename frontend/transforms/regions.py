"""The nodes of control flow: bodies traced as regions, and what their operands and results are.

``branched`` makes a ``cond`` of two traced bodies; ``loops`` are beside this. Values from around a
body become operands of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.graph import Builder, Graph, Node, Value, effects_of, writes
from ...ir.indices.index import symbols_of
from ...ir.loc import Loc
from ...ir.ops.op import Effect
from ...ir.ops.table import OPS
from ...ir.plans.partition import symbols_told_in
from ...ir.record import record, replace
from ...ir.types import BOOL, DType, TensorType
from ..face import tree
from ..face.source import user_loc
from ..tracing.context.active import context_for, current
from ..tracing.context.recorder import TraceContext
from ..tracing.operand import to_tracer
from ..tracing.trace import Region
from ..tracing.values.operation import Operation
from ..tracing.values.rewrites import converted
from ..tracing.values.tracer import SymbolicDim, Tracer
from .twins import as_one, twins


def branched(
    ctx: TraceContext, condition: Tracer, regions: Sequence[Region],
    operands: Sequence[Tracer] = (),
) -> list[Tracer]:
    """The node of two branches of the same nest, which take the operands, and its results."""
    _check_sizes(regions)
    weak = _agreed(regions)
    regions = reading_outside(ctx, regions)
    closure = with_closure(regions, [len(operands)] * 2)

    def record() -> list[Tracer]:
        inputs = [ctx.value_of(x) for x in (condition, *operands, *closure)]
        node = ctx.builder.emit(OPS["cond"], inputs,
                                {"then": regions[0].graph, "other": regions[1].graph})
        return results_of(ctx, node, weak)

    same = twins(*(region.graph.results for region in regions))
    return as_one(recorded(ctx, record, regions, "cond"), same)


@record(frozen=True)
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


class PromotedError(Exception):
    """A carried Python number became something else in the first round."""

    def __init__(self, at: int, dtype: DType, weak: bool) -> None:
        super().__init__(at)
        self.at, self.dtype, self.weak = at, dtype, weak


def context_of(args: Any) -> TraceContext:
    ctx = context_for(tree.leaves(args))
    assert ctx is not None
    return ctx


def traced(ctx: TraceContext, nest: Any) -> tuple[list[Tracer], tree.TreeDef]:
    leaves, structure = tree.split(nest)
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


def recorded(
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
    """Raise UnsupportedError (W113) for results of a size that a queue or a number tells in a body
    alone."""
    for region in regions:
        told = symbols_told_in(region.graph)
        for value in region.graph.results if told else ():
            if any(not told.isdisjoint(symbols_of(dim)) for dim in value.shape):
                raise error("W113", f"a branch or loop gives {value.type}, of a size that is "
                                    "known in it alone", locs=made_at(value) or user_loc(),
                            types=[value.type],
                            hint="give what is computed of the array, such as a sum, or an array "
                                 "of a size that is known before")


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


def reading_outside(ctx: TraceContext, regions: Sequence[Region]) -> list[Region]:
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
            wanted = common_dtype(a.type.dtype, b.type.dtype, kinds)
            for region, value in zip(regions, pair, strict=True):
                if wanted is not None and value.type.dtype != wanted:
                    _cast_result(region.graph, at, wanted)
        weak.append(all(kinds))
    return weak


def agree(one: tuple[Value, bool], two: tuple[Value, bool]) -> bool:
    """Whether two values, of which some are Python numbers, can be one result of two branches."""
    (a, *_), (b, *_), weak = one, two, (one[1], two[1])
    return a.shape == b.shape and (a.type.dtype == b.type.dtype or (
        any(weak) and common_dtype(a.type.dtype, b.type.dtype, weak) is not None))


def disagreement(name: str, a: Value, b: Value) -> Error:
    """The error for a variable of the user's of other types on two ways."""
    return _disagreement(f"{name} is {a.type} on one way and {b.type} on the other", a, b)


def _disagreement(message: str, a: Value, b: Value) -> Error:
    same = a.shape == b.shape
    return error("W111" if same else "W102", message, locs=made_at(b) or user_loc(),
                 types=[a.type, b.type],
                 hint="return the same shape and dtype from both: " + (
                     "np.where, or rows of an array of the larger shape" if not same else
                     converted(made_at(b), a.type.dtype) or "x.astype(y.dtype)"))


def variable_at(path: str) -> str:
    """The user's variable behind the key ``['x']``."""
    return path.removeprefix("['").removesuffix("']")


def common_dtype(a: DType, b: DType, weak: tuple[bool, bool]) -> DType | None:
    """The dtype of two of which one is that of a Python number, if there is one for both."""
    if all(weak):
        return max(a, b, key=lambda dtype: "biufc".index(dtype.kind))
    strong, number = (b, a) if weak[0] else (a, b)
    python = {"b": False, "i": 0, "c": 0j}.get(number.kind, 0.0)
    return strong if np.result_type(strong.numpy, python) == strong.numpy else None


def made_at(value: Value) -> tuple[Loc, ...]:
    return value.node.locs[:1] if value.node is not None else ()
