"""The scalar primitives that kernel bodies are made of.

A *base* primitive is known to every emitter. A *composite* one (``exp``, ``tanh``, ``shl``) has an
expansion over base primitives in ``expand``; an emitter may have a better way of its own, so
a kernel's text keeps the composite's name. A *raw* one is a bare instruction that is not defined
for all operands; only expansions use it, so it has no name in kernels.

The NumPy twin is the meaning: it gives the kernel interpreter its value.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ..record import record
from ..types import BOOL, DTYPES, F64, U64, DType, as_dtype
from .integer import EXPANSIONS as INTEGERS
from .integer import from_float
from .number import Number, expansion
from .random import SAMPLERS
from .special import FUNCTIONS

Rule = Literal["same", "compare", "select", "convert", "sample"]


@record(frozen=True)
class Primitive:
    """One scalar operation; ``rule`` gives its result dtype, ``kinds`` the operand kinds."""

    name: str
    arity: int
    rule: Rule
    kinds: str
    numpy: Callable[..., Any]
    composite: bool = False
    outlined: bool = False  # a composite of so many that emitters make it a function of its own
    short: bool = False  # a composite of a few instructions, which emitters write where it is used

    @property
    def cost(self) -> int:
        """Roughly, in additions: what fusion and schedules weigh one against another by."""
        if self.outlined:
            return 60
        if self.composite and not self.short:
            return 12
        return 4 if self.name in ("div", "sqrt", "idiv", "irem", "fmod") else 1


def _trunc_divide(a: Any, b: Any) -> Any:
    """Integer division towards zero; by zero it gives 0, as NumPy's ``//`` does."""
    safe = np.where(b == 0, 1, b).astype(np.asarray(b).dtype)
    with np.errstate(over="ignore"):
        quotient = np.floor_divide(a, safe)
        inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
    return np.where(b == 0, 0, quotient + inexact).astype(np.asarray(a).dtype)


