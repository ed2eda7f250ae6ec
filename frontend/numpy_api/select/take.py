"""NumPy's functions that take elements by number: take, repeat, choose, compress, put.

Where elements come from an index that is known while tracing, NumPy itself works it out on the
numbers 0, 1, 2, ... of the elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim, product
from ....ir.indices.proof import differ, nonnegative
from ....ir.types import I64, TensorType, as_dtype
from ...tracing.arrays.chosen import Chosen
from ...tracing.context.active import current
from ...tracing.operand import (
    as_dim,
    as_int,
    as_number,
    as_shape,
    axis_of,
    broadcast,
    broadcast_shape,
    cast,
    common_shape,
    contains_tracer,
    masked,
    matched,
    reshape,
    result_dtype,
    spread,
    strong,
    to_tracer,
)
from ...tracing.values.tracer import Tracer
from ..arrange.shape import ravel
from ..elements.elementwise import fresh, store, writable
from ..registry import numpy
from .counted import places_of
from .index import getitem, order_of
from .update import update

_BOOL, _I64 = np.dtype(bool), np.dtype(np.int64)


@numpy(np.repeat, method=True, samples=("x[2,3], 2", "x[2,3], 3, 1", "x[3,2], [2, 0, 1], 0",
                                        "x[2], [1, 3]"))
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    x = strong(a)
    x, axis = _flat(x, axis)
    shape = x.type.shape
    if contains_tracer(repeats) or isinstance(repeats, Chosen):
        repeats = strong(repeats)
    if isinstance(repeats, Tracer) and repeats.ndim:
        return _repeated(x, repeats, axis)
    if np.size(repeats) != 1:
        if not isinstance(shape[axis], int) and np.ndim(repeats) == 1:
            x = matched(x, (*shape[:axis], len(repeats), *shape[axis + 1:]))
        order = order_of(np.repeat, x.type.shape[axis], repeats)
        return fresh(getitem(x, (*(slice(None),) * axis, order)))
    count = as_dim(repeats) if isinstance(repeats, Tracer) else as_int(
        np.reshape(repeats, ()), "number of repeats")
    if isinstance(count, int) and count < 0:
        raise error("W112", f"np.repeat with {count} repeats: a count must not be negative")
    wide = (*shape[:axis + 1], count, *shape[axis + 1:])
    kept = tuple(at for at in range(len(wide)) if at != axis + 1)
    x = current().emit("broadcast", x, shape=wide, axes=kept)
    return fresh(reshape(x, (*shape[:axis], shape[axis] * count, *shape[axis + 1:])))


def _repeated(x: Tracer, repeats: Tracer, axis: int) -> Tracer:
    """Each element along an axis as often as values say."""
    counts: Any = broadcast(strong(repeats), (x.type.shape[axis],))
    until: Any = np.cumsum(counts)
    number = current().emit("iota", axis=0, dtype=I64, shape=(as_dim(np.sum(counts)),))
    order = np.searchsorted(until, number, side="right")
    return fresh(getitem(x, (*(slice(None),) * axis, order)))


@numpy(np.take, method=True, samples=(
    "x[5], i[3]", "x[3,4], i[2,2], axis=1", "x[3], 9 * i[4] - 9, mode='clip'",
    "x[3,2], 9 * i[4] - 5, 0, mode='wrap'"))
def take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Tracer:
    x = strong(a)
    x, at = _flat(x, axis)
    if mode != "raise":
        indices = inside(indices, x.type.shape[at], mode, "np.take")
    uses = product(x.type.shape[:at])  # of each index; NumPy looks at those that it uses
    return fresh(getitem(x, (*(slice(None),) * at, indices), uses))


def _flat(x: Tracer, axis: Any) -> tuple[Tracer, int]:
    """The array and the axis; flat without one, as is a number, to which NumPy gives an axis 0."""
    if axis is None or (x.ndim == 0 and as_int(axis, "axis") in (0, -1)):
        return ravel(x), 0
    return x, axis_of(axis, x.ndim)


def inside(indices: Any, size: Dim, mode: str, name: str) -> Any:
    """Indices as a mode has them: brought into the axis, or none below 0, and a step that has one
    beyond fails."""
    places: Any = cast(strong(indices), _I64)
    count = as_number(size)
    if mode == "clip":
        return np.clip(places, 0, count - 1)
    if mode == "wrap":
        return places % count
    if mode != "raise":
        raise error("W113", f"{name} with mode={mode!r}: modes are raise, clip and wrap")
    spare: Any = np.minimum(places, count - 1 - places)
    return current().emit("ensure", places, spare, message=(
        f"an index of {name} is out of range for a size of {size}"))


@numpy(np.choose, method=True, samples=(
    "i[2,3], [x[2,3], x[3], x[()]]", "5 * i[4] - 4, [x[4], x[4]], mode='clip'",
    "i[4] - 1, x[2,4], mode='wrap'"))
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Of arrays, the one that an index names, element by element."""
    parts = list(choices)
    shape, dtype = common_shape((a, *parts)), result_dtype(*parts)
    stacked: Any = np.stack([spread(x, dtype, shape) for x in parts])
    places = inside(broadcast(strong(a), shape), len(parts), mode, "np.choose")
    made = take_along_axis(stacked, reshape(places, (1, *shape)), 0)
    return fresh(reshape(made, shape))


