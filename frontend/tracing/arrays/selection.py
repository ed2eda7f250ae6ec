"""Selection: ``x[mask]``, the elements of an array under a mask of truth values.

How many there are is not known while tracing. It is kept as the array and the mask; what is done
with each element is done with all of the array's, a reduction leaves out the others, and
``y[mask] = x[mask]`` chooses by the mask. How elements are taken one by one is in
``numpy_api.select.chosen``. A slice with computed bounds is one too, and a view of the array, where
its size may not be measured (``numpy_api.select.windows``). For all else, and as a result, its
elements become an array of a size that values say (``numpy_api.select.counted``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import Error, OutOfRangeError, error
from ....ir.graph import Value
from ....ir.loc import Loc
from ....ir.types import I64
from ...face import tree
from ...face.source import user_loc
from ..context.active import current
from ..context.distance import is_in_round
from ..values.tracer import Tracer
from .chosen import Chosen, is_basic, settled_copy

_DEPTH = 16  # how far down two masks are compared


class Selection(Chosen):
    """The elements of ``array`` where ``mask``, which has its first dims, is true."""

    __slots__ = ("array", "known", "locs", "mask", "taken", "whole")
    whole: Any  # what ``before_rounds`` has made, and of what
    kind = "array"  # to the program, or a "list", or one of Python's "numbers"

    def __init__(
        self, array: Any, mask: Any, locs: tuple[Loc, ...],
        known: np.ndarray[Any, Any] | None = None, *, shares: bool = False,
    ) -> None:
        self.array = array if shares else settled_copy(array)
        self.mask, self.locs, self.known = settled_copy(mask), locs, known
        self.taken = self.whole = None

    def _with(self, array: Any) -> Selection:
        """The same elements of another array."""
        return Selection(array, self.mask, self.locs, self.known)

    @property
    def ndim(self) -> int:
        return int(self.array.ndim - self.mask.ndim + 1)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The number of elements, which may be traced, and the dims that the mask does not have."""
        return (self.length, *self.array.shape[self.mask.ndim:])

    @property
    def length(self) -> Any:
        """How many elements there are, along the first dim."""
        return np.sum(self.mask) if self.known is None else int(self.known.sum())

    @property
    def some(self) -> Any:
        """Whether there are any."""
        return np.any(self.mask)

    def numbers(self) -> Any:
        """A vector over the places of the mask: how many elements there are up to each."""
        return np.cumsum(np.ravel(self.mask))

    def number(self, place: Any) -> Any:
        """The number of the element at a place of that vector, from 1 on."""
        return self.numbers()[place]

    def places(self, number: Any) -> Any:
        """Where in that vector the elements of these numbers are."""
        return np.searchsorted(self.numbers(), number)

    def place(self, at: Any) -> Any:
        """Where the element of that index is; a place that there is not, for one out of range."""
        number = np.where(np.less(at, 0), self.length + at, at) + 1
        return np.where(number <= 0, self.mask.size, self.places(number))

    @property
    def size(self) -> Any:
        size = self.shape[0]
        for dim in self.shape[1:]:
            size = size * dim
        return size

    def parts(self) -> tuple[Any, ...]:
        return self.array, self.mask

    def of(self, array: Any, *masks: Any) -> Selection:
        mask, = masks or (self.mask,)
        return Selection(array, mask, self.locs, self.known, shares=True)

    def alike(self, other: Any) -> bool:
        return isinstance(other, Selection) and self.same(other.mask)

    def where(self) -> Any:
        """The mask with as many dims as the array."""
        return np.expand_dims(self.mask, tuple(range(self.mask.ndim, self.array.ndim)))

    def same(self, mask: Any) -> bool:
        """True if another mask surely takes the same elements."""
        return same_mask(self.mask, mask)

    def settled(self) -> Any:
        """The elements as an array, which shares their memory."""
        ctx = self.array.context()
        return ctx.apply(ctx.api.realised, (self,))

    def refused(
        self, what: str = "used as an array", locs: tuple[Loc, ...] = (), hint: str = ""
    ) -> Error:
        return error("W123", f"x[mask] is {what}: how many elements there are is not known before "
                             "the function runs", locs=locs or user_loc(), types=[self.array.type],
                     hint=hint or "reduce it at once (x[mask].mean()), set elements (x[mask] = v), "
                                  "or use np.where(mask, x, 0)")

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Selection:
        """The elements converted to another dtype."""
        return self._with(self.array.astype(dtype))

    def copy(self, order: str = "C") -> Selection:
        """The same elements in memory of their own."""
        return self._with(self.array)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        first = next(x for x in inputs if isinstance(x, Selection))
        if first is not self:  # NumPy asks places before the elements on their left
            return first.__array_ufunc__(ufunc, method, *inputs, **options)
        ctx = self.array.context()
        grid = next((x for x in inputs if isinstance(x, Chosen) and not isinstance(x, Selection)),
                    None)
        if grid is not None:  # of which each axis has a mask of its own
            return grid.__array_ufunc__(ufunc, method, *inputs, **options)
        if (given := _before_rounds((inputs, options))) is not None:
            inputs, options = given
            return getattr(ufunc, method)(*inputs, **options)
        if method == "__call__" and ufunc is np.matmul and not options:
            return ctx.apply(ctx.api.selected, (np.matmul, self, inputs, {}))
        if method != "__call__" or "out" in options or any(
                x.known is not None for x in inputs if isinstance(x, Selection)):
            return self._settled(getattr(ufunc, method), inputs, options)
        try:
            made = ufunc(*(ctx.apply(self.beside, (x,)) for x in inputs), **options)
        except OutOfRangeError:  # they stand beside others
            return self._settled(ufunc, inputs, options)
        if isinstance(made, tuple):
            return tuple(map(self._with, made))
        return self._with(made)

    def before_rounds(self) -> Any:
        """In a loop, these elements of what is around it as an array, which is made once, before
        the loop: each round would compute with all that there might be. None where that may not
        be."""
        ctx, home = current(), self.array.ctx
        if type(self) not in (Selection, Places) or self.known is not None or (
                home is ctx or home.parent is not None or self.mask.ctx is not home
                or not is_in_round(ctx) or not home.request.measures or home.endless):
            return None
        made_of = self.array.operand(), self.mask.operand()
        if self.whole is None or self.whole[0] != made_of:
            with home.activate():
                self.whole = made_of, home.apply(home.api.realised, (self,))
        return self.whole[1]

    def _settled(
        self, function: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        args, given = tree.map(lambda x: x.settled() if isinstance(x, Chosen) else x,
                               (inputs, options))
        return function(*args, **given)

    def beside(self, x: Any) -> Any:
        """An operand in the places of these elements."""
        if isinstance(x, Selection) and self.alike(x) and self.array.ndim == x.array.ndim:
            return x.array
        if np.ndim(x) < self.ndim and not isinstance(x, Selection):
            return x  # the same for each of them
        rank = self.mask.ndim
        if self.ndim != 1 or self.array.ndim != rank or np.ndim(x) != 1 or (
                isinstance(x, Selection) and x.ndim != 1):
            raise self.refused("combined with an array")
        size = x.shape[0] if isinstance(x, Selection) else np.shape(x)[0]
        if isinstance(size, int) and size == 1 and not isinstance(x, Selection):
            return x[0]
        return self.array.context().api.aligned(x, self)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        ctx = self.array.context()
        if (given := _before_rounds((args, options))) is not None:
            args, options = given
            return function(*args, **options)
        return ctx.apply(ctx.api.selected, (function, self, args, options))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self.refused()

    def __getitem__(self, index: Any) -> Any:
        if (whole := self.before_rounds()) is not None:
            found = whole[index]
        elif self.known is not None:
            found = self.settled()[index]
        else:
            ctx = self.array.context()
            found = ctx.apply(ctx.api.selected, (operator.getitem, self, (self, index), {}))
        self.taken = (index, found) if is_basic(index) else None
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, Selection) and index.dtype == np.bool_ and self.known is None and (
                self.same(index.mask) and index.array.ndim == self.mask.ndim):
            self.array[np.logical_and(self.mask, index.array)] = value
        else:
            super().__setitem__(index, value)

    def __len__(self) -> int:
        if self.known is None:
            raise error("W201", "the length of x[mask] is traced, and Python asks for it",
                        types=[self.array.type], locs=user_loc(),
                        hint="take x[mask].size, which is traced, or np.count_nonzero(mask)")
        return len(self.settled())

    def __iter__(self) -> Any:
        if self.known is None:
            raise error("W201", "how often a loop over x[mask] runs is not known before the "
                                "function runs", types=[self.array.type], locs=user_loc(),
                        hint="write it as a for statement, or compute with x[mask] as a whole")
        return iter(self.settled())

    def __bool__(self) -> bool:
        raise self.refused("asked for its truth value")


