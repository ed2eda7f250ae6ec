"""``np.delete`` and ``np.insert`` at computed places.

One place leaves as many rows as are known, taken in an order that is computed; with several it is
not known how many are left, as some of them may be equal: elements under a mask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.convert import conversion
from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ....ir.indices.proof import larger
from ....ir.types import I64
from ...tracing.context.active import current
from ...tracing.operand import as_number, cast, strong
from ...tracing.values.tracer import Tracer
from ..select.index import getitem

_I64 = np.dtype(np.int64)


def without(x: Tracer, obj: Any, axis: int) -> Any:
    """The rows along an axis but for those at computed places, or under a mask."""
    before, size = (slice(None),) * axis, x.type.shape[axis]
    if np.ndim(obj) == 0:
        place = _placed(obj, size, as_number(size) - 1)
        number: Any = _numbers(larger(size - 1, 0))
        return getitem(x, (*before, number + cast(number >= place, _I64)))
    api = current().api
    gone = obj if obj.dtype.kind == "b" else api.update(
        current().full(False, np.dtype(bool), (size,)), obj, True, "set")
    return api.getitem(x, (*before, ~gone) if axis else ~gone)


def with_rows(x: Tracer, obj: Any, rows: Tracer, axis: int) -> Any:
    """The rows along an axis with others before the one at a computed place."""
    size, count = x.type.shape[axis], rows.type.shape[axis]
    place = _placed(obj, size, as_number(size))
    number, many = _numbers(size + count), as_number(count)
    order = np.where(number < place, number, np.where(
        number < place + many, number - place + as_number(size), number - many))
    wide = current().emit("concatenate", x, rows, axis=axis)
    return getitem(wide, (*(slice(None),) * axis, order))


def _numbers(size: Dim) -> Any:
    return current().emit("iota", axis=0, dtype=I64, shape=(size,))


def _placed(obj: Any, size: Dim, last: Any) -> Any:
    """A place counted from the front, which is at most ``last`` in every step."""
    given = strong(obj)
    if given.dtype.kind not in "iu":
        raise error("W123", f"a place of dtype {given.dtype}", types=[given.type],
                    hint=conversion(obj, I64, "i"))
    place: Any = cast(given, _I64)
    place = np.where(place < 0, place + as_number(size), place)
    spare: Any = np.minimum(place, last - place)
    return current().emit("ensure", place, spare, message=(
        f"a place is out of range for an axis with size {size}"))
