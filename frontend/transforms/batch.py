"""vmap: a function of one example as a function of a batch.

The function is traced on one example, as a graph of its own; its nodes join the trace around with
one more axis (``passes/transform/batch``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...ir.diagnose import error
from ...ir.graph import effects_of, writes
from ...ir.indices.index import Dim
from ...ir.indices.proof import differ
from ...ir.types import I64, TensorType
from ...passes.transform.batch import batch
from ...passes.transform.examples import Batched
from ..engine.eager import run_eagerly
from ..face import tree
from ..face.signature import Signature
from ..face.source import user_loc
from ..tracing.context.active import context_for, current
from ..tracing.context.lanes import lanes
from ..tracing.context.recorder import TraceContext
from ..tracing.operand import as_int, matched, to_tracer
from ..tracing.trace import Region, trace_region
from ..tracing.values.tracer import Tracer
from .regions import Slot, name_of_body


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """See ``gradients.vmap``."""
    @functools.wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        ctx = context_for(tree.leaves((args, kwargs)))
        if ctx is None:
            return run_eagerly(vmap(function, in_axes, out_axes), args, kwargs)
        traced, (leaves, structure) = ctx.as_written(function), tree.split((args, kwargs))
        own, named = structure.children
        axes = [*_axes_of(_positional(in_axes, args), own, "in_axes"), *[0] * named.count]
        names = Signature(function).names(structure)
        mapped_at = [at for at, axis in enumerate(axes) if axis is not None]
        if not mapped_at:
            raise error("W102", "vmap: no argument has an axis of the batch", locs=user_loc(),
                        hint="give in_axes a number for at least one argument")
        operands, size = ctx.apply(_in_front, (
            [leaves[at] for at in mapped_at], [axes[at] for at in mapped_at],
            [names[at] for at in mapped_at]))

        def one(number: Tracer, *examples: Any) -> Any:
            inside = list(leaves)
            for at, example in zip(mapped_at, examples, strict=True):
                inside[at] = example
            given, options = tree.unflatten(structure, inside)
            with lanes(number):
                return traced(*given, **options)

        slots = [Slot("example", TensorType(I64, ()), False)]
        slots += [Slot(x.name, x.type.with_shape(x.type.shape[1:]), False) for x in operands]
        region = trace_region(one, slots, tree.structure((0,) * len(slots)),
                              name_of_body(function, "example"), local=True)
        wanted = _axes_of(out_axes, region.out_tree, "out_axes")
        made = ctx.apply(_recorded, (ctx, region, operands, size, wanted))
        return tree.unflatten(region.out_tree, made)

    return mapped


def _positional(in_axes: Any, args: tuple[Any, ...]) -> Any:
    """``in_axes`` with an entry for each positional argument."""
    if not isinstance(in_axes, (tuple, list)):
        return in_axes
    if len(in_axes) != len(args):
        raise error("W102", f"vmap: in_axes has {len(in_axes)} entries for {len(args)} arguments",
                    locs=user_loc(), hint="give one entry for each positional argument")
    return tuple(in_axes)


def _axes_of(axes: Any, structure: tree.TreeDef, what: str) -> list[int | None]:
    """The axis of each leaf, from a nest in which one entry may stand for all below it."""
    entries, own = tree.flatten(axes)
    given = iter(entries)

    def walk(own: tree.TreeDef, below: tree.TreeDef) -> list[int | None]:
        if own.kind in (None, type(None)):
            return [None if own.kind is not None else as_int(next(given), "axis")] * below.count
        keys, wanted = (tree.labels(x) for x in (own, below))
        if own.kind is not below.kind or sorted(keys) != sorted(wanted):
            raise error("W102", f"vmap: {what} is {axes!r}, which does not fit {structure!r}",
                        locs=user_loc(), hint=f"give {what} an integer, None, or a nest of them "
                                              "of the same structure")
        found = {key: walk(child, below.children[wanted.index(key)])
                 for key, child in zip(keys, own.children, strict=True)}
        return [axis for key in wanted for axis in found[key]]

    return walk(own, structure)


def _in_front(
    leaves: Sequence[Any], axes: Sequence[int], names: Sequence[str]
) -> tuple[list[Tracer], Dim]:
    """Arguments with the axis of the batch first, and its size."""
    tracers = [to_tracer(x) for x in leaves]
    sizes = [x.type.shape[_place(axis, len(x.type.shape), name, x)]
             for x, axis, name in zip(tracers, axes, names, strict=True)]
    for size, name, axis in zip(sizes, names, axes, strict=True):
        if differ(size, sizes[0]):
            raise error("W102", f"vmap: {names[0]} has {sizes[0]} examples along axis {axes[0]}, "
                                f"{name} has {size} along axis {axis}",
                        types=[x.type for x in tracers],
                        hint="give axes of one size, or None in in_axes for what is no batch")
    return [_first(x, _place(axis, len(x.type.shape), name, x), sizes[0])
            for x, axis, name in zip(tracers, axes, names, strict=True)], sizes[0]


def _first(x: Tracer, axis: int, size: Dim) -> Tracer:
    shape = list(x.type.shape)
    shape[axis] = size
    return _moved(matched(x, tuple(shape)), axis, 0)


def _place(axis: int, rank: int, name: str, x: Tracer) -> int:
    if not -rank <= axis < rank:
        raise error("W121", f"vmap: {name} is {x.type} and has no axis {axis}", types=[x.type],
                    hint="give an axis that it has, or None in " + (
                        "out_axes" if name == "the result" else "in_axes"))
    return axis % rank


def _moved(x: Tracer, source: int, to: int) -> Tracer:
    if source == to:
        return x
    order = list(range(len(x.type.shape)))
    order.insert(to, order.pop(source))
    return current().emit("transpose", x, perm=tuple(order))


def _recorded(
    ctx: TraceContext, region: Region, operands: Sequence[Tracer], size: Dim,
    axes: Sequence[int | None],
) -> list[Tracer]:
    """The nodes of a function for a batch, and its results with the axis where it is wanted."""
    given = [Batched(ctx.value_of(x), True) for x in operands]
    number = region.graph.params[0]
    if any(number in node.inputs for node in region.graph.nodes):
        given.insert(0, Batched(ctx.builder.iota(axis=0, dtype=I64, shape=(size,)), True))
    else:
        region.graph.params.remove(number)
    given += [Batched(ctx.value_of(x), False) for x in region.closure]
    made = batch(ctx.builder, region.graph, given, size)
    ctx.forget_reads(each.attrs["var"] for node in region.graph.nodes
                     for each in effects_of(node) if writes(each))
    results = []
    for x, axis, path in zip(made, axes, tree.paths(region.out_tree), strict=True):
        name = f"result {path}" if path else "the result"
        if axis is None:
            if x.is_batched:
                raise error("W102", f"vmap: {name} depends on the batch, but its entry of "
                                    "out_axes is None", types=[x.value.type],
                            hint="give its axis in out_axes")
            results.append(Tracer(ctx, x.value))
            continue
        tracer = Tracer(ctx, x.value)
        if not x.is_batched:
            shape = (size, *x.value.shape)
            tracer = ctx.emit("broadcast", tracer, shape=shape, axes=tuple(range(1, len(shape))))
        rank = len(tracer.type.shape)
        results.append(_moved(tracer, 0, _place(axis, rank, name, tracer)))
    return results
