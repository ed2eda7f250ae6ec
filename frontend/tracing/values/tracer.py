"""Tracer: a value of a graph that behaves like a NumPy array, and records what is done with it.

NumPy's functions reach it through ``__array_ufunc__`` and ``__array_function__``; its methods are
the NumPy functions of their names; both end in the ``api`` of its trace. What Python needs at once
(``if x``, ``int(x)``) cannot be had while tracing and says so.

Values of a graph never change, but ``x += y`` and ``x[i] = v`` give the tracer another value, and
what shares its memory in NumPy follows: see ``views``. Arguments are the caller's and keep theirs.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.graph import Value
from ....ir.indices.index import Dim, Expr
from ....ir.types import TensorType, keeps_kind, number_kind
from ...face.elsewhere import METHODS, instead
from ...face.source import is_internal, user_loc
from ...numpy_api.select.at import At
from ..arrays import views
from ..context.scope import Recording
from .asking import asks_class, operates
from .drawn import refused_draw
from .methods import ArrayMethods
from .python_numbers import attribute
from .pythons import as_python
from .shown import MissingError, hide_members, is_shown, missing, shown_class, subscripts
from .texts import WRITERS, asked
from .unknown import Unknown

_OURS = f"{__name__.partition('.')[0]}."


class Tracer(Unknown, ArrayMethods):
    """A traced array, with all that is done with one."""

    __slots__ = ()

    # -- what it is -----------------------------------------------------------------------------

    @property  # type: ignore[misc]  # it is not for setting
    def __class__(self) -> type:
        """For ``isinstance(x, np.ndarray)`` and ``np.isscalar(x)``, which NumPy programs ask: what
        NumPy or Python would have here. C code is told the truth: it would read the memory of what
        it takes for its own. Weft itself tells arrays without dims from none."""
        frame = sys._getframe(1)
        name = frame.f_globals.get("__name__") or ""
        ours = name.startswith(_OURS)
        if ours and not self._value.type.shape:
            return type(self)
        if asks_class(frame):
            return shown_class(self)
        if not ours and not operates(frame) and not is_internal(frame):
            self._classed()
        return type(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self._value.type.dtype.numpy
        return dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """Ints, and ``SymbolicDim`` for what is not known before the arguments are."""
        shape = self.type.shape
        if all(isinstance(dim, int) for dim in shape):
            return shape
        return tuple(wrap_dim(self._ctx, dim) for dim in shape)

    @shape.setter
    def shape(self, value: Any) -> None:
        views.set_shape(self, value)

    @property
    def size(self) -> Any:
        return wrap_dim(self._ctx, self.type.size)

    @property
    def itemsize(self) -> int:
        return self.type.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    @property
    def real(self) -> Any:
        """The real part, which can be written to; a real array itself."""
        if self.dtype.kind == "b" and self.weak:
            return self._python(self.astype(np.int64))  # what Python's truths are as numbers
        return self._python(np.real(self)) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary part, which can be written to; zeros of a real array."""
        whole = self.weak and self.dtype.kind == "b"
        return self._python(np.imag(self.real if whole else self))

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def conj(self) -> Any:
        """The elements with the opposite imaginary parts; real ones are this array itself."""
        return self.real if self.dtype.kind in "biuf" else self._python(np.conjugate(self))

    conjugate = conj

    def described(self) -> str:
        """What it is, for errors and debuggers."""
        return f"Tracer<{self.type} {self._value.name!r}>"

    def _python(self, part: Any) -> Any:
        """What is of a number of Python's, as one."""
        return Tracer(part.ctx, part.value, weak=True) if self.weak else part

    def __repr__(self) -> str:
        made = asked(self, repr)
        if made is None:
            raise self.no_text("its text")
        return made

    def __str__(self) -> str:
        made = asked(self, str)
        if made is None:
            raise self.no_text("its text")
        return made

    def __format__(self, spec: str) -> str:
        made = asked(self, lambda value: format(value, spec))
        if made is None:
            raise self.no_text("a formatted number")
        return made

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self.__copy__()

    def __copy__(self) -> Tracer:
        return self if self.ndim == 0 and self.link is None else self.copy()

    # -- where operations go --------------------------------------------------------------------

    def operand(self) -> Value:
        """The value, to compute with. Raises TracerError (W203) when it is not certain what NumPy
        would have here after in-place code."""
        if self.changed is not None or (
                self.link is not None and self.asked != self._ctx.writes.count):
            views.refresh(self)
        value: Value | None = self._value
        return self.value if value is None else value

    def _operate(self, ufunc: np.ufunc, *operands: Any) -> Any:
        ctx = self.context()
        return ctx.apply(ctx.api.operator, (ufunc, operands), stem=ctx.api.stem(ufunc))

    def __mul__(self, other: Any) -> Any:
        return NotImplemented if self._repeats(other) else ArrayMethods.__mul__(self, other)

    def __rmul__(self, other: Any) -> Any:
        return NotImplemented if self._repeats(other) else ArrayMethods.__rmul__(self, other)

    def _repeats(self, other: Any) -> bool:
        """True where ``[0] * n`` is a list of n zeros: Python asks for n, which is not known."""
        return isinstance(other, (list, tuple, str, bytes)) and self.is_scalar and (
            self.dtype.kind in "iu")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        ctx = self.context()
        return ctx.apply(ctx.api.ufunc, (ufunc, method, inputs, options),
                         stem=ctx.api.stem(ufunc))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        if function in WRITERS:
            raise self.no_text("its text")
        ctx = self.context()
        return ctx.apply(ctx.api.function, (function, args, options), stem=function.__name__)

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> Tracer:
        """The elements converted to another dtype."""
        if not copy and self.dtype == np.dtype(dtype) and not self.weak:
            return self
        ctx = self.context()
        result: Tracer = ctx.apply(ctx.api.astype, (self, dtype, casting))
        result.made = not self.is_scalar
        return result

    def copy(self, order: Any = "C") -> Any:
        """Another array of the same elements, row by row in memory unless ``order`` says else; of
        a number, that number."""
        made: Any = np.copy(self, order)
        made.made = not self.is_scalar
        return made

    def view(self, dtype: Any = None) -> Tracer:
        """The same memory as elements of another dtype of the same size."""
        ctx = self.context()
        result: Tracer = ctx.apply(ctx.api.view, (self, self.dtype if dtype is None else dtype))
        if self.is_scalar:
            result.made = False  # another number
        return result

    def __getitem__(self, index: Any) -> Tracer:
        if type(index) is int and self.is_scalar and not subscripts(sys._getframe(1)):
            raise missing(self, "__iter__")  # Python takes one item after the other
        ctx = self.context()
        result: Tracer = ctx.apply(ctx.api.getitem, (self, index))
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, Tracer) and value.taken is not None and value.changed is None:
            array, taken = value.taken
            if array is self and same_index(taken, index) and not self.argument:
                return  # the end of x[i] += v, which has changed x already
        ctx = self.context()
        ctx.apply(self._put, (index, value))

    def _put(self, index: Any, value: Any) -> Tracer:
        # np.random.shuffle swaps what it takes for items, and these are views.
        swaps = isinstance(value, Tracer) and value.taken is not None and value.taken[0] is self
        problem = refused_draw() if swaps else None
        if problem is not None:
            raise problem
        return self.overwrite(self.context().api.update(self, index, value, "set"))

    def overwrite(self, new: Tracer) -> Tracer:
        """Let the memory of this array hold ``new``, of the same type; raises TracerError (W203)
        where that is not possible. Gives the array itself."""
        ctx = self.context()
        copy = None if ctx is self.ctx else ctx.own_copy(self)
        views.write(self if copy is None else copy, new)
        return self

    def fill(self, value: Any) -> None:
        """Set every element to one value."""
        self[...] = value

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None, *,
             stable: Any = None) -> None:
        """Put the elements along an axis in order, in place."""
        self[...] = np.sort(self, axis, kind, order, stable=stable)

    def partition(self, kth: Any, axis: Any = -1, kind: Any = "introselect",
                  order: Any = None) -> None:
        """Put the elements along an axis in order, as which any partition is one, in place."""
        self[...] = np.partition(self, kth, axis, kind, order)

    @property
    def at(self) -> At:
        """``x.at[i].set(v)`` and ``x.at[i].add(v)``: a new array with some elements changed."""
        return At(self)

    def __len__(self) -> int:
        """The number of rows."""
        if self.ndim == 0:
            raise MissingError("len() of a 0-d array")
        size = self.shape[0]
        if isinstance(size, SymbolicDim):
            raise size._no_number("len(x)", "use x.shape[0]")
        return operator.index(size)

    def __iter__(self) -> Iterator[Tracer]:
        size = self.shape[0] if self.ndim else 0
        if isinstance(size, SymbolicDim):
            # Where NumPy's Python asks, it is told at once that there are no rows to take; its C
            # code, which takes np.poly(x) for a list, would hide what is raised before they begin.
            name = sys._getframe(1).f_globals.get("__name__") or ""
            rows = map(size._no_rounds, (self,))
            return iter([next(rows)]) if name.partition(".")[0] == "numpy" else rows
        return (self[at] for at in range(len(self)))  # each as it is when its turn comes

    def item(self, *args: Any) -> Any:
        """One element as a number of Python's, which is traced, too. Raises ShapeError (W102)
        where it is not said which."""
        place = args[0] if len(args) == 1 else args
        flat = isinstance(place, (int, np.integer)) and self.ndim != 1
        if args:
            found = self.ravel()[place] if flat else self[place]
        elif isinstance(self.type.size, int) and self.type.size != 1:
            raise error("W102", f"{self.name} has {self.type.size} elements, and .item() takes "
                                "one", locs=user_loc(), types=[self.type], hint="give its place")
        else:
            found = self.reshape(())
        return as_python(found, _PYTHONS[number_kind(found.dtype)])

    def tolist(self) -> Any:
        """A nest of lists of numbers of Python's, which are traced."""
        return [row.tolist() for row in self] if self.ndim else self.item()

    @property
    def flat(self) -> Any:
        """The elements in a row; what is written there is written to the array."""
        ctx = self.context()
        return ctx.apply(ctx.api.flat, (self,))

    @flat.setter
    def flat(self, value: Any) -> None:
        self[...] = np.resize(value, self.shape)

    def __getattr__(self, name: str) -> Any:
        if not is_shown(self, name):
            raise missing(self, name)
        if self.is_scalar and not name.startswith("_") and not hasattr(np.ndarray, name) and (
                hasattr(shown_class(self), name)):
            return attribute(self, name)
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            return self._ctx.api.method(self, name, error(
                "W113", f"the array method .{name} is not supported", locs=user_loc(),
                types=[self.type], hint="use other NumPy functions, or call it outside"))
        raise AttributeError(f"a traced array has no attribute {name!r}{instead(name, METHODS)}")

    # -- in place -------------------------------------------------------------------------------

    def _in_place(self, result: Any) -> Any:
        """The outcome of ``x += y``: x itself with other elements, of its dtype and shape. Of an
        argument, which the caller keeps as it is, a new array; the argument is then used up."""
        if self.is_scalar or (self.argument and not self.ndim):
            views.tell_rivals(self, self)  # which may be arrays without dims
            return result  # numbers are rebound, as NumPy's scalars are
        if not keeps_kind(result.dtype, self.dtype):
            raise error("W111", f"a {result.dtype} result does not fit into {self.name}",
                        locs=user_loc(), types=[self.type],
                        hint="write x = x + y, or convert y with .astype")
        root = views.owner(self)
        if not isinstance(result, Tracer):  # of chosen elements, as many as there are here
            if not root.argument:
                self[...] = result
            return result if root.argument else self
        if result.type.shape != self.type.shape:
            raise error("W101", f"the result does not fit into {self.name}", locs=user_loc(),
                        types=[result.type, self.type], hint="write x = x + y")
        result = result if result.dtype == self.dtype else result.astype(self.dtype)
        if root.argument:
            self.changed = root.changed = result
            self._ctx.used_up.append((root.name, user_loc()))
            self._ctx.writes.count += 1
            return result
        return self.context().apply(self.overwrite, (result,))


