"""From whatever a user combines with a traced value to a tracer, with NumPy 2's promotion.

Python numbers (and tracers that stand for them) are *weak*: they take the dtype of the arrays they
meet. NumPy itself decides, through ``np.result_type`` and ``ufunc.resolve_dtypes``, both of which
know weak numbers; so the rules here cannot differ from NumPy's.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.indices.index import Dim, Expr, divide, product
from ...ir.indices.proof import differ, nonnegative, smaller
from ...ir.loc import Loc
from ...ir.types import BOOL, I64, DType, NoDTypeError, TensorType, as_dtype
from ..face.source import user_loc
from .arrays.selection import Selection
from .arrays.variable import Variable
from .context.active import current
from .extents import size_of
from .values.numbers import numbers_behind
from .values.tracer import SymbolicDim, Tracer, wrap_dim

NO_OPERAND = "None is computed with"  # of a trace that finds out that a name may be None

Kind = np.dtype[Any] | type  # a dtype, or int, float, complex for a weak number

_BOOL = np.dtype(bool)
_SAMPLES: tuple[tuple[type, Any], ...] = ((int, 0), (float, 0.0), (complex, 0j))


def kind_of(x: Any) -> Kind:
    """The dtype of an operand, or ``int`` or ``float`` where it promotes as a Python number."""
    if isinstance(x, Tracer):
        dtype = x.dtype
        if not x.weak or dtype.kind == "b":
            return dtype
        return {"i": int, "f": float}.get(dtype.kind, complex)
    if isinstance(x, (np.generic, np.ndarray, Variable)):
        if x.dtype.kind in "OSUmM":
            raise error("W112", f"an operand of dtype {x.dtype} cannot be traced",
                        hint="convert it to a real number dtype first")
        return x.dtype
    if isinstance(x, bool):
        return _BOOL
    for kind, _ in _SAMPLES:
        if isinstance(x, kind):
            return kind
    return to_tracer(x).dtype


def is_weak(x: Any) -> bool:
    """True for Python numbers and for tracers that stand for one."""
    if isinstance(x, Tracer):
        return x.weak
    return isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic)


def result_dtype(*operands: Any) -> np.dtype[Any]:
    """``np.result_type`` of operands, weak numbers included."""
    samples = dict(_SAMPLES)
    kinds = [kind_of(x) for x in operands]
    return _common([samples[kind] if isinstance(kind, type) else kind for kind in kinds])


def array_dtype(*operands: Any) -> np.dtype[Any]:
    """The common dtype where NumPy makes arrays of its operands first, so that none is weak."""
    return _common([np.dtype(kind_of(x)) for x in operands])


def _common(kinds: Sequence[Any]) -> np.dtype[Any]:
    try:
        return np.result_type(*kinds)
    except TypeError:  # bfloat16 and float16, or wide integers
        names = ", ".join(dict.fromkeys(str(kind) for kind in kinds if isinstance(kind, np.dtype)))
        raise error("W111", f"{names} have no common dtype",
                    hint="convert one with .astype") from None


def shape_of(x: Any) -> tuple[Dim, ...]:
    """The shape of an operand, with plain index expressions for symbolic dims."""
    if type(x) is Tracer or (  # which would be asked for its class
            isinstance(x, Tracer) and not isinstance(x, SymbolicDim)):
        return x.type.shape
    if isinstance(x, SymbolicDim) or is_number(x):
        return ()
    if isinstance(x, (np.ndarray, Variable)):
        return x.shape
    return to_tracer(x).type.shape


def is_number(x: Any) -> bool:
    """True for Python and NumPy scalars, which become constants of the graph."""
    # A tracer would be asked for its class once for each of these.
    return not isinstance(x, Tracer) and isinstance(x, (int, float, complex, np.generic))


def fits_int64(x: int) -> bool:
    """True for a Python integer that an i64, which stands for traced ones, can hold."""
    return -(1 << 63) <= x < 1 << 63


def type_of(x: Any) -> TensorType:
    """The type an operand is shown with in errors."""
    return TensorType(as_dtype(result_dtype(x)), shape_of(x))


def to_tracer(x: Any, dtype: np.dtype[Any] | None = None) -> Tracer:
    """Any operand as a tracer of the current trace, converted to ``dtype`` if one is given.

    Raises DTypeError (W112) for what is neither number, array, variable nor a list of them.
    """
    ctx = current()
    if isinstance(x, Tracer):
        tracer = x
    elif isinstance(x, Variable):
        tracer = ctx.read(x)
    elif isinstance(x, np.ndarray):
        tracer = ctx.capture(x)
    elif is_number(x):
        return constant(x, dtype)
    elif isinstance(x, Expr):
        tracer = wrap_dim(ctx, x)
    elif isinstance(x, (list, tuple)):
        tracer = _sequence(x, dtype)
    elif isinstance(x, Selection):
        tracer = x.settled()
    else:
        problem = error("W112", f"{type(x).__name__} is no operand of a traced computation",
                        hint="pass NumPy arrays or numbers")
        if x is None and ctx.parent is not None:
            return _in_the_place_of_none(problem)
        raise problem
    return tracer if dtype is None else cast(tracer, dtype)


def _in_the_place_of_none(problem: Error) -> Tracer:
    """What a region computes with where a name is None of which it is not known yet that it has a
    value on other ways: it is traced again. Raises the problem where names may not be None; so does
    the trace if this is there in the end."""
    ctx = current()
    ctx.asked.optional = True
    if not ctx.request.optional:
        raise problem
    ctx.asked.nothing = ctx.asked.nothing or problem
    made = ctx.emit("ensure", constant(0), constant(-1, np.dtype(np.int64)), message=NO_OPERAND)
    return Tracer(made.ctx, made.value, weak=True)


def constant(x: Any, dtype: np.dtype[Any] | None = None, shape: tuple[Dim, ...] = ()) -> Tracer:
    """A Python or NumPy number as a constant; a weak one if it is Python's and has no dtype.

    Raises RangeError (W131) for a Python integer that the dtype cannot hold.
    """
    weak = dtype is None and is_weak(x)
    try:
        array = np.asarray(x, dtype)
        found = as_dtype(array.dtype)
    except OverflowError:
        raise too_large(x, dtype) from None
    except NoDTypeError:
        raise
    except TypeError:
        if isinstance(x, complex) and dtype is not None:
            raise _not_real(as_dtype(dtype)) from None
        raise error("W112", f"{x!r} cannot be traced") from None
    made = current().full(array.item(), found, shape)
    made.weak = weak
    return made


def too_large(number: Any, dtype: Any) -> Error:
    """The error of a Python integer that a dtype cannot hold."""
    return error("W131", f"Python integer {number} out of bounds for {dtype}",
                 hint="use a number that fits, or give the array a wider dtype: "
                      f"x.astype(np.{'int64' if fits_int64(number) else 'float64'})")


def stored(number: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A number as NumPy stores it into an array of that dtype, where integers wrap around.

    Raises RangeError (W131) for a Python integer beyond all of NumPy's.
    """
    try:
        return np.asarray(number).astype(dtype)
    except OverflowError:
        raise too_large(number, dtype) from None


