"""jvp: the derivative of a function along a direction, computed beside its value.

In a trace the nodes of tangents stand between those of the function:

    weft.jvp(np.sin, (x,), (dx,))          y = sin x;  dy = mul dx, cos x
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.diagnose import error
from ...ir.indices.proof import differ
from ...passes.transform import forward
from ..engine.eager import run_eagerly
from ..face import tree
from ..face.boundary import boundary
from ..face.signature import Signature
from ..face.source import user_loc
from ..tracing.context.active import context_for, current
from ..tracing.context.recorder import TraceContext
from ..tracing.operand import cast, matched, to_tracer
from ..tracing.values.tracer import Tracer
from .bodies import check_function
from .reverse import tracking


@boundary
def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """``(function(*primals), its derivative along tangents)``: forward mode.

    ``tangents`` has the nest structure and shapes of ``primals``, the second result those of the
    first; what is no float in it has a tangent of zeros. With ``has_aux`` the function returns
    ``(value, aux)`` and the result is ``(value, tangent, aux)``. Raises DTypeError (W111) for a
    primal that is not floating-point, ShapeError (W102) for tangents that do not fit, W114 unless
    both are tuples or lists.

    >>> import numpy as np
    >>> jvp(lambda x: x**3, (2.0,), (1.0,))
    (8.0, 12.0)
    >>> hessian_product = lambda f, x, v: jvp(grad(f), (x,), (v,))[1]
    >>> from weft import grad
    >>> hessian_product(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    check_function(function, "jvp: what is differentiated")
    for word, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise error("W114", f"jvp: {word} is {type(given).__name__}, not a tuple",
                        locs=user_loc(), hint=f"give one item for each argument: ({word[:-1]},)")
    primals, tangents = tuple(primals), tuple(tangents)
    ctx = context_for(tree.leaves((primals, tangents)))
    if ctx is None:
        return run_eagerly(lambda primals, tangents: jvp(function, primals, tangents, has_aux),
                           (primals, tangents))
    leaves, structure = tree.split(primals)
    directions = tree.matched(structure, tangents)
    # Before the function: its nodes have those of tangents between them.
    names = Signature(function).names(tree.split((primals, {}))[1])
    given = ctx.apply(lambda: [_direction(*each) for each in zip(
        leaves, directions, names, strict=True)], ())
    with tracking(ctx, leaves) as (arguments, tracked):
        args = tree.unflatten(structure, arguments)
        out = ctx.as_written(function)(*args)
    if has_aux and not (isinstance(out, tuple) and len(out) == 2):
        raise error("W114", "with has_aux the function must return (value, aux)", locs=user_loc())
    value, aux = out if has_aux else (out, None)
    outputs, out_tree = tree.split(value)
    outputs, found = ctx.apply(_pushed, (ctx, outputs, tracked, given))
    result = tree.unflatten(out_tree, outputs), tree.unflatten(out_tree, found)
    return (*result, aux) if has_aux else result


def _direction(primal: Any, tangent: Any, name: str) -> Tracer:
    """A tangent in the type of its primal."""
    wanted, made = to_tracer(primal), to_tracer(tangent)
    own, shape = wanted.type.shape, made.type.shape
    if len(own) != len(shape) or any(map(differ, own, shape)):
        raise error("W102", f"jvp: the tangent of {name} is {made.type}, {name} itself "
                            f"{wanted.type}", types=[wanted.type, made.type],
                    hint="give a tangent of the shape of the argument")
    if made.dtype.kind == "c" and wanted.dtype.kind != "c":
        raise error("W111", f"jvp: the tangent of {name} is complex, {name} itself "
                            f"{wanted.type}", types=[wanted.type, made.type],
                    hint="give its real part: tangent.real")
    return matched(cast(made, wanted.dtype), own)


def _pushed(
    ctx: TraceContext, outputs: Sequence[Any], tracked: Sequence[Tracer], given: Sequence[Tracer]
) -> tuple[list[Any], list[Any]]:
    """The results of a function as tracers, and their tangents."""
    assert ctx is current()
    results = [to_tracer(x) for x in outputs]
    floats = [x for x in results if x.dtype.kind not in "iub"]
    found = iter(forward.jvp(
        ctx.builder, [ctx.value_of(x) for x in floats], [ctx.value_of(x) for x in tracked],
        [ctx.value_of(x) for x in given]))
    tangents = []
    for x in results:
        tangent = next(found) if x.dtype.kind not in "iub" else None
        made = ctx.full(0, x.dtype, x.type.shape) if tangent is None else Tracer(ctx, tangent)
        made.weak = x.weak
        tangents.append(made)
    return results, tangents


