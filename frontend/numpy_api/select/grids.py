"""What NumPy's functions mean on grids, ``x[:, :k]`` and ``x[m].T``: see ``tracing.arrays.grid``.

    elementwise     on all elements of the arrays, whose masks agree along each axis
    reductions      leave out what the masks of the reduced axes do not choose; the others stay
    functions along other axes than those of masks       on the whole array
    products        of which the summed axis has a mask: 0 in both operands where it does not hold

A result without masks is an array, and one whose only mask is along its first axis a Selection.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.types import I64
from ...tracing.arrays.chosen import Chosen
from ...tracing.arrays.grid import Grid
from ...tracing.arrays.selection import Selection, same_mask
from ...tracing.context.active import current
from ...tracing.context.distance import is_computed
from ...tracing.operand import as_int, as_number, axes_of, axis_of, cast, masked, strong
from ...tracing.values.tracer import SymbolicDim, Tracer
from ..arrange.shape import flip
from ..binding import bound
from ..registry import ROWS, full_name
from .index import getitem
from .masks import (
    COUNT,
    EXTREMES,
    LARGEST,
    NDIM,
    REDUCED,
    SHAPE,
    SIZE,
    is_mask,
    not_nothing,
)
from .parts import may_measure
from .runs import aligned, within
from .windows import length_of

_BOOL = np.dtype(bool)


def first_grid(args: Any) -> Grid | None:
    """The first grid among the arguments, or in lists of them."""
    for arg in args:
        if type(arg) is Tracer:  # which would be asked for its class
            continue
        found = first_grid(arg) if isinstance(arg, (list, tuple)) else arg
        if isinstance(found, Grid):
            return found
    return None


def as_grid(x: Any) -> Grid:
    """Elements under one mask of a vector's dims, or any array, as a grid. Raises OutOfRangeError
    (W123) for those of which the mask has several dims."""
    if isinstance(x, Grid):
        return x
    if isinstance(x, Selection) and x.known is None:
        if x.mask.ndim != 1:
            raise x.refused("combined with an array")
        return Grid(x.array, (x.mask, *(None,) * (x.array.ndim - 1)), shares=True)
    array = strong(x.settled()) if isinstance(x, Selection) else strong(x)
    return Grid(array, (None,) * array.ndim, shares=True)


def takes(function: Any, x: Selection, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether a function of rows under a mask is one of them as a grid: along other axes than the
    one of the mask, or with another order of axes."""
    if x.known is not None or x.mask.ndim != 1 or not args or args[0] is not x:
        return False
    if x.ndim == 1:
        return function is operator.getitem and isinstance(args[1], tuple) and any(
            part is None for part in args[1]) and all(
                part is None or part is Ellipsis or (isinstance(part, slice)
                                                     and part == slice(None)) for part in args[1])
    if function is operator.getitem:
        items = args[1] if isinstance(args[1], tuple) else (args[1],)
        return len(items) > 1 and (any(_is_open(part) or _is_vector_mask(part)
                                       for part in items[1:]) or (
            isinstance(items[0], slice) and items[0] != slice(None)))
    if function not in REDUCED and function not in _ALONG:
        return function in _RULES
    _, given = _given(function, args, options)
    axis = given.get("axis", -1 if function in _BY_THE_LAST else None)
    return axis is not None and 0 not in axes_of(axis, x.ndim)


