"""How the parts of a result follow from those of its operands: a rule for each op.

A rule is ``(b, node, *operands)`` and gives a ``Pair``, or a value where the result is real;
complex operands are pairs. Ops that treat elements alike (views, gathers, sums, choices) treat each
part alike. Products, quotients and comparisons are NumPy's, so that NaN, infinities and overflow
come where NumPy has them: a product is not mended as Annex G of C99 would, a quotient is Smith's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...ir.graph import Builder, Graph, Node, Value
from ...ir.indices.index import product, symbols_of
from ...ir.ops.op import Kind
from ...ir.types import BOOL, TensorType
from . import functions as f
from .functions import Pair

Rule = Callable[..., Any]


def _each(b: Builder, node: Node, *operands: Pair | Value) -> Pair:
    """The op on the real parts, and on the imaginary parts."""
    def part(at: int) -> Value:
        attrs = dict(node.attrs)
        if "value" in attrs:
            attrs["value"] = _parts(attrs["value"])[at]
        inputs = [x[at] if isinstance(x, Pair) else x for x in operands]
        return b.emit(node.op, inputs, attrs).results[0]

    return Pair(part(0), part(1))


def _parts(value: complex) -> tuple[float, float]:
    number = complex(value)
    return number.real, number.imag


def _full(b: Builder, node: Node) -> Pair:
    (result,) = node.results
    type_ = result.type.with_dtype(result.dtype.part)
    re, im = _parts(node.attrs["value"])
    return Pair(b.full(re, type_), b.full(im, type_))


def _iota(b: Builder, node: Node) -> Pair:
    re = b.iota(**{**node.attrs, "dtype": node.results[0].dtype.part})
    return Pair(re, b.full(0.0, re.type))


def _cast(b: Builder, node: Node, x: Pair | Value) -> Any:
    dtype = node.attrs["dtype"]
    if not isinstance(x, Pair):
        re = x if x.dtype == dtype.part else b.cast(x, dtype=dtype.part)
        return Pair(re, b.full(0.0, re.type))
    if dtype == BOOL:
        return b.or_(*(b.ne(part, 0.0) for part in x))
    if not dtype.is_complex:
        return b.cast(x.re, dtype=dtype)
    return Pair(*(b.cast(part, dtype=dtype.part) for part in x))


def _contract(b: Builder, node: Node, x: Pair, y: Pair) -> Pair:
    dims = node.attrs["dims"]

    def of(left: Value, right: Value) -> Value:
        return b.contract(left, right, dims=dims)  # type: ignore[no-any-return]

    return Pair(b.sub(of(x.re, y.re), of(x.im, y.im)), b.add(of(x.re, y.im), of(x.im, y.re)))


def _rounds(b: Builder, first: Pair, rows: Sequence[Pair],
            join: Callable[..., Pair]) -> tuple[Pair, Pair]:
    """A loop over the rows of pairs, ``held = join(b, held, *row)``: the last, and all of them."""
    dims = {name for value in b.graph.values() for dim in value.shape for name in symbols_of(dim)}
    index = next(name for name in (f"t{at}" for at in itertools.count()) if name not in dims)
    body = Graph("rounds")
    inner = Builder(body, b.ops, share=False, fold=False)
    held, *row = (Pair(*(body.add_param(type_, f"{name}{at}.{side}") for side in ("re", "im")))
                  for at, (name, type_) in enumerate([
                      ("held", first.re.type), *(("row", each.re.type.with_shape(
                          each.re.shape[1:])) for each in rows)]))
    made = join(inner, held, *row)
    body.results = [*made, *made]
    found = b.emit(b.ops["scan"], [*first, *(part for each in rows for part in each)], {
        "carried": 2, "scanned": 2 * len(rows), "length": rows[0].re.shape[0], "reverse": False,
        "index": index, "body": body}).results
    return Pair(*found[:2]), Pair(*found[2:])


def _one(b: Builder, type_: TensorType) -> Pair:
    return Pair(b.full(1.0, type_), b.full(0.0, type_))


def _prod(b: Builder, node: Node, x: Pair) -> Pair:
    """A product over axes, one factor after the other."""
    axes, shape = node.attrs["axes"], node.results[0].shape
    kept = tuple(at for at in range(len(x.re.shape)) if at not in axes)
    count = product(x.re.shape[at] for at in axes)
    rows = Pair(*(b.reshape(b.transpose(part, perm=(*axes, *kept)), shape=(count, *shape))
                  for part in x))
    return _rounds(b, _one(b, x.re.type.with_shape(shape)), [rows], f.mul)[0]


def _along(b: Builder, node: Node, start: float, join: Callable[..., Pair],
           *operands: Pair) -> Pair:
    """What is carried along an axis, from ``start``."""
    axis, shape = node.attrs["axis"], node.results[0].shape
    others = tuple(at for at in range(len(shape)) if at != axis)
    order = (axis, *others)
    rows = [Pair(*(b.transpose(part, perm=order) for part in x)) for x in operands]
    type_ = rows[0].re.type.with_shape(tuple(shape[at] for at in others))
    first = Pair(b.full(start, type_), b.full(0.0, type_))
    _, found = _rounds(b, first, rows, join)
    back = tuple(order.index(at) for at in range(len(shape)))
    return Pair(*(b.transpose(part, perm=back) for part in found))


def _plain(function: Callable[..., Any]) -> Rule:
    """A rule of the operands alone."""
    return lambda b, node, *operands: function(b, *operands)


def _less(strict: str) -> Callable[..., Value]:
    """Real parts first, then imaginary ones; NumPy asks for NaN among the latter only."""
    def rule(b: Builder, x: Pair, y: Pair) -> Value:
        numbers = b.and_(b.eq(x.im, x.im), b.eq(y.im, y.im))
        first = b.and_(b.lt(x.re, y.re), numbers)
        return b.or_(first, b.and_(b.eq(x.re, y.re), getattr(b, strict)(x.im, y.im)))  # type: ignore[no-any-return]

    return rule


def _turned(rule: Callable[..., Value]) -> Callable[..., Value]:
    return lambda b, x, y: rule(b, y, x)


def _extreme(within: Callable[..., Value]) -> Callable[..., Pair]:
    def rule(b: Builder, x: Pair, y: Pair) -> Pair:
        first = b.or_(within(b, x, y), b.or_(b.isnan(x.re), b.isnan(x.im)))
        return f.select(b, first, x, y)

    return rule


_LT, _LE = _less("lt"), _less("le")

BY_KIND: Mapping[Kind, Rule] = MappingProxyType({
    Kind.VIEW: _each, Kind.GATHER: _each, Kind.SCATTER: _each})

_PLAIN: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "mul": f.mul, "div": f.div, "abs": f.modulus, "sign": f.sign, "pow": f.power,
    "exp": f.exp, "exp2": f.exp2, "expm1": f.expm1, "log": f.log, "log2": f.log2,
    "log10": f.log10, "log1p": f.log1p, "sqrt": f.sqrt,
    "sin": f.sin, "cos": f.cos, "tan": f.tan, "sinh": f.sinh, "cosh": f.cosh,
    "tanh": f.tanh, "asin": f.asin, "acos": f.acos, "atan": f.atan, "asinh": f.asinh,
    "acosh": f.acosh, "atanh": f.atanh,
    "eq": lambda b, x, y: b.and_(b.eq(x.re, y.re), b.eq(x.im, y.im)),
    "ne": lambda b, x, y: b.or_(b.ne(x.re, y.re), b.ne(x.im, y.im)),
    "lt": _LT, "le": _LE, "gt": _turned(_LT), "ge": _turned(_LE),
    "maximum": _extreme(_turned(_LE)), "minimum": _extreme(_LE),
    "isnan": lambda b, x: b.or_(b.isnan(x.re), b.isnan(x.im)),
    "isinf": lambda b, x: b.or_(b.isinf(x.re), b.isinf(x.im)),
    "isfinite": lambda b, x: b.and_(b.isfinite(x.re), b.isfinite(x.im)),
})

RULES: Mapping[str, Rule] = MappingProxyType({
    **dict.fromkeys(("add", "sub", "neg", "select", "masked", "sum", "cumsum", "rint",
                     "ensure", "checked", "awaiting"), _each),
    "full": _full, "iota": _iota, "cast": _cast, "contract": _contract, "prod": _prod,
    "cumprod": lambda b, node, x: _along(b, node, 1.0, f.mul, x),
    "recur": lambda b, node, x, y: _along(b, node, 0.0, lambda b, held, x, y: f.add(
        b, f.mul(b, x, held), y), x, y),
    "real": lambda b, node, x: x.re, "imag": lambda b, node, x: x.im,
    "complex": lambda b, node, re, im: Pair(re, im),
    "parts": _plain(f.together), "joined": _plain(f.apart),
    "conj": lambda b, node, x: Pair(x.re, b.neg(x.im)),
    **{name: _plain(rule) for name, rule in _PLAIN.items()},
})