def _trunc_remainder(a: Any, b: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.where(b == 0, 0, a - _trunc_divide(a, b) * b).astype(np.asarray(a).dtype)


def _fma(a: Any, b: Any, c: Any) -> Any:
    """a*b + c rounded once: exact for float32 through float64 but for rare double rounding."""
    dtype = np.result_type(a, b, c)
    wide = np.longdouble if dtype == np.float64 else np.float64
    return (np.asarray(a, wide) * b + c).astype(dtype)


def _base(name: str, arity: int, rule: Rule, kinds: str, numpy: Callable[..., Any]) -> Primitive:
    return Primitive(name, arity, rule, kinds, numpy)


def _composite(name: str, arity: int, kinds: str, numpy: Callable[..., Any]) -> Primitive:
    return Primitive(name, arity, "same", kinds, numpy, composite=True)


def _short(name: str, numpy: Callable[..., Any]) -> Primitive:
    return Primitive(name, 2, "same", "iu", numpy, composite=True, short=True)


def _overflow(name: str) -> Primitive:
    """Whether what two integers give leaves their dtype."""
    def numpy(*arrays: Any) -> Any:
        return computed(INTEGERS[name])(*arrays)

    return Primitive(name, 2, "compare", "i", numpy, composite=True, short=True)


def _whole(name: str) -> Primitive:
    """A function of integers whose rounds depend on their values."""
    def numpy(*arrays: Any) -> Any:
        return computed(INTEGERS[name])(*arrays)

    return Primitive(name, 2, "same", "iu", numpy, composite=True, outlined=True)


def _sigmoid(x: Any) -> Any:
    # Split at zero so that exp never overflows.
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(np.asarray(x).dtype)


def _special(name: str) -> Primitive:
    """A function that NumPy does not have: its own expansion computes it."""
    function, arity = FUNCTIONS[name]
    return Primitive(name, arity, "same", "f", computed_by(function), composite=True, outlined=True)


def computed_by(function: Callable[..., Number]) -> Callable[..., Any]:
    """A formula as a function of arrays."""
    def numpy(*arrays: Any) -> Any:
        return computed(expansion(function))(*arrays)

    return numpy


def _sampler(name: str) -> Primitive:
    """A function of a random word and float64 parameters, to float64."""
    function, params = SAMPLERS[name]
    return Primitive(name, 1 + params, "sample", "uf", computed_by(function), composite=True,
                     outlined=True)


def _erf(x: Any) -> Any:
    # NumPy has no erf; the interpreter is an oracle, so an exact slow one will do.
    from math import erf as exact

    array = np.asarray(x)
    flat = [exact(float(v)) for v in array.ravel()]
    return np.array(flat, array.dtype).reshape(array.shape)


def _convert(x: Any, dtype: DType) -> Any:
    x = np.asarray(x)
    with np.errstate(invalid="ignore", over="ignore"):
        if as_dtype(x.dtype).is_float and dtype.is_int:
            return np.asarray(from_float(NumpyScalars(), x, dtype))
        return x.astype(dtype.numpy)


def _raw_int(x: Any, dtype: DType) -> Any:
    return np.asarray(x).astype(dtype.numpy)


def _bitcast(x: Any, dtype: DType) -> Any:
    return np.ascontiguousarray(x).view(dtype.numpy).reshape(np.shape(x))


PRIMITIVES: MappingProxyType[str, Primitive] = MappingProxyType({p.name: p for p in (
    _base("add", 2, "same", "iuf", np.add),
    _base("sub", 2, "same", "iuf", np.subtract),
    _base("mul", 2, "same", "iuf", np.multiply),
    _base("div", 2, "same", "f", np.divide),
    _short("idiv", _trunc_divide),
    _short("irem", _trunc_remainder),
    _whole("gcd"),
    _whole("ipow"),
    _base("fmod", 2, "same", "f", np.fmod),
    _base("neg", 1, "same", "iuf", np.negative),
    _base("abs", 1, "same", "iuf", np.abs),
    _base("min", 2, "same", "iufb", np.minimum),
    _base("max", 2, "same", "iufb", np.maximum),
    _base("sqrt", 1, "same", "f", np.sqrt),
    _base("fma", 3, "same", "f", _fma),
    _base("rint", 1, "same", "f", np.rint),
    _base("floor", 1, "same", "f", np.floor),
    _base("ceil", 1, "same", "f", np.ceil),
    _base("trunc", 1, "same", "f", np.trunc),
    _base("lt", 2, "compare", "iufb", np.less),
    _base("le", 2, "compare", "iufb", np.less_equal),
    _base("gt", 2, "compare", "iufb", np.greater),
    _base("ge", 2, "compare", "iufb", np.greater_equal),
    _base("eq", 2, "compare", "iufb", np.equal),
    _base("ne", 2, "compare", "iufb", np.not_equal),
    _base("and_", 2, "same", "iub", np.bitwise_and),
    _base("or_", 2, "same", "iub", np.bitwise_or),
    _base("xor", 2, "same", "iub", np.bitwise_xor),
    _base("not_", 1, "same", "iub", np.invert),
    _short("shl", np.left_shift),
    _short("shr", np.right_shift),
    *map(_overflow, ("add_overflows", "sub_overflows", "mul_overflows")),
    _base("select", 3, "select", "iufb", np.where),
    _base("cast", 1, "convert", "iufb", _convert),
    _base("bitcast", 1, "convert", "iuf", _bitcast),
    _composite("floordiv", 2, "iuf", np.floor_divide),
    _composite("mod", 2, "iuf", np.remainder),
    _composite("exp", 1, "f", np.exp),
    _composite("exp2", 1, "f", np.exp2),
    _composite("expm1", 1, "f", np.expm1),
    _composite("log", 1, "f", np.log),
    _composite("log2", 1, "f", np.log2),
    _composite("log10", 1, "f", np.log10),
    _composite("log1p", 1, "f", np.log1p),
    _composite("tanh", 1, "f", np.tanh),
    _composite("sinh", 1, "f", np.sinh),
    _composite("cosh", 1, "f", np.cosh),
    _composite("erf", 1, "f", _erf),
    _composite("sin", 1, "f", np.sin),
    _composite("cos", 1, "f", np.cos),
    _composite("tan", 1, "f", np.tan),
    _composite("asin", 1, "f", np.arcsin),
    _composite("acos", 1, "f", np.arccos),
    _composite("atan", 1, "f", np.arctan),
    _composite("atan2", 2, "f", np.arctan2),
    _composite("pow", 2, "f", np.power),
    _composite("sigmoid", 1, "f", _sigmoid),
    _composite("asinh", 1, "f", np.arcsinh),
    _composite("acosh", 1, "f", np.arccosh),
    _composite("atanh", 1, "f", np.arctanh),
    _composite("cbrt", 1, "f", np.cbrt),
    _composite("hypot", 2, "f", np.hypot),
    *map(_special, FUNCTIONS),
    *map(_sampler, SAMPLERS),
)})

# The bare instructions behind ``integer``, and where they are defined.
RAW: MappingProxyType[str, Primitive] = MappingProxyType({p.name: p for p in (
    _base("raw_shl", 2, "same", "iu", np.left_shift),      # by 0 to bits - 1
    _base("raw_shr", 2, "same", "iu", np.right_shift),
    _base("raw_div", 2, "same", "iu", _trunc_divide),      # not by 0, nor the least number by -1
    _base("raw_rem", 2, "same", "iu", _trunc_remainder),
    _base("raw_int", 1, "convert", "f", _raw_int),         # where the integer exists
)})


class NumpyScalars:
    """A scalar builder that computes at once, on arrays: expansions as NumPy functions."""

    def const(self, value: Any, dtype: DType) -> Any:
        return np.array(value, dtype.numpy)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return (PRIMITIVES.get(name) or RAW[name]).numpy


@record(frozen=True)
class Array:
    """An array under the name that expansions know its dtype by."""

    data: Any
    dtype: str


class ArrayScalars:
    """A scalar builder that computes at once, on arrays."""

    def const(self, value: Any, dtype: DType | str) -> Array:
        found = _dtype(dtype)
        return Array(np.array(value, found.numpy), found.name)

    def cast(self, x: Array, dtype: DType | str) -> Array:
        return self.apply("cast", x, to=_dtype(dtype))

    def bitcast(self, x: Array, dtype: DType | str) -> Array:
        return self.apply("bitcast", x, to=_dtype(dtype))

    def rarely(
        self, cond: Array, function: Callable[..., Array], args: tuple[Array, ...], usual: Array
    ) -> Array:
        return self.apply("select", cond, function(self, *args), usual) if np.any(
            cond.data) else usual

    def repeat(
        self, limit: int, going: Callable[..., Array], step: Callable[..., tuple[Array, ...]],
        state: tuple[Array, ...],
    ) -> tuple[Array, ...]:
        for _ in range(limit):
            cond = going(*state)
            if not np.any(cond.data):
                break
            state = tuple(self.apply("select", cond, new, old)
                          for new, old in zip(step(*state), state, strict=True))
        return state

    def apply(self, name: str, *args: Array, to: DType | None = None) -> Array:
        primitive: Primitive = PRIMITIVES.get(name) or RAW[name]
        data = [x.data for x in args]
        result = np.asarray(primitive.numpy(*data, to) if to is not None
                            else primitive.numpy(*data))
        return Array(result, as_dtype(result.dtype).name)

    def __getattr__(self, name: str) -> Callable[..., Array]:
        return lambda *args: self.apply(name, *args)


def _dtype(dtype: DType | str) -> DType:
    return DTYPES[dtype] if isinstance(dtype, str) else dtype


def computed(expand: Callable[..., Array]) -> Callable[..., Any]:
    """An expansion as a function of arrays."""
    def call(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            given = (Array(np.asarray(x), as_dtype(np.asarray(x).dtype).name) for x in arrays)
            return expand(ArrayScalars(), *given).data

    return call


def result_dtype(name: str, args: tuple[DType, ...], dtype: DType | None = None) -> DType:
    """The result dtype of a primitive; raises TypeError when the operands do not fit it."""
    primitive = PRIMITIVES.get(name) or RAW[name]
    if len(args) != primitive.arity:
        raise TypeError(f"{name} takes {primitive.arity} operands, got {len(args)}")
    if primitive.rule == "convert":
        if dtype is None:
            raise TypeError(f"{name} needs a dtype")
        return dtype
    if primitive.rule == "sample":
        if args != (U64, *[F64] * (primitive.arity - 1)):
            raise TypeError(f"{name} does not take ({', '.join(map(str, args))})")
        return F64
    data = args[1:] if primitive.rule == "select" else args
    if any(arg != data[0] for arg in data) or data[0].kind not in primitive.kinds:
        raise TypeError(f"{name} does not take ({', '.join(map(str, args))})")
    if data[0].is_half and primitive.rule != "select":
        raise TypeError(f"{name} is computed in f32, not in {data[0]}")
    if primitive.rule == "select" and args[0] != BOOL:
        raise TypeError("select needs a bool condition")
    return BOOL if primitive.rule == "compare" else data[0]
