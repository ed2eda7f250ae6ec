"""The host steps of a native program: its calls into Python.

Native code calls ``address`` with the number of a step and its context: where its windows lie, and
the sizes that are known at run time only. The callback takes the GIL. It lends memory of the
program to functions of NumPy as arrays, without copying it, and copies to those of the user, which
may keep what they are given. What a function raises waits here, in its thread, until native code
has let go of all that the step holds and calls ``fail``.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..ir.host import call_host
from ..ir.index import Dim
from ..ir.ops.op import host_name
from ..ir.ops.table import OPS
from ..ir.plan import HOST_FAILED, Host, Plan, host_sizes, host_steps, host_types
from ..ir.types import TensorType

Array = np.ndarray[Any, Any]

_Callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p)


class HostSteps:
    """The callback of one plan, which has host steps; to be held as long as its code."""

    def __init__(self, plan: Plan) -> None:
        steps, types = host_steps(plan), plan.types()
        sites = [_Site.of(step, types) for step in steps]
        pending = threading.local()

        def call(number: int, context: int) -> int:
            try:
                sites[number].run(context)
            except BaseException as problem:
                if not sites[number].foreign:  # its frames hold arrays that are only lent
                    problem.__traceback__ = problem.__context__ = problem.__cause__ = None
                pending.problem = problem
                return HOST_FAILED
            return 0

        def fail() -> NoReturn:
            problem = pending.problem
            del pending.problem
            raise problem

        self.fail: Callable[[], NoReturn] = fail
        self._callback = _Callback(call)

    @property
    def address(self) -> int:
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0


@dataclass(frozen=True, eq=False)
class _Window:
    """An array in memory that is lent: an index into the context stands for a size, as ``~n``.
    ``block`` is ctypes' type of so many bytes, None if they depend on sizes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    block: Any

    @staticmethod
    def of(type_: TensorType, places: Mapping[Dim, int]) -> _Window:
        shape = tuple([dim if isinstance(dim, int) else ~places[dim] for dim in type_.shape])
        dtype = type_.dtype.numpy
        known = None if any(dim < 0 for dim in shape) else _block(shape, dtype)
        return _Window(dtype, shape, known)

    def array(self, address: int, context: Sequence[int]) -> Array:
        shape, block = self.shape, self.block
        if block is None:
            shape = tuple([context[~dim] if dim < 0 else dim for dim in shape])
            block = _block(shape, self.dtype)
        return np.ndarray(shape, self.dtype, block.from_address(address))


def _block(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    return ctypes.c_char * (math.prod(shape) * dtype.itemsize)


@dataclass(frozen=True, eq=False)
class _Site:
    """One host step."""

    step: Host
    function: Callable[..., Any]
    attrs: Mapping[str, Any]
    name: str
    foreign: bool
    inputs: tuple[_Window, ...]
    outputs: tuple[_Window, ...]
    words: Any  # the type of a context

    @staticmethod
    def of(step: Host, types: Mapping[str, TensorType]) -> _Site:
        row, attrs, sizes = OPS[step.function], dict(step.attrs), host_sizes(step, types)
        count = len(step.inputs) + len(step.outputs)
        places = {dim: count + at for at, dim in enumerate(sizes)}
        windows = tuple([_Window.of(type_, places) for type_ in host_types(step, types)])
        given = len(step.inputs)
        assert row.ref is not None
        return _Site(step, row.ref, attrs, host_name(row, attrs), row.foreign, windows[:given],
                     windows[given:], ctypes.c_int64 * (count + len(sizes)))

    def run(self, address: int) -> None:
        """Call the function, and put what it makes where the program wants it."""
        context = self.words.from_address(address)[:]
        count = len(self.inputs)
        given = [window.array(place, context)
                 for window, place in zip(self.inputs, context, strict=False)]
        if self.foreign:
            given = [array.copy() for array in given]
        targets = [window.array(place, context)
                   for window, place in zip(self.outputs, context[count:], strict=False)]
        made = call_host(self.function, given, self.attrs,
                         [(array.dtype, array.shape) for array in targets], self.name,
                         self.step.locs)
        for target, value in zip(targets, made, strict=True):
            target[...] = value
