"""What is drawn of arrays and of several numbers at once: plain NumPy over the draws of a
generator, traced or not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...face.compile import compile as compile_function
from ...face.function import Function
from ...face.source import user_loc
from ...tracing.arrays.variable import Variable
from ...tracing.context.active import active, context_for
from ...tracing.operand import axis_of, is_weak, to_tracer
from ...tracing.values.tracer import Tracer

Generator = Any  # which calls these functions
_PROBABILITIES = "they are at least 0 and sum to 1: p / np.sum(p)"
_I64, _U64 = np.dtype(np.int64), np.dtype(np.uint64)


def _array(x: Any) -> Any:
    """An operand with a shape."""
    return x if isinstance(x, (Tracer, Variable, np.ndarray)) else np.asarray(x)


def _is_known(*values: Any) -> bool:
    return all(value is None or isinstance(value, (int, np.integer)) for value in values)


def _is_plain(x: Any) -> bool:
    """True for numbers that can be looked at now."""
    return type(x) is np.ndarray


def _checked_bound(x: Any) -> Any:
    """A bound of integers. Raises ParameterError (W132) for numbers that no integer is, as those of
    NumPy's generators are refused."""
    known = isinstance(x, (float, np.floating, list, tuple)) or _is_plain(x)
    plain = np.asarray(x) if known else None
    if plain is not None and plain.dtype.kind == "f" and not (np.abs(plain) < 2.0**63).all():
        raise _refused(f"rng.integers: {x!r} is no bound of integers",
                       "give integers that 64 bits hold")
    return x


def _refused(message: str, hint: str) -> Exception:
    return error("W132", message, locs=user_loc(), hint=hint)


def _sizes(size: Any) -> tuple[Any, ...]:
    return () if size is None else tuple(size) if np.ndim(size) else (size,)


def integers(rng: Generator, low: Any, high: Any, size: Any, dtype: np.dtype[Any],
             endpoint: bool) -> Any:
    first, last = map(_checked_bound, (0, low) if high is None else (low, high))
    if _is_known(first, last):
        least, count = int(first), int(last) - int(first) + endpoint
        if count <= 0:
            raise _refused(f"rng.integers: low={first} is not below high={last}",
                           "high is not among the numbers, unless endpoint=True")
        limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if least < limits[0] or least + count - 1 > limits[1]:
            raise _refused(f"rng.integers: {first} to {last} is not within {dtype}",
                           "give a wider dtype")
        name = "integers" if count <= 1 << 32 else "wide_integers"
        params = np.uint64(count % (1 << 64)), np.uint64(least % (1 << 64))
    else:
        start, stop = (_array(x) for x in (first, last))
        span = stop.astype(_I64) - start.astype(_I64) + int(endpoint)
        if active() is None and np.any(span <= 0):
            raise _refused("rng.integers: low is not below high",
                           "high is not among the numbers, unless endpoint=True")
        name, params = "wide_integers", (_above_zero(span).astype(_U64), start.astype(_U64))
    return rng._draw(name, params, size).astype(dtype)


def _above_zero(span: Any) -> Any:
    ctx = active()
    if ctx is None:
        return span
    return ctx.apply(lambda: ctx.emit(
        "checked", span, span > 0, code="W132", message="rng.integers: low is not below high"), ())


def categorical(rng: Generator, logits: Any, size: Any, axis: int) -> Any:
    table = np.moveaxis(_array(logits), axis, -1)
    kind = np.float32 if table.dtype == np.float32 else np.float64
    shape = table.shape[:-1] if size is None else _sizes(size)
    noise = rng.gumbel(size=(*shape, table.shape[-1]), dtype=kind)
    return np.argmax(table + noise, axis=-1)