@numpy(np.compress, samples=("[True, False, True], x[4]", "[0, 1], x[2,3], axis=0"))
def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    if isinstance(condition, Tracer):
        x, at = _flat(strong(a), axis)
        mask: Any = cast(condition, _BOOL)
        size, count = x.type.shape[at], mask.type.shape[0]
        if differ(size, count) and nonnegative(count - size):
            beyond: Any = np.count_nonzero(mask[as_number(size):])
            mask = mask[:as_number(size)]
            mask = current().emit("ensure", mask, broadcast(-beyond, mask.type.shape), message=(
                f"np.compress asks for more than the {size} elements of an axis"))
        part = getitem(x, (*(slice(None),) * at, slice(0, as_number(count))))
        return current().api.getitem(part, (*(slice(None),) * at, mask) if at else mask)
    return take(a, np.flatnonzero(condition), axis)


@numpy(np.extract, samples=("np.array([True, False, True]), x[3]",))
def extract(condition: Any, arr: Any) -> Any:
    flat: Any = ravel(condition) if isinstance(condition, Tracer) else np.ravel(condition)
    return compress(flat, ravel(arr))


@numpy(np.take_along_axis, samples=("x[4,5], i[4,2], 1",))
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Tracer:
    x, places = strong(arr), cast(to_tracer(indices), _I64)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    if places.ndim != x.ndim:
        raise error("W102", "take_along_axis needs indices of as many dims as the array",
                    types=[x.type, places.type])
    others = tuple(1 if at == axis else dim for at, dim in enumerate(x.type.shape))
    shape = broadcast_shape(others, places.type.shape)
    x = broadcast(x, tuple(x.type.shape[axis] if at == axis else dim
                           for at, dim in enumerate(shape)))
    places = broadcast(places, shape)
    index = [places if at == axis else current().emit("iota", axis=at, dtype=places.type.dtype,
                                                      shape=shape) for at in range(x.ndim)]
    return current().emit("gather", x, *index, axes=tuple(range(x.ndim)))


@numpy(np.unravel_index, samples=("7 * i[4], (3, 5)", "3 * i[2], (2, 2, 2), order='F'",
                                  "5 * i[()], 11"))
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    dims = as_shape(shape)
    left: Any = inside(indices, product(dims), "raise", "np.unravel_index")
    places: list[Any] = []
    for dim in reversed(dims) if order == "C" else dims:
        size = as_number(dim)
        places.append(left % size)
        left = left // size
    return tuple(reversed(places) if order == "C" else places)


@numpy(np.ravel_multi_index, samples=(
    "(i[4], i[4]), (3, 4)", "(i[2,1], i[3]), (3, 3), order='F'",
    "(5 * i[4], i[4]), (3, 4), mode='clip'", "(5 * i[4], 4 * i[4]), (3, 4), ('wrap', 'clip')"))
def ravel_multi_index(
    multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C"
) -> Any:
    sizes = as_shape(dims)
    modes = (mode,) * len(sizes) if isinstance(mode, str) else mode
    places = [inside(place, size, way, "np.ravel_multi_index")
              for place, size, way in zip(multi_index, sizes, modes, strict=True)]
    if order == "F":
        places, sizes = places[::-1], sizes[::-1]
    total: Any = 0
    for place, size in zip(places, sizes, strict=True):
        total = total * as_number(size) + place
    return total