def _before_rounds(nest: Any) -> Any:
    """A nest of operands with arrays in the place of elements of what is around a loop; None where
    there are none."""
    found = False

    def made(leaf: Any) -> Any:
        nonlocal found
        whole = leaf.before_rounds() if isinstance(leaf, Selection) else None
        found |= whole is not None
        return leaf if whole is None else whole

    nest = tree.map(made, nest)
    return nest if found else None


class Run(Selection):
    """The elements of an array from ``start`` to ``stop`` along its first axis, neither beyond an
    end of it."""

    __slots__ = ("start", "stop")

    def __init__(
        self, array: Any, start: Any, stop: Any, locs: tuple[Loc, ...], *, shares: bool = False
    ) -> None:
        self.array = array if shares else settled_copy(array)
        self.start, self.stop, self.locs = start, stop, locs
        self.known = self.taken = self.whole = None

    def _places(self) -> Any:
        return current().emit("iota", axis=0, dtype=I64, shape=self.array.type.shape[:1])

    @property
    def mask(self) -> Any:
        return between(self._places(), self.start, self.stop)

    @property
    def length(self) -> Any:
        return np.maximum(self.stop - self.start, 0)

    @property
    def some(self) -> Any:
        return np.less(self.start, self.stop)

    @property
    def shape(self) -> tuple[Any, ...]:
        return (self.length, *self.array.shape[1:])

    def leaves(self) -> tuple[Any, ...]:
        return self.array, self.start, self.stop

    def again(self, *leaves: Any) -> Run:
        array, start, stop = leaves
        return Run(array, start, stop, self.locs, shares=True)

    def numbers(self) -> Any:
        return self.number(self._places())

    def number(self, place: Any) -> Any:
        return place - (self.start - 1)

    def places(self, number: Any) -> Any:
        return number + (self.start - 1)

    def place(self, at: Any) -> Any:
        at = np.where(np.less(at, 0), self.length + at, at)
        there = np.logical_and(np.greater_equal(at, 0), np.less(at, self.length))
        return np.where(there, at + self.start, self.array.shape[0])

    def _with(self, array: Any) -> Selection:
        return Run(array, self.start, self.stop, self.locs)

    def of(self, array: Any, *masks: Any) -> Selection:
        if masks:
            return super().of(array, *masks)
        return Run(array, self.start, self.stop, self.locs, shares=True)

    def alike(self, other: Any) -> bool:
        if isinstance(other, Run) and self.array.type.shape[0] == other.array.type.shape[0]:
            return all(a is b or (isinstance(a, Tracer) and isinstance(b, Tracer)
                                  and computed_alike(a.operand(), b.operand()))
                       for a, b in ((self.start, other.start), (self.stop, other.stop)))
        return super().alike(other)

    def __setitem__(self, index: Any, value: Any) -> None:
        first, *rest = index if isinstance(index, tuple) and index else (index,)
        number = type(first) is int or (isinstance(first, Tracer) and not first.ndim
                                        and first.dtype.kind in "iu")
        if number:
            self.array[(self.place(first), *rest)] = value
        else:
            super().__setitem__(index, value)