def _given(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[
        str, dict[str, Any]]:
    """The name of a function, and the arguments of a call by theirs."""
    name, body = full_name(function), ROWS[function].body
    assert body is not None
    return name, bound(name, function, body, args, options)[1]


def plain(array: Any, masks: Sequence[Any], *, shares: bool = False) -> Any:
    """The array, the Selection or the grid of which these are the masks."""
    if all(mask is None for mask in masks):
        return array
    if masks[0] is not None and all(mask is None for mask in masks[1:]):
        return Selection(array, masks[0], current().builder.locs, shares=shares)
    return Grid(array, tuple(masks), shares=shares)


def call(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A function of which an argument is a grid. Raises OutOfRangeError (W123) for those that have
    no meaning on one."""
    rule = _RULES.get(function)
    if rule is not None:
        return rule(*args, **options)
    if isinstance(function, np.ufunc):
        return elementwise(function, args, options)
    grid = first_grid(args)
    grid = as_grid(args[0]) if grid is None else grid
    if function in REDUCED or function in _ALONG:
        return along(function, args, options)
    row = ROWS.get(function)
    if function in (SHAPE, NDIM, SIZE):
        return grid.shape if function is SHAPE else grid.ndim if function is NDIM else grid.size
    if row is not None and getattr(row.body, "__module__", "").endswith(".pointwise"):
        return elementwise(function, args, options)
    raise grid.refused(f"given to {full_name(function)}")


# -- element by element ------------------------------------------------------------------


def side_by_side(operands: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """The operands' arrays with elements side by side, and the masks of what is made of them."""
    grids = [as_grid(x) if np.ndim(x) else None for x in operands]
    rank = max(grid.ndim for grid in grids if grid is not None)
    masks: list[Any] = []
    for axis in range(-rank, 0):
        there = [grid.masks[axis] for grid in grids if grid is not None and grid.ndim >= -axis]
        masks.append(next((mask for mask in there if mask is not None), None))
    most = max(sum(mask is not None for mask in grid.masks) for grid in grids if grid is not None)
    if sum(mask is not None for mask in masks) > most and may_measure():
        # It has more places than any operand: that many elements would be computed for nothing.
        current().asked.measured = True
        raise next(grid for grid in grids if grid is not None).refused("combined along axes")
    arrays = []
    for x, grid in zip(operands, grids, strict=True):
        if grid is None:
            arrays.append(x)
            continue
        array = grid.array
        for axis in range(-grid.ndim, 0):
            if masks[axis] is not None:
                array = _beside(array, grid.masks[axis], axis, masks[axis])
        arrays.append(array)
    return arrays, tuple(masks)


def _beside(array: Any, own: Any, axis: int, mask: Any) -> Any:
    """The elements along an axis, chosen by their own mask or all of them, in the places of
    another mask; one that is repeated stays. That there are as many is checked (W124)."""
    if array.type.shape[axis] == 1 if own is None else same_mask(own, mask):
        return array
    rows: Any = np.moveaxis(array, axis, 0)
    if own is not None:
        rows = Selection(rows, own, current().builder.locs)
    return np.moveaxis(aligned(rows, mask), 0, axis)


def elementwise(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A function of each element, of grids whose axes agree."""
    arrays, masks = side_by_side(args)
    made = function(*arrays, **options)
    parts = made if isinstance(made, tuple) else (made,)
    found = tuple(plain(strong(part), masks) for part in parts)
    return found if isinstance(made, tuple) else found[0]


def _where(condition: Any, x: Any, y: Any) -> Any:
    return elementwise(np.where, (condition, x, y), {})


# -- along axes --------------------------------------------------------------------------

# What keeps the axis that it goes along, of that what goes along the last one unless told, and what
# else takes the axis away.
_KEEPING = frozenset((np.sort, np.argsort, np.cumsum, np.cumprod, np.flip, np.roll))
_BY_THE_LAST = frozenset((np.sort, np.argsort))
_ALONG = _KEEPING | {np.argmax, np.argmin, np.median, np.ptp, np.linalg.norm}


def along(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A reduction, or a function along axes without masks."""
    name, given = _given(function, args, options)
    x = as_grid(given.pop(next(iter(given))))
    axis = given.pop("axis", -1 if function in _BY_THE_LAST else None)
    axes = axes_of(axis, x.ndim)
    chosen = [at for at in axes if x.masks[at] is not None]
    array: Any = x.array
    if function in REDUCED:
        if given.get("where", True) is not True or "out" in given:
            raise x.refused(f"given to {name} with where= or out=")
        if function is COUNT:
            function, array = np.sum, np.not_equal(array, 0)
        for at in chosen:
            if function in EXTREMES and "initial" not in options:
                some = Selection(array, x.masks[at], current().builder.locs)
                array, given["initial"] = not_nothing(some, function in LARGEST, name)
        if chosen:
            given["where"] = _outer(x, chosen)
        axis = axes
    elif chosen or axis is None:
        raise x.refused(f"given to {name} along an axis of which a mask chooses")
    made = function(array, axis=axis, **given)
    if function in _KEEPING:
        return plain(made, x.masks)
    kept = given.get("keepdims", False)
    return plain(made, [None if at in axes else mask for at, mask in enumerate(x.masks)
                        if kept or at not in axes])


def _outer(x: Grid, axes: Sequence[int]) -> Any:
    """Where all the masks of those axes hold, with as many dims as the array."""
    found: Any = None
    for at in axes:
        others = tuple(axis for axis in range(x.ndim) if axis != at)
        wide: Any = np.expand_dims(strong(x.masks[at]), others)
        found = wide if found is None else found & wide
    return found


def chosen_in(x: Grid) -> Any:
    """Where an element of the whole array is one of the grid's."""
    axes = [at for at, mask in enumerate(x.masks) if mask is not None]
    return np.broadcast_to(_outer(x, axes), x.array.shape)


# -- products and orders of axes ---------------------------------------------------------


def product(a: Any, b: Any, out: Any = None) -> Any:
    """Products of vectors and matrices, and of stacks of them with one matrix."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    x, y = as_grid(a), as_grid(b)
    if y.ndim > 2 or out is not None:
        raise (x if first_grid((a,)) else y).refused("multiplied with a stack of matrices")
    inner = y.ndim - 2 if y.ndim == 2 else 0
    left, right = x.array, y.array
    mask = x.masks[-1] if x.masks[-1] is not None else y.masks[inner]
    if mask is not None:
        left = _beside(left, x.masks[-1], -1, mask)
        right = _beside(right, y.masks[inner], inner - y.ndim, mask)
        left = masked(mask, left, left.dtype.type(0))
        right = masked(mask[:, None] if y.ndim == 2 else mask, right, right.dtype.type(0))
    return plain(strong(np.matmul(left, right)), (*x.masks[:-1], *y.masks[inner + 1:]))


def multiplied(a: Any, b: Any, out: Any = None, **options: Any) -> Any:
    """``np.matmul``: as ``np.dot`` has it, but for stacks, of which matrix meets matrix."""
    if np.ndim(b) < 3 and not options:
        return product(a, b, out)
    grids = [as_grid(a), as_grid(b)]
    if options or out is not None or any(
            mask is not None for grid in grids for mask in grid.masks[-2:]):
        raise (grids[0] if first_grid((a,)) else grids[1]).refused("multiplied with a stack")
    (left, right), masks = side_by_side((a, b))
    made = strong(np.matmul(left, right))
    return plain(made, (*masks[:-2], *(None,) * (made.ndim - len(masks) + 2)))


def _raveled(a: Any, order: Any = "C") -> Any:
    x = as_grid(a)
    if order not in ("C", "A", "K"):
        raise x.refused("given to np.ravel in another order")
    return Selection(x.array, chosen_in(x), current().builder.locs, shares=True)


def _reshaped(a: Any, shape: Any, **options: Any) -> Any:
    x = as_grid(a)
    (wanted,) = shape if isinstance(shape, (tuple, list)) and len(shape) == 1 else (shape,)
    if options or not isinstance(wanted, int) or wanted != -1:
        raise x.refused("given to np.reshape")
    return _raveled(x)


def _transposed(a: Any, axes: Any = None) -> Any:
    x = as_grid(a)
    order = tuple(reversed(range(x.ndim))) if axes is None else tuple(
        axis_of(axis, x.ndim) for axis in axes)
    return plain(np.transpose(x.array, order), [x.masks[at] for at in order], shares=True)


def _swapped(a: Any, axis1: Any, axis2: Any) -> Any:
    rank = np.ndim(a)
    order = [*range(rank)]
    one, two = axis_of(axis1, rank), axis_of(axis2, rank)
    order[one], order[two] = two, one
    return _transposed(a, order)


# -- elements by index -------------------------------------------------------------------


def item(x: Any, index: Any) -> Any:
    """The elements at ints, slices with computed bounds and masks, along an axis each."""
    grid = as_grid(x)
    array, masks = grid.array, list(grid.masks)
    axis = 0
    for part in _items(index, grid):
        if part is None:
            array, axis = np.expand_dims(array, axis), axis + 1
            masks.insert(axis - 1, None)
        elif isinstance(part, slice):
            array, masks[axis] = _cut(array, masks[axis], axis, part)
            axis += 1
        elif isinstance(part, Selection) or is_mask(part):
            masks[axis] = _among(grid, masks[axis], part, array.type.shape[axis])
            axis += 1
        else:
            array = _taken(array, masks.pop(axis), axis, part)
    shares = isinstance(x, Chosen) and not any(map(_is_vector_mask, _items(index, grid)))
    return plain(array, masks, shares=shares) if masks else array


def _items(index: Any, x: Grid) -> list[Any]:
    """The items of an index, with a slice for each axis that it leaves out. Raises OutOfRangeError
    (W122, W123)."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(part is not None and part is not Ellipsis for part in items)
    dots = [at for at, part in enumerate(items) if part is Ellipsis]
    if used > x.ndim or len(dots) > 1:
        raise error("W122", f"{used} indices for an array of {x.ndim} dims", types=[x.array.type])
    at = dots[0] if dots else len(items)
    items[at:at + 1] = [slice(None)] * (x.ndim - used)
    if not all(map(_is_simple, items)) or not _masks_stand_alone(items):
        raise x.refused("indexed")
    return items


def _is_simple(part: Any) -> bool:
    return part is None or isinstance(part, slice) or _is_int(part) or _is_vector_mask(part)


def _is_int(part: Any) -> bool:
    return (isinstance(part, (int, np.integer)) and not isinstance(part, bool)) or isinstance(
        part, SymbolicDim) or is_computed(part)


def _is_vector_mask(part: Any) -> bool:
    return (is_mask(part) and part.ndim == 1) or (
        isinstance(part, Selection) and part.known is None and part.dtype == _BOOL
        and part.mask.ndim == part.array.ndim == 1)


def _masks_stand_alone(items: Sequence[Any]) -> bool:
    """NumPy takes several masks, and ints beside a mask, together: not each along its axis; where
    ints follow right after one it is the same."""
    places = [at for at, part in enumerate(items) if _is_vector_mask(part)]
    ints = [at for at, part in enumerate(items) if _is_int(part)]
    return not places or (len(places) == 1 and (not ints or sorted(places + ints) == list(
        range(min(places + ints), max(places + ints) + 1))))


def _cut(array: Any, mask: Any, axis: int, run: slice) -> tuple[Any, Any]:
    """A slice along an axis, of the elements that its mask chooses if there is one."""
    if run == slice(None):
        return array, mask
    computed = is_computed(run.start) or is_computed(run.stop)
    if mask is None and (not computed or length_of(run) is not None):
        return getitem(array, (*(slice(None),) * axis, run)), None
    step = 1 if run.step is None else as_int(run.step, "slice step")
    if not step:
        raise ValueError("slice step cannot be zero")
    size = array.type.shape[axis]
    number: Any = current().emit("iota", axis=0, dtype=I64, shape=(size,))
    count = as_number(size)
    if mask is not None:
        number, count = np.cumsum(mask) - 1, np.sum(mask)
    run = slice(run.start, run.stop, step)
    if mask is not None:
        inside: Any = mask & within(number, count, run)
        inside = flip(inside) if step < 0 else inside
    else:  # of all, counted from the end that is the first
        inside = within(flip(number) if step < 0 else number, count, run)
    return flip(array, axis) if step < 0 else array, inside


def _among(x: Grid, mask: Any, part: Any, size: Any) -> Any:
    """One more mask along an axis: of all of it, or of the elements that are chosen."""
    if isinstance(part, Selection):
        if mask is None or not same_mask(part.mask, mask):
            raise x.refused("indexed by a mask of other elements")
        return mask & part.array
    found = cast(strong(part), _BOOL)
    if found.type.shape != (size,):
        raise error("W122", "the mask does not have the size of the axis", types=[
            x.array.type, found.type])
    if mask is not None:
        raise x.refused("indexed by a mask of all elements")
    return found


def _taken(array: Any, mask: Any, axis: int, number: Any) -> Any:
    """The elements at one place of an axis, counted among the chosen ones."""
    if mask is not None:
        rows = Selection(np.moveaxis(array, axis, 0), mask, current().builder.locs)
        return rows[number]
    return getitem(array, (*(slice(None),) * axis, number))


def grid_of(x: Any, index: Any) -> Any:
    """``x[:, :k]``, ``x[:k, :k]`` and ``x[:, m]``, of an array; None for indices that others know
    of: without masks or computed bounds, or with one along the first axis only."""
    items = index if isinstance(index, tuple) else (index,)
    odd = [at for at, part in enumerate(items) if _is_open(part) or (
        _is_vector_mask(part) and len(items) > 1)]
    if not odd or np.ndim(x) == 0 or not all(
            part is Ellipsis or _is_simple(part) for part in items):
        return None
    if all(isinstance(items[at], slice) for at in odd):
        before = items[:odd[0]]
        if len(odd) == 1 and all(map(_is_int, before)):
            return None  # a Selection
        made = item(x, index)
        if not isinstance(x, Tracer):
            return made
        view = current().api.getitem(x, whole_of(index))  # what is written to x is seen in it
        return plain(view, as_grid(made).masks, shares=True)
    return item(x, index) if _masks_stand_alone(_filled(items, np.ndim(x))) else None


def whole_of(index: Any) -> tuple[Any, ...]:
    """The index with all of each axis of which a mask or a computed bound chooses."""
    items = index if isinstance(index, tuple) else (index,)
    backward = slice(None, None, -1)
    return tuple(
        (backward if part.step is not None and as_int(part.step, "slice step") < 0 else slice(None))
        if _is_open(part) else slice(None) if _is_vector_mask(part) else part for part in items)


def _filled(items: Sequence[Any], rank: int) -> list[Any]:
    used = sum(part is not None and part is not Ellipsis for part in items)
    return [part for whole in items for part in (
        [slice(None)] * max(rank - used, 1) if whole is Ellipsis else [whole])]


def _is_open(part: Any) -> bool:
    """True for a slice of which the code does not tell how long it is."""
    return isinstance(part, slice) and (is_computed(part.start) or is_computed(part.stop)) and (
        length_of(part) is None)


_RULES: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    np.dot: product, np.matmul: multiplied,
    np.inner: lambda a, b: product(a, np.matrix_transpose(b) if np.ndim(b) > 1 else b),
    np.transpose: _transposed, np.permute_dims: _transposed,
    np.swapaxes: _swapped, np.matrix_transpose: lambda x: _swapped(x, -1, -2),
    np.ravel: _raveled, np.reshape: _reshaped, np.copy: lambda x, order="C": x.copy(),
    np.where: _where, operator.getitem: item})

