"""How the parts of a result follow from those of its operands: a rule for each op.

A rule is ``(b, node, *operands)`` and gives a ``Pair``, or a value where the result is real;
complex operands are pairs. Ops that treat elements alike (views, gathers, sums, choices) treat each
part alike. Products, quotients and comparisons are NumPy's, so that NaN, infinities and overflow
come where NumPy has them: a product is not mended as Annex G of C99 would, a quotient is Smith's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ...ir.graph import Builder, Node, Value
from ...ir.ops.op import Kind
from ...ir.types import BOOL
from . import functions as f
from .functions import Pair

Rule = Callable[..., Any]


def _each(b: Builder, node: Node, *operands: Pair | Value) -> Pair:
    """The op on the real parts, and on the imaginary parts, of which constants have none."""
    def part(at: int) -> Value:
        attrs = dict(node.attrs)
        if at and "value" in attrs:
            attrs["value"] = 0.0
        inputs = [x[at] if isinstance(x, Pair) else x for x in operands]
        return b.emit(node.op, inputs, attrs).results[0]

    return Pair(part(0), part(1))


def _full(b: Builder, node: Node) -> Pair:
    (result,) = node.results
    type_ = result.type.with_dtype(result.dtype.part)
    return Pair(b.full(node.attrs["value"], type_), b.full(0.0, type_))


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


def _prod(b: Builder, node: Node, x: Pair) -> Pair:
    """A product over axes by halves; of no elements it is 1."""
    axes = node.attrs["axes"]
    kept = tuple(at for at in range(len(x.re.shape)) if at not in axes)
    rows = Pair(*(b.transpose(part, perm=(*axes, *kept)) for part in x))
    shape = node.results[0].shape
    return f.product_of(b, rows, len(axes), shape, node)


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

RULES: Mapping[str, Rule] = MappingProxyType({
    **dict.fromkeys(("add", "sub", "neg", "select", "sum", "cumsum", "rint"), _each),
    "full": _full, "cast": _cast, "contract": _contract, "prod": _prod,
    "real": lambda b, node, x: x.re, "imag": lambda b, node, x: x.im,
    "complex": lambda b, node, re, im: Pair(re, im),
    "conj": lambda b, node, x: Pair(x.re, b.neg(x.im)),
    **{name: _plain(rule) for name, rule in {
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
    }.items()},
})
