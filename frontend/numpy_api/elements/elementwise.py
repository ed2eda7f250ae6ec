"""NumPy's ufuncs on traced values.

Most ufuncs are op rows, found by ``OpDef.numpy``; the others are a line or two of NumPy below,
which traces again. NumPy resolves the dtypes, so bodies get operands of resolved dtype and common
shape. A Python operator on Python numbers (traced ones too) follows Python: its result stays weak.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.proof import differ
from ....ir.ops.op import OpDef
from ....ir.ops.table import OPS
from ....ir.types import as_dtype, keeps_kind, number_kind
from ...tracing.arrays.buffer import Buffer
from ...tracing.arrays.selection import Selection
from ...tracing.context.active import current
from ...tracing.context.distance import bounds_of, is_computed
from ...tracing.operand import (
    array_dtype,
    cast,
    common_shape,
    constant,
    is_number,
    is_weak,
    kind_of,
    masked,
    reshape,
    result_dtype,
    shape_of,
    spread,
    strong,
    to_tracer,
    type_of,
)
from ...tracing.values.tracer import Tracer
from ..algebra.contract import GUFUNCS, along
from ..registry import meant
from . import bits, python_errors, special
from .halves import PAIRWISE, halved
from .powers import SHORT, power
from .resolving import COMPARISONS, beyond, exact, resolve

ROWS: Mapping[Any, OpDef] = MappingProxyType({
    function: row for row in OPS.values() for function in row.numpy
    if isinstance(function, np.ufunc)})

_INT64, _F32 = np.iinfo(np.int64), np.dtype(np.float32)
_LOGIC = frozenset((np.bitwise_and, np.bitwise_or, np.bitwise_xor))


def fresh(x: Tracer) -> Tracer:
    """Another tracer of the same value: NumPy would have made a new array here."""
    made = Tracer(current(), current().value_of(x))
    made.ordered = made.dense = x.ordered
    return made


def answer(holds: Any) -> Any:
    """Whether all hold, as a bool of Python."""
    result: Any = np.all(holds)
    result.weak = True
    return result


def _positive(x: Any) -> Any:
    return fresh(x)


def _logical(op: str) -> Callable[..., Any]:
    def body(*operands: Tracer) -> Tracer:
        return current().emit(op, *(cast(x, np.dtype(bool)) for x in operands))

    return body


def _conjugate(x: Any) -> Any:
    return current().emit("conj", x) if x.dtype.kind == "c" else fresh(x)


def _reciprocal(x: Any) -> Any:
    if number_kind(x.dtype) == "f":
        return 1 / x
    if x.dtype.kind == "c":  # as NumPy has it: signs of zeros are not those of 1 / x
        re, im = x.real, x.imag
        wide = np.abs(im) <= np.abs(re)
        ratio: Any = np.where(wide, im / re, re / im)
        below = np.where(wide, re + im * ratio, re * ratio + im)
        return current().emit("complex", np.where(wide, 1, ratio) / below,
                              -np.where(wide, ratio, 1) / below)
    return cast(1.0 / cast(x, np.dtype(np.float64)), x.dtype)


def _heaviside(x: Any, y: Any) -> Any:
    return np.where(x == 0, y, np.where(x > 0, 1, np.where(x < 0, 0, x)))


def _sign(x: Any) -> Any:
    found = _emit_row(np.sign, ROWS[np.sign], [x])
    # bfloat16's zeros keep their signs, unlike those of NumPy's own floats.
    return np.where(np.equal(x, 0), x, found) if x.dtype.kind == "V" else found


BODIES: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    np.positive: _positive, np.sign: _sign, np.conjugate: _conjugate,
    np.logical_and: _logical("and_"), np.logical_or: _logical("or_"),
    np.logical_xor: _logical("xor"), np.logical_not: _logical("not_"),
    np.square: lambda x: x * x, np.reciprocal: _reciprocal, np.fabs: abs,
    np.float_power: lambda x, y: np.power(x, y),
    np.fmax: lambda x, y: np.where(np.isnan(y), x, np.where(np.isnan(x), y, np.maximum(x, y))),
    np.fmin: lambda x, y: np.where(np.isnan(y), x, np.where(np.isnan(x), y, np.minimum(x, y))),
    np.heaviside: _heaviside, np.fmod: bits.fmod, np.lcm: bits.lcm, np.ldexp: bits.ldexp,
    np.nextafter: bits.nextafter, np.spacing: bits.spacing,
    **({np.bitwise_count: bits.bitwise_count} if hasattr(np, "bitwise_count") else {}),
    np.deg2rad: lambda x: x * (np.pi / 180), np.radians: lambda x: x * (np.pi / 180),
    np.rad2deg: lambda x: x * (180 / np.pi), np.degrees: lambda x: x * (180 / np.pi),
})

# Those whose bodies compute nothing, or with the bits of the dtype itself.
_ONE = frozenset((np.positive, np.sign, np.conjugate, np.nextafter, np.spacing))

# Those that give two results.
PAIRS: Mapping[Any, Callable[..., tuple[Any, Any]]] = MappingProxyType({
    np.modf: bits.modf, np.frexp: bits.frexp})

# Operators whose results Python's integers hold and 64 bits may not: an op of two numbers each.
_GROWING: Mapping[Any, tuple[str, Callable[..., tuple[Any, Any]]]] = MappingProxyType({
    np.add: ("add", lambda x, y: (x, y)), np.subtract: ("sub", lambda x, y: (x, y)),
    np.multiply: ("mul", lambda x, y: (x, y)), np.power: ("pow", lambda x, y: (x, y)),
    np.left_shift: ("shl", lambda x, y: (x, y)), np.negative: ("sub", lambda x: (0, x)),
    np.absolute: ("mul", lambda x: (x, np.sign(x))),
})

# What bool and integer operands mean to ops whose rows take floats or numbers only.
_BOOL_ROWS: Mapping[Any, str] = MappingProxyType({np.add: "or_", np.multiply: "and_"})
_WHOLE = frozenset((np.floor, np.ceil, np.trunc, np.rint))  # the identity on integers
_TESTS: Mapping[Any, bool] = MappingProxyType({np.isnan: False, np.isinf: False, np.isfinite: True})


def operator(ufunc: np.ufunc, operands: tuple[Any, ...]) -> Any:
    """A Python operator: as NumPy has it, but numbers with numbers stay Python numbers."""
    if ufunc is np.power and not is_weak(operands[0]):
        short = SHORT.get((type(operands[1]), operands[1])) if type(
            operands[1]) in (int, float) else None
        # As NumPy does: the square of bools is int8, and complex zeros have signs.
        if short is np.square or (short and number_kind(strong(operands[0]).dtype) == "c"):
            ufunc, operands = short, operands[:1]
    if not all(is_weak(x) for x in operands):
        return apply(ufunc, operands)
    if ufunc not in COMPARISONS and (ufunc not in _LOGIC or not all(map(_is_bool, operands))):
        operands = tuple(_as_int(x) if _is_bool(x) else x for x in operands)
    if ufunc in _BY_EXPONENT and kind_of(operands[0]) is int and current().request.loops.used:
        _fits_in_rounds(ufunc, *operands)
    operands = python_errors.before(ufunc, operands)
    if ufunc is np.power and isinstance(operands[1], int):
        if operands[1] < 0:
            operands = (_as_float(operands[0]), operands[1])
        elif operands[1] > 1 and kind_of(operands[0]) is int:
            return _whole_power(*operands)
    result = python_errors.after(ufunc, operands, apply(ufunc, operands))
    if ufunc in _GROWING and result.dtype == _INT64.dtype:
        op, numbers = _GROWING[ufunc]
        result = current().emit("unwrapped", result, *(
            to_tracer(x, _INT64.dtype) for x in numbers(*operands)), of=op)
    result.weak = True
    return result


_BY_EXPONENT: Mapping[np.ufunc, Callable[[int, int], int]] = MappingProxyType({
    np.power: lambda x, n: x ** n, np.left_shift: lambda x, n: x << n})


def _fits_in_rounds(ufunc: np.ufunc, x: Any, exponent: Any) -> None:
    """Raises TracerError (W131) where an integer to a power that the number of a round says may be
    none of 64 bits, or a fraction: such rounds, of which the number is known, are rather traced
    one by one."""
    ctx = current()
    power = bounds_of(ctx, exponent) if is_computed(exponent) else None
    if power is None or not (isinstance(power.least, int) and isinstance(power.most, int)):
        return
    base = bounds_of(ctx, x)
    largest = max(abs(base.least), abs(base.most)) if base is not None and isinstance(
        base.least, int) and isinstance(base.most, int) else 1 << 63
    if power.least < 0 or (largest > 1 and power.most > 64) or (
            power.most > 0 and _BY_EXPONENT[ufunc](largest, min(power.most, 64)) >= 1 << 63):
        raise error("W131", f"an integer to a power from {power.least} to {power.most} may be out "
                            "of bounds for int64, in which traced Python integers are held",
                    hint="start from a float")


def _whole_power(x: Any, power: int) -> Any:
    """A traced integer to a power from 2 on, by products: none of them is larger than the last."""
    found = x
    for digit in f"{power:b}"[1:]:
        found = operator(np.multiply, (found, found))
        if digit == "1":
            found = operator(np.multiply, (found, x))
    return found


def _is_bool(x: Any) -> bool:
    return isinstance(x, bool) or (isinstance(x, Tracer) and x.dtype == np.dtype(bool))


def _as_float(x: Any) -> Any:
    """A Python number, of which an integer has powers that are none."""
    return strong(x).astype(np.float64) if kind_of(x) is int else x


def _as_int(x: Any) -> Any:
    if isinstance(x, bool):
        return int(x)
    result = cast(x, np.dtype(np.int64))
    result.weak = True
    return result


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``ufunc(*inputs)`` or one of its methods. Raises UnsupportedError (W113) for what is not
    supported, TracerError (W203) when the result should go into a plain array."""
    name = f"np.{ufunc.__name__}"
    options = {key: value for key, value in options.items() if key not in ("subok", "order")}
    casting = options.pop("casting", "same_kind")
    out = [array for array in options.pop("out", None) or () if array is not None]
    if out:
        return _into(name, out, lambda: call(ufunc, method, inputs, {
            **options, "casting": casting}), options.pop("where", True), casting)
    dtype = options.pop("dtype", None)
    options = {key: value for key, value in options.items()
               if value is not np._NoValue and not (key == "where" and value is True)}
    if method == "__call__" and not options:
        return apply(ufunc, inputs, None if dtype is None else np.dtype(dtype), casting)
    if method == "__call__" and ufunc.signature and options.keys() <= {"axis", "axes", "keepdims"}:
        return along(ufunc, inputs, dtype, **options)
    if method == "outer" and len(inputs) == 2:  # of arrays: a Python number is one of 64 bits
        left, right = map(strong, inputs)
        left = reshape(left, left.type.shape + (1,) * right.ndim)
        return call(ufunc, "__call__", (left, right), {
            "dtype": dtype, "casting": casting, **options})
    if method == "reduce":
        function = REDUCTIONS.get(ufunc)
        if function is not None:
            axis = options.pop("axis", inputs[1] if len(inputs) > 1 else 0)
            if dtype is not None and ufunc in (np.add, np.multiply):
                options["dtype"] = dtype
            if ufunc not in (np.logical_and, np.logical_or):
                return function(inputs[0], axis=axis, **options)
            initial = options.pop("initial", ufunc.identity)
            found = function(inputs[0], axis=axis, **options)
            return found if initial is ufunc.identity else ufunc(found, initial)
        if ufunc in PAIRWISE and options.keys() <= {"axis", "keepdims", "initial", "where"}:
            axis = options.pop("axis", inputs[1] if len(inputs) > 1 else 0)
            result = resolve(ufunc, (inputs[0], inputs[0]))[-1]
            return halved(ufunc, inputs[0], result, axis, **options)
    if method == "reduceat" and (
            ufunc in (np.add, np.maximum, np.minimum) or not isinstance(inputs[1], Tracer)):
        axis = options.pop("axis", inputs[2] if len(inputs) > 2 else 0)
        return meant("ufunc.reduceat")(ufunc, inputs[0], inputs[1], axis, dtype)
    if method == "at" and ufunc in (np.add, np.subtract) and isinstance(
            inputs[0], (Tracer, Buffer)) and _adds_at_once(*inputs):
        _add_at(ufunc, *inputs)
        return None
    if method == "at":
        return meant("ufunc.at")(ufunc, *inputs)
    what = f"option {', '.join(options)}= of {name}" if method == "__call__" else f"{name}.{method}"
    raise error("W113", f"{what} is not supported",
                hint="choose with np.where, or give out=: without it, what is left out has no value"
                     if "where" in options else "use other NumPy functions")


