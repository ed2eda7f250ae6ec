"""Views: which arrays share memory in NumPy, and how a write through one reaches the others.

Tracers are values; what NumPy would share is a chain of links from a view to the array that owns
the memory. A write undoes the links one by one, so the owner gets a new value; whoever is read
later follows its links again.

    y = x * 1         owns its memory
    row = y[0]        reshape of slice of y
    row += 1          y = y with (row + 1 put back by the gradient of the slice)
    np.sum(y)         sees it, and so does any other view of y

The op rows say which results are views (``OpDef.alias``), so every function that is made of such
ops gives views; one whose result NumPy copies ends in ``ufuncs.fresh``. A reshape shares memory
only if strides can describe it. Where that depends on how the array lies in memory, both readings
are allowed until one array is written and the other one is read: that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.indices.index import row_major, symbol, symbols_of
from ....ir.ops.op import Kind, OpDef
from ....ir.types import BOOL, TensorType
from ...face.source import user_loc
from ..context.scope import Recording
from ..values.drawn import refused_draw
from .array import Link, TracedArray
from .outside import OutsideError

X = TypeVar("X", bound=TracedArray)


class Indexed(Link):
    """The link of elements taken by an index, with the functions that read and write them."""

    __slots__ = ("get", "put")

    def __init__(self, base: TracedArray, get: Callable[[Any], TracedArray],
                 put: Callable[[Any, Any], TracedArray]) -> None:
        super().__init__(base)
        self.get, self.put = get, put

    def follow(self, base: TracedArray) -> TracedArray:
        with base.ctx.activate():  # it is read in the body of a branch, and afterwards too
            return self.get(base)

    def undo(self, base: TracedArray, new: TracedArray) -> TracedArray:
        return self.put(base, new)

    def again(self, base: TracedArray) -> TracedArray:
        made = self.follow(base)
        if made is base:  # which is no view of itself
            made = base.ctx.tracer(base.value)
        link(made, type(self)(base, self.get, self.put))
        return made


class Perhaps(Indexed):
    """The link of what NumPy copies unless an array is one block of memory."""

    __slots__ = ()

    @property
    def certain(self) -> bool:
        return False


class Whole(Link):
    """The link of another name for all of an array, which may be read-only."""

    __slots__ = ("read_only",)

    def __init__(self, base: TracedArray, read_only: bool) -> None:
        super().__init__(base)
        self.read_only = read_only

    @property
    def frozen(self) -> bool:
        return self.read_only

    @property
    def dense(self) -> bool:
        return is_dense(self.base)

    def follow(self, base: TracedArray) -> TracedArray:
        return base

    def undo(self, base: TracedArray, new: TracedArray) -> TracedArray:
        return new

    def again(self, base: TracedArray) -> TracedArray:
        made: TracedArray = base.ctx.tracer(base.value)
        link_whole(made, base, frozen=self.read_only)
        return made


class OfRow(Link):
    """The link by an op: the op itself, and its gradient, which puts elements where they came from.

    Most views are never written to, so all that only a write asks for is found out then.
    """

    __slots__ = ("attrs", "ctx", "row", "type")

    def __init__(self, base: TracedArray, ctx: Recording, row: OpDef, attrs: Mapping[str, Any],
                 type_: TensorType) -> None:
        super().__init__(base)
        self.ctx, self.row, self.attrs, self.type = ctx, row, attrs, type_

    @property
    def certain(self) -> bool:
        return self.row.alias != "reshaped" or _strides_can_say(self.base, self.type)

    @property
    def frozen(self) -> bool:
        return self.row.alias == "repeated"

    @property
    def dense(self) -> bool:
        return not self.frozen and is_dense(self.base) and self.certain and (
            self.row.alias == "reshaped" or self._one_block())

    def _one_block(self) -> bool:
        """True if neighbours in the view of a dense array are neighbours in that array."""
        assert self.row.view is not None
        index = tuple(symbol(f"%{axis}") for axis in range(self.type.rank))
        piece, = self.row.view(index, (self.base.type,), self.type, **self.attrs)
        gap = row_major(piece.indices, self.base.type.shape) - row_major(index, self.type.shape)
        return not any(name.startswith("%") for name in symbols_of(gap))

    def follow(self, base: TracedArray) -> TracedArray:
        view: TracedArray = self.ctx.emit(self.row.name, base, **self.attrs)
        return view

    def again(self, base: TracedArray) -> TracedArray:
        view: TracedArray = base.ctx.emit(self.row.name, base, **self.attrs)
        return view

    def undo(self, base: TracedArray, new: TracedArray) -> TracedArray:
        if new.type.size == 0:
            return base
        moved = self._back(new, base)
        if new.type.size == base.type.size:
            return moved
        touched = self._back(self.ctx.full(True, BOOL, new.type.shape), base)
        whole: TracedArray = self.ctx.emit("masked", touched, moved, base)
        return whole

    def _back(self, new: TracedArray, base: TracedArray) -> TracedArray:
        assert self.row.grad is not None
        value = self.ctx.value_of(new)
        found, = self.row.grad(self.ctx.builder, value, base.value, value, **self.attrs)
        moved: TracedArray = self.ctx.tracer(found)
        return moved


class Reshaped(OfRow):
    """The link of an array of which the very shape was set: NumPy does that without a copy, or it
    raises."""

    __slots__ = ()

    @property
    def certain(self) -> bool:
        return True


def link(result: TracedArray, found: Link) -> None:
    """Make ``result``, which was just computed from the base, a view of it; of a number, which has
    no memory, it is an array of its own."""
    base = found.base
    if base.is_scalar:
        result.made = True
        return
    if base.ctx is not result.ctx and (copy := result.ctx.own_copy(base)) is not None:
        base = found.base = copy
    result.link = found
    result.seen = base.version if base.link is None else base.seen
    result.asked = base.ctx.writes.count


def link_whole(result: TracedArray, base: TracedArray, *, frozen: bool = False) -> None:
    """Make ``result`` another name for the memory of ``base``, which it has the value of."""
    link(result, Whole(base, frozen))
    result.ordered = base.ordered


def may_share(x: TracedArray, other: TracedArray) -> None:
    """Remember that two arrays have one memory or not, as is only known when the function runs:
    who writes to one of them may not read the other."""
    one, two = owner(x), owner(other)
    if one is not two and not (one.is_scalar and two.is_scalar):
        for here, there in ((one, two), (two, one)):
            here.rivals = here.rivals or {}
            here.rivals[id(there)] = ref(there)


def rivals(x: TracedArray) -> list[TracedArray]:
    """The arrays of which it is not known whether they have the memory of ``x``, its owner."""
    found = () if x.rivals is None else (known() for known in x.rivals.values())
    return [rival for rival in found if rival is not None]


def are_related(x: TracedArray | None, y: TracedArray | None) -> bool:
    """Whether two owners of memory are one, or may be."""
    return x is not None and y is not None and (x is y or any(rival is y for rival in rivals(x)))


def memory_of(x: Any) -> TracedArray | None:
    """The owner of the memory of an array that may be changed or shared; None for what is none.
    A number may be one that a branch has chosen: an array without dims, on the other way."""
    return owner(x) if isinstance(x, TracedArray) and (not x.is_scalar or rivals(x)) else None


def is_view_of(x: TracedArray, base: TracedArray) -> bool:
    """True if the links of x lead to ``base``."""
    here: TracedArray | None = x
    while here is not None and here is not base:
        here = None if here.link is None else here.link.base
    return here is base


def owner(x: TracedArray) -> TracedArray:
    """The array whose memory x shares, which is x itself if it is no view."""
    while x.link is not None:
        x = x.link.base
    return x


def track(
    ctx: Recording, result: X, row: OpDef, operands: Sequence[TracedArray],
    attrs: Mapping[str, Any],
) -> X:
    """The result of an op, with what is known of the memory that NumPy would give it."""
    type_ = result.type
    if not row.alias:
        result.ordered = result.dense = type_.rank < 2 or (
            row.kind not in _SCATTERED and all(map(_is_ordered, operands)))
        return result
    base = operands[0]
    link(result, OfRow(base, ctx, row, attrs, type_))
    result.ordered = row.alias != "permuted" and _is_ordered(base)
    return result


# What NumPy lays out in an order of its own, or not at all.
_SCATTERED = frozenset((Kind.GATHER, Kind.EFFECT, Kind.REGION))


def _is_ordered(x: TracedArray) -> bool:
    return x.ordered or x.ndim < 2


def is_dense(x: TracedArray) -> bool:
    """True if the elements of x surely are one row-major block of memory."""
    chain = [x]
    while chain[-1].dense is None and chain[-1].link is not None:
        chain.append(chain[-1].link.base)
    for here in reversed(chain):
        if here.dense is None:
            here.dense = here.link is not None and here.link.dense
    return bool(x.dense)


def _strides_can_say(base: TracedArray, type_: TensorType) -> bool:
    """True if a reshape is surely a view: of a vector, of axes of size 1, or of dense memory."""
    wide = [[dim for dim in shape if dim != 1] for shape in (base.type.shape, type_.shape)]
    return wide[0] == wide[1] or len(wide[0]) < 2 or is_dense(base)


def refresh(x: TracedArray) -> None:
    """Follow the links of x again if its memory was written since. Raises TracerError (W203) where
    NumPy might show the write or not, or where the caller's array was changed."""
    root = owner(x)
    changed = root.changed if x.changed is None else x.changed
    if changed is not None:
        raise _changed(x, changed)
    chain = [x]
    while chain[-1].link is not None and chain[-1].seen is not root.version:
        chain.append(chain[-1].link.base)
    for view in reversed(chain[:-1]):
        assert view.link is not None
        if not view.link.certain:
            raise _changed(x, root)
        view.renew(view.link.follow(view.link.base), root.version)
    x.asked = x.ctx.writes.count


