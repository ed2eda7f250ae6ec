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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..ir.diagnose import Error, error
from ..ir.index import row_major, symbol, symbols_of
from ..ir.op import Kind, OpDef
from ..ir.types import BOOL
from .source import user_loc

if TYPE_CHECKING:
    from .context import TraceContext
    from .tracer import Tracer


@dataclass(frozen=True, eq=False)
class Link:
    """How a view comes from ``base``: ``follow`` computes the view, ``undo`` puts its elements back
    into the base. ``certain`` is False where NumPy might have copied."""

    base: Tracer
    follow: Callable[[Tracer], Tracer]
    undo: Callable[[Tracer, Tracer], Tracer]
    certain: bool = True
    frozen: bool = False


@dataclass(frozen=True)
class Layout:
    """What is surely known of how NumPy would lay an array out: its axes are in memory ``ordered``
    as they are counted, its elements one ``dense`` row-major block."""

    ordered: bool = False
    dense: bool = False


UNKNOWN, ROW_MAJOR = Layout(), Layout(ordered=True, dense=True)


def link_whole(result: Tracer, base: Tracer, *, frozen: bool = False) -> None:
    """Make ``result`` another name for the memory of ``base``, which it has the value of."""
    link(result, Link(base, lambda x: x, lambda x, new: new, frozen=frozen))
    result.layout = base.layout


def link(result: Tracer, found: Link) -> None:
    """Make ``result`` a view."""
    result.link, result.seen = found, owner(result, found).version


def owner(x: Tracer, first: Link | None = None) -> Tracer:
    """The array whose memory x shares, which is x itself if it is no view."""
    here = first or x.link
    while here is not None:
        x, here = here.base, here.base.link
    return x


def track(
    ctx: TraceContext, result: Tracer, row: OpDef, operands: Sequence[Tracer],
    attrs: Mapping[str, Any],
) -> Tracer:
    """The result of an op, with what is known of the memory that NumPy would give it."""
    if not row.alias:
        if result.value.type.rank < 2 or (row.kind not in _SCATTERED
                                          and all(map(_ordered, operands))):
            result.layout = ROW_MAJOR
        return result
    base = operands[0]
    certain = row.alias != "reshaped" or _strides_can_say(base, result)
    follow, undo = _moves(ctx, row, attrs)
    link(result, Link(base, follow, undo, certain, frozen=row.alias == "repeated"))
    result.layout = Layout(
        _ordered(base) and row.alias != "permuted",
        base.layout.dense and certain and row.alias != "repeated" and (
            row.alias == "reshaped" or _one_block(row, base, result, attrs)))
    return result


# What NumPy lays out in an order of its own, or not at all.
_SCATTERED = frozenset((Kind.GATHER, Kind.EFFECT, Kind.REGION))


def _ordered(x: Tracer) -> bool:
    return x.layout.ordered or x.ndim < 2


def _strides_can_say(base: Tracer, result: Tracer) -> bool:
    """True if a reshape is surely a view: of a vector, of axes of size 1, or of dense memory."""
    wide = [[dim for dim in x.type.shape if dim != 1] for x in (base, result)]
    return wide[0] == wide[1] or len(wide[0]) < 2 or base.layout.dense


def _one_block(row: OpDef, base: Tracer, result: Tracer, attrs: Mapping[str, Any]) -> bool:
    """True if neighbours in the view of a dense array are neighbours in that array."""
    assert row.view is not None
    index = tuple(symbol(f"%{axis}") for axis in range(result.ndim))
    piece, = row.view(index, (base.type,), result.type, **attrs)
    gap = row_major(piece.indices, base.type.shape) - row_major(index, result.type.shape)
    return not any(name.startswith("%") for name in symbols_of(gap))


def _moves(ctx: TraceContext, row: OpDef, attrs: Mapping[str, Any]) -> tuple[Any, Any]:
    """``follow`` and ``undo`` of a row: the op itself, and its gradient, which puts elements where
    they came from."""
    def follow(base: Tracer) -> Tracer:
        return ctx.emit(row.name, base, **attrs)

    def back(new: Tracer, base: Tracer) -> Tracer:
        assert row.grad is not None
        value = ctx.value_of(new)
        moved, = row.grad(ctx.builder, value, base.value, value, **attrs)
        return ctx.tracer(moved)

    def undo(base: Tracer, new: Tracer) -> Tracer:
        if new.type.size == 0:
            return base
        moved = back(new, base)
        if new.type.size == base.type.size:
            return moved
        touched = back(ctx.full(True, BOOL, new.type.shape), base)
        return ctx.emit("select", touched, moved, base)

    return follow, undo


def refresh(x: Tracer) -> None:
    """Follow the links of x again if its memory was written since. Raises TracerError (W203) where
    NumPy might show the write or not, or where the caller's array was changed."""
    root = owner(x)
    changed = root.changed if x.changed is None else x.changed
    if changed is not None:
        raise _changed(x, changed)
    if x.seen is root.version:
        return
    chain = [x]
    while chain[-1].link is not None and chain[-1].seen is not root.version:
        chain.append(chain[-1].link.base)
    for view in reversed(chain[:-1]):
        assert view.link is not None
        if not view.link.certain:
            raise _changed(x, root)
        view.renew(view.link.follow(view.link.base), root.version)


def write(x: Tracer, new: Tracer) -> None:
    """Let the memory of x hold ``new``, which has its type. Raises TracerError (W203) for memory
    that cannot be written to."""
    refresh(x)
    ctx = x.context()
    _writable(x, ctx)
    stamp = object()
    steps: list[tuple[Tracer, Tracer]] = []
    here, value = x, new
    while here.link is not None and here.link.certain:
        way = here.link
        refresh(way.base)
        steps.append((here, value))
        here, value = way.base, way.undo(way.base, value)
    if here.link is not None:
        # Perhaps a copy: it goes on by itself, and who has used the other array may not.
        owner(here).changed, here.link = value, None
    here.version = stamp
    for view, value_then in (*steps, (here, value)):
        view.renew(value_then, stamp)


def _writable(x: Tracer, ctx: TraceContext) -> None:
    here: Tracer | None = x
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
        raise error("W203", f"{x.name} is {what}an argument of the traced function and cannot be "
                            "changed in place", locs=user_loc(), types=[x.type],
                    hint="copy the argument first (x = x.copy()), or write y = x.at[i].set(v)")
    if here.ctx is not ctx:
        raise error("W203", f"{x.name} belongs to the function around this one and cannot be "
                            "changed in place here", locs=user_loc(), types=[x.type],
                    hint="change a copy of it, x.copy(), and return that")


def _changed(x: Tracer, changed: Tracer) -> Error:
    culprit = changed.value.node
    if owner(x).argument:
        message = f"{x.name} was changed in place through another name"
        hint = "copy the argument first: x = x.copy()"
    else:
        message = (f"whether {x.name} has changed with the array it was reshaped from, or that "
                   "with it, depends on how NumPy lays them out")
        hint = "let reshape or ravel copy: y = np.reshape(x, shape).copy()"
    return error("W203", message, locs=((culprit.locs if culprit else ()) + user_loc())[:2],
                 types=[x.type], hint=hint)
