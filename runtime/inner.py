"""NumPy's own loops for host steps, as native code calls them: see ``ir/plans/inner``.

What a ufunc of NumPy is in memory is public (``numpy/ufuncobject.h``): after the object's header
come the numbers of its operands, then its loops and what each is handed. Steps of several matrices,
empty ones and those whose sizes are not known before are left to Python.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..ir.ops.table import OPS
from ..ir.plans.inner import WORDS
from ..ir.plans.plan import Host, Plan, host_steps, host_types
from ..ir.types import C128, F64, TensorType

_HEAD = object.__basicsize__
_TABLES = _HEAD + 4 * ctypes.sizeof(ctypes.c_int)  # behind nin, nout, nargs and the identity
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_Row = tuple[int, int, Sequence[int], Sequence[int], int]


class InnerLoops:
    """The table of a plan; ``address`` is 0 if no step has a loop."""

    def __init__(self, plan: Plan) -> None:
        types, self._held, self.address = plan.types(), list[Any](), 0
        rows = [_row(step, host_types(step, types)) for step in host_steps(plan)]
        if any(row is not None for row in rows):
            self.address = self._array(ctypes.c_int64, [
                word for row in rows for word in self._words(row)])

    def _words(self, row: _Row | None) -> Sequence[int]:
        if row is None:
            return [0] * len(WORDS)
        function, data, dims, steps, slot = row
        arrays = (self._array(ctypes.c_ssize_t, each) for each in (dims, steps))
        return [function, data, *arrays, slot]

    def _array(self, kind: Any, numbers: Sequence[int]) -> int:
        self._held.append((kind * len(numbers))(*numbers))
        return ctypes.addressof(self._held[-1])


def _row(step: Host, types: Sequence[TensorType]) -> _Row | None:
    """The row of a step, of which these are the types of its operands and results."""
    inner = OPS[step.function].inner
    shapes = [tuple([dim for dim in type_.shape if isinstance(dim, int)]) for type_ in types]
    given = len(step.inputs)
    if inner is None or any(len(shape) != 2 for shape in shapes[:given]) or any(
            0 in shape or len(shape) != type_.rank or type_.dtype not in (F64, C128)
            for shape, type_ in zip(shapes, types, strict=True)):
        return None
    ufunc = getattr(getattr(np.linalg, "_umath_linalg", None), inner(**dict(step.attrs)), None)
    if not isinstance(ufunc, np.ufunc) or ufunc.signature is None:
        return None
    loop = _loop(ufunc, types)
    names = [re.findall(r"\w+", part) for part in re.findall(r"\(([^)]*)\)", ufunc.signature)]
    if loop is None or [*map(len, names)] != [*map(len, shapes)]:
        return None
    sizes = dict(zip(_flat(names), _flat(shapes), strict=True))
    steps = [0] * len(types)  # from one matrix to the next one
    for shape, type_ in zip(shapes, types, strict=True):
        steps += np.empty(shape, type_.dtype.numpy).strides
    return (*loop, [1, *(sizes[name] for name in dict.fromkeys(_flat(names)))], steps, given)


def _loop(ufunc: np.ufunc, types: Sequence[TensorType]) -> tuple[int, int] | None:
    """The addresses of a loop for these types, and of what it is handed."""
    letters = "".join(type_.dtype.numpy.char for type_ in types)
    wanted = f"{letters[:ufunc.nin]}->{letters[ufunc.nin:]}"
    counts = (ctypes.c_int * 3).from_address(id(ufunc) + _HEAD)
    if wanted not in ufunc.types or (*counts,) != (ufunc.nin, ufunc.nout, ufunc.nargs):
        return None
    functions, data = (ctypes.c_void_p * 2).from_address(id(ufunc) + _TABLES)
    at = ufunc.types.index(wanted) * _POINTER
    function, own = (None if table is None else ctypes.c_void_p.from_address(table + at).value
                     for table in (functions, data))
    return None if function is None else (function, own or 0)


def _flat(parts: Sequence[Sequence[Any]]) -> Iterator[Any]:
    return (item for part in parts for item in part)
