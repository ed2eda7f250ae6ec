"""grad, value_and_grad, vjp and stop_gradient, on functions and nests.

In a trace they append gradient nodes to the graph that is being built. The differentiated arguments
pass through ``identity`` nodes first, so that exactly these uses of them are differentiated:

    weft.grad(lambda w: np.sum(w * w0))(w0)      w is identity(w0); w0 itself is a constant

Outside of any trace the function they return is run as a whole, by ``eager.run_eagerly``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...ir.diagnose import Error, UnsupportedError, error
from ...ir.graph import Graph, Value
from ...ir.indices.proof import differ
from ...ir.types import TensorType, as_dtype
from ...passes.transform import reverse
from ...passes.transform.emit import emit_graph
from ..engine.eager import run_eagerly
from ..face import tree
from ..face.source import user_loc
from ..tracing.arrays.variable import Variable
from ..tracing.context.active import context_for, current
from ..tracing.context.recorder import TraceContext
from ..tracing.operand import (
    as_int,
    cast,
    is_weak,
    matched,
    result_dtype,
    shape_of,
    to_tracer,
)
from ..tracing.values.rewrites import bounded
from ..tracing.values.tracer import Tracer


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The gradient of a scalar function, in the nest structure of the argument(s) ``argnums``.

    With ``has_aux`` the function returns ``(value, aux)`` and the result is ``(gradient, aux)``.
    With respect to complex z = x + iy the gradient of a real value L is dL/dx - i dL/dy, as JAX has
    it; so steps of descent go along its conjugate: ``z - rate * np.conj(gradient)``.
    Raises DTypeError when called: W114 unless the value is one real floating-point number, W111 for
    arguments that are not floating-point.
    """
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        if _outside(args, kwargs):
            # Another one: a function that knows itself would keep the user's until a collection.
            return run_eagerly(grad(function, argnums, has_aux), args, kwargs)
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """``(value, gradient)``; see ``grad``. With ``has_aux``: ``((value, aux), gradient)``."""

    @functools.wraps(function)
    def both(*args: Any, **kwargs: Any) -> Any:
        if _outside(args, kwargs):
            return run_eagerly(value_and_grad(function, argnums, has_aux), args, kwargs)
        numbers, ctx = _argnums(argnums, len(args)), _context((args, kwargs))
        leaves, structure = tree.split(tuple(args[at] for at in numbers))

        def call(tracked: list[Any]) -> Any:
            given = tree.unflatten(structure, tracked)
            replaced = list(args)
            for at, arg in zip(numbers, given, strict=True):
                replaced[at] = arg
            return ctx.as_written(function)(*replaced, **kwargs)

        value, aux, gradients = _differentiate(ctx, call, leaves, has_aux)
        found = tree.unflatten(structure, gradients)
        return (value, aux) if has_aux else value, found[0] if np.ndim(argnums) == 0 else found

    return both


def vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The result of a function, and the function from its cotangent (a nest of the same structure)
    to the tuple of cotangents of the primals."""
    if _outside(primals, {}):
        def later(cotangent: Any) -> Any:
            if not _outside(cotangent, {}):  # in the body of a transform that runs at once
                return vjp(function, *primals)[1](cotangent)
            return run_eagerly(lambda args, ct: vjp(function, *args)[1](ct), (primals, cotangent))

        @functools.wraps(function)
        def whole(*args: Any) -> Any:
            return vjp(function, *args)[0]

        return run_eagerly(whole, primals), later
    leaves, structure = tree.split(primals)
    ctx = _context(primals)
    with tracking(ctx, leaves) as (arguments, tracked):
        given = tree.unflatten(structure, arguments)
        out = ctx.as_written(function)(*given)
    outputs, out_tree = tree.split(out)
    paths = reverse.paths_from(ctx.builder, [ctx.value_of(x) for x in tracked])

    def pull(cotangent: Any) -> Any:
        given = _fitting(out_tree, outputs, cotangent)
        inner = context_for(given)
        if inner is None or inner is ctx:
            found = ctx.apply(_pull_back, (outputs, given, tracked, paths))
        else:
            found = inner.apply(_pull_inside, (ctx, outputs, given, tracked, paths))
        return tree.unflatten(structure, found)

    return out, pull


def _fitting(
    structure: tree.TreeDef, outputs: Sequence[Any], cotangent: Any
) -> list[Any]:
    """The leaves of a cotangent, of the nest and the shapes of what it is for. Raises ShapeError
    (W102)."""
    found = tree.structure(cotangent)
    hint = "give a cotangent of the nest and the shapes of the result"
    try:
        leaves = tree.matched(structure, cotangent)
    except Error:
        raise error("W102", f"vjp: the cotangent is {found!r}, the result {structure!r}",
                    locs=user_loc(), hint=hint) from None
    for output, leaf in zip(outputs, leaves, strict=True):
        own, shape = (shape_of(x) for x in (output, leaf))
        if len(own) != len(shape) or any(map(differ, own, shape)):
            raise error("W102", "vjp: a cotangent does not have the shape of the result",
                        locs=user_loc(), hint=hint, types=[
                            TensorType(as_dtype(result_dtype(x)), shape_of(x))
                            for x in (leaf, output)])
    return leaves


def variable_gradients(
    loss: Callable[..., Any], variables: Sequence[Variable], args: tuple[Any, ...] = (),
    has_aux: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """In a trace: the value of ``loss(*args)``, what else it returns with ``has_aux``, and its
    gradients for variables; None for one that the value does not depend on."""
    ctx = current()
    return _differentiate(
        ctx, lambda _: ctx.as_written(loss)(*args), list(variables), has_aux, known=True)


def stop_gradient(x: Any) -> Any:
    """The same nest, through which no gradient flows; plain arrays are returned as they are."""
    def stop(leaf: Any) -> Any:
        ctx = context_for((leaf,))
        if ctx is None or not isinstance(leaf, (Tracer, Variable, np.ndarray)):
            return leaf
        return ctx.apply(lambda: ctx.emit("stop_gradient", to_tracer(leaf)), ())

    return tree.map(stop, x)


def _outside(args: Any, kwargs: Any) -> bool:
    """True if nothing is being traced: the call has plain arrays and is to be run at once."""
    return context_for(tree.leaves((args, kwargs))) is None


def _context(args: Any) -> TraceContext:
    """The trace that records a call with these arguments, of which there is one."""
    ctx = context_for(tree.leaves(args))
    return current() if ctx is None else ctx


def differentiated(structure: tree.TreeDef) -> list[str]:
    return [f"argument {path}" for path in tree.paths(structure)]


def _argnums(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    numbers = [as_int(at, "argument number") for at in np.atleast_1d(argnums)]
    for at in numbers:
        if not -count <= at < count:
            raise error("W114", f"argnums names argument {at}, but {count} are given by position",
                        locs=user_loc(), hint="pass differentiated arguments by position")
    return tuple(at % count for at in numbers)


def _own(ctx: TraceContext, x: Tracer) -> Tracer:
    """An argument of what is differentiated, which may write to it for itself."""
    return x if x.weak else Tracer(ctx, x.value)


@contextmanager
def tracking(ctx: TraceContext, leaves: list[Any]) -> Iterator[tuple[list[Any], list[Tracer]]]:
    """Identity nodes for what is differentiated: what to call the function with (variables stay
    themselves, and read as theirs), and the tracers of all of them."""
    def track(leaf: Any) -> Tracer:
        inner = to_tracer(leaf)
        if inner.dtype.kind in "iub":
            raise error("W111", f"cannot differentiate with respect to {inner.name}, whose dtype "
                                f"is {inner.dtype}", types=[inner.type],
                        hint="pass floating-point values, or leave it out of argnums")
        named = ctx.emit("identity", inner).value
        return Tracer(ctx, named, weak=is_weak(leaf), argument=True)

    tracked: list[Tracer] = ctx.apply(lambda: [track(leaf) for leaf in leaves], ())
    variables = {leaf: made for leaf, made in zip(leaves, tracked, strict=True)
                 if isinstance(leaf, Variable)}
    with ctx.reading(variables), ctx.differentiating(1):
        yield [leaf if isinstance(leaf, Variable) else _own(ctx, made)
               for leaf, made in zip(leaves, tracked, strict=True)], tracked


def _differentiate(
    ctx: TraceContext, call: Callable[[list[Any]], Any], leaves: list[Any], has_aux: bool,
    known: bool = False,
) -> tuple[Any, Any, list[Any]]:
    with tracking(ctx, leaves) as (arguments, tracked):
        out = call(arguments)
    if has_aux and not (isinstance(out, tuple) and len(out) == 2):
        raise error("W114", "with has_aux the function must return (value, aux)", locs=user_loc(),
                    hint="return a pair, of which the first one is differentiated")
    value, aux = out if has_aux else (out, None)

    def run() -> list[Any]:
        loss = to_tracer(_scalar(value))
        return _pull_back([loss], [_one(loss)], tracked, known=known)

    return value, aux, ctx.apply(run, ())


def _scalar(value: Any) -> Any:
    """The value of a differentiated function, if it is one. Raises DTypeError (W114)."""
    if not isinstance(value, (Tracer, Variable, np.ndarray, float, np.floating)):
        raise error("W114", f"a differentiated function returns a scalar, not "
                            f"{type(value).__name__}",
                    hint="return one number, and other results with has_aux=True")
    return value


def _one(output: Tracer) -> Tracer:
    """The cotangent of a scalar. Raises DTypeError (W114) for anything else."""
    if output.dtype.kind == "c":
        raise error("W114", "the function that is differentiated returns a complex number, which "
                            "has no gradient", types=[output.type],
                    hint="differentiate a real number: value.real, value.imag or abs(value)")
    if output.type.shape != () or output.dtype.kind in "iub":
        hint = ("reduce it first, e.g. with np.sum or np.mean" if output.type.shape else
                "compute it from floating-point values")
        raise error("W114", "the function that is differentiated must return one floating-point "
                            "scalar", types=[output.type], hint=hint)
    return current().full(1.0, output.dtype)


def _pull_inside(
    ctx: TraceContext, outputs: Sequence[Any], cotangents: Sequence[Any], inputs: list[Tracer],
    paths: reverse.Paths,
) -> list[Any]:
    """The same in a body inside of the trace ``ctx`` of the function: the nodes of the gradient go
    into the body, and read the values of the function from around it."""
    inner, pairs = current(), [
        (ctx.value_of(output), to_tracer(cotangent, output.dtype))
        for output, cotangent in zip(outputs, cotangents, strict=True)
        if isinstance(output, Tracer) and output.dtype.kind not in "iub"]
    seeds = [Value(value.type, "cotangent:0") for value, _ in pairs]
    nodes = ctx.graph.nodes
    last = nodes[-1]
    found = reverse.vjp(ctx.builder, [value for value, _ in pairs], seeds,
                        [ctx.value_of(x) for x in inputs], paths)
    own = nodes[nodes.index(last) + 1:]
    del nodes[nodes.index(last) + 1:]
    made = {value for node in own for value in node.results}
    around = list(dict.fromkeys(
        value for value in (*(each for node in own for each in node.inputs), *filter(None, found))
        if value not in made and value not in seeds))
    graph = Graph("pull", [*seeds, *around], own, [value for value in found if value is not None])
    parts = iter(emit_graph(inner.builder, graph, [
        *(inner.value_of(cast(matched(ct, value.type.shape), value.dtype.numpy))
          for value, ct in pairs),
        *(inner.value_of(Tracer(ctx, value)) for value in around)]))
    return [inner.full(0.0, x.dtype, x.type.shape) if value is None else Tracer(inner, next(parts))
            for x, value in zip(inputs, found, strict=True)]


def _pull_back(
    outputs: Sequence[Any], cotangents: Sequence[Any], inputs: list[Tracer],
    paths: reverse.Paths | None = None, known: bool = False,
) -> list[Any]:
    """Cotangents of the inputs; zeros, or None if it is to be ``known``, where there is no path."""
    ctx = current()
    values: list[Value] = []
    seeds: list[Value] = []
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if isinstance(output, Tracer) and output.dtype.kind not in "iub":
            seed = cast(to_tracer(cotangent, output.dtype), output.dtype)
            values.append(ctx.value_of(output))
            seeds.append(ctx.value_of(seed))
    leaves = [ctx.value_of(x) for x in inputs]
    with bounded_loops():
        found = reverse.vjp(ctx.builder, values, seeds, leaves, paths)
    made = [Tracer(ctx, part) if part is not None else
            None if known else ctx.full(0.0, x.dtype, x.type.shape)
            for x, part in zip(inputs, found, strict=True)]
    for x, gradient in zip(inputs, made, strict=True):
        if gradient is not None:
            gradient.weak = x.weak
    return made


@contextmanager
def bounded_loops() -> Iterator[None]:
    """Errors about loops say what to write in their place."""
    try:
        yield
    except UnsupportedError as problem:
        choice = bounded(problem.locs)
        raise error(problem.code, problem.message, locs=problem.locs, types=problem.types,
                    hint=f"write {choice}, with as many rounds as it may take" if choice
                    else problem.hint) from None