def converted(ufunc: np.ufunc, array: Any, dtype: Any) -> Any:
    """What ``ufunc.reduce(array, dtype=dtype)`` and its kin compute with: the array in that dtype.

    Raises DTypeError (W111) where the ufunc does not give it of two operands of it."""
    wanted = np.dtype(dtype)
    array = array if isinstance(array, Selection) else strong(array)
    if resolve(ufunc, (np.empty(0, wanted),) * 2)[-1] != wanted:
        raise error("W111", f"np.{ufunc.__name__} of {wanted} is not {wanted}",
                    types=[type_of(array)], hint="leave dtype= out, or give another one")
    return array.astype(wanted)


def _adds_at_once(array: Any, index: Any, value: Any) -> bool:
    """Whether values may be added up before the sum is added to an element. Others are added one
    by one: NumPy rounds each sum to the dtype of the array, which loses what follows the point."""
    if getattr(index, "dtype", None) == np.dtype(bool) and not shape_of(value):
        return False  # each once: rounded when it is added
    if type(value) is int and number_kind(array.dtype) == "u" and value >= 0:
        return True
    return keeps_kind(array_dtype(array, value), array.dtype) or (
        number_kind(array_dtype(array, value)) in "iu" and array.dtype.kind in "iu")


def _add_at(ufunc: np.ufunc, array: Any, index: Any, value: Any) -> None:
    array = array.traced() if isinstance(array, Buffer) else array
    wide = array.dtype
    if number_kind(wide) in "iu":  # what is lost by wrapping first is lost after, too
        value = value if isinstance(value, Selection) else cast(strong(value), wide)
    else:  # NumPy adds in the dtype of both
        wide = result_dtype(array, np.zeros((), value.dtype) if isinstance(
            value, Selection) else value) if number_kind(wide) in "fc" else wide
        value = spread(value, wide, shape_of(value)) if ufunc is np.subtract else value
    value = np.negative(value) if ufunc is np.subtract else value
    added = current().api.update(cast(array, wide), index, value, "add")
    array.overwrite(cast(added, array.dtype))


