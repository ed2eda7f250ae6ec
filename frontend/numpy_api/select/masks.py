"""Boolean masks: ``x[mask]`` inside of a reduction, and as the value of ``y[mask] = x[mask]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.dims import differ
from ....ir.types import number_kind
from ...tracing.arrays.selection import Selection
from ...tracing.arrays.variable import Variable
from ...tracing.operand import axes_of, broadcast, cast, matched, to_tracer
from ...tracing.recorder import current
from ...tracing.tracer import Tracer
from ..binding import bound
from ..registry import ROWS, full_name

_REDUCED = frozenset((
    np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all, np.max, np.min, np.amax, np.amin,
    np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.count_nonzero))
# Named here, where no trace has put stand-ins in the place of NumPy's functions.
_LARGEST, _SHAPE, _NDIM, _SIZE = frozenset((np.max, np.amax)), np.shape, np.ndim, np.size
_EXTREMES = _LARGEST | {np.min, np.amin}


def is_mask(index: Any) -> bool:
    """True for an array of truth values, which chooses elements."""
    return isinstance(index, (np.ndarray, Tracer, Variable)) and index.dtype.kind == "b"


def select(x: Any, index: Any) -> Selection:
    """``x[index]`` for a mask."""
    array, mask = to_tracer(x), to_tracer(index)
    rank = mask.ndim
    if not 0 < rank <= array.ndim or any(map(differ, mask.type.shape, array.type.shape)):
        raise error("W122", "the mask does not have the shape of the array",
                    types=[array.type, mask.type])
    return Selection(array, matched(mask, array.type.shape[:rank]), current().builder.locs)


def reduced(
    function: Callable[..., Any], x: Selection, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """A reduction of chosen elements: one of the whole array that leaves out the others."""
    name, row = full_name(function), ROWS.get(function)
    if function is _SIZE and len(args) == 1:
        return x.size
    if function in (_SHAPE, _NDIM):
        return x.shape if function is _SHAPE else x.ndim
    if function not in _REDUCED or row is None or row.body is None or not args:
        raise x.refused(f"given to {name}")
    _, given = bound(name, function, row.body, args, options)
    given.pop("a", None)
    if given.get("where", True) is not True or "out" in given:
        raise x.refused(f"given to {name} with where= or out=")
    axes, keepdims = axes_of(given.pop("axis", None), x.ndim), given.pop("keepdims", False)
    if 0 not in axes:
        raise x.refused(f"reduced over another axis than its first by {name}")
    rank = x.mask.ndim
    over = (*range(rank), *(axis + rank - 1 for axis in axes if axis))
    array: Any = x.array
    if function in _EXTREMES and "initial" not in given:
        array, given["initial"] = _not_nothing(x, function in _LARGEST, name)
    if function is np.count_nonzero:
        function, array = np.sum, np.not_equal(array, 0)
    result = function(array, axis=over, where=x.where(), **given)
    return np.expand_dims(result, axes) if keepdims else result


def _not_nothing(x: Selection, largest: bool, name: str) -> tuple[Any, Any]:
    """The array, once there are elements, and what no element is beyond."""
    if x.dtype.kind == "c":
        raise error("W113", f"{name} of x[mask] of complex numbers is not supported",
                    types=[x.array.type], hint=f"{name} of np.where(mask, x, what none is beyond)")
    some: Any = np.any(x.mask)
    spare = broadcast(cast(some, np.dtype(np.int64)) - 1, x.array.type.shape)
    array = current().emit("ensure", x.array, spare, message=(
        f"{name} of x[mask], which has no elements, has no value"))
    if number_kind(x.dtype) == "f":
        return array, -np.inf if largest else np.inf
    if x.dtype.kind == "b":
        return array, not largest
    limits = np.iinfo(x.dtype)
    return array, int(limits.min if largest else limits.max)


def assigned(index: Any, value: Selection) -> Tracer:
    """The array to take elements from where the mask of ``y[mask] = x[mask]`` holds."""
    mask = to_tracer(index)
    if not is_mask(index) or not value.same(mask):
        raise error("W123", "elements under one mask are put in places of another, or the masks "
                            "are not known to be equal", types=[value.array.type, mask.type],
                    hint="use one mask for both: m = x > 0; y[m] = x[m]")
    array: Tracer = value.array
    return array
