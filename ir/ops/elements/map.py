"""Rows of the MAP family: one element of each operand in, one element out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...diagnose import HELD_IN_64_BITS, error
from ...indices.index import Dim
from ...scalar.primitives import PRIMITIVES, NumpyScalars
from ...types import BOOL, F64, I64, NUMBERS, DType, TensorType, as_dtype
from ..op import OpDef, RunCheck, Sample, map_op, signature

_erf = PRIMITIVES["erf"].numpy
_sigmoid = PRIMITIVES["sigmoid"].numpy
_TWO_OVER_SQRT_PI = 1.1283791670955126
_LN2, _LN10 = 0.6931471805599453, 2.302585092994046


def _sign_body(s: Any, x: Any) -> Any:
    zero, one = s.const(0, x.dtype), s.const(1, x.dtype)
    if x.dtype.kind == "u":
        return s.select(s.gt(x, zero), one, zero)
    least = s.select(s.lt(x, zero), s.const(-1, x.dtype), zero)
    sign = s.select(s.gt(x, zero), one, least)
    return s.select(s.ne(x, x), x, sign) if x.dtype.is_float else sign


def _maximum_grad(b: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    # Ties share the gradient, so that it does not depend on the order of the operands.
    tie = b.select(b.eq(x, y), b.mul(g, 0.5), 0.0)
    return b.select(b.gt(x, y), g, tie), b.select(b.gt(y, x), g, tie)


def _minimum_grad(b: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    first, second = _maximum_grad(b, g, y, x, out)
    return first, second


def _pow_grad(b: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    base = b.mul(b.mul(g, y), b.pow(x, b.sub(y, 1.0)))
    if x.dtype.is_complex:
        zero = b.eq(x, 0.0)
        log = b.log(b.select(zero, 1.0, x))
        return (b.select(b.eq(y, 0.0), 0.0, base),
                b.select(zero, 0.0, b.mul(g, b.mul(out, log))))
    positive = b.gt(x, 0.0)
    log = b.log(b.select(positive, x, 1.0))
    # y = 0 makes the first factor 0 even where x**(y-1) is infinite. By the exponent, 0**y has the
    # derivative 0 and a negative base has none: 0 for both, even where out is infinite.
    return (b.select(b.eq(y, 0.0), 0.0, base),
            b.mul(g, b.select(positive, b.mul(out, log), 0.0)))


def _parts_of_length(b: Any, x: Any, y: Any, length: Any) -> tuple[Any, Any, Any]:
    """x and y divided by their hypotenuse, and that; 0 and 1 at the origin, a kink."""
    length = b.select(b.eq(length, 0.0), 1.0, length)
    return b.div(x, length), b.div(y, length), length


def _hypot_grad(b: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    first, second, _ = _parts_of_length(b, x, y, out)
    return b.mul(g, first), b.mul(g, second)


def _atan2_grad(b: Any, g: Any, y: Any, x: Any, out: Any) -> Any:
    # Divided by the length twice: its square may overflow or vanish.
    cosine, sine, length = _parts_of_length(b, x, y, b.hypot(x, y))
    scale = b.div(g, length)
    return b.mul(scale, cosine), b.neg(b.mul(scale, sine))


def _asinh_slope(b: Any, g: Any, x: Any) -> Any:
    """g / sqrt(1 + x^2), without overflow for real x."""
    return b.div(g, b.sqrt(b.add(b.mul(x, x), 1.0)) if x.dtype.is_complex else b.hypot(x, 1.0))


def _asin_slope(b: Any, g: Any, x: Any) -> Any:
    """g / sqrt(1 - x^2), which near 1 needs the factors of the difference."""
    return b.div(g, b.sqrt(b.mul(b.sub(1.0, x), b.add(x, 1.0))))


def _cast_infer(*types: TensorType, dtype: DType) -> tuple[TensorType, ...]:
    return (types[0].with_dtype(dtype),)


def _cast_ref(x: Any, *, dtype: DType) -> Any:
    if dtype.is_complex:
        return np.asarray(x).astype(dtype.numpy)
    if np.iscomplexobj(x):
        x = np.not_equal(x, 0) if dtype == BOOL else np.real(x)
    return PRIMITIVES["cast"].numpy(x, dtype)


def _cast_grad(b: Any, g: Any, x: Any, y: Any, *, dtype: DType) -> Any:
    if not (x.dtype.is_inexact and dtype.is_inexact):
        return (None,)
    return (b.cast(b.real(g) if dtype.is_complex > x.dtype.is_complex else g, dtype=x.dtype),)


def _abs_infer(*types: TensorType) -> tuple[TensorType, ...]:
    (x,) = signature("abs", "a -> a")(*types)
    return (x.with_dtype(x.dtype.part),)


def _abs_grad(b: Any, g: Any, x: Any, y: Any) -> Any:
    if not x.dtype.is_complex:
        return (b.mul(g, b.sign(x)),)
    first, second, _ = _parts_of_length(b, b.real(x), b.imag(x), y)
    return (b.complex(b.mul(g, first), b.neg(b.mul(g, second))),)


def _limits(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def _narrow_infer(*types: TensorType, dtype: DType) -> tuple[TensorType, ...]:
    if types[0].dtype != I64 or not dtype.is_int:
        raise error("W111", f"narrow makes i64 another integer, not {types[0].dtype} {dtype}")
    return (types[0].with_dtype(dtype),)


def _narrow_holds(s: Any, x: Any, *, dtype: DType) -> Any:
    low, high = _limits(dtype)
    above = s.ge(x, s.const(max(low, _limits(I64)[0]), I64))
    return above if high >= _limits(I64)[1] else s.and_(above, s.le(x, s.const(high, I64)))


def _narrow_message(*, dtype: DType) -> str:
    return f"a Python integer is out of bounds for {dtype.numpy}"


def _narrow_ref(x: Any, *, dtype: DType) -> Any:
    if not np.all(_narrow_holds(NumpyScalars(), np.asarray(x), dtype=dtype)):
        raise error("W131", _narrow_message(dtype=dtype))
    return np.asarray(x).astype(dtype.numpy)


_WRAPPED = 2.0**62  # less than a product that wraps around is off by, more than f64 rounds off


def _unwrapped_infer(*types: TensorType, of: str) -> tuple[TensorType, ...]:
    if any(type_ != types[0] or type_.dtype != I64 for type_ in types):
        raise error("W111", "unwrapped takes three i64 of one shape")
    return (types[0],)


def _unwrapped_holds(s: Any, result: Any, a: Any, b: Any, *, of: str) -> Any:
    if of in ("add", "sub", "mul"):
        return s.not_(getattr(s, f"{of}_overflows")(a, b))
    if of == "shl":  # shifted back it is what it was
        return s.eq(s.shr(s.shl(a, b), b), a)
    a, b = s.cast(a, F64), s.cast(b, F64)
    far = s.abs(s.sub(s.cast(result, F64), getattr(s, of)(a, b)))
    return s.lt(far, s.const(_WRAPPED, F64))


def _unwrapped_message(*, of: str) -> str:
    return HELD_IN_64_BITS


def _unwrapped_ref(result: Any, a: Any, b: Any, *, of: str) -> Any:
    if not np.all(_unwrapped_holds(NumpyScalars(), *map(np.asarray, (result, a, b)), of=of)):
        raise error("W131", _unwrapped_message(of=of))
    return np.asarray(result)


def _ensure_holds(s: Any, x: Any, spare: Any, *, message: str) -> Any:
    return s.ge(spare, s.const(0, spare.dtype))


def _ensure_message(*, message: str, code: str = "") -> str:
    return message


def _ensure_ref(x: Any, spare: Any, *, message: str) -> Any:
    if not np.all(np.asarray(spare) >= 0):
        raise error("W124", message)
    return np.asarray(x)


def _asserted_ref(x: Any, *, message: str) -> Any:
    if not np.all(x):
        raise error("W125", message)
    return np.asarray(x)


def _checked_ref(x: Any, holds: Any, *, code: str, message: str) -> Any:
    if not np.all(holds):
        raise error(code, message)
    return np.asarray(x)


def _full_infer(*, value: Any, dtype: DType, shape: tuple[Dim, ...]) -> tuple[TensorType, ...]:
    return (TensorType(dtype, shape),)


def _static(shape: tuple[Dim, ...]) -> tuple[int, ...]:
    if not all(isinstance(dim, int) for dim in shape):
        raise error("W105", f"symbolic shape ({', '.join(map(str, shape))}) where sizes are "
                            "needed")
    return tuple(int(dim) for dim in shape if isinstance(dim, int))


def _full_ref(*, value: Any, dtype: DType, shape: tuple[Dim, ...]) -> Any:
    return np.full(_static(shape), value, dtype.numpy)


def _iota_infer(*, axis: int, dtype: DType, shape: tuple[Dim, ...]) -> tuple[TensorType, ...]:
    if not 0 <= axis < len(shape):
        raise error("W121", f"iota axis {axis} is out of range for rank {len(shape)}")
    return (TensorType(dtype, shape),)


def _iota_ref(*, axis: int, dtype: DType, shape: tuple[Dim, ...]) -> Any:
    sizes = _static(shape)
    row = np.arange(sizes[axis]).astype(dtype.numpy)
    inner = [-1 if at == axis else 1 for at in range(len(sizes))]
    return np.broadcast_to(row.reshape(inner), sizes)


def _dim_infer(*, size: Dim) -> tuple[TensorType, ...]:
    return (TensorType(I64, ()),)


def _unary(
    name: str, ref: Any, doc: str, grad: Any = None, low: float = -2.0, high: float = 2.0,
    types: str = "",
) -> OpDef:
    types = types or ("z -> z" if name in _OF_COMPLEX else "f -> f")
    return map_op(name, types, lambda s, x: s.apply(name, x), ref, doc=doc, grad=grad,
                  low=low, high=high)


def _binary(
    name: str, ref: Any, doc: str, grad: Any = None, types: str = "nn -> n",
    low: float = -2.0, high: float = 2.0, prim: str = "",
) -> OpDef:
    return map_op(name, types, lambda s, x, y: s.apply(prim or name, x, y), ref, doc=doc,
                  grad=grad, low=low, high=high)


_TRUE: tuple[Any, ...] = ((), np.True_)
_SHAPES = ((), (0,), (1,), (5,), (3, 5), (2, 0), (1000,))
_OF_COMPLEX = frozenset((
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "rint"))

ROWS: tuple[OpDef, ...] = (
    _binary("add", np.add, "x + y", lambda b, g, x, y, out: (g, g), types="aa -> a"),
    _binary("sub", np.subtract, "x - y", lambda b, g, x, y, out: (g, b.neg(g)), types="aa -> a"),
    _binary("mul", np.multiply, "x * y", lambda b, g, x, y, out: (b.mul(g, y), b.mul(g, x)),
            types="aa -> a"),
    _binary("div", np.divide, "x / y", lambda b, g, x, y, out: (
        b.div(g, y), b.neg(b.mul(g, b.div(out, y)))), types="zz -> z", low=0.5),
    _binary("floordiv", np.floor_divide, "x // y, rounded down; integers divided by 0 give 0",
            types="nn -> n", low=0.5, high=9.0),
    _binary("mod", np.remainder, "x % y with the sign of y; integers modulo 0 give 0",
            lambda b, g, x, y, out: (g, b.neg(b.mul(g, b.floor(b.div(x, y))))), low=1.1, high=9.0),
    _binary("pow", np.power, "x ** y", _pow_grad, types="zz -> z", low=0.2, high=3.0),
    _binary("atan2", np.arctan2, "angle of the point (y, x), operands in that order", _atan2_grad,
            types="ff -> f", low=0.3),
    _binary("maximum", np.maximum, "the larger, NaN if either is NaN", _maximum_grad,
            types="xx -> x", prim="max"),
    _binary("minimum", np.minimum, "the smaller, NaN if either is NaN", _minimum_grad,
            types="xx -> x", prim="min"),
    _unary("neg", np.negative, "-x", lambda b, g, x, y: (b.neg(g),), types="a -> a"),
    map_op("abs", _abs_infer, lambda s, x: s.abs(x), np.abs, doc="|x|, real for complex x too",
           grad=_abs_grad, dtypes=[dtype for dtype in NUMBERS if dtype != BOOL], samples=tuple(
               Sample((shape,), low=0.1) for shape in (*_SHAPES, (4, 33), (3000,)))),
    map_op("sign", "a -> a", _sign_body, np.sign, doc="-1, 0 or 1 by the sign of x"),
    _unary("exp", np.exp, "e ** x", lambda b, g, x, y: (b.mul(g, y),)),
    _unary("exp2", np.exp2, "2 ** x", lambda b, g, x, y: (b.mul(g, b.mul(y, _LN2)),)),
    _unary("expm1", np.expm1, "e ** x - 1, exact near 0",
           lambda b, g, x, y: (b.mul(g, b.add(y, 1.0)),)),
    _unary("log", np.log, "natural logarithm", lambda b, g, x, y: (b.div(g, x),), 0.1, 9.0),
    _unary("log2", np.log2, "logarithm to base 2",
           lambda b, g, x, y: (b.div(g, b.mul(x, _LN2)),), 0.1, 9.0),
    _unary("log10", np.log10, "logarithm to base 10",
           lambda b, g, x, y: (b.div(g, b.mul(x, _LN10)),), 0.1, 9.0),
    _unary("log1p", np.log1p, "log(1 + x), exact near 0",
           lambda b, g, x, y: (b.div(g, b.add(x, 1.0)),), -0.5, 9.0),
    _unary("tanh", np.tanh, "hyperbolic tangent",
           lambda b, g, x, y: (b.mul(g, b.sub(1.0, b.mul(y, y))),), -4.0, 4.0),
    _unary("sinh", np.sinh, "hyperbolic sine", lambda b, g, x, y: (b.mul(g, b.cosh(x)),)),
    _unary("cosh", np.cosh, "hyperbolic cosine", lambda b, g, x, y: (b.mul(g, b.sinh(x)),)),
    _unary("sigmoid", _sigmoid, "1 / (1 + exp(-x)), without overflow",
           lambda b, g, x, y: (b.mul(g, b.mul(y, b.sub(1.0, y))),), -6.0, 6.0),
    _unary("erf", _erf, "error function", lambda b, g, x, y: (
        b.mul(g, b.mul(b.exp(b.neg(b.mul(x, x))), _TWO_OVER_SQRT_PI)),)),
    _unary("sqrt", np.sqrt, "square root, correctly rounded",
           lambda b, g, x, y: (b.div(b.mul(g, 0.5), y),), 0.1, 9.0),
    _unary("sin", np.sin, "sine", lambda b, g, x, y: (b.mul(g, b.cos(x)),), -9.0, 9.0),
    _unary("cos", np.cos, "cosine", lambda b, g, x, y: (b.neg(b.mul(g, b.sin(x))),), -9.0, 9.0),
    _unary("tan", np.tan, "tangent",
           lambda b, g, x, y: (b.mul(g, b.add(b.mul(y, y), 1.0)),), -1.2, 1.2),
    _unary("asin", np.arcsin, "inverse sine",
           lambda b, g, x, y: (_asin_slope(b, g, x),), -0.9, 0.9),
    _unary("acos", np.arccos, "inverse cosine",
           lambda b, g, x, y: (b.neg(_asin_slope(b, g, x)),), -0.9, 0.9),
    _unary("atan", np.arctan, "inverse tangent",
           lambda b, g, x, y: (b.div(g, b.add(b.mul(x, x), 1.0)),)),
    _unary("asinh", np.arcsinh, "inverse hyperbolic sine",
           lambda b, g, x, y: (_asinh_slope(b, g, x),)),
    _unary("acosh", np.arccosh, "inverse hyperbolic cosine", lambda b, g, x, y: (
        b.div(b.div(g, b.sqrt(b.sub(x, 1.0))), b.sqrt(b.add(x, 1.0))),), 1.1, 9.0),
    _unary("atanh", np.arctanh, "inverse hyperbolic tangent", lambda b, g, x, y: (
        b.div(g, b.mul(b.sub(1.0, x), b.add(x, 1.0))),), -0.9, 0.9),
    _unary("cbrt", np.cbrt, "cube root", lambda b, g, x, y: (
        b.div(b.div(g, y), b.mul(y, 3.0)),), 0.1, 9.0),
    _binary("hypot", np.hypot, "sqrt(x * x + y * y), without overflow", _hypot_grad,
            types="ff -> f", low=0.3),
    _unary("floor", np.floor, "the largest whole number <= x"),
    _unary("ceil", np.ceil, "the smallest whole number >= x"),
    _unary("rint", np.rint, "the nearest whole number, ties to even"),
    _unary("trunc", np.trunc, "x without its fraction"),
    map_op("isnan", "z -> b", lambda s, x: s.ne(x, x), np.isnan, doc="x is not a number"),
    map_op("isfinite", "z -> b", lambda s, x: s.lt(s.abs(x), s.const(float("inf"), x.dtype)),
           np.isfinite, doc="x is neither infinite nor NaN"),
    map_op("isinf", "z -> b", lambda s, x: s.eq(s.abs(x), s.const(float("inf"), x.dtype)),
           np.isinf, doc="x is infinite"),
    _binary("lt", np.less, "x < y", types="xx -> b"),
    _binary("le", np.less_equal, "x <= y", types="xx -> b"),
    _binary("gt", np.greater, "x > y", types="xx -> b"),
    _binary("ge", np.greater_equal, "x >= y", types="xx -> b"),
    _binary("eq", np.equal, "x == y", types="xx -> b"),
    _binary("ne", np.not_equal, "x != y", types="xx -> b"),
    _binary("and_", np.bitwise_and, "x & y, of bits or truth values", types="ll -> l"),
    _binary("or_", np.bitwise_or, "x | y, of bits or truth values", types="ll -> l"),
    _binary("xor", np.bitwise_xor, "x ^ y, of bits or truth values", types="ll -> l"),
    _unary("not_", np.invert, "~x, of bits or truth values", types="l -> l"),
    _binary("shl", np.left_shift, "x << y, which is 0 for y < 0 and y >= bits", types="ii -> i",
            low=0, high=99),
    _binary("shr", np.right_shift, "x >> y, which is 0 or -1 by the sign of x for y < 0 and "
            "y >= bits", types="ii -> i", low=0, high=99),
    map_op("select", "bxx -> x", lambda s, c, x, y: s.select(c, x, y), np.where,
           doc="x where the condition holds, else y", moves=True,
           grad=lambda b, g, c, x, y, out: (None, b.select(c, g, 0.0), b.select(c, 0.0, g)),
           numpy=(np.where,)),
    map_op("masked", "bxx -> x", lambda s, c, x, y: s.select(c, x, y), np.where,
           doc="x where the mask holds, else y; what is left out has the derivative 0, whatever "
               "its slope", moves=True,
           grad=lambda b, g, c, x, y, out: (None, b.masked(c, g, 0.0), b.masked(c, 0.0, g)),
           taken=lambda b, c, x, y, out: (None, lambda: c, lambda: b.not_(c)), becomes="select"),
    map_op("cast", _cast_infer, lambda s, x, *, dtype: s.cast(x, dtype), _cast_ref,
           doc="x converted to dtype; floats to integers drop the fraction; NaN and what does not "
               "fit become what a C compiler on x86-64 makes of them (``ir/scalar/integer``)",
           grad=_cast_grad, attrs={"dtype": DType}, low=0.0, high=9.0, dtypes=NUMBERS,
           samples=tuple(Sample((shape,), {"dtype": as_dtype(to)}, low=0.0, high=9.0)
                         for to in ("f32", "f64", "i32", "i64", "u32", "u64", "bool", "c64", "c128")
                         for shape in _SHAPES)),
    map_op("narrow", _narrow_infer, lambda s, x, *, dtype: s.cast(x, dtype), _narrow_ref,
           doc="Python integers, held in i64, in the dtype they meet; a step in which one does not "
               "fit fails (W131), as in NumPy", attrs={"dtype": DType}, dtypes=(I64,),
           check=RunCheck(_narrow_holds, "W131", _narrow_message),
           samples=tuple(Sample((shape,), {"dtype": as_dtype(to)}, low=0, high=100)
                         for to in ("i32", "u32", "u64", "i64") for shape in _SHAPES)),
    map_op("unwrapped", _unwrapped_infer, lambda s, result, a, b, *, of: result, _unwrapped_ref,
           doc="the first operand, which is an op of the other two: Python integers do not wrap "
               "around, so a step in which it does not fit fails (W131)", attrs={"of": str},
           dtypes=(I64,), check=RunCheck(_unwrapped_holds, "W131", _unwrapped_message),
           samples=tuple(Sample((shape,) * 3, {"of": of}, low=0, high=9)
                         for of in ("add", "sub", "mul", "pow", "shl") for shape in _SHAPES)),
    map_op("ensure", "xn -> x", lambda s, x, spare, *, message: x, _ensure_ref,
           doc="the first operand; a step in which an element of the second is below 0 fails "
               "(W124) with a message", attrs={"message": str}, moves=True,
           grad=lambda b, g, x, spare, out, *, message: (g, None),
           check=RunCheck(_ensure_holds, "W124", _ensure_message),
           samples=tuple(Sample((shape,) * 2, {"message": "out of range"}, low=0, high=9)
                         for shape in _SHAPES)),
    map_op("awaiting", "xn -> x", lambda s, x, other: x, lambda x, other: np.asarray(x), moves=True,
           awaits=True,
           doc="the first operand, once the second is computed, whose checks may fail",
           grad=lambda b, g, x, other, out: (g, None)),
    map_op("asserted", "i -> i", lambda s, x, *, message: x, _asserted_ref,
           doc="the operand; a step in which an element of it is 0 fails (W125) with a message",
           attrs={"message": str}, moves=True, dtypes=(I64,),
           check=RunCheck(lambda s, x, *, message: s.ne(x, s.const(0, x.dtype)), "W125",
                          _ensure_message, safe=1),
           samples=tuple(Sample((shape,), {"message": "it does not hold"}, low=1, high=9)
                         for shape in _SHAPES)),
    map_op("checked", "xb -> x", lambda s, x, holds, *, code, message: x, _checked_ref,
           doc="the first operand; a step in which an element of the second is false fails with a "
               "code and a message", attrs={"code": str, "message": str}, moves=True,
           grad=lambda b, g, x, holds, out, *, code, message: (g, None),
           check=RunCheck(lambda s, x, holds, *, code, message: holds, "", _ensure_message, safe=1),
           samples=(Sample(_TRUE, {"code": "W132", "message": "out of range"}),)),
    map_op("full", _full_infer, lambda s, *, value, dtype, shape: s.const(value, dtype),
           _full_ref, constant=True, doc="a tensor whose elements are all value",
           attrs={"value": float, "dtype": DType, "shape": tuple},
           samples=tuple(Sample((), {"value": 3, "dtype": as_dtype(d), "shape": shape})
                         for d in ("f32", "i64") for shape in _SHAPES)),
    map_op("iota", _iota_infer, lambda s, *, index, axis, dtype, shape: s.index(
               index[axis], dtype), _iota_ref, indexed=True,
           doc="the index along one axis: 0, 1, 2, ...",
           attrs={"axis": int, "dtype": DType, "shape": tuple},
           samples=tuple(Sample((), {"axis": axis, "dtype": as_dtype(d), "shape": shape})
                         for d in ("f32", "i64", "i32")
                         for axis, shape in ((0, (7,)), (1, (3, 5)), (0, (3, 5)), (0, (0,))))),
    map_op("dim", _dim_infer, lambda s, *, size: s.index(size), lambda *, size: np.int64(size),
           doc="the size of a (symbolic) dim as an i64 scalar", attrs={"size": object},
           samples=(Sample((), {"size": 7}),)),
)