def multinomial(rng: Generator, n: Any, pvals: Any, size: Any) -> Any:
    """One binomial number after the other, of the trials that are left."""
    table = _array(pvals)
    if _is_plain(table) and (np.any(table < 0) or np.any(
            np.sum(table[..., :-1], axis=-1) > 1 + 1e-12)):
        raise _refused("rng.multinomial: pvals are no probabilities", _PROBABILITIES)
    # What is left for an outcome and those after it; the last one takes all that remains.
    rest = 1 - (np.cumsum(table, axis=-1) - table)
    left = _array(n)
    shape = np.broadcast_shapes(left.shape, table.shape[:-1]) if size is None else _sizes(size)
    left = np.broadcast_to(left, shape).astype(_I64)
    counts = []
    for at in range(table.shape[-1] - 1):
        some = rest[..., at] > 0
        p = np.where(some, table[..., at] / np.where(some, rest[..., at], 1), 0)
        counts.append(rng.binomial(left, np.clip(p, 0, 1), size=shape))
        left = left - counts[-1]
    return np.stack([*counts, left], axis=-1)


def multivariate_hypergeometric(rng: Generator, colors: Any, nsample: Any, size: Any) -> Any:
    """One kind after the other, of those that are left to be drawn."""
    table = _array(colors)
    left = np.broadcast_to(_array(nsample), _sizes(size)).astype(_I64)
    rest, counts = np.sum(table), []
    for at in range(table.shape[-1] - 1):
        rest = rest - table[at]
        counts.append(rng.hypergeometric(table[at], rest, left, size=_sizes(size)))
        left = left - counts[-1]
    return np.stack([*counts, left], axis=-1)


def dirichlet(rng: Generator, alpha: Any, size: Any, dtype: Any) -> Any:
    table = _array(alpha)
    # Of logarithms, since for small alpha all gamma numbers may vanish.
    logs = rng.log_gamma(table, size=(*_sizes(size), *table.shape), dtype=dtype)
    return _run(_shares, logs)


def _shares(logs: Any) -> Any:
    parts = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return parts / np.sum(parts, axis=-1, keepdims=True)


def _turned(normal: Any, factor: Any, centre: Any) -> Any:
    return normal @ factor.T + centre


