"""The dtypes that NumPy computes ufuncs in, and comparisons of integers that have no common one.

    np.add of f32 and f64       f64, f64 -> f64, as NumPy resolves it
    u64 < i64, u8 < 300         of their values
"""

from __future__ import annotations

import functools
import operator as operators
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.convert import conversion
from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.types import F64, I64, DType
from ...tracing.context.active import current
from ...tracing.operand import Kind, broadcast, cast, constant, kind_of, spread, strong, type_of
from ...tracing.values.tracer import Tracer

# Python's operators, which are called as the ops are.
_PYTHON: Mapping[Any, Callable[[int, int], bool]] = MappingProxyType({
    np.equal: operators.eq, np.not_equal: operators.ne, np.less: operators.lt,
    np.less_equal: operators.le, np.greater: operators.gt, np.greater_equal: operators.ge})
COMPARISONS = frozenset(_PYTHON)
_MIRRORED: Mapping[Any, np.ufunc] = MappingProxyType({
    np.equal: np.equal, np.not_equal: np.not_equal, np.less: np.greater,
    np.less_equal: np.greater_equal, np.greater: np.less, np.greater_equal: np.less_equal})
Shape = tuple[Dim, ...]
_INT64 = np.iinfo(np.int64)


def _converted(ufunc: np.ufunc, dtypes: Sequence[DType]) -> str:
    """What to write for operands that a ufunc does not take: floats where it takes them, else
    integers; the complex one is converted, or one that is no integer."""
    floats = any(set(kinds.partition("->")[0]) == {"d"} for kinds in ufunc.types)
    order = sorted(dtypes, key=lambda dtype: "cfiub".index(dtype.kind))
    return conversion(np.empty(0, order[0].numpy), F64 if floats else I64)


def resolve(
    ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: np.dtype[Any] | None = None,
    casting: Any = "same_kind",
) -> tuple[np.dtype[Any], ...]:
    """The dtypes that NumPy computes a ufunc in: of the operands, then of the result.

    Raises DTypeError (W111) where NumPy raises TypeError.
    """
    try:
        return _resolved(ufunc, tuple(map(kind_of, inputs)), dtype, casting)
    except TypeError as problem:
        # NumPy's advice on booleans is worth passing on.
        hint = _converted(ufunc, [type_of(x).dtype for x in inputs])
        if "boolean" in str(problem):
            hint = "use ^ or np.logical_xor, or convert it: x.astype(np.int64)"
        raise error("W111", f"np.{ufunc.__name__} does not take operands of these dtypes",
                    types=[type_of(x) for x in inputs], hint=hint) from None


@functools.lru_cache(1024)
def _resolved(
    ufunc: np.ufunc, kinds: tuple[Kind, ...], dtype: np.dtype[Any] | None, casting: Any
) -> tuple[np.dtype[Any], ...]:
    # Of operands that the rule does not convert NumPy's own check ends the process: it is ours.
    options: Any = {} if casting == "same_kind" else {"casting": "unsafe"}
    if dtype is not None:
        options["signature"] = (*[None] * ufunc.nin, *[dtype] * ufunc.nout)
    results = (None,) * ufunc.nout
    found: tuple[np.dtype[Any], ...] = ufunc.resolve_dtypes((*kinds, *results), **options)
    if found[0].kind == "O":  # NumPy compares a Python int that fits no dtype by itself
        kinds = tuple(np.dtype(np.int64) if kind is int else kind for kind in kinds)
        found = ufunc.resolve_dtypes((*kinds, *results), **options)
    arrays = [pair for pair in zip(kinds, found, strict=False) if isinstance(pair[0], np.dtype)]
    if casting != "same_kind" and not all(np.can_cast(*pair, casting) for pair in arrays):
        raise TypeError(f"operands are not converted by the rule {casting!r}")
    return found


def exact(
    ufunc: np.ufunc, inputs: tuple[Any, ...], wanted: Sequence[np.dtype[Any]], shape: Shape
) -> Tracer | None:
    """A comparison of integers that have no common dtype, as NumPy has it: of their values.

    Such are i64 and u64, and a traced Python integer beside any dtype. None for others.
    """
    python = [isinstance(x, Tracer) and kind_of(x) is int for x in inputs]
    if wanted[0] == wanted[1] and (python[0] == python[1] or wanted[0] == _INT64.dtype):
        return None
    if python[0] if any(python) else wanted[0].kind == "i":
        return _compare(_MIRRORED[ufunc], inputs[1], inputs[0], wanted[1], shape)
    return _compare(ufunc, inputs[0], inputs[1], wanted[0], shape)


def _compare(ufunc: np.ufunc, x: Any, y: Any, kind: np.dtype[Any], shape: Shape) -> Tracer:
    """``x`` of dtype ``kind`` compared with ``y``, an i64 that kind may not hold.

    Where it does not, the nearest number of kind stands for y, and all x answer alike.
    """
    limits, nearest = np.iinfo(kind), cast(strong(y), _INT64.dtype)
    outside = []  # where y is beyond the limits, and whether the comparison then holds
    if limits.min > _INT64.min:
        low = constant(limits.min, _INT64.dtype, nearest.type.shape)
        outside.append((nearest < low, ufunc in (np.greater, np.greater_equal, np.not_equal)))
        nearest = current().emit("maximum", nearest, low)
    if limits.max < _INT64.max:
        high = constant(limits.max, _INT64.dtype, nearest.type.shape)
        outside.append((nearest > high, ufunc in (np.less, np.less_equal, np.not_equal)))
        nearest = current().emit("minimum", nearest, high)
    operands = spread(x, kind, shape), broadcast(cast(nearest, kind), shape)
    result: Any = current().emit(_PYTHON[ufunc].__name__, *operands)
    for flag, holds in outside:
        everywhere: Any = broadcast(flag, shape)
        result = result | everywhere if holds else result & ~everywhere
    return result  # type: ignore[no-any-return]


def beyond(ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: np.dtype[Any]) -> bool | None:
    """The answer of a comparison with a Python int that the dtype cannot hold, else None."""
    limits = np.iinfo(dtype)
    for at, x in enumerate(inputs):
        if isinstance(x, int) and not isinstance(x, bool) and not limits.min <= x <= limits.max:
            other = int(limits.max if x > limits.max else limits.min)
            pair = (x, other) if at == 0 else (other, x)
            return bool(_PYTHON[ufunc](*pair))
    return None

