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
                wide = b.broadcast(operands[at], shape=(*operands[at].shape, g.shape[along]),
                                   axes=tuple(range(len(own))))
                operands[at] = b.skew(wide, axis=own.index(moved), along=len(own), step=step,
                                      size=size, value=0.0)
                parts[at] += element
                return b.contract(*operands, dims=f"{','.join(parts)}->{out}")
    return b.skew(g, axis=axis, along=along, step=step, size=size, value=0.0)


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