def _sequence(items: Sequence[Any], dtype: np.dtype[Any] | None) -> Tracer:
    """A list as an array, which may hold tracers; each item is converted for itself."""
    if not contains_tracer(items):
        return current().capture(np.asarray(items, dtype))
    parts = [to_tracer(item, dtype) for item in items]
    dtype = array_dtype(*parts)
    shape = broadcast_shape(*(part.type.shape for part in parts))
    if any(part.type.shape != shape for part in parts):
        raise error("W102", "the items of a list have different shapes",
                    types=[part.type for part in parts])
    rows = [reshape(cast(part, dtype), (1, *shape)) for part in parts]
    return current().emit("concatenate", *rows, axis=0)


def contains_tracer(x: Any) -> bool:
    """True if a nest of lists and tuples holds a traced value or a variable."""
    if isinstance(x, (list, tuple)):
        return any(contains_tracer(item) for item in x)
    return isinstance(x, (Tracer, Variable))


def cast(x: Tracer, dtype: np.dtype[Any] | DType) -> Tracer:
    """x with that dtype, and no longer weak.

    A traced Python integer does not wrap around: where it does not fit, the step fails (W131). An
    imaginary part that is lost is a ComplexWarning, as in NumPy; of a Python number, which NumPy
    does not convert, it is an error. Raises DTypeError (W111).
    """
    wanted = dtype if isinstance(dtype, DType) else as_dtype(dtype)
    if x.type.dtype == wanted:
        return Tracer(current(), current().value_of(x)) if x.weak else x
    if x.type.dtype.is_complex and not (wanted.is_complex or wanted == BOOL):
        if x.weak:
            raise _not_real(wanted)
        loc = next(iter(user_loc()), Loc("<unknown>", 0))
        warnings.warn_explicit("Casting complex values to real discards the imaginary part",
                               np.exceptions.ComplexWarning, loc.file, loc.line)
    narrows = x.weak and x.type.dtype == I64 and wanted.is_int
    return current().emit("narrow" if narrows else "cast", x, dtype=wanted)


