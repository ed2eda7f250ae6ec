"""Elements under masks as arrays, of a size that values say.

    x[x > 0]     where the mask holds: 1 4 6
                 the size n of the array: 3, which the program looks at before it goes on
                 x[1 4 6]: f64[n]

What is done with elements under a mask does without where it can (``masks``, ``chosen``,
``grids``): it is one program then, and can be exported. All else is done with such arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ....ir.diagnose import Error, OutOfRangeError
from ....ir.types import I64
from ...face import tree
from ...tracing.arrays import views
from ...tracing.arrays.grid import Grid
from ...tracing.arrays.selection import Run, Selection
from ...tracing.context.active import current
from ...tracing.context.distance import is_computed, tell_bound
from ...tracing.operand import as_dim, strong
from ...tracing.values.tracer import Tracer
from ..registry import ROWS
from .index import getitem
from .masks import is_mask
from .parts import Part
from .runs import flat
from .update import update as put


def realised(x: Selection | Grid) -> Tracer:
    """The elements as an array, which is a view of their memory."""
    def take(base: Any) -> Any:
        return getitem(base, index)

    if isinstance(x, Run):
        length = x.length
        if is_computed(length):
            tell_bound(current(), length, x.array.type.shape[0])
        part = Part(as_dim(x.start), as_dim(length))
        return current().api.getitem(x.array, part)  # type: ignore[no-any-return]
    if isinstance(x, Grid):
        index, array = _places_in_grid(x), x.array
    elif x.known is not None:
        index, array = np.nonzero(x.known), x.array
    else:
        array, mask = flat(x)
        index = (places_of(mask),)
        if array.ndim == 1 and array.dtype.kind not in "cb":
            take = partial(compressed, mask=mask)
    found: Tracer = take(array)
    views.link(found, views.Indexed(
        array, take, lambda base, new: put(base, index, new, "set")))
    return found


def places_of(mask: Any) -> Any:
    """Where a vector of truth values is true."""
    mask = strong(mask)
    return compressed(current().emit("iota", axis=0, dtype=I64, shape=mask.type.shape), mask)


def compressed(x: Any, mask: Any) -> Any:
    """The elements of a vector where a mask holds, one after the other."""
    count: Any = np.sum(mask)
    tell_bound(current(), count, mask.type.shape[0])
    return current().emit("compress", x, mask, size=as_dim(count))


def _places_in_grid(x: Grid) -> tuple[Any, ...]:
    """An array of places for each axis, which broadcast to the shape of the elements."""
    places = [current().emit("iota", axis=0, dtype=I64, shape=(dim,)) if mask is None else
              places_of(mask) for dim, mask in zip(x.array.type.shape, x.masks, strict=True)]
    return tuple(np.expand_dims(each, tuple(at for at in range(x.ndim) if at != axis))
                 for axis, each in enumerate(places))


def instead(function: Callable[..., Any], problem: OutOfRangeError, *args: Any,
            **options: Any) -> Any:
    """What a function gives for the elements as arrays, where it has no meaning for those under
    masks. Raises the problem if there are none."""
    found = False

    def settled(leaf: Any) -> Any:
        nonlocal found
        if isinstance(leaf, Grid) or (isinstance(leaf, Selection) and leaf.known is None):
            found = True
            return realised(leaf)
        return leaf

    given, named = tree.map(settled, (args, options))
    if problem.code != "W123" or not found:
        raise problem
    if function in ROWS:  # such as np.array, which NumPy does not dispatch
        return current().api.function(function, given, named)
    return function(*given, **named)


def taken(x: Any, index: Any, problem: OutOfRangeError) -> Any:
    """``x[index]`` where elements under masks are among the indices."""
    if problem.code != "W123" or not isinstance(index, tuple) or not any(
            isinstance(item, Selection) for item in index):
        raise problem
    return current().api.getitem(x, tuple([
        realised(item) if isinstance(item, Selection) and item.known is None else item
        for item in index]))


def updated(x: Any, index: Any, value: Any, mode: str, problem: Error) -> Tracer:
    """``x[index] = value`` where a mask would have to tell which element goes where."""
    if problem.code != "W123":
        raise problem
    items = index if isinstance(index, tuple) else (index,)
    places: list[Any] = []
    for item in items:
        if isinstance(item, Selection):
            places.append(realised(item))
        elif is_mask(item):
            at = places_of(np.ravel(item))
            places += np.unravel_index(at, np.shape(item)) if np.ndim(item) > 1 else (at,)
        else:
            places.append(item)
    if isinstance(value, Selection | Grid):
        value = realised(value)
    elif all(a is b for a, b in zip(places, items, strict=False)):
        raise problem
    return put(x, tuple(places), value, mode)