def _into(
    name: str, out: list[Any], compute: Callable[[], Any], where: Any = True,
    casting: Any = "same_kind",
) -> Any:
    """Put what ``compute`` gives into the arrays of ``out=``, where the mask holds.

    Raises TracerError (W203) for plain arrays, and ShapeError (W101) or DTypeError (W111) for what
    does not fit."""
    results = compute()
    parts = results if isinstance(results, tuple) else (results,)
    for array, part in zip(out, parts, strict=True):
        store(name, array, part, where, casting)
    return tuple(out) if isinstance(results, tuple) else out[0]


def writable(name: str, array: Any, part: Any) -> Any:
    """The tracer of an array to write ``part`` into. Raises TracerError (W203) for a plain one."""
    array = array.traced() if isinstance(array, Buffer) else array
    if not isinstance(array, Tracer):
        raise error("W203", f"{name} cannot write a traced value into a plain array",
                    types=[type_of(part)],
                    hint="write y = y + x instead of y += x or out=y, or make y from a traced "
                         "array: y = np.zeros_like(x)")
    return array


def store(
    name: str, array: Any, part: Any, where: Any = True, casting: Any = "same_kind",
    whole: bool = False,
) -> Any:
    """Write ``part`` into the traced ``array``, as ``out=`` and np.copyto do; with ``whole``, where
    it has that shape without repeating elements. Raises ShapeError (W101) and DTypeError (W111)."""
    array = writable(name, array, part)
    kind = kind_of(part)
    kind = kind if isinstance(kind, np.dtype) else result_dtype(part, array)
    if not (keeps_kind(kind, array.dtype) if casting == "same_kind" else np.can_cast(
            kind, array.dtype, casting)):
        raise error("W111", f"the result of {name} does not fit into {array.dtype}",
                    types=[type_of(part), array.type], hint="convert it: v.astype(x.dtype)")
    if type(part) is int:
        part = constant(part, array.dtype)
    if where is not True:
        part = masked(where, part, array)
    if shape_of(part) != array.type.shape and (
            (whole and len(shape_of(part)) != array.ndim)
            or common_shape((part, array)) != array.type.shape
            or (whole and any(map(differ, shape_of(part), array.type.shape)))):
        raise error("W101", f"the result of {name} does not fit into out=",
                    types=[type_of(part), array.type], hint="leave out= away")
    return array.overwrite(current().api.update(array, ..., part, "set"))