def _not_real(wanted: DType) -> Error:
    """The error of a Python complex where a real number is to be."""
    return error("W111", f"a Python complex is no real number, which {wanted} holds",
                 hint="give its real part z.real, its size abs(z), or let the array be complex")


def convertible(x: Any, dtype: Any, casting: Any, name: str) -> None:
    """Raises DTypeError (W111) where NumPy does not convert an array by the rule ``casting``."""
    kind = result_dtype(x)
    if not np.can_cast(kind, dtype, casting):
        raise error("W111", f"{name} does not convert {kind} to {np.dtype(dtype)} by the rule "
                            f"{casting!r}", types=[type_of(x)],
                    hint="convert it with .astype, or give another casting=")


def strong(x: Any) -> Tracer:
    """An operand as a tracer that promotes as an array."""
    tracer = to_tracer(x)
    return cast(tracer, tracer.dtype)


def reshape(x: Tracer, shape: tuple[Dim, ...]) -> Tracer:
    """x itself if it has that shape already."""
    return x if x.type.shape == shape else current().emit("reshape", x, shape=shape)


def required(
    x: Tracer, shape: tuple[Dim, ...], *, least: tuple[Dim, ...] = (), code: str = "W105",
    message: str = "",
) -> Tracer:
    """x, which a step can only have if its shape is that one and no dim of ``least`` negative."""
    return current().emit("require", x, shape=shape, least=least, code=code, message=message)


def matched(x: Tracer, shape: tuple[Dim, ...]) -> Tracer:
    """x with that shape, to which its own may be equal; each step checks that it is (W105)."""
    return x if x.type.shape == shape else required(x, shape)


