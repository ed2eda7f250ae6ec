"""What NumPy does one element after the other, as loops of the program: ``ufunc.accumulate`` and
``ufunc.at`` of ufuncs that have no shorter way to it, ``np.vectorize``, ``np.apply_along_axis``,
and LAPACK's tridiagonal equations.

    np.divide.accumulate(x)          carry = x[0];  for each row: carry = carry / row
    np.multiply.at(a, i, v)          for each place p of i and its v: a[p] = a[p] * v
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.indices.index import Dim, product
from ...ir.indices.proof import differ
from ...ir.types import I64
from ..numpy_api.arrange.shape import moveaxis, ravel
from ..numpy_api.elements.elementwise import apply, name_of, writable
from ..numpy_api.elements.resolving import resolve
from ..numpy_api.registry import meaning
from ..numpy_api.select.index import getitem
from ..numpy_api.select.masks import is_mask
from ..numpy_api.select.masks import select as selected
from ..numpy_api.select.update import update
from ..tracing.context.active import current
from ..tracing.operand import (
    broadcast,
    broadcast_shape,
    cast,
    matched,
    reshape,
    result_dtype,
    strong,
    to_tracer,
)
from ..tracing.values.tracer import Tracer
from .loops import scanned


@meaning("ufunc.accumulate")
def accumulate(ufunc: np.ufunc, x: Tracer, axis: int, dtype: Any) -> Any:
    """Each row with all that were before it. Raises DTypeError (W111) where a result is not of
    the dtype of its operands, and UnsupportedError (W113) for ufuncs of other than two."""
    name = f"{name_of(ufunc)}.accumulate"
    if (ufunc.nin, ufunc.nout) != (2, 1) or ufunc.signature:
        raise error("W113", f"{name} is not supported", hint="use a function of two numbers")
    kinds = resolve(ufunc, (x, x), None if dtype is None else np.dtype(dtype))
    if kinds[0] != kinds[2]:
        raise error("W111", f"{name} of {x.dtype}, the results of which are {kinds[2]}",
                    types=[x.type], hint="convert it with .astype")
    rows: Any = moveaxis(cast(x, kinds[0]), axis, 0)
    first: Any = np.equal(current().emit("iota", axis=0, dtype=I64, shape=rows.type.shape[:1]), 0)

    def step(carry: Any, given: Any, _: Any) -> Any:
        row, begins = given
        # Of the first row nothing is made: a negative one is no power that has to be refused.
        other: Any = np.where(begins, carry.dtype.type(1), row)
        made = np.where(begins, row, cast(apply(ufunc, (carry, other)), kinds[0]))
        return made, made

    nothing = current().full(0, rows.type.dtype, rows.type.shape[1:])
    _, found = scanned(name, step, step, nothing, (rows, first), None, False, current())
    return moveaxis(found, 0, axis)


@meaning("ufunc.at")
def at(ufunc: np.ufunc, array: Any, index: Any, *values: Any) -> None:
    """Change the elements at an index, each as often as the index names it.

    Results are converted to the dtype of the array, whatever they lose. Raises TracerError (W203)
    for a plain array."""
    name = f"{name_of(ufunc)}.at"
    x: Any = writable(name, array, *(values or (array,)))
    if ufunc.nin != 1 + len(values) or ufunc.nout != 1 or ufunc.signature:
        raise error("W113", f"{name} with {len(values)} arrays of values is not supported",
                    hint="loop over the places")
    given = tuple(strong(value) for value in values)
    if is_mask(index):  # which names each element once
        each = any(value.ndim > x.ndim - index.ndim for value in given)  # a value for each
        new: Any = ufunc(selected(x, index), *given) if each else selected(
            apply(ufunc, (x, *given)), index)
        x.overwrite(update(x, index, new.astype(x.dtype), "set"))
        return
    shape = x.type.shape
    numbers = reshape(current().emit("iota", axis=0, dtype=I64, shape=(product(shape),)), shape)
    places: Any = getitem(numbers, index)
    rows = tuple(ravel(broadcast(value, places.type.shape)) for value in given)

    def step(carry: Any, given: Any, _: Any) -> Any:
        place, *others = given
        new = cast(apply(ufunc, (getitem(carry, place), *others)), x.dtype)
        return update(carry, place, new, "set"), None

    flat, _ = scanned(name, step, step, ravel(x), (ravel(places), *rows), None, False, current())
    x.overwrite(reshape(flat, shape))


@meaning("np.poly")
def poly(zeros: Any) -> Any:
    """The coefficients of the product of all (x - zero), the highest power first."""
    size = zeros.type.shape[0]
    ctx = current()
    power = ctx.emit("iota", axis=0, dtype=I64, shape=(size + 1,))
    count = ctx.emit("iota", axis=0, dtype=I64, shape=(size,))
    first = cast(strong(np.equal(power, 0)), zeros.dtype)

    def step(carry: Any, given: Any, _: Any) -> Any:
        zero, done = given
        moved: Any = np.roll(carry, 1)
        there = (power > 0) & (power <= done + 1)  # 0 * inf is not added beyond the degree
        return carry + np.where(there, moved * -zero, 0), None

    found, _ = scanned("np.poly", step, step, first, (zeros, count), None, False, ctx)
    return found


@meaning("np.polyval")
def polyval(coefficients: Any, x: Any) -> Any:
    """A polynomial of a number of coefficients that is not known, by Horner's rule."""
    kind = result_dtype(coefficients, x)

    def step(carry: Any, given: Any, _: Any) -> Any:
        (coefficient,) = given
        return cast(carry * x + coefficient, kind), None

    nothing = current().full(0, kind, x.type.shape)
    found, _ = scanned("np.polyval", step, step, nothing, (cast(coefficients, kind),), None, False,
                       current())
    return found