REDUCTIONS: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
    np.logical_and: np.all, np.logical_or: np.any})


def name_of(ufunc: np.ufunc) -> str:
    """The name of a ufunc, which may be that of another library."""
    name = ufunc.__name__
    return f"np.{name}" if getattr(np, name, None) is ufunc else name


def apply(
    ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: np.dtype[Any] | None = None,
    casting: Any = "same_kind",
) -> Any:
    """``ufunc(*inputs, dtype=dtype, casting=casting)``."""
    if ufunc is np.divmod:
        return tuple(apply(part, inputs, dtype, casting) for part in (
            np.floor_divide, np.remainder))
    pair = PAIRS.get(ufunc) or special.PAIRS.get(ufunc.__name__)
    if pair is not None:
        kind, *kinds = resolve(ufunc, inputs, dtype, casting)
        parts = pair(to_tracer(_single(inputs[0], kind), _F32 if as_dtype(kind).is_half else kind))
        return tuple(cast(part, wanted) for part, wanted in zip(parts, kinds, strict=True))
    row, body = ROWS.get(ufunc), BODIES.get(ufunc)
    if row is None and body is None:
        body = special.UFUNCS.get(ufunc.__name__)
    if row is None and body is None and ufunc not in GUFUNCS:
        raise error("W113", f"{name_of(ufunc)} is not supported yet in traced code",
                    types=[type_of(x) for x in inputs],
                    hint="write it with other NumPy functions, or call it outside the function")
    *wanted, result = resolve(ufunc, inputs, dtype, casting)
    if ufunc in GUFUNCS:
        return GUFUNCS[ufunc](inputs, wanted, result)
    several = ufunc is np.power or (body is not None and ufunc not in _ONE)
    if several and any(as_dtype(kind).is_half for kind in wanted):
        return cast(apply(ufunc, tuple(map(_single, inputs, wanted))), result)
    if ufunc is np.power and is_number(inputs[1]):
        found = power(inputs[0], inputs[1], result, common_shape(inputs))
        if found is not None:
            return fresh(found)
    shape = common_shape(inputs)
    if ufunc in COMPARISONS and wanted[0].kind in "iu":
        answer = beyond(ufunc, inputs, wanted[0])
        if answer is not None:
            return constant(answer, np.dtype(bool), shape)
        compared = exact(ufunc, inputs, wanted, shape)
        if compared is not None:
            return compared
    operands = [spread(x, kind, shape) for x, kind in zip(inputs, wanted, strict=True)]
    made: Tracer = body(*operands) if body is not None else _emit_row(ufunc, row, operands)
    return made if made.dtype == result else cast(made, result)


def _single(x: Any, kind: np.dtype[Any]) -> Any:
    """An operand in float32 if it is of a half type: what is several ops here is one in NumPy,
    and rounded once."""
    if not as_dtype(kind).is_half:
        return x
    return np.float32(np.asarray(x, kind)) if is_number(x) else cast(to_tracer(x, kind), _F32)


def _emit_row(ufunc: np.ufunc, row: OpDef | None, operands: list[Tracer]) -> Tracer:
    assert row is not None
    kind = operands[0].dtype.kind
    if kind == "b" and ufunc in _BOOL_ROWS:
        return current().emit(_BOOL_ROWS[ufunc], *operands)
    if kind in "iub":
        if ufunc in _WHOLE or (kind == "b" and ufunc is np.absolute):
            return fresh(operands[0])
        if ufunc in _TESTS:
            return constant(_TESTS[ufunc], np.dtype(bool), operands[0].type.shape)
        if ufunc is np.power:
            return bits.power(*operands)  # type: ignore[no-any-return]
    if len({x.dtype for x in operands}) > 1:
        raise error("W111", f"np.{ufunc.__name__} does not take these dtypes together",
                    types=[x.type for x in operands], hint="convert one with .astype")
    return current().emit(row.name, *operands)