def broadcast_shape(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The common shape of operands. Raises ShapeError (W101).

    A dim that is 1, or a symbolic one that is never more (``x.shape[0]`` of ``x[:1]``), is
    repeated. Any other symbolic dim is taken to be equal to the dims that it meets, and the size
    known is the result's; ``broadcast`` then has the step check it.
    """
    rank = max(map(len, shapes), default=0)
    result: list[Dim] = []
    for axis in range(rank):
        dims = dict.fromkeys(shape[axis - rank + len(shape)] for shape in shapes
                             if axis - rank + len(shape) >= 0)
        dims.pop(1, None)
        wide = [dim for dim in dims if not at_most_one(dim)] if len(dims) > 1 else list(dims)
        for dim in wide[1:]:
            if differ(wide[0], dim):
                raise error("W101", f"dims {wide[0]} and {dim} differ: operands do not broadcast",
                            hint="make the dims equal or 1: reshape, transpose or index with None")
        known = [dim for dim in wide if isinstance(dim, int)]
        start: Dim = 1
        result.append((known or wide or [reduce(smaller, dims, start)])[0])
    return tuple(result)


def at_most_one(dim: Dim) -> bool:
    """True for a symbolic dim that is 0 or 1, whatever the arguments."""
    return isinstance(dim, Expr) and nonnegative(1 - dim)


def common_shape(operands: Iterable[Any]) -> tuple[Dim, ...]:
    """``broadcast_shape`` of operands, whose types an error shows."""
    items = list(operands)
    shapes = [shape_of(x) for x in items]
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0] if shapes else ()
    try:
        return broadcast_shape(*shapes)
    except ValueError as problem:
        raise error("W101", problem.message,  # type: ignore[attr-defined]
                    types=[type_of(x) for x in items],
                    hint=problem.hint) from None  # type: ignore[attr-defined]


def broadcast(x: Tracer, shape: tuple[Dim, ...]) -> Tracer:
    """x repeated to ``shape``. Raises ShapeError (W101)."""
    if x.type.shape == shape:
        return x
    fits = x.ndim <= len(shape)
    x = _with_ones(x, shape) if fits else x
    own = x.type.shape
    offset = len(shape) - len(own)
    kept = [axis for axis, dim in enumerate(own) if fits and (
        dim == shape[axis + offset] or (dim != 1 and not differ(dim, shape[axis + offset])))]
    if not fits or any(own[axis] != 1 for axis in range(len(own)) if axis not in kept):
        raise error("W101", f"{x.type} does not broadcast to ({', '.join(map(str, shape))})",
                    hint="a dim must be 1 or stay as it is: reshape, or index with None")
    x = reshape(x, tuple(own[axis] for axis in kept))
    x = matched(x, tuple(shape[axis + offset] for axis in kept))
    if x.type.shape == shape:
        return x
    return current().emit("broadcast", x, shape=shape, axes=tuple(a + offset for a in kept))


def _with_ones(x: Tracer, shape: tuple[Dim, ...]) -> Tracer:
    """x with a 1 for each dim that is 0 or 1 and has to be repeated.

    Where it is 0, so is the dim of the result: it follows, or each step checks it (W105); what
    stands for the element that is not there is read by nobody.
    """
    own = x.type.shape
    high: list[Dim] = [0] * len(own)
    for axis, dim in enumerate(own):
        wanted = shape[axis + len(shape) - len(own)]
        if dim != wanted and at_most_one(dim):
            high[axis] = 1 - dim
            if not nonnegative(-wanted, (-dim,)):
                x = required(x, own, least=((dim - 1) * wanted,),
                             message=f"dims {dim} and {wanted} do not broadcast")
    if not any(high):
        return x
    zeros = (0,) * len(own)
    return current().emit("pad", x, low=zeros, high=tuple(high), interior=zeros,
                          value=x.dtype.type(0).item())


def real_cast(x: Any, dtype: np.dtype[Any]) -> Tracer:
    """``cast`` where NumPy takes real numbers: of complex ones that is an error (W111), and not
    their real parts."""
    a = strong(x)
    if a.dtype.kind == "c":
        raise error("W111", "these have to be real numbers", types=[a.type],
                    hint="give z.real, z.imag or np.abs(z)")
    return cast(a, dtype)


def spread(x: Any, dtype: np.dtype[Any], shape: tuple[Dim, ...]) -> Tracer:
    """An operand with that dtype and shape."""
    if is_number(x):
        return constant(x, dtype, shape)
    return broadcast(to_tracer(x, dtype), shape)


def spread_all(*operands: Any) -> list[Tracer]:
    """Operands with their common dtype and shape."""
    dtype, shape = result_dtype(*operands), common_shape(operands)
    return [spread(x, dtype, shape) for x in operands]


def masked(mask: Any, x: Any, y: Any) -> Tracer:
    """x where the mask holds, else y, as ``np.where`` has it, but what is left out has the gradient
    0 whatever its slope: for masks that say what a function is of, not for a choice of the user."""
    shape, dtype = common_shape((mask, x, y)), result_dtype(x, y)
    return current().emit("masked", spread(to_tracer(mask, _BOOL), _BOOL, shape),
                          *(spread(each, dtype, shape) for each in (x, y)))


def as_dim(x: Any) -> Dim:
    """A size the user gave: an int, a symbolic dim, or a traced integer. Raises TracerError (W201)
    otherwise, and for Python's own among the arguments."""
    if isinstance(x, SymbolicDim):
        return x.expr
    if isinstance(x, Expr):
        return x
    if isinstance(x, Tracer) and x.ndim == 0 and x.dtype.kind in "iu" and not is_choice(x):
        return size_of(x)
    return as_int(x, "size")


def as_number(dim: Dim) -> Any:
    """An int as it is, a symbolic one as a traced int."""
    return dim if isinstance(dim, int) else SymbolicDim(current(), dim)


def is_choice(x: Any) -> bool:
    """True for a number that is made of Python's among the arguments alone, which become static
    when it is asked for, unless all of these vary from call to call."""
    return isinstance(x, Tracer) and x.weak and not isinstance(x, SymbolicDim) and not (
        numbers_behind(x.ctx, x.value) <= current().request.varying)


def as_int(x: Any, what: str) -> int:
    """An integer the user gave: a Python or NumPy one, or an array of one without dims. Raises
    DTypeError (W112) for others, bools among them, and TracerError (W201) for a traced one."""
    try:
        if not isinstance(x, (bool, np.bool_)):
            return operator.index(x)
    except TypeError:
        if isinstance(x, Tracer):
            raise
    article = "an" if what[0] in "aeiou" else "a"
    raise error("W112", f"{x!r} is not {article} {what}", locs=user_loc(), hint="give an integer")


def as_shape(shape: Any, inferred: bool = False) -> tuple[Dim, ...]:
    """A shape the user gave: one size or a sequence of them; with ``inferred``, -1 may stand for
    one that follows from the others."""
    many = isinstance(shape, (tuple, list)) or (isinstance(shape, np.ndarray) and shape.ndim)
    found = tuple(map(as_dim, shape)) if many else (as_dim(shape),)
    for dim in found:
        if isinstance(dim, int) and dim < (-1 if inferred else 0):
            raise error("W103", f"the size {dim} is negative", hint="give 0 or more")
        if isinstance(dim, int) and dim > np.iinfo(np.intp).max:
            raise error("W103", f"the size {dim} is larger than any memory",
                        hint="give a smaller one")
    return found


def fill_shape(shape: tuple[Dim, ...], size: Dim) -> tuple[Dim, ...]:
    """The shape with its -1, if any, computed from the number of elements; where that may not
    divide evenly, each step has to check it."""
    unknown = [at for at, dim in enumerate(shape) if dim == -1]
    if not unknown:
        return shape
    known = product(dim for dim in shape if dim != -1)
    text = ", ".join(map(str, shape))
    if len(unknown) > 1 or known == 0:
        raise error("W103", f"cannot tell the -1 of ({text})")
    quotient, remainder = divide(size, known)
    if isinstance(remainder, int) and remainder != 0:
        raise error("W103", f"cannot reshape {size} elements to ({text})",
                    hint=f"{size} is not a multiple of {known}")
    return (*shape[:unknown[0]], quotient, *shape[unknown[0] + 1:])


def axis_of(axis: Any, rank: int) -> int:
    """An axis counted from the front. Raises OutOfRangeError (W121), DTypeError (W112)."""
    number = as_int(axis, "axis")
    if not -rank <= number < rank:
        raise error("W121", f"axis {number} is out of range for an array of {rank} dims",
                    hint=f"axes run from {-rank} to {rank - 1}" if rank else "it is a scalar")
    return number % rank


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that ``axis=`` means: all of them for None."""
    if axis is None:
        return tuple(range(rank))
    found = tuple(axis_of(a, rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(found)) != len(found):
        raise error("W121", f"axis {axis} names an axis twice",
                    hint="negative axes count from the end")
    return found