def _tridiagonal(
    dtype: np.dtype[Any], dl: Any, d: Any, du: Any, b: Any, *overwrite: Any, **overwrites: Any
) -> Any:
    """``scipy.linalg.lapack.dgtsv``: Gaussian elimination of a tridiagonal matrix, where each row
    is swapped with the next one if that is larger.

    Where LAPACK stops at a zero pivot, ``info`` says so, but x is no number from there on."""
    if any((*overwrite, *overwrites.values())):
        raise error("W113", "LAPACK's overwrite_... is not supported", hint="leave it out")
    below, middle, above, right = _diagonals(*(cast(strong(x), dtype) for x in (dl, d, du, b)))
    ctx, rest = current(), slice(1, None)
    zero, zeros = (ctx.full(0, middle.type.dtype, shape) for shape in ((), right.type.shape[1:]))

    def eliminate(carry: Any, row: Any, _: Any) -> Any:
        """Of two rows that begin in one column the one that stays, and what is left of the
        other, which begins in the next column."""
        (pivot, beside, value), (lead, *lower) = carry, row
        upper = (beside, zero, value)
        swap = np.less(_largeness(pivot), _largeness(lead))
        kept, left = ([np.where(swap, *ways) for ways in zip(*pair, strict=True)]
                      for pair in ((lower, upper), (upper, lower)))
        first = np.where(swap, lead, pivot)
        factor = np.where(swap, pivot, lead) / first
        return tuple(y - factor * x for x, y in zip(kept, left, strict=True)), (first, *kept)

    def substitute(carry: Any, row: Any, _: Any) -> Any:
        (next_, after), (pivot, beside, second, value) = carry, row
        found = (value - beside * next_ - second * after) / pivot
        return (found, next_), found

    rows = (below, getitem(middle, rest), np.append(getitem(above, rest), zero),
            getitem(right, rest))
    last, made = scanned("gtsv", eliminate, eliminate, tuple(
        getitem(x, 0) for x in (middle, above, right)), rows, None, False, ctx)
    pivots, besides, seconds, values = (
        np.concatenate((x, np.expand_dims(y, 0)))
        for x, y in zip(made, (last[0], zero, zero, last[2]), strict=True))
    _, found = scanned("gtsv", substitute, substitute, (zeros, zeros),
                       (pivots, besides, seconds, values), None, True, ctx)
    fails = np.equal(pivots, 0)
    info: Any = np.where(np.any(fails), np.argmax(fails) + 1, 0)
    return (np.append(getitem(seconds, slice(0, -2)), getitem(below, -1)), pivots,
            getitem(besides, slice(0, -1)), found, Tracer(ctx, strong(info).value, weak=True))


def _diagonals(below: Tracer, middle: Tracer, above: Tracer, right: Tracer) -> list[Tracer]:
    """Three diagonals and what is on the right. Raises ShapeError (W102)."""
    given = (below, middle, above, right)
    if [x.ndim for x in given[:3]] != [1, 1, 1] or right.ndim not in (1, 2):
        raise error("W102", "gtsv takes three vectors, the diagonals, and a vector or a matrix",
                    types=[x.type for x in given])
    size = middle.type.shape[0]
    wanted = [(size - 1,), (size,), (size - 1,), (size, *right.type.shape[1:])]
    if size == 1 or any(differ(x.type.shape[0], shape[0])
                        for x, shape in zip(given, wanted, strict=True)):
        raise error("W102", "gtsv takes a diagonal of n >= 2 elements, two others of n - 1, and n "
                            "rows on the right", types=[x.type for x in given])
    return [matched(x, shape) for x, shape in zip(given, wanted, strict=True)]


