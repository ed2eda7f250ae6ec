"""Variable: a named array that keeps its value between calls and can be assigned.

In traced code it reads as an array (``v @ x``, ``v[0]``, ``np.sum(v)``) and assignments become
nodes of the graph; outside of any trace it is its value, and assignments happen at once.

The value is an array that never changes for whoever has it: assigning swaps a reference, or writes
where nobody has it. ``runtime.state`` has the rules that all who read or replace values follow.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from ....ir.diagnose import error
from ....ir.forks import freed
from ....ir.types import Device, TensorType, dtype_of, keeps_kind
from ....runtime.state import Cell, Writer, commit, cut, written_here
from ...face.source import is_internal, user_loc
from ...numpy_api.select.at import At
from ..context.active import context_for
from ..context.recorder import ACTIVE, TraceContext
from ..context.scope import SCOPE, checked_label
from ..subclasses import checked_class
from ..values.methods import ArrayMethods
from ..values.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Array = np.ndarray[Any, Any]


class Variable(ArrayMethods):
    """A mutable array; ``trainable`` says whether optimizers take it by default.

    The dtype and shape are those of the first value and never change. The name begins with the
    name scopes around (``layer1/w``) and is made unique among living variables (``Variable``,
    ``Variable_1``), as checkpoints go by it. One that is made while a ``weft.Graph`` is built is
    listed there, and its name is unique in that graph: a graph that is built again has the same.
    ``home`` is where it lives: what ``weft.device`` says where it is made, if anything. Where
    nothing is said, ``placed`` is where a session of several devices has put it last.
    """

    # Those that no graph lists have different names; a dead one gives its name back.
    _named: ClassVar[WeakValueDictionary[str, Variable]] = WeakValueDictionary()
    _naming: ClassVar[Any] = freed(threading.RLock())

    def __init__(self, value: Any, name: str | None = None, trainable: bool = True) -> None:
        if isinstance(value, Tracer):
            raise error("W203", "a variable needs a first value that is known now", locs=user_loc(),
                        types=[value.type], hint="make it from a plain array, then assign")
        checked_class(value, "the value of a variable")
        stem = SCOPE.get().prefix + (
            checked_label("" if name is None else name, "variable") or "Variable")
        try:
            array = np.array(value)
        except ValueError as problem:
            raise error("W112", f"a variable cannot hold a {type(value).__name__} with parts of "
                                "other lengths", locs=user_loc(),
                        hint="make the parts equally long") from problem
        try:
            self.type = TensorType(dtype_of(array), array.shape)
        except TypeError:
            raise error("W112", f"a variable cannot hold dtype {array.dtype}",
                        locs=user_loc()) from None
        self.trainable = trainable
        self.home = SCOPE.get().device
        self.placed: Device | None = None
        self.cell = Cell(array)
        trace = ACTIVE.get()
        if trace is not None and not trace.endless and not is_internal(sys._getframe(1)):
            trace.kept.append((stem, user_loc()))
        adopted = None if trace is None else trace.adopt(self, stem)
        self.name = self._register(stem) if adopted is None else adopted

    def _register(self, stem: str) -> str:
        with Variable._naming:
            name, count = stem, 0
            while name in Variable._named:
                count += 1
                name = f"{stem}_{count}"
            Variable._named[name] = self
            return name

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a variable of its own, with the value of that moment."""
        return Variable, (self.cell.value.copy(), self.name, self.trainable)

    # -- the value ------------------------------------------------------------------------------

    @property
    def value(self) -> Any:
        """The array itself, read-only; it stays as it is when the variable changes. In a trace: a
        read of the variable, as ``v[...]`` is, so that each step has the value of that moment."""
        ctx = ACTIVE.get()
        return self.cell.value if ctx is None else ctx.apply(ctx.api.getitem, (self, ...))

    def numpy(self) -> Any:
        """A copy of the value, which may be written; in a trace, of what is read there."""
        return self.value.copy()

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype.numpy

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(dim for dim in self.type.shape if isinstance(dim, int))

    @property
    def ndim(self) -> int:
        return self.type.rank

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"Variable<{self.type} {self.name!r}>"

    # -- assignment -----------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        raise error("W203", f"the elements of variable {self.name} are not set one by one",
                    locs=user_loc(), types=[self.type],
                    hint="assign all of them: " + (
                        "x = v.numpy(), change that, and v.assign(x)" if ACTIVE.get() is None else
                        "v.assign(v.at[i].set(x))"))

    def assign(self, value: Any) -> Any:
        """Replace the value. In a trace: an operation of the graph; else at once, giving self.

        Raises FeedError (W304) if the value has another dtype or shape. A Python number takes
        the dtype, if that keeps its kind: an int that of floats, but no float that of integers.
        Raises RangeError (W131) for an int that the dtype cannot hold.
        """
        return self._assign(value, "assign_var")

    def assign_add(self, value: Any) -> Any:
        """Add to the value, to which what is added broadcasts; see ``assign``."""
        return self._assign(value, "update_var")

    def assign_sub(self, value: Any) -> Any:
        """Subtract from the value; see ``assign_add``."""
        return self._assign(value, "update_var", np.negative)

    def _assign(self, value: Any, op: str, change: np.ufunc = np.positive) -> Any:
        ctx = context_for(value if isinstance(value, (list, tuple)) else (value,))
        if ctx is not None:
            return ctx.apply(ctx.api.assign, (self, value, op, change))
        array = self._fitting(value, op)
        if change is np.negative:
            array = np.negative(array)

        def commit_it() -> None:
            old = self.cell.value
            commit([self.cell], [np.asarray(old + array) if op == "update_var" else array])

        if written_here(self.cell):
            raise error("W304", f"variable {self.name} is assigned by a function that the host "
                                "runs in a step which assigns it, too: one of them would be lost",
                        locs=user_loc(), hint="return the value, and assign it in the step")
        Writer([self.cell]).run(commit_it)
        return self

    def _fitting(self, value: Any, op: str) -> Array:
        number = (isinstance(value, (bool, int, float, complex))
                  and not isinstance(value, np.generic)
                  and takes(self.dtype, np.asarray(value).dtype))
        try:
            array = np.array(value, self.dtype if number else None)
        except OverflowError:
            raise error("W131", f"Python integer {value} out of bounds for {self.dtype}",
                        locs=user_loc(), hint="assign a number that fits, or make the variable "
                                              "of a wider dtype") from None
        if isinstance(value, (list, tuple)) and keeps_kind(array.dtype, self.dtype):
            array = array.astype(self.dtype)
        if op == "update_var" and array.dtype == self.dtype and broadcasts(array.shape,
                                                                           self.shape):
            array = np.broadcast_to(array, self.shape)
        if array.dtype != self.dtype or array.shape != self.shape:
            found = f"{array.dtype}{list(array.shape)}"
            raise error("W304", f"variable {self.name} is {self.type}, the value is {found}",
                        locs=user_loc(), hint="a variable keeps its dtype and shape: convert or "
                                              "reshape the value")
        return array

    # -- as an array ----------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if ACTIVE.get() is not None:
            raise error("W201", f"variable {self.name} is traced: a plain array of it is not known "
                                "before the function runs", locs=user_loc(), types=[self.type],
                        hint="use it as it is, without np.asarray")
        return np.array(self.cell.value, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        ctx = context_for(inputs)
        if ctx is not None:
            return ctx.apply(ctx.api.ufunc, (ufunc, method, inputs, options),
                             stem=ctx.api.stem(ufunc))
        inputs, options = _values((inputs, options))
        return getattr(ufunc, method)(*inputs, **options)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        ctx = ACTIVE.get()
        if ctx is not None:
            return ctx.apply(ctx.api.function, (function, args, options),
                             stem=function.__name__)
        if any(issubclass(kind, Tracer) for kind in types):
            return NotImplemented  # the tracer among the operands takes over
        args, options = _values((args, options))
        return function(*args, **options)

    def __getitem__(self, index: Any) -> Any:
        ctx = context_for(index if isinstance(index, tuple) else (index,))
        if ctx is not None:
            return ctx.apply(ctx.api.getitem, (self, index))
        return self.cell.value[_values(index)].copy()

    def astype(self, dtype: Any, **_: Any) -> Any:
        """The elements converted to another dtype."""
        ctx = ACTIVE.get()
        return self.cell.value.astype(dtype) if ctx is None else ctx.apply(
            ctx.api.astype, (self, dtype))

    @property
    def at(self) -> At:
        """``v.at[i].set(x)``: an updated copy of the value (traced code only)."""
        return At(self)

    def context(self) -> TraceContext:
        """The active trace. Raises TracerError (W201) outside of any."""
        ctx = ACTIVE.get()
        if ctx is None:
            raise error("W201", f"variable {self.name}: .at needs a trace", locs=user_loc(),
                        hint="use it in a compiled function, or change v.numpy() and assign it")
        return ctx

    def __len__(self) -> int:
        return len(self.cell.value)

    def __iter__(self) -> Iterator[Any]:
        return iter([self[at] for at in range(len(self))])

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))


def takes(dtype: np.dtype[Any], number: np.dtype[Any]) -> bool:
    """True if a variable of this dtype takes Python numbers of that one: not if they would lose
    their kind, as floats in integers."""
    order = {"b": 0, "i": 1, "u": 1, "O": 1, "c": 3}  # huge integers are objects to NumPy
    return order.get(number.kind, 2) <= order.get(dtype.kind, 2)


def broadcasts(shape: tuple[Any, ...], wide: tuple[Any, ...]) -> bool:
    """True if an array of one shape broadcasts to the other."""
    return len(shape) <= len(wide) and all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(wide), strict=False))


def _values(x: Any) -> Any:
    """A nest of arguments with variables replaced by the values that they have at one moment."""
    def walk(x: Any, at: Callable[[Cell], Any]) -> Any:
        if isinstance(x, Variable):
            return at(x.cell)
        if isinstance(x, (tuple, list)):
            return type(x)(walk(item, at) for item in x)
        if isinstance(x, dict):
            return {key: walk(item, at) for key, item in x.items()}
        return x

    found: list[Cell] = []
    walk(x, found.append)
    values = dict(zip(found, cut(found), strict=True))
    return walk(x, values.__getitem__)