class Firsts(Run):
    """The first ``count`` elements of an array, along its first axis."""

    __slots__ = ()

    def __init__(self, array: Any, count: Any, locs: tuple[Loc, ...], *, shares: bool = False,
                 ) -> None:
        super().__init__(array, 0, count, locs, shares=shares)

    @property
    def length(self) -> Any:
        return Tracer(self.stop.ctx, self.stop.value)

    def _with(self, array: Any) -> Firsts:
        return Firsts(array, self.stop, self.locs)

    def of(self, array: Any, *masks: Any) -> Selection:
        if masks:
            return Selection.of(self, array, *masks)
        return Firsts(array, self.stop, self.locs, shares=True)

    def leaves(self) -> tuple[Any, ...]:
        return self.array, self.stop

    def again(self, *leaves: Any) -> Firsts:
        array, count = leaves
        return Firsts(array, count, self.locs, shares=True)

    def beside(self, x: Any) -> Any:
        if isinstance(x, Firsts) and x.ndim == self.ndim == 1 and computed_alike(
                self.stop.operand(), x.stop.operand()):
            more = self.array.type.shape[0] - x.array.type.shape[0]
            if isinstance(more, int):  # what there is beyond the first ones does not matter
                return x.array[:more] if more < 0 else np.pad(x.array, (0, more)) if more else (
                    x.array)
        return super().beside(x)


def between(place: Any, start: Any, stop: Any) -> Any:
    """Where places of an axis lie from ``start`` to ``stop``."""
    before = place < stop
    return before if type(start) is int and start == 0 else np.logical_and(place >= start, before)


class Places(Selection):
    """Where a mask holds, by the places along one of its axes: a result of ``np.nonzero``."""

    __slots__ = ("_first", "axis")

    def __init__(self, array: Any, mask: Any, locs: tuple[Loc, ...], axis: int) -> None:
        super().__init__(array, mask, locs)
        self.axis, self._first = axis, self.array.operand()

    @property
    def unchanged(self) -> bool:
        """Whether nobody has written to them."""
        return self.array.operand() is self._first


def same_mask(a: Any, b: Any) -> bool:
    """True if two masks surely are true in the same places."""
    if a.type != b.type:
        return False
    x, y = a.operand(), b.operand()
    if x is not y and a.ctx is not b.ctx:  # one of them is that of a region around this one
        x, y = map(current().value_of, (a, b))
    return computed_alike(x, y)


def computed_alike(a: Value, b: Value, depth: int = _DEPTH) -> bool:
    """True if two values are computed alike from the same ones."""
    if a is b:
        return True
    x, y = a.node, b.node
    return (depth > 0 and x is not None and y is not None and x.op is y.op and a.index == b.index
            and x.op.effect is None and not x.op.foreign and x.attrs == y.attrs
            and len(x.inputs) == len(y.inputs) and all(
                computed_alike(p, q, depth - 1)
                for p, q in zip(x.inputs, y.inputs, strict=True)))
