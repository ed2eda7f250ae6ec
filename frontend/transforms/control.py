"""cond, while_loop, fori_loop and scan: control flow on traced values, with JAX's meaning.

Bodies are plain NumPy code on nests. Each is traced once, into a graph of its own; values from
around it become operands of the node that holds it. What a loop carries keeps its types from round
to round, so a first value that is a Python number takes the dtype that the first round gives it.

    def step(h, x):                          def halve(x):
        h = np.tanh(h @ w + x)                   return x / 2
        return h, h                          n = weft.while_loop(lambda x: x > 1, halve, n)
    h, hs = weft.scan(step, h0, xs)

Outside of any trace they run at once, by ``eager.run_eagerly``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.diagnose import error
from ...ir.indices.proof import larger
from ...ir.ops.control.region import ENDLESS
from ..engine.eager import run_eagerly
from ..face import tree
from ..face.boundary import boundary
from ..face.source import user_loc
from ..tracing.context.active import context_for
from ..tracing.operand import as_dim, as_int
from ..tracing.trace import trace_region
from ..tracing.values.tracer import SymbolicDim
from .bodies import check_body, operands
from .loops import rounds, scanned
from .regions import (
    Slot,
    bound_of,
    bounded,
    branched,
    condition_of,
    context_of,
    is_size,
    name_of_body,
    or_operation,
    traced,
)


@boundary
def cond(p: Any, t: Callable[..., Any], f: Callable[..., Any], *ops: Any) -> Any:
    """``t(*ops)`` where the scalar ``p`` is true, else ``f(*ops)``; only that one is computed.

    Both return nests of the same structure and types; a Python number takes the dtype of what
    the other one returns there. Of branches that return no values, such as assignments, an
    operation is made. Raises ShapeError (W102) or DTypeError (W111) where they differ.

    >>> import numpy as np
    >>> cond(np.bool_(True), lambda x: x + 1, lambda x: x * 10, np.array([1, 2]))
    array([2, 3])
    """
    if context_for(tree.leaves((p, ops))) is None:
        return run_eagerly(lambda p, ops: cond(p, t, f, *ops), (p, ops))
    for body, word in ((t, "if it is true"), (f, "if it is false")):
        check_body(body, f"cond: what is done {word}", *operands(ops))
    ctx = context_of((p, ops))
    t, f = map(ctx.as_written, (t, f))
    condition = ctx.apply(condition_of, (p, "cond"))
    given, structure = traced(ctx, ops)
    slots = [Slot.of(x) for x in given]
    regions = [trace_region(body, slots, structure, name_of_body(body, word))
               for body, word in ((t, "then"), (f, "other"))]
    if regions[0].out_tree != regions[1].out_tree:
        raise error("W102", f"cond: one branch returns {regions[0].out_tree!r}, the other "
                            f"{regions[1].out_tree!r}", locs=user_loc(),
                    hint="return the same nest from both")
    made = branched(ctx, condition, regions, given)
    return or_operation(ctx, tree.unflatten(regions[0].out_tree, made))


@boundary
def while_loop(
    cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any,
    max_iterations: int | None = None,
) -> Any:
    """``while cond(x): x = body(x)`` from ``init``, of at most ``max_iterations`` rounds.

    ``body`` returns a nest of the structure and types of ``init``, ``cond`` one bool. A gradient
    needs ``max_iterations``, unless the test shows a bound (``n < 100`` of a count): it saves that
    many rows of what rounds are made of. Raises ShapeError
    (W102) or DTypeError (W111) where types differ, UnsupportedError (W113) for a gradient without.

    >>> while_loop(lambda x: x < 100, lambda x: x * 3, 1)
    243
    """
    if context_for(tree.leaves(init)) is None:
        return run_eagerly(lambda init: while_loop(cond, body, init, max_iterations), (init,))
    check_body(cond, "while_loop: the condition", "state")
    check_body(body, "while_loop: the body", "state")
    limit = _limit(max_iterations)
    ctx = context_of(init)
    cond, body = map(ctx.as_written, (cond, body))
    return or_operation(ctx, rounds("while_loop", lambda x, _: cond(x), lambda x, _: body(x), body,
                                    init, limit, ctx))


def _limit(most: int | None) -> int:
    if most is None:
        return ENDLESS
    limit = as_int(most, "number of rounds")
    if limit < 0:
        raise error("W112", f"max_iterations={most} is negative", locs=user_loc(),
                    hint="give 0 or more, or None for no limit")
    return limit


@boundary
def fori_loop(
    lo: Any, hi: Any, body: Callable[[Any, Any], Any], init: Any,
    max_iterations: int | None = None,
) -> Any:
    """``for i in range(lo, hi): x = body(i, x)`` from ``init``; the bounds may be traced.

    A gradient with traced bounds needs ``max_iterations``; then more rounds fail the step (W124).
    ``body`` returns a nest of the structure and types of ``init``. Raises ShapeError (W102) or
    DTypeError (W111) where it does not.

    >>> fori_loop(0, 5, lambda i, x: x + i, 0)
    10
    """
    if context_for(tree.leaves((lo, hi, init))) is None:
        bounds = as_int(lo, "bound"), as_int(hi, "bound")
        return run_eagerly(lambda init: fori_loop(*bounds, body, init, max_iterations), (init,))
    check_body(body, "fori_loop: the body", "i", "state")
    ctx = context_of((lo, hi, init))
    body = ctx.as_written(body)
    if is_size(lo) and is_size(hi):
        count = larger(as_dim(hi) - as_dim(lo), 0)
        start = lo if isinstance(lo, SymbolicDim) else int(lo)

        def row(x: Any, _: Any, index: Any) -> Any:
            return body(index + start, x), None

        made, _ = scanned("fori_loop", row, body, init, None, count, False, ctx)
        return or_operation(ctx, made)
    first, stop = (ctx.apply(bound_of, (x,)) for x in (lo, hi))
    limit = _limit(max_iterations)
    if limit != ENDLESS:
        stop = ctx.apply(bounded, (first, stop, limit))
    return or_operation(ctx, rounds("fori_loop", lambda _, index: first + index < stop,
                                    lambda x, index: body(first + index, x), body, init, limit,
                                    ctx))


@boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None,
    length: Any = None, reverse: bool = False,
) -> tuple[Any, Any]:
    """``carry, y = f(carry, x)`` for each row x of the nest ``xs``: the last carry, and all y
    stacked along a new first axis, in the order of their rows.

    Without arrays in ``xs`` there are ``length`` rounds, with x None. ``reverse`` goes from the
    last row to the first. ``f`` returns a carry of the structure and types of ``init``. Raises
    ShapeError (W102) or DTypeError (W111) where it does not, or where rows differ in number.

    >>> import numpy as np
    >>> scan(lambda total, x: (total + x, total), 0, np.array([1, 2, 3]))
    (np.int64(6), array([0, 1, 3]))
    """
    if context_for(tree.leaves((init, xs, length))) is None:
        return run_eagerly(  # type: ignore[no-any-return]
            lambda init, xs: scan(f, init, xs, length, reverse), (init, xs))
    check_body(f, "scan: the body", "carry", "row")
    ctx = context_of((init, xs, length))
    f = ctx.as_written(f)
    carry, ys = scanned("scan", lambda carry, x, _: f(carry, x), f, init, xs,
                        None if length is None else as_dim(length), bool(reverse), ctx)
    return (carry, ys) if tree.leaves(ys) else (or_operation(ctx, carry), ys)