# The classes of Python's numbers by kinds of NumPy's.
_PYTHONS = MappingProxyType({"b": bool, "i": int, "u": int, "f": float, "c": complex})


def same_index(a: Any, b: Any) -> bool:
    """True if two indices are surely the same (Python makes the slice of ``x[i:] += v`` twice)."""
    if a is b:
        return True
    if isinstance(a, slice) and isinstance(b, slice):
        a, b = (a.start, a.stop, a.step), (b.start, b.stop, b.step)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_index, a, b))
    ints = all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in (a, b))
    return bool(ints and a == b)


def _augmented(plain: str) -> Callable[..., Any]:
    def method(self: Tracer, other: Any) -> Any:
        result = getattr(self, plain)(other)
        return result if result is NotImplemented else self._in_place(result)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or",
              "xor", "lshift", "rshift"):
    setattr(Tracer, f"__i{_name}__", _augmented(f"__{_name}__"))
hide_members(Tracer)


def wrap_dim(ctx: Recording, dim: Dim) -> Any:
    """A dim as the user sees it."""
    return SymbolicDim(ctx, dim) if isinstance(dim, Expr) else dim


class SymbolicDim(Tracer):
    """A size that is known only at run time. Integer arithmetic stays symbolic, so the result can
    be a size again; anything else makes it a traced integer."""

    __slots__ = ("expr",)

    def __init__(self, ctx: Recording, expr: Expr) -> None:
        super().__init__(ctx, None, weak=True)
        self.expr = expr

    def _no_rounds(self, _: Tracer) -> Tracer:
        raise self._no_number("how often a loop over an array runs", "compute with whole arrays, "
                              "or give the dim no symbol")

    @property
    def value(self) -> Value:
        if self._value is None:
            self._value = self._ctx.dim(self.expr)
        return super().value

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int64)

    @property  # type: ignore[misc]  # it is not for setting
    def shape(self) -> tuple[Any, ...]:
        return ()

    @property
    def ndim(self) -> int:
        return 0

    @property
    def name(self) -> str:
        return f"the symbolic dim {self.expr}"

    def described(self) -> str:
        return str(self.expr)

    def __hash__(self) -> int:
        return hash(self.expr)

    def __eq__(self, other: Any) -> Any:
        difference = _difference(self, other)
        return self._compared(np.equal, other) if isinstance(
            difference, Expr) else difference == 0

    def __ne__(self, other: Any) -> Any:
        difference = _difference(self, other)
        return self._compared(np.not_equal, other) if isinstance(
            difference, Expr) else difference != 0

    def _compared(self, ufunc: np.ufunc, other: Any) -> Any:
        """With a number or an array; all else knows by itself, or is not equal to an integer."""
        known = isinstance(other, (Tracer, np.ndarray, np.generic, int, float, complex))
        return self._operate(ufunc, self, other) if known else NotImplemented

    def __index__(self) -> int:
        raise self._no_number("an int", self._ctx.by_numpy(
            "make arrays of this size with np.full(shape, 0.0, like=x) or np.zeros_like(x); for a "
            "loop or a step give the dim no symbol"))

    def _plain_hint(self) -> str:
        return ("make arrays of this size with np.arange(n, like=x) or np.full(n, 0.0, like=x); "
                "for a count, a shift or a width give the dim no symbol")


def _plain(x: Any) -> Dim | None:
    if isinstance(x, SymbolicDim):
        return x.expr
    is_int = isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    return int(x) if is_int else None


def _difference(a: SymbolicDim, b: Any) -> Dim:
    other = _plain(b)
    return a.expr if other is None else a.expr - other


def _symbolic(name: str, function: Callable[[Any, Any], Any]) -> None:
    """Give SymbolicDim an operator that stays symbolic, and its reflected form."""
    for method, swap in ((f"__{name}__", False), (f"__r{name}__", True)):
        traced = getattr(Tracer, method)

        def apply(self: SymbolicDim, other: Any, traced: Any = traced, swap: bool = swap) -> Any:
            dim = _plain(other)
            # Division is exact for positive denominators only; a symbol is not known to be one.
            if dim is None or (name in ("floordiv", "mod")
                               and (swap or not isinstance(dim, int) or dim <= 0)):
                return traced(self, other)
            return wrap_dim(self.ctx, function(dim, self.expr) if swap
                            else function(self.expr, dim))

        setattr(SymbolicDim, method, apply)


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _symbolic(_name, getattr(operator, f"__{_name}__"))
del _name
