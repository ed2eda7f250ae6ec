"""Medians and quantiles, by their ranks; the methods are NumPy's (Hyndman and Fan, *Sample
Quantiles in Statistical Packages*, 1996).

    ordered    1 2 4 8, q = 0.4        virtual place 1.2, between 2 and 4: 2 + 0.2 * (4 - 2)

A method gives the virtual place of a quantile q among n elements, and how far an element is on the
way from the one below to the one above. Of rows with NaNs left out, n is another one for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim, product
from ....ir.indices.proof import nonnegative
from ....ir.record import record, replace
from ....ir.types import as_dtype, number_kind
from ...tracing.context.active import current
from ...tracing.operand import (
    as_number,
    axes_of,
    broadcast,
    cast,
    constant,
    contains_tracer,
    masked,
    reshape,
    shape_of,
    strong,
)
from ...tracing.values.tracer import Tracer
from ..arrange.join import concatenate
from ..arrange.shape import moveaxis, transpose
from ..order.sort import FEW, argsort, ranked, ranked_columns, sort
from ..registry import numpy
from ..select.take import take_along_axis

_I64, _F64 = np.dtype(np.int64), np.dtype(np.float64)


def _share(place: Any, low: Any) -> Any:
    return place - low


def _closest(place: Any, near: Any) -> Any:
    """The place above, or the one below where ``near`` says so of the share and the place."""
    low = np.floor(place)
    return np.maximum(np.where(near(place - low, place), low, low + 1), 0)


def _between(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


@record(frozen=True)
class _Method:
    """``place(n, q)``; ``share(place, low)`` is None where the place is that of an element.

    ``whole`` says that a place which is an integer is one of an element, too: those of the other
    methods may lie outside.
    """

    place: Callable[[Any, Any], Any]
    share: Callable[[Any, Any], Any] | None = _share
    whole: bool = False


_METHODS: Mapping[str, _Method] = MappingProxyType({
    "linear": _Method(lambda n, q: (n - 1) * q, whole=True),
    "lower": _Method(lambda n, q: np.floor((n - 1) * q), None),
    "higher": _Method(lambda n, q: np.ceil((n - 1) * q), None),
    "nearest": _Method(lambda n, q: np.round((n - 1) * q), None),
    "midpoint": _Method(lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
                        lambda place, low: np.where(place == low, 0.0, 0.5)),
    "inverted_cdf": _Method(lambda n, q: _closest(
        n * q - 1, lambda share, place: share == 0), None),
    "closest_observation": _Method(lambda n, q: _closest(
        n * q - 1.5, lambda share, place: (share == 0) & (np.floor(place) % 2 == 1)), None),
    "averaged_inverted_cdf": _Method(
        lambda n, q: n * q - 1, lambda place, low: np.where(place == low, 0.5, 1.0)),
    "interpolated_inverted_cdf": _Method(_between(0, 1)),
    "hazen": _Method(_between(0.5, 0.5)),
    "weibull": _Method(_between(0, 0)),
    "median_unbiased": _Method(_between(1 / 3, 1 / 3)),
    "normal_unbiased": _Method(_between(3 / 8, 3 / 8)),
})


@record(frozen=True)
class _Rows:
    """An array with the axes that are reduced as its last one; it may be ``ordered``.

    ``count`` elements of a row count: all of them, or (``each``) a number for each row.
    """

    rows: Any
    count: Any
    each: bool
    kept: tuple[Dim, ...]  # the shape of a result that keeps dims
    ordered: bool = False

    @property
    def has_nans(self) -> bool:
        """Whether a row may have NaNs that count."""
        return number_kind(self.rows.dtype) in "fc" and not self.each

    def at(self, *places: Any) -> list[Any]:
        """The elements at places, which have one shape, of each row in order; the dims of places
        that rows have not go first. Where NaNs count, the last element of each row comes last."""
        rest, many = self.rows.type.shape[:-1], len(places)
        heads, size = shape_of(places[0]), self.rows.type.shape[-1]
        if (number_kind(self.rows.dtype) in "iub" and isinstance(size, int) and 0 < size <= FEW
                and not heads and not contains_tracer(places)):
            return ranked_columns(self.rows, [int(place) % size for place in places])
        if self.each:
            heads = heads[:len(heads) - len(rest)]
            ranks = _behind_rows(np.stack([_whole(place) for place in places], axis=-1), len(heads))
            ranks = reshape(ranks, (*rest, product(heads) * many))
        else:
            # Places that belong together are beside each other: they are found together.
            ranks = np.ravel(np.stack([_whole(place) for place in places], axis=-1))
            ranks = np.concatenate([ranks, [-1]]) if self.has_nans else ranks
            ranks = broadcast(strong(ranks), (*rest, ranks.shape[0]))
        found: Any = (take_along_axis if self.ordered else ranked)(self.rows, ranks, -1)
        last = [found[..., -1]] if self.has_nans else []
        found = reshape(found[..., :-1] if last else found, (*rest, *heads, many))
        front = tuple(range(len(heads)))
        return [moveaxis(found[..., at], tuple(len(rest) + head for head in front), front)
                for at in range(many)] + last

    def result(self, found: Any, keepdims: Any, heads: tuple[Dim, ...] = (), last: Any = None
               ) -> Any:
        """What was found for each row, NaN where the last one of a row is."""
        if last is not None:
            found = np.where(np.isnan(last), cast(strong(last), found.dtype), found)
        return reshape(strong(found), (*heads, *self.kept)) if keepdims else found


def _whole(places: Any) -> Any:
    return strong(places).astype(_I64) if contains_tracer([places]) else np.asarray(places, _I64)


def _behind_rows(ranks: Any, heads: int) -> Any:
    """Ranks with their first dims before their last one."""
    rank = ranks.ndim
    return moveaxis(ranks, tuple(range(heads)), tuple(range(rank - 1 - heads, rank - 1)))


def _rows(a: Any, axis: Any, *, each: bool = False) -> _Rows:
    """``each``: NaNs do not count."""
    x = strong(a)
    rows: Any
    rows, kept = _behind(x, axes_of(axis, x.ndim))
    if each and number_kind(x.dtype) in "fc":
        there = ~np.isnan(rows)
        count = np.sum(there, axis=-1)
        rows = masked(there, rows, current().emit("stop_gradient", rows))
        return _in_order(_Rows(_one_more(rows), count, True, kept))
    return _in_order(_Rows(rows, as_number(rows.type.shape[-1]), False, kept))


def _in_order(rows: _Rows) -> _Rows:
    """Complex numbers have no ranks: they are sorted."""
    return rows if rows.rows.dtype.kind != "c" else replace(
        rows, rows=sort(rows.rows), ordered=True)


def _one_more(rows: Any) -> Any:
    """Rows with a NaN behind them if there may be nothing in them: the quantile of nothing."""
    shape = rows.type.shape
    if nonnegative(shape[-1] - 1):
        return rows
    return concatenate([rows, constant(np.nan, rows.dtype, (*shape[:-1], 1))], -1)


def _behind(x: Tracer, axes: Sequence[int]) -> tuple[Tracer, tuple[Dim, ...]]:
    """The array with some axes as its last one, and its shape if these were kept as 1."""
    others, shape = [at for at in range(x.ndim) if at not in axes], x.type.shape
    rows = transpose(x, (*others, *sorted(axes)))
    flat = (*(shape[at] for at in others), product(shape[at] for at in axes))
    return reshape(rows, flat), tuple(1 if at in axes else dim for at, dim in enumerate(shape))


def _nothing(a: Any, axis: Any, keepdims: Any, heads: tuple[Dim, ...] = ()) -> Any:
    """NaNs for rows that have no element; None where they have, or may have."""
    x = strong(a)
    axes, shape = axes_of(axis, x.ndim), x.type.shape
    if product(shape[at] for at in axes) != 0:
        return None
    rest = tuple(1 if at in axes else dim for at, dim in enumerate(shape)
                 if keepdims or at not in axes)
    kind = number_kind(x.dtype)
    return constant(complex(np.nan, np.nan) if kind == "c" else np.nan,
                    x.dtype if kind in "fc" else _F64, (*heads, *rest))


# -- medians


@numpy(np.median, scalar=True, samples=(
    "x[7]", "x[8]", "x[3,4]", "x[3,4], 0", "x[2,3,4], (0, 2)", "x[3,5], 1, keepdims=True", "i[6]",
    "x[0]", "x[()]"))
def median(a: Any, axis: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    nothing = _nothing(a, axis, keepdims)
    return _middle(_rows(a, axis), keepdims) if nothing is None else nothing


@numpy(np.nanmedian, scalar=True, samples=(
    "x[7]", "np.where(m[3,4], x[3,4], np.nan), 1", "np.where(m[5,6], x[5,6], np.nan), 0",
    "i[6]", "x[3,4], None, keepdims=True", "x[3,4] * np.nan, 0"))
def nanmedian(a: Any, axis: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    nothing = _nothing(a, axis, keepdims)
    return _middle(_rows(a, axis, each=True), keepdims) if nothing is None else nothing


def _middle(rows: _Rows, keepdims: Any) -> Any:
    """The element in the middle, or the mean of two."""
    if isinstance(rows.count, int):
        low, high = (rows.count - 1) // 2, rows.count // 2
        parts = rows.at(*dict.fromkeys((low, high)))
        last = parts.pop() if rows.has_nans else None
        if number_kind(rows.rows.dtype) not in "fc":  # which keeps the order
            parts = [cast(part, _F64) for part in parts]
        return rows.result(parts[0] if low == high else _mean(*parts), keepdims, last=last)
    if number_kind(rows.rows.dtype) not in "fc":
        rows = replace(rows, rows=cast(rows.rows, _F64))
    # One element more, which is the middle of none.
    rows = replace(rows, rows=_one_more(rows.rows))
    count: Any = strong(rows.count)
    places = [np.maximum(at, 0) for at in ((count - 1) // 2, count // 2, count - 1)]
    low, high, last = replace(rows, each=True).at(*(np.broadcast_to(
        at, rows.rows.type.shape[:-1]) for at in places))
    found = np.where(count % 2 == 1, low, _mean(low, high))
    found = np.where(count == 0, rows.rows.dtype.type(np.nan), found)
    return rows.result(found, keepdims, last=None if rows.each else last)


def _mean(a: Any, b: Any) -> Any:
    """The mean of two elements; of half types rounded once."""
    wide = np.dtype(np.float32) if as_dtype(a.dtype).is_half else a.dtype
    return cast((cast(a, wide) + cast(b, wide)) / 2, a.dtype)


# -- quantiles


_SAMPLES = ("x[7], 0.3", "x[3,4], 0.5, 0", "x[2,3,4], [0.1, 0.9], (0, 2)", "i[9], 0.25",
            "x[3,4], [[0.2], [0.7]], 1, keepdims=True", "x[5], np.float64(0.4)", "x[6], 1",
            "i[6], [0, 1], method='weibull'",
            "x[9], [0.2, 1.0], method='inverted_cdf', weights=p[9]",
            "x[3,4], 0.5, 0, method='inverted_cdf', weights=p[3]",
            *(f"x[3,8], [0.0, 0.3, 0.5, 1.0], 1, method='{name}'" for name in _METHODS))


@numpy(np.quantile, scalar=True, samples=_SAMPLES)
def quantile(a: Any, q: Any, axis: Any = None, overwrite_input: Any = False,
             method: Any = "linear", keepdims: Any = False, *, weights: Any = None) -> Any:
    if weights is not None:
        return _weighted(a, q, axis, method, keepdims, weights)
    return _quantile(_rows(a, axis), q, 1, method, keepdims)


@numpy(np.percentile, scalar=True, samples=(
    "x[7], 30", "x[3,4], [10, 50], 0", "x[7], [25., 75.], method='lower'"))
def percentile(a: Any, q: Any, axis: Any = None, overwrite_input: Any = False,
               method: Any = "linear", keepdims: Any = False, *, weights: Any = None) -> Any:
    if weights is not None:
        return _weighted(a, _parts(q, 100), axis, method, keepdims, weights)
    return _quantile(_rows(a, axis), q, 100, method, keepdims)


@numpy(np.nanquantile, scalar=True, samples=(
    "x[7], 0.3", *(text.replace("x[3,8]", "np.where(m[3,8], x[3,8], np.nan)")
                   for text in _SAMPLES[1:] if "weights=p[3]" not in text)))  # NumPy fails at it
def nanquantile(a: Any, q: Any, axis: Any = None, overwrite_input: Any = False,
                method: Any = "linear", keepdims: Any = False, *, weights: Any = None) -> Any:
    return _nan_quantile(a, q, axis, 1, method, keepdims, weights)


@numpy(np.nanpercentile, scalar=True, samples=(
    "x[7], 30", "np.where(m[3,6], x[3,6], np.nan), [10, 50], 1"))
def nanpercentile(a: Any, q: Any, axis: Any = None, overwrite_input: Any = False,
                  method: Any = "linear", keepdims: Any = False, *, weights: Any = None) -> Any:
    return _nan_quantile(a, q, axis, 100, method, keepdims, weights)


def _nan_quantile(a: Any, q: Any, axis: Any, whole: int, method: Any, keepdims: Any,
                  weights: Any) -> Any:
    nothing = _nothing(a, axis, keepdims, np.shape(q))
    if nothing is not None:
        return nothing
    if weights is not None:
        return _weighted(a, _parts(q, whole), axis, method, keepdims, weights, each=True)
    return _quantile(_rows(a, axis, each=True), q, whole, method, keepdims)


def _quantile(rows: _Rows, q: Any, whole: int, method: Any, keepdims: Any) -> Any:
    """``q`` in parts of ``whole``; a Python number does not widen the result."""
    _real(rows.rows)
    chosen = _METHODS.get(method)
    if chosen is None:
        raise error("W102", f"{method!r} is no method of quantiles",
                    hint=f"choose one of {', '.join(_METHODS)}")
    weak = type(q) in (int, float) or (isinstance(q, Tracer) and q.weak)
    q = _parts(q, whole)
    if rows.rows.type.shape[-1] == 0:
        raise error("W122", "no elements have no quantile", types=[rows.rows.type],
                    hint="leave the empty axis out")
    heads = shape_of(q)
    count = rows.count
    if rows.each:
        q = q[(..., *[None] * (rows.rows.ndim - 1))]
        count = count.astype(q.dtype) if number_kind(q.dtype) == "f" else count
    found, *last = _found(rows, chosen, chosen.place(count, q), weak)
    return rows.result(found, keepdims, heads, *last)


def _real(x: Any) -> None:
    if number_kind(x.dtype) == "c":
        raise error("W111", "quantiles are those of real numbers", types=[x.type],
                    hint="take them of z.real, z.imag or np.abs(z)")


def _parts(q: Any, whole: int) -> Any:
    """Quantiles as parts of 1."""
    message = f"quantiles lie between 0 and {whole}"
    q = q if isinstance(q, Tracer) else np.asarray(q)
    q = q / whole if whole != 1 else q
    inside = (q >= 0) & (q <= 1)
    if isinstance(q, Tracer):
        return current().emit("checked", q, inside, code="W132", message=message)
    if not inside.all():
        raise error("W132", message, hint=f"bring them into [0, {whole}]")
    return q


def _weighted(a: Any, q: Any, axis: Any, method: Any, keepdims: Any, weights: Any, *,
              each: bool = False) -> Any:
    """The first element with which the share of the weights reaches q: ``inverted_cdf``."""
    if method != "inverted_cdf":
        raise error("W102", f"the method {method!r} takes no weights",
                    hint="give method='inverted_cdf'")
    x, w, q = strong(a), strong(weights), _parts(q, 1)
    _real(x)
    axes = axes_of(axis, x.ndim)
    if w.ndim != x.ndim:  # of the axes that are reduced, in the order in which they are named
        ranked = sorted(range(len(axes)), key=lambda at: axes[at])
        w = reshape(transpose(w, tuple(ranked)), tuple(
            dim if at in axes else 1 for at, dim in enumerate(x.type.shape)))
    w = broadcast(w, x.type.shape)
    values: Any
    shares: Any
    (values, kept), (shares, _) = _behind(x, axes), _behind(w, axes)
    if each and number_kind(x.dtype) in "fc":
        shares = np.where(np.isnan(values), 0, shares)
    places = argsort(values)
    values, shares = (take_along_axis(part, places, -1) for part in (values, shares))
    shares = np.cumsum(shares, axis=-1, dtype=_F64)
    shares = shares / shares[..., -1:]
    shares = shares.astype(q.dtype) if number_kind(q.dtype) == "f" else shares
    shares = np.where(shares == 0, -1, shares)
    heads = shape_of(q)
    below = np.sum(shares < q[(..., *[None] * values.ndim)], axis=-1)
    last = as_number(values.type.shape[-1]) - 1
    below = np.minimum(below, np.maximum(last, 0) if each else last)
    rows = _Rows(_one_more(values) if each else values, last + 1, True, kept, ordered=True)
    found, = rows.at(below)
    end = None if each or number_kind(x.dtype) not in "fc" else values[..., -1]
    return rows.result(found, keepdims, heads, end)


def _found(rows: _Rows, method: _Method, place: Any, weak: bool) -> list[Any]:
    """The elements at virtual places, or between two; and the last one where NaNs count."""
    last = rows.count - 1
    if rows.each:
        last = np.maximum(last, 0).astype(place.dtype)
    if method.share is None or (method.whole and place.dtype.kind in "iu"):
        return rows.at(np.clip(place, 0, last) if rows.each else place)
    low = np.floor(place)
    above, below = place >= last, place < 0
    low, high = (np.where(above, last, np.where(below, 0, at)) for at in (low, low + 1))
    share: Any = method.share(place, low).astype(place.dtype)
    left, right, *end = rows.at(low, high)
    rest = 1 - share
    if weak and not contains_tracer([share]):
        share, rest = float(share), float(rest)
    elif weak:
        # As a Python number counts beside the elements.
        kind = np.multiply.resolve_dtypes((left.dtype, float, None))[0]
        share, rest = share.astype(kind), rest.astype(kind)
    elif not rows.each:
        share, rest = (np.reshape(part, (*np.shape(part), *[1] * (rows.rows.ndim - 1)))
                       for part in (share, rest))
    between = right - left
    return [np.where(share >= 0.5, right - between * rest, left + between * share), *end]