def _largeness(x: Any) -> Any:
    """By which LAPACK chooses pivots."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


for _name, _dtype in (("sgtsv", "f4"), ("dgtsv", "f8"), ("cgtsv", "c8"), ("zgtsv", "c16")):
    meaning(_name)(partial(_tridiagonal, np.dtype(_dtype)))


@meaning("apply_along_axis")
def for_each_row(call: Callable[[Any], Any], function: Callable[..., Any], rows: Tracer) -> Any:
    """What ``call`` gives for each row, one after the other; ``function`` is the user's in it."""
    def step(carry: Any, row: Any, _: Any) -> Any:
        return carry, call(row)

    _, made = scanned("np.apply_along_axis", step, function, (), rows, None, False, current())
    return made


@meaning("vectorize.__call__")
def vectorized(made: np.vectorize, *args: Any, **options: Any) -> Any:
    """``np.vectorize(f)(x, y)``: f of one element of each after the other, or of one array of the
    core dims of its signature. Its dtypes are those of a first call, on NumPy's numbers, unless
    ``otypes`` says; then f takes Python's numbers.

    Raises ShapeError (W102) for operands or results that do not have the dims of the signature."""
    given: dict[Any, Any] = {**dict(enumerate(args)), **options}
    arrays = {key: strong(value) for key, value in given.items() if key not in made.excluded}
    cores, outs = _core_dims(made, list(arrays.values()))
    loops: tuple[Dim, ...] = ()
    for x, core in zip(arrays.values(), cores, strict=True):
        loops = broadcast_shape(loops, x.type.shape[:x.ndim - core])
    rows = []
    for x, core in zip(arrays.values(), cores, strict=True):
        inner = x.type.shape[x.ndim - core:]
        rows.append(reshape(broadcast(x, (*loops, *inner)), (product(loops), *inner)))

    def call(numbers: Iterable[Any]) -> Any:
        values = {**given, **dict(zip(arrays, numbers, strict=True))}
        return made.pyfunc(*(values[at] for at in range(len(args))),
                           **{key: values[key] for key in options})

    first = call(current().full(1, row.type.dtype, row.type.shape[1:]) for row in rows)
    several = isinstance(first, tuple)
    found = [strong(x) for x in (first if several else (first,))]
    if outs is not None and [x.ndim for x in found] != outs:
        raise error("W102", f"the results of np.vectorize have {[x.ndim for x in found]} dims, its "
                            f"signature {made.signature} says {outs}")
    kinds = [np.dtype(kind) for kind in made.otypes or ()] or [x.dtype for x in found]

    def step(carry: Any, numbers: Any, _: Any) -> Any:
        found = call(numbers if made.signature else map(_python, numbers))
        return carry, tuple(cast(to_tracer(x), kind) for x, kind in zip(
            found if several else (found,), kinds, strict=True))

    _, stacked = scanned("np.vectorize", step, made.pyfunc, (), tuple(rows), None, False, current())
    results = tuple(reshape(x, (*loops, *x.type.shape[1:])) for x in stacked)
    return results if several else results[0]


def _core_dims(made: np.vectorize, operands: list[Tracer]) -> tuple[list[int], list[int] | None]:
    """How many dims of each operand, and of each result, belong to one call of the function: none,
    but for those of a signature, ``(n),(n)->()``. Raises ShapeError (W102)."""
    if made.signature is None:
        return [0] * len(operands), None
    ins, outs = ([group.strip("()").split(",") for group in re.findall(r"\([^)]*\)", side)]
                 for side in made.signature.replace(" ", "").split("->"))
    if len(ins) != len(operands):
        raise error("W102", f"np.vectorize takes {len(ins)} arrays by its signature "
                            f"{made.signature}, not {len(operands)}")
    sizes: dict[str, Any] = {}
    cores = [[name for name in names if name] for names in ins]
    for x, names in zip(operands, cores, strict=True):
        dims = x.type.shape[x.ndim - len(names):]
        if x.ndim < len(names) or any(differ(sizes.setdefault(name, dim), dim)
                                      for name, dim in zip(names, dims, strict=True)):
            raise error("W102", "an array does not have the dims of np.vectorize's signature "
                                f"{made.signature}", types=[x.type])
    return [len(names) for names in cores], [len([n for n in names if n]) for names in outs]


_PYTHONS = MappingProxyType({"b": np.bool_, "i": np.int64, "f": np.float64, "c": np.complex128})


def _python(x: Tracer) -> Tracer:
    """A number of NumPy's as one of Python's; those of 64 bits without a sign stay as they are."""
    kind = _PYTHONS.get("i" if x.dtype.kind == "u" and x.dtype.itemsize < 8 else x.dtype.kind)
    return x if kind is None else Tracer(
        x.ctx, cast(x, np.dtype(kind)).value, weak=True)