def write(x: TracedArray, new: TracedArray) -> None:
    """Let the memory of x hold ``new``, which has its type. Raises TracerError (W203) for memory
    that cannot be written to."""
    refresh(x)
    ctx = x.context()
    _writable(x, ctx)
    stamp = object()
    steps: list[tuple[TracedArray, TracedArray]] = []
    here, value = x, new
    while here.link is not None and here.link.certain:
        way = here.link
        refresh(way.base)
        steps.append((here, value))
        here, value = way.base, way.undo(way.base, value)
    if here.link is not None:
        # Perhaps a copy: it goes on by itself, and who has used the other array may not.
        is_dense(here)  # which is found by the link
        owner(here).changed, here.link = value, None
    here.version = stamp
    for view, value_then in (*steps, (here, value)):
        view.renew(value_then, stamp)
    tell_rivals(here, value)
    ctx.writes.count += 1


def tell_rivals(x: TracedArray, new: TracedArray) -> None:
    """Have nobody read what may have the memory of x, an owner, which holds ``new`` now."""
    for rival in rivals(x):
        if not rival.waiting and rival.changed is None:
            rival.changed = new


def _writable(x: TracedArray, ctx: Recording) -> None:
    here: TracedArray | None = x
    while here is not None:
        if here.link is not None and here.link.frozen:
            raise error("W203", f"{x.name} repeats its elements and is read-only, as in NumPy",
                        locs=user_loc(), types=[x.type],
                        hint="change a copy of it: y = np.broadcast_to(x, shape).copy()")
        if here.link is None or not here.link.certain:
            break
        here = here.link.base
    assert here is not None
    if here.argument:
        what = "" if here is x else "a view of "
        argument = "an argument of the traced function" if here.argument is True else here.argument
        raise refused_draw() or error(
            "W203", f"{x.name} is {what}{argument} and cannot be changed in place",
            locs=user_loc(), types=[x.type],
            hint=f"copy {'the argument' if here.argument is True else 'it'} first (x = x.copy()), "
                 "or write y = x.at[i].set(v)")
    if here.ctx is not ctx or here.plain is not None:
        raise OutsideError(
            f"{x.name} belongs to the function around this one and cannot be changed in place here",
            here if here.plain is None else here.plain, locs=user_loc(), types=[x.type],
            hint="change a copy of it, x.copy(), and return that")


