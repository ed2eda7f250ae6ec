"""The host steps of a native program: its calls into Python.

Native code calls ``HostSteps`` with the number of a step and the address of its context: where its
windows lie, and the sizes that are known at run time only. Memory of the program is lent to
functions of NumPy as arrays, without copying it, and copied for those of the user, which may keep
what they are given. What a function raises ends the run, and is the error of its call.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.host import call_host
from ..ir.indices.index import Dim
from ..ir.loc import Loc
from ..ir.ops.op import host_name
from ..ir.ops.table import OPS
from ..ir.plans.plan import Host, Plan, host_sizes, host_steps, host_types
from ..ir.record import record
from ..ir.types import TensorType
from .inner import InnerLoops

_LENT = 16  # contexts of a step whose arrays are kept


class HostSteps:
    """The host steps of one plan; to be held as long as its code, which runs those itself that are
    ``loops`` of NumPy."""

    def __init__(self, plan: Plan) -> None:
        types, self.loops = plan.types(), InnerLoops(plan)
        self._sites = [_Site.of(step, types) for step in host_steps(plan)]

    def __call__(self, number: int, context: int) -> None:
        """Run a step."""
        site = self._sites[number]
        try:
            site.run(context)
        except BaseException as problem:
            if not site.foreign:  # its frames hold arrays that are only lent
                problem.__traceback__ = problem.__context__ = problem.__cause__ = None
            raise


_Window = tuple[np.dtype[Any], tuple[int, ...], Any]  # dtype, shape, ctypes' type of its memory


def _window(type_: TensorType, places: Mapping[Dim, int]) -> _Window:
    """An array that is lent: ``~n`` stands for the size at n in the context, and its memory's type
    is None then."""
    shape = tuple([dim if isinstance(dim, int) else ~places[dim] for dim in type_.shape])
    dtype = type_.dtype.numpy
    known = all(dim >= 0 for dim in shape)
    return dtype, shape, _block(math.prod(shape) * dtype.itemsize) if known else None


def _sized(window: _Window, context: Sequence[int]) -> _Window:
    """A window with its sizes."""
    dtype, shape, block = window
    if block is None:
        shape = tuple([context[~dim] if dim < 0 else dim for dim in shape])
        block = _block(math.prod(shape) * dtype.itemsize)
    return dtype, shape, block


@functools.lru_cache(256)  # ctypes would make it anew, which takes longer than the rest of a call
def _block(size: int) -> Any:
    return ctypes.c_char * size


@record(frozen=True, eq=False)
class _Site:
    """One host step, of which ``given`` windows are inputs."""

    function: Callable[..., Any]
    attrs: Mapping[str, Any]
    name: str
    locs: Sequence[Loc]
    foreign: bool
    given: int
    windows: Sequence[_Window]
    static: bool  # no window has a size that is known at run time only
    words: Any    # the type of a context
    lent: dict[tuple[int, ...], tuple[list[Any], list[Any]]]  # by context, as steps come again

    @staticmethod
    def of(step: Host, types: Mapping[str, TensorType]) -> _Site:
        row, attrs, sizes = OPS[step.function], dict(step.attrs), host_sizes(step, types)
        count = len(step.inputs) + len(step.outputs)
        places = {dim: count + at for at, dim in enumerate(sizes)}
        windows = [_window(type_, places) for type_ in host_types(step, types)]
        assert row.ref is not None
        return _Site(row.ref, attrs, host_name(row, attrs), step.locs, row.foreign,
                     len(step.inputs), windows, not sizes,
                     ctypes.c_int64 * (count + len(sizes)), {})

    def run(self, address: int) -> None:
        """Call the function, and put what it makes where the program wants it."""
        context = tuple(self.words.from_address(address))
        arrays = self.lent.get(context)
        given, targets = self._lend(context) if arrays is None else arrays
        if self.foreign:
            given = [array.copy() for array in given]
        made = call_host(self.function, given, self.attrs,
                         [(target.dtype, target.shape) for target in targets], self.name,
                         self.locs)
        for target, value in zip(targets, made, strict=True):
            target[...] = value

    def _lend(self, context: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
        """The arrays of a context, which are kept: all that they are is addresses and sizes, and
        those of the last call or round come again and again."""
        windows = self.windows
        if not self.static:
            windows = [_sized(window, context) for window in windows]
        arrays = [np.ndarray(shape, dtype, block.from_address(place))
                  for (dtype, shape, block), place in zip(windows, context, strict=False)]
        if len(self.lent) >= _LENT:
            self.lent.clear()
        found = self.lent[context] = arrays[:self.given], arrays[self.given:]
        return found