def _run(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, by a program also where nothing is traced: sums have its bits."""
    return function(*args) if context_for(args) is not None else _compiled(function)(*args)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Function[..., Any]:
    compiled: Function[..., Any] = compile_function(on_recompile="silent")(function)
    return compiled


def multivariate_normal(
    rng: Generator, mean: Any, cov: Any, size: Any, check_valid: str, tol: float, method: str
) -> Any:
    centre, matrix = _array(mean), _array(cov)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (
            centre.shape != matrix.shape[:1]):
        raise error("W102", f"rng.multivariate_normal: mean {centre.shape} and cov {matrix.shape}",
                    locs=user_loc(), hint="give a mean of (d,) and a covariance of (d, d)")
    if method == "cholesky":
        factor = np.linalg.cholesky(matrix)
    elif method == "eigh":
        values, vectors = np.linalg.eigh(matrix)
        factor = vectors * np.sqrt(np.maximum(values, 0))
    elif method == "svd":
        _, values, right = np.linalg.svd(matrix)
        factor = right.T * np.sqrt(values)
    else:
        raise error("W113", f"multivariate_normal with method={method!r}", locs=user_loc(),
                    hint='use "svd", "eigh" or "cholesky"')
    if check_valid != "ignore" and _is_plain(matrix) and _is_plain(factor) and not (
            np.allclose(factor @ factor.T, matrix, rtol=tol, atol=tol)):
        raise _refused("rng.multivariate_normal: cov is no covariance",
                       "it is symmetric, and has no negative eigenvalue")
    normal = rng.standard_normal((*_sizes(size), centre.shape[0]))
    return _run(_turned, normal, factor, centre)


def choice(rng: Generator, a: Any, size: Any, replace: bool, p: Any, axis: int) -> Any:
    is_count = np.ndim(a) == 0
    pool = a if is_count else _array(a)
    count = a if is_count else pool.shape[axis]
    if isinstance(count, int) and count <= 0:
        raise _refused(f"rng.choice: there is nothing to choose from, {count} entries",
                       "give an array with entries")
    if replace and p is None:
        places = rng.integers(0, count, size)
    elif replace:
        bounds = np.cumsum(_probabilities(p, count))
        places = np.searchsorted(bounds / bounds[-1], rng.random(size), side="right")
    else:
        places = _different(rng, count, size, p)
    return places if is_count else _taken(pool, places, axis)


def _taken(array: Any, places: Any, axis: int) -> Any:
    """Entries of an array, which may be a plain one while places are traced."""
    ctx = context_for((array, places))
    return np.take(array if ctx is None else to_tracer(array), places, axis=axis)


def _probabilities(p: Any, count: Any) -> Any:
    table = _array(p)
    if table.ndim != 1 or (isinstance(count, int) and table.shape != (count,)):
        raise error("W102", f"rng.choice: {count} entries and p of {table.shape}", locs=user_loc(),
                    hint="give one probability for each entry")
    if _is_plain(table) and not (np.all(table >= 0) and abs(np.sum(table) - 1) < 1e-8):
        raise _refused("rng.choice: p are no probabilities", _PROBABILITIES)
    return table


def _different(rng: Generator, count: Any, size: Any, p: Any) -> Any:
    """Places without repetition. With probabilities: those of the least exponential numbers, each
    divided by its probability (Efraimidis and Spirakis, 2006)."""
    wanted = _sizes(size)
    number = int(np.prod(wanted)) if all(isinstance(dim, int) for dim in wanted) else None
    if number is None:
        raise error("W201", "rng.choice without replacement needs a size that is known while "
                            "tracing", locs=user_loc(), hint="give integers, or np.argsort of "
                    "rng.random(n) cut to the size")
    if isinstance(count, int) and number > count:
        raise _refused(f"rng.choice: {number} different ones of {count} entries",
                       "draw fewer, or with replacement")
    if p is None:
        keys = rng._draw("words", (), count)
    else:
        table = _probabilities(p, count)
        if _is_plain(table) and np.count_nonzero(table) < number:
            raise _refused(f"rng.choice: {number} different ones, fewer have a probability above 0",
                           "draw fewer, or with replacement")
        keys = np.where(table > 0, rng.standard_exponential(count) / np.where(
            table > 0, table, 1), np.inf)
    return np.argsort(keys, kind="stable")[:number].reshape(wanted)


def permutation(rng: Generator, x: Any, axis: int) -> Any:
    if np.ndim(x) == 0:
        return _order(rng, x)
    array = _array(x)
    return _taken(array, _order(rng, array.shape[axis]), axis)


def _order(rng: Generator, count: Any) -> Any:
    words = rng._draw("words", (), count)
    return _sorting()(words) if _is_plain(words) else _places(words)


def _places(words: Any) -> Any:
    return np.argsort(words, kind="stable")


@functools.cache
def _sorting() -> Function[..., Any]:
    """``_places`` of any number, which is several times as fast as NumPy's."""
    compiled: Function[..., Any] = compile_function(dynamic={"words": {0: "n"}})(_places)
    return compiled


def permuted(rng: Generator, x: Any, axis: int | None) -> Any:
    array = _array(x)
    if axis is None:
        return _taken(array.reshape(-1), _order(rng, array.size), 0).reshape(array.shape)
    order = np.argsort(rng._draw("words", (), array.shape), axis=axis_of(axis, array.ndim),
                       kind="stable")
    return np.take_along_axis(array, order, axis=axis)


def shuffle(rng: Generator, x: Any, axis: int) -> None:
    if isinstance(x, list):
        order = _order(rng, len(x))
        x[:] = _in_order(x, order) if isinstance(order, Tracer) else [x[int(at)] for at in order]
    elif isinstance(x, Variable):
        x.assign(permutation(rng, x, axis))
    else:
        x[...] = permutation(rng, x, axis)


def _in_order(items: list[Any], order: Tracer) -> list[Any]:
    """Numbers, or arrays of one shape, in an order that a traced function draws."""
    rows = to_tracer(items)[order]
    weak = all(map(is_weak, items))
    return [Tracer(row.ctx, row.value, weak=weak) for row in (rows[at] for at in range(len(items)))]
