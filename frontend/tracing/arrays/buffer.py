"""Buffer: an array made while tracing, plain NumPy until a traced value is written into it.

    o = np.zeros((n, 2))        a Buffer: sizes, conditions and loops may depend on its numbers
    v = o[:, 0]                 a view of its memory, as in NumPy
    v[0] = x[0]                 from here on the memory is traced; so are o and v, whose numbers
    np.sum(o)                   are not known before the function runs

What shares memory is found by NumPy itself: a view is where its strides say. Traced memory is one
tracer; each array is a view of it (see ``views``), so writes reach all of them, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any
from weakref import ref

import numpy as np

from ....ir.diagnose import error
from ....ir.types import as_native, number_kind
from ...face.source import user_loc
from ..context.scope import RECORDING, Recording
from ..values.methods import ArrayMethods
from ..values.tracer import Tracer
from .outside import OutsideError
from .place import place_of

Array = np.ndarray[Any, Any]


class Memory:
    """What an array made while tracing and its views share: plain memory, or a tracer."""

    def __init__(self, ctx: Recording | None, owner: Buffer) -> None:
        self.ctx = ctx
        self.owner = ref(owner)  # it lives while any view of it does: NumPy holds it as their base
        self.tracer: Tracer | None = None
        self.start: Array | None = None  # the numbers that the tracer has begun with
        self.arrays: list[ref[Buffer]] = [self.owner]
        self.kept = False  # by a list that has a copy of it: nobody may change it any more

    def keep(self) -> None:
        """From here on it cannot be written to."""
        self.kept = True
        for array in self.living():
            array.flags.writeable = False

    def let_go(self) -> bool:
        """Whether a list had a copy of it; nobody has, once the trace is over."""
        kept, self.kept = self.kept, False
        owner = self.owner()
        if kept and owner is not None:
            np.ndarray.setflags(owner, write=True)
        return kept

    @property
    def whole(self) -> Array:
        """All of the memory as a plain array."""
        owner = self.owner()
        assert owner is not None
        whole: Array = plain(owner)
        return whole

    def trace(self) -> None:
        """From here on the numbers are traced. Raises TracerError (W203) if the trace in which the
        array was made is not the one that is active."""
        ctx = RECORDING.get()
        if self.tracer is not None:
            return
        if ctx is None or self.ctx is not ctx:
            raise OutsideError("this array was not made in the function that is traced now, and "
                               "cannot hold its values", self.owner(), locs=user_loc(),
                               hint="copy it first: own = np.array(y)")
        whole = self.whole
        # Else it has the numbers that an array from around is known to have.
        stays = not whole.flags.writeable and (
            "an item of a list that grows" if self.kept else
            "an array from around the traced function")
        made: Tracer = ctx.apply(ctx.constant, (as_native(whole) if stays else whole,))
        self.start = ctx.numbers_of(made.value)
        self.tracer = Tracer(ctx, made.value, argument=stays)
        self.tracer.ordered = self.tracer.dense = self.tracer.made = True
        # Code in C that does not ask reads what nobody takes for a result, and writes nothing.
        kind = number_kind(whole.dtype)
        if not stays:
            whole.fill(np.nan if kind in "fc" else kind == "b" or np.iinfo(whole.dtype).min)
        ctx.traced_memory = True
        for array in self.living():
            array.flags.writeable = False
            array.__class__ = TracedBuffer

    def as_it_was(self) -> None:
        """Have the numbers again that it had before it was traced: the trace is of no use."""
        if self.tracer is not None and self.tracer.argument:  # it has them
            return
        owner = self.owner()
        assert owner is not None
        np.ndarray.setflags(owner, write=True)
        self.whole[...] = self.start

    def living(self) -> Iterator[Buffer]:
        """The arrays that still share this memory."""
        for each in self.arrays:
            array = each()
            if array is not None:
                yield array


class Buffer(np.ndarray[Any, Any]):
    """See the module docstring; made by ``own`` and by NumPy, of another one."""

    _memory: Memory | None = None

    def __array_finalize__(self, obj: Any) -> None:
        ctx = RECORDING.get()
        if ctx is not None and ctx.buffers is not None:
            ctx.buffers.append(ref(self))
        if isinstance(obj, Buffer) and _shares(self, obj):
            self._memory = obj.memory()
            self._memory.arrays.append(ref(self))

    def memory(self) -> Memory:
        """What this array shares with others."""
        if self._memory is None:
            self._memory = Memory(RECORDING.get(), self)
        return self._memory

    @property
    def is_traced(self) -> bool:
        return self._memory is not None and self._memory.tracer is not None

    @property
    def is_left(self) -> bool:
        """Whether it is what a trace that has ended has left, which is an array as others are."""
        memory = self._memory
        return memory is not None and memory.tracer is None and memory.ctx is not None and (
            not memory.ctx.root.alive)

    def traced(self) -> Tracer:
        """The tracer of this array, whose memory is traced from here on."""
        memory = self.memory()
        memory.trace()
        if memory.ctx is not None and not memory.ctx.alive:
            raise memory.tracer._leaked()  # type: ignore[union-attr]
        found: Tracer | None = self.__dict__.get("_tracer")
        if found is None:
            assert memory.tracer is not None
            place = place_of(plain(self), memory.whole)
            found = place.taken(memory.tracer)
            found.made = True  # no number, though it may be without dims
            if found.ctx is memory.ctx:  # in the body of a branch or a loop it is one of that
                self.__dict__["_tracer"] = found
        return found

    # -- what NumPy is asked to do --------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        ctx, out = RECORDING.get(), options.get("out") or ()
        if ctx is not None and is_traced((inputs, options)):
            return ctx.apply(ctx.api.ufunc, (ufunc, method, inputs, options),
                             stem=ctx.api.stem(ufunc))
        if any(_has_its_own(x) for x in (*inputs, *out)):
            return NotImplemented
        given = {key: plain(value) for key, value in options.items()}
        if out:
            given["out"] = tuple(map(plain, out))
        _check_kept(out)
        result = getattr(ufunc, method)(*map(plain, inputs), **given)
        return (out[0] if len(out) == 1 else out) if out else own(result, inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: Any
    ) -> Any:
        ctx = RECORDING.get()
        if ctx is not None and is_traced((args, options)):
            return ctx.apply(ctx.api.function, (function, args, options), stem=function.__name__)
        result = super().__array_function__(function, types, args, options)
        return result if result is NotImplemented else own(result, (args, options))

    def __getitem__(self, index: Any) -> Any:
        if not is_traced(index):
            return super().__getitem__(index)
        ctx = RECORDING.get()
        if ctx is None or self.is_traced or self.memory().ctx is ctx:
            return self.traced()[index]
        table: Array = plain(self).copy()  # made around the body that is traced, which reads it
        read: Tracer = ctx.apply(lambda: Tracer(ctx, ctx.constant(table).value), ())
        read.plain = self
        return read[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if is_traced((index, value)):
            self.traced()[index] = value
        else:
            _check_kept((self,))
            super().__setitem__(index, value)

    def fill(self, value: Any) -> None:
        """Set every element to one value."""
        self[...] = value

    resize = ArrayMethods.resize

    @property
    def flat(self) -> Any:
        """The elements in a row; what is written there is written to the array."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self._set("flat", value)

    @property
    def real(self) -> Any:
        """The real parts, which can be written to."""
        return _PARTS["real"].__get__(self)

    @real.setter
    def real(self, value: Any) -> None:
        self._set("real", value)

    @property
    def imag(self) -> Any:
        """The imaginary parts, which can be written to."""
        return _PARTS["imag"].__get__(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._set("imag", value)

    def _set(self, name: str, value: Any) -> None:
        if is_traced(value):
            setattr(self.traced(), name, value)
        else:
            _PARTS[name].__set__(self, value)


_PARTS: Mapping[str, Any] = MappingProxyType({
    name: vars(np.ndarray)[name] for name in ("flat", "real", "imag")})


class Flat:
    """``x.flat`` of a buffer: NumPy's own, but for traced values that are written there."""

    def __init__(self, array: Buffer) -> None:
        self._array, self._own = array, _PARTS["flat"].__get__(array)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __getitem__(self, index: Any) -> Any:
        return self._array.traced().flat[index] if is_traced(index) else self._own[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if is_traced((index, value)):
            self._array.traced().flat[index] = value
        else:
            self._own[index] = value

    def __iter__(self) -> Any:
        return self._own

    def __next__(self) -> Any:
        return next(self._own)

    def __len__(self) -> int:
        return len(self._own)


class TracedBuffer(ArrayMethods, Buffer):  # type: ignore[misc]  # both are arrays
    """A buffer whose memory is traced: all that is asked of it, its tracer answers."""

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN or (name.startswith("__") and name != "__array_interface__"):
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "traced")(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
            return
        found = self.traced()
        if name == "shape" and found is self.memory().tracer:
            # Which stands for the memory, and keeps its shape.
            found = self.__dict__["_tracer"] = found[...]
        setattr(found, name, value)

    def _operate(self, ufunc: np.ufunc, *operands: Any) -> Any:
        return self.traced()._operate(ufunc, *(
            x.traced() if isinstance(x, TracedBuffer) else x for x in operands))

    def __getitem__(self, index: Any) -> Any:
        return self.traced()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.traced()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.traced())

    def __len__(self) -> int:
        return len(self.traced())

    def __bool__(self) -> bool:
        return bool(self.traced())

    def __int__(self) -> int:
        return int(self.traced())

    def __float__(self) -> float:
        return float(self.traced())

    def __complex__(self) -> complex:
        return complex(self.traced())

    def __index__(self) -> int:
        return self.traced().__index__()

    def __contains__(self, item: Any) -> bool:
        return item in self.traced()

    def __repr__(self) -> str:
        return repr(self.traced())

    __str__ = __repr__

    def __copy__(self) -> Any:
        return self.traced().copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.traced().copy()

    def __reduce__(self) -> Any:
        raise self.traced()._no_number("a copy in a file")


_OWN = frozenset(("traced", "memory", "is_traced", "is_left", "flags", "_memory", "_operate",
                  "_set"))


def own(result: Any, inputs: Any) -> Any:
    """What NumPy has just made of ``inputs`` while tracing, to write traced values into; what it
    did not make stays as it is."""
    if type(result) in (tuple, list):
        return type(result)(own(part, inputs) for part in result)
    if RECORDING.get() is not None and type(result) is np.ndarray and result.base is not None:
        return _sharing(result, inputs)
    if RECORDING.get() is None or type(result) is not np.ndarray or (
            number_kind(result.dtype) not in "biufc") or _holds(inputs, result):
        return result
    made = result.view(Buffer)
    made.memory()
    return made


def _sharing(view: Array, inputs: Any) -> Array:
    """A plain view that NumPy gives of a buffer, as ``np.asarray`` does, as one of its arrays."""
    if isinstance(inputs, dict):
        inputs = [*inputs.values()]
    if isinstance(inputs, (tuple, list)):
        found = (_sharing(view, each) for each in inputs)
        return next((each for each in found if each is not view), view)
    if not isinstance(inputs, Buffer) or not _shares(view, inputs):
        return view
    made: Buffer = view.view(Buffer)
    made._memory = inputs.memory()
    made._memory.arrays.append(ref(made))
    return made


def _holds(nest: Any, array: Array) -> bool:
    if isinstance(nest, (tuple, list)):
        return any(_holds(item, array) for item in nest)
    if isinstance(nest, dict):
        return _holds([*nest.values()], array)
    return nest is array


def is_traced(x: Any) -> bool:
    """True if a nest holds a tracer, a variable or a buffer that is traced."""
    if isinstance(x, (tuple, list)):
        return any(map(is_traced, x))
    if isinstance(x, dict):
        return any(map(is_traced, x.values()))
    if isinstance(x, slice):
        return is_traced((x.start, x.stop, x.step))
    return isinstance(x, ArrayMethods)


def unwrapped(x: Any) -> Any:
    """A nest with the tracers of traced buffers in their places."""
    if isinstance(x, TracedBuffer):
        return x.traced()
    if type(x) in (tuple, list):
        return type(x)(map(unwrapped, x))
    if type(x) is dict:
        return {key: unwrapped(value) for key, value in x.items()}
    return x


def _check_kept(changed: Iterable[Any]) -> None:
    """Raises TracerError (W203) for arrays that a list has copies of."""
    for array in changed:
        memory = array._memory if isinstance(array, Buffer) else None
        if memory is not None and memory.kept:
            raise error("W203", "an array is changed in place that is an item of a list that "
                                "grows, which has a copy of it", locs=user_loc(),
                        hint="append a copy: items.append(x.copy())")


def plain(x: Any) -> Any:
    """A buffer as NumPy's array of the same memory; anything else as it is."""
    return np.ndarray.view(x, np.ndarray) if isinstance(x, Buffer) else x


def _shares(view: Array, base: Array) -> bool:
    """True if NumPy made ``view`` of the memory of ``base`` rather than of its own."""
    return view.base is not None and view.size > 0 and np.may_share_memory(
        plain(view), plain(base))


def _has_its_own(x: Any) -> bool:
    """True for what has a meaning of its own for ufuncs."""
    return hasattr(type(x), "__array_ufunc__") and not isinstance(x, (np.ndarray, np.generic))