@numpy(np.ix_, samples=("i[2], i[3]", "i[2], [0, 2]"))
def ix_(*args: Any) -> tuple[Any, ...]:
    made = []
    for at, given in enumerate(args):
        x = strong(given if contains_tracer(given) else np.ix_(given)[0])
        if x.ndim != 1:
            raise error("W123", "np.ix_ takes vectors of indices", types=[x.type])
        if x.dtype == _BOOL:
            x = places_of(x)
        made.append(reshape(x, (1,) * at + (x.type.size,) + (1,) * (len(args) - at - 1)))
    return tuple(made)


# -- in place ------------------------------------------------------------------------------------

@numpy(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    name = "np.put_along_axis"
    x = writable(name, arr, values)
    if axis is None:
        put(x, ravel(indices), values)
        return
    at = axis_of(axis, x.ndim)
    places: Any = cast(to_tracer(indices), _I64)
    if places.ndim != x.ndim:
        raise error("W102", f"{name} needs indices of as many dims as the array",
                    types=[x.type, places.type])
    shape = (*x.type.shape[:at], places.type.shape[at], *x.type.shape[at + 1:])
    places = broadcast(places, shape)
    index = tuple(places if axis == at else current().emit("iota", axis=axis, dtype=I64,
                                                           shape=shape) for axis in range(x.ndim))
    store(name, x, update(x, index, values, "set"))


@numpy(np.put, method=True)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    a = writable("np.put", a, v)
    x, places = ravel(a), ravel(ind)
    new: Any = ravel(cast(to_tracer(v), a.dtype))
    if mode != "raise":
        places = inside(places, x.type.size, mode, "np.put")
    if 0 in (new.type.size, places.type.size):
        return
    if x.type.size == 0:
        raise error("W124", "np.put into an array without elements", types=[a.type, places.type])
    some = has_some(new)
    new = np.resize(new, as_number(places.type.size))
    made = update(x, cast(places, _I64), new, "set")
    store("np.put", a, reshape(made, a.type.shape), some)


def has_some(values: Tracer) -> Any:
    """Whether there are values to repeat: without one, NumPy writes nothing."""
    size = as_number(values.type.size)
    return size > 0 if isinstance(size, int) else np.greater(size, 0)


@numpy(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    a = writable("np.putmask", a, values)
    chosen, new = _mask_and_values("np.putmask", a, mask, values)
    some = has_some(new)
    if new.type.shape != a.type.shape:
        new = np.resize(new, a.shape)
    store("np.putmask", a, masked(chosen, new, a), some)


@numpy(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Of the values, one after the other goes to the elements under the mask."""
    arr = writable("np.place", arr, vals)
    chosen, new = _mask_and_values("np.place", arr, mask, vals)
    new = ravel(new)
    if new.type.size == 1:
        new = reshape(new, ())
    else:
        order: Any = np.cumsum(ravel(chosen)) - 1
        new = reshape(take(new, order, mode="wrap"), arr.type.shape)
    store("np.place", arr, masked(chosen, new, arr))


def _mask_and_values(name: str, array: Any, mask: Any, values: Any) -> tuple[Any, Any]:
    """A mask of an array's shape, and values of its dtype. Raises DTypeError (W111) for an array
    that NumPy does not cast."""
    is_array = isinstance(values, np.ndarray) or (
        isinstance(values, Tracer) and not values.is_scalar)
    if is_array and not np.can_cast(values.dtype, array.dtype, "safe"):
        raise error("W111", f"the values of {name} do not fit into {array.dtype}",
                    types=[array.type, TensorType(as_dtype(values.dtype), values.shape)],
                    hint=f"cast them before: values.astype(np.{array.dtype})")
    chosen = to_tracer(mask, np.dtype(bool))
    if chosen.ndim != array.ndim or any(map(differ, chosen.type.shape, array.type.shape)):
        raise error("W102", f"{name} needs a mask of the array's shape",
                    types=[array.type, chosen.type])
    return matched(chosen, array.type.shape), cast(to_tracer(values), array.dtype)