def set_shape(x: TracedArray, shape: Any) -> None:
    """Give the very object x another shape. Its memory and the other views of it stay: what x was
    goes on as an array that nobody has a name for, and x becomes a view of that. Raises
    UnsupportedError (W113) for arrays of the caller's, for those of a trace around, which other
    names may stand for there, and for views whose elements NumPy may find to lie too far apart."""
    refresh(x)
    ctx = x.context()
    if x.is_scalar or x.argument or ctx.nested or ctx.made is None or rivals(x) or any(
            x is each for each in ctx.given):
        raise _shape_refused(x)
    old: TracedArray = ctx.tracer(x.value)
    for part in ("made", "ordered", "dense", "link", "version", "seen", "asked"):
        setattr(old, part, getattr(x, part))
    new: TracedArray = ctx.apply(np.reshape, (old, shape))
    found = new.link
    if found is None:  # it has this shape
        return
    if isinstance(found, OfRow) and old.link is None:
        new.link = Reshaped(old, ctx, found.row, found.attrs, found.type)
    elif not found.certain:
        raise _shape_refused(x)
    for each in ctx.made:
        view = each()
        if view is not None and view.link is not None and view.link.base is x:
            view.link.base = old
    for part in ("_value", "link", "ordered", "dense", "seen", "asked"):
        setattr(x, part, getattr(new, part))
    x.taken = None


def _shape_refused(x: TracedArray) -> Error:
    return error("W113", "the shape of this traced array cannot be set", locs=user_loc(),
                 types=[x.type], hint="write x = x.reshape(shape)")


def _changed(x: TracedArray, changed: TracedArray) -> Error:
    culprit = changed.value.node
    if owner(x).argument:
        message = f"{x.name} was changed in place through another name"
        hint = "copy the argument first: x = x.copy()"
    elif owner(x).rivals:
        message = (f"whether {x.name} has the memory of what was changed in place depends on which "
                   "way the function went, or on how an array lies in memory")
        hint = "make one of them a copy before that: y = x.copy()"
    else:
        message = (f"whether {x.name} has changed with the array it was reshaped from, or that "
                   "with it, depends on how NumPy lays them out")
        hint = "let reshape or ravel copy: y = np.reshape(x, shape).copy()"
    return error("W203", message, locs=((culprit.locs if culprit else ()) + user_loc())[:2],
                 types=[x.type], hint=hint)
