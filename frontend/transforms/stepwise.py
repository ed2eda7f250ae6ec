"""What NumPy does one element after the other, as loops of the program: ``ufunc.accumulate`` and
``ufunc.at`` of ufuncs that have no shorter way to it, and ``np.vectorize``.

    np.divide.accumulate(x)          carry = x[0];  for each row: carry = carry / row
    np.multiply.at(a, i, v)          for each place p of i and its v: a[p] = a[p] * v
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.indices.index import product
from ...ir.types import I64
from ..numpy_api.arrange.shape import moveaxis, ravel
from ..numpy_api.elements.elementwise import apply, name_of, resolve, writable
from ..numpy_api.registry import meaning
from ..numpy_api.select.index import getitem
from ..numpy_api.select.masks import is_mask
from ..numpy_api.select.masks import select as selected
from ..numpy_api.select.update import update
from ..tracing.active import current
from ..tracing.operand import broadcast, cast, common_shape, reshape, strong, to_tracer
from ..tracing.tracer import Tracer
from .regions import scanned


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
        made = np.where(begins, row, cast(apply(ufunc, (carry, row)), kinds[0]))
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
    if is_mask(index):  # which names each element once
        new: Any = cast(apply(ufunc, (x, *values)), x.dtype)
        x.overwrite(update(x, index, selected(new, index), "set"))
        return
    shape = x.type.shape
    numbers = reshape(current().emit("iota", axis=0, dtype=I64, shape=(product(shape),)), shape)
    places: Any = getitem(numbers, index)
    given = tuple(strong(value) for value in values)
    rows = tuple(ravel(broadcast(value, places.type.shape)) for value in given)

    def step(carry: Any, given: Any, _: Any) -> Any:
        place, *others = given
        new = cast(apply(ufunc, (getitem(carry, place), *others)), x.dtype)
        return update(carry, place, new, "set"), None

    flat, _ = scanned(name, step, step, ravel(x), (ravel(places), *rows), None, False, current())
    x.overwrite(reshape(flat, shape))


@meaning("vectorize.__call__")
def vectorized(made: np.vectorize, *args: Any, **options: Any) -> Any:
    """``np.vectorize(f)(x, y)``: f of one element of each after the other. Its dtypes are those of
    a first call, on NumPy's numbers, unless ``otypes`` says; then f takes Python's numbers.

    Raises UnsupportedError (W113) for one with a signature."""
    if made.signature is not None:
        raise error("W113", "np.vectorize with signature= is not supported",
                    hint="use np.apply_along_axis, or loop over the rows")
    given: dict[Any, Any] = {**dict(enumerate(args)), **options}
    arrays = {key: strong(value) for key, value in given.items() if key not in made.excluded}
    shape = common_shape(arrays.values())
    rows = [ravel(broadcast(x, shape)) for x in arrays.values()]

    def call(numbers: Iterable[Any]) -> Any:
        values = {**given, **dict(zip(arrays, numbers, strict=True))}
        return made.pyfunc(*(values[at] for at in range(len(args))),
                           **{key: values[key] for key in options})

    first = call(current().full(1, x.type.dtype, ()) for x in arrays.values())
    several = isinstance(first, tuple)
    kinds = [np.dtype(kind) for kind in made.otypes or ()] or [
        strong(x).dtype for x in (first if several else (first,))]

    def step(carry: Any, numbers: Any, _: Any) -> Any:
        found = call(map(_python, numbers))
        return carry, tuple(cast(to_tracer(x), kind) for x, kind in zip(
            found if several else (found,), kinds, strict=True))

    _, found = scanned("np.vectorize", step, made.pyfunc, (), tuple(rows), None, False, current())
    results = tuple(reshape(x, shape) for x in found)
    return results if several else results[0]


_PYTHONS = MappingProxyType({"b": np.bool_, "i": np.int64, "f": np.float64, "c": np.complex128})


def _python(x: Tracer) -> Tracer:
    """A number of NumPy's as one of Python's; those of 64 bits without a sign stay as they are."""
    kind = _PYTHONS.get("i" if x.dtype.kind == "u" and x.dtype.itemsize < 8 else x.dtype.kind)
    return x if kind is None else Tracer(
        x.ctx, cast(x, np.dtype(kind)).value, weak=True)
