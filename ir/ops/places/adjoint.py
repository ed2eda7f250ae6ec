"""Gradients of views where the cotangent is a contraction: a linear view of a contraction is a
contraction of views, so that no array of the size of all windows is made.

    y = einsum("nhwcij,ocij->nhwo", windows(x), w)          windows: x[h + i, w + j]
    cotangent of the windows   g = einsum("nhwo,ocij->nhwcij", dy, w)
    of x                       sum over i, j of g[h - i, w - j]
                             = einsum("nhwoij,ocij->nhwc", skewed dy, w)     dy[h - i, w - j]

Views that are moved to the operands: a skew of an axis of one operand along one of the other, and
slices. A sum over a letter that both operands have is one of the contraction's own. The zeros that
strides leave are not moved, since most products would be of them: see ``strided``.
"""

from __future__ import annotations

from typing import Any

from ...indices.index import Dim
from ..axes.reduce import contract_letters
from ..op import Kind
from .strided import phases

# Views are known by their attributes.
WINDOW, BROADCAST, SLICE = {"axis", "along", "size"}, {"shape", "axes"}, {"start", "step", "shape"}


def _product(g: Any) -> tuple[str, str, str] | None:
    """The letters of the contraction that g is, if it is one."""
    if g.node is None or g.node.op.kind is not Kind.CONTRACT:
        return None
    return contract_letters(g.node.attrs["dims"])


def skewed(b: Any, g: Any, axis: int, along: int, size: Dim, step: int = -1) -> Any:
    """The cotangent of what windows of ``axis``, with their elements in ``along``, are of."""
    letters = _product(g)
    if letters is not None:
        lhs, rhs, out = letters
        moved, element = out[axis], out[along]
        for at, (own, other) in enumerate(((lhs, rhs), (rhs, lhs))):
            if moved in own and moved not in other and element in other and element not in own:
                operands, parts = [*g.node.inputs], [lhs, rhs]
                # Before what comes after it in the other operand: the sum goes along both.
                later = other[other.index(element):]
                place = next((dim for dim, letter in enumerate(own) if letter in later), len(own))
                operands[at] = _all_skewed(b, operands[at], own.index(moved), place,
                                           g.shape[along], size, step)
                parts[at] = own[:place] + element + own[place:]
                return b.contract(*operands, dims=f"{','.join(parts)}->{out}")
    return b.skew(g, axis=axis, along=along, step=step, size=size, value=0.0)


def _all_skewed(
    b: Any, x: Any, axis: int, place: int, count: Dim, size: Dim, step: int
) -> Any:
    """``x[i + step*k]`` for each k below ``count``, in a new axis, and i below ``size`` in
    ``axis``; zeros beyond x. Windows of x with zeros around it, the last one first: they are read
    without a look at where x ends."""
    rank, more = len(x.shape), size - x.shape[axis]
    zeros = (count - 1, more) if step == -1 and isinstance(count, int) and count > 0 and (
        isinstance(more, int)) else None
    if zeros is not None:
        x = _with_zeros(b, x, axis, *zeros)
    kept = tuple(dim + (dim >= place) for dim in range(rank))
    wide = b.broadcast(x, shape=(*x.shape[:place], count, *x.shape[place:]), axes=kept)
    if zeros is None:
        return b.skew(wide, axis=kept[axis], along=place, step=step, size=size, value=0.0)
    found = b.window(wide, axis=kept[axis], along=place, size=size)
    ones, none = (1,) * (rank + 1), (0,) * (rank + 1)
    return b.slice(found, start=_with(none, place, count - 1), step=_with(ones, place, -1),
                   shape=found.shape)


def _with_zeros(b: Any, x: Any, axis: int, low: int, high: int) -> Any:
    """``x`` with zeros before and after it along an axis: below windows of other axes, so that
    what is stored is as large as x and not as all these windows."""
    view = x.node if x.node is not None and x.node.op.kind is Kind.VIEW else None
    attrs = {} if view is None else dict(view.attrs)
    if view is not None and attrs.keys() == WINDOW and axis not in (attrs["axis"], attrs["along"]):
        return b.window(_with_zeros(b, view.inputs[0], axis, low, high), **attrs)
    if view is not None and attrs.keys() == BROADCAST and axis in attrs["axes"]:
        below, own = view.inputs[0], attrs["axes"].index(axis)
        if below.shape[own] == x.shape[axis]:
            below = _with_zeros(b, below, own, low, high)
            return b.broadcast(below, axes=attrs["axes"], shape=_with(
                x.shape, axis, below.shape[own]))
    if view is not None and attrs.keys() == SLICE and attrs["start"][axis] == 0 and (
            attrs["step"][axis] == 1 and x.shape[axis] == view.inputs[0].shape[axis]):
        below = _with_zeros(b, view.inputs[0], axis, low, high)
        return b.slice(below, start=attrs["start"], step=attrs["step"], shape=_with(
            x.shape, axis, below.shape[axis]))
    none = (0,) * len(x.shape)
    return b.pad(x, low=_with(none, axis, low), high=_with(none, axis, high), interior=none,
                 value=0.0)


def _with(sizes: tuple[Any, ...], at: int, size: Any) -> tuple[Any, ...]:
    return (*sizes[:at], size, *sizes[at + 1:])


def summed(b: Any, g: Any, axes: tuple[int, ...]) -> Any:
    """The sum of a cotangent over axes."""
    letters = _product(g)
    if letters is not None and axes:
        lhs, rhs, out = letters
        if all(out[axis] in lhs and out[axis] in rhs for axis in axes):
            kept = "".join(letter for at, letter in enumerate(out) if at not in axes)
            return b.contract(*g.node.inputs, dims=f"{lhs},{rhs}->{kept}")
    found = phases(b, g, axes, skewed, sliced, summed) if len(axes) == 1 else None
    if found is not None:
        return found
    return b.sum(g, axes=axes) if axes else g


def sliced(
    b: Any, g: Any, start: tuple[Dim, ...], step: tuple[int, ...], shape: tuple[Dim, ...]
) -> Any:
    """A slice of a cotangent."""
    letters = _product(g)
    if letters is None:
        return b.slice(g, start=start, step=step, shape=shape)
    lhs, rhs, out = letters
    wanted = dict(zip(out, zip(start, step, shape, strict=True), strict=True))

    def slice(x: Any, own: str) -> Any:
        each = [wanted.get(letter, (0, 1, dim)) for letter, dim in zip(own, x.shape, strict=True)]
        starts, steps, sizes = zip(*each, strict=True) if each else ((), (), ())
        if sizes == x.shape and set(steps) == {1} and set(starts) == {0}:
            return x
        return b.slice(x, start=starts, step=steps, shape=sizes)

    x, y = g.node.inputs
    return b.contract(slice(x, lhs), slice(y, rhs), dims=f"{lhs},{rhs}->{out}")
