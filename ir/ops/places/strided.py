"""Gradients of windows that are strided or dilated, where the cotangent is a contraction.

    y[m] = sum of x[s*m + d*j] w[j]     the cotangent g[m, j] = dy[m] w[j] of a window's elements

    of x[s*q + p]:  the sum of dy[m] w[j] where s*m + d*j = s*q + p

Of each phase p of a stride only some of the j come by, each at one m. So a phase is a contraction
of its own, of slices of w and of a skewed dy, and no products of zeros are made, nor an array of
all windows' elements. The phases are put between each other at the end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...record import record
from ..axes.reduce import contract_letters
from ..op import Kind

Parts = Callable[..., Any]


@record(frozen=True)
class _Windows:
    """Axes that windows were taken of: the letter of an axis, that of their elements, its size,
    the stride and the dilation."""

    axis: str
    along: str
    size: int
    stride: int
    rate: int


@record(frozen=True)
class _Adjoint:
    """What a sum over the elements of windows is the cotangent of: a contraction, of which some
    axes are spread, skewed and summed; and the letters that are left."""

    product: Any
    windows: tuple[_Windows, ...]
    letters: str


def phases(b: Any, g: Any, axes: tuple[int, ...], skewed: Parts, sliced: Parts, summed: Parts) -> (
        Any):
    """The sum of such a cotangent over ``axes``; None for any other."""
    found = _adjoint(g, axes)
    if found is None:
        return None
    parts = []
    for phase in itertools.product(*(range(each.stride) for each in found.windows)):
        part = found.product
        low = dict.fromkeys(found.letters, 0)
        for p, each in zip(phase, found.windows, strict=True):
            letters = _letters(part)
            if letters is None:
                return None
            start = _first(each, p, part.shape[letters.index(each.along)])
            if start is None:
                part = None
                break
            j, shift, rows = start
            part = _one(b, part, letters, each, j, rows, (skewed, sliced, summed))
            low[each.axis] = shift
        parts.append(_placed(b, found, part, low))
    return _interleaved(b, found, parts)


def _letters(value: Any) -> str | None:
    """The letters of the result of a contraction, if a value is one."""
    if value.node is None or value.node.op.kind is not Kind.CONTRACT:
        return None
    letters: str = contract_letters(value.node.attrs["dims"])[2]
    return letters


def _first(each: _Windows, p: int, elements: int) -> tuple[int, int, int] | None:
    """Of a phase: the first element of the windows that comes by, how many rows after the first one
    that is, and how many rows there are; None if no element does."""
    common = math.gcd(each.stride, each.rate)
    for j in range(min(each.stride // common, elements)):
        shift, rest = divmod(each.rate * j - p, each.stride)
        rows = -(-each.size // each.stride) - shift
        if rest == 0:
            return (j, shift, rows) if rows > 0 else None
    return None


def _one(
    b: Any, part: Any, letters: str, each: _Windows, first: int, rows: int,
    moves: tuple[Parts, Parts, Parts],
) -> Any:
    """The contraction of the elements of one phase of an axis."""
    skewed, sliced, summed = moves
    axis, along = letters.index(each.axis), letters.index(each.along)
    common = math.gcd(each.stride, each.rate)
    period = each.stride // common
    count = -(-(part.shape[along] - first) // period)
    part = sliced(b, part, tuple(first if at == along else 0 for at in range(len(letters))),
                  tuple(period if at == along else 1 for at in range(len(letters))),
                  tuple(count if at == along else dim for at, dim in enumerate(part.shape)))
    part = skewed(b, part, axis, along, rows, -(each.rate // common))
    return summed(b, part, (along,))


def _placed(b: Any, found: _Adjoint, part: Any, low: dict[str, int]) -> Any:
    """A phase in the rows that all phases have, with a dim of 1 after each axis for the phases."""
    rows = {each.axis: -(-each.size // each.stride) for each in found.windows}
    product = _letters(found.product) or ""
    whole = [rows.get(letter, found.product.shape[product.index(letter)])
             for letter in found.letters]
    if part is None:
        made = b.full(0.0, found.product.type.with_shape(tuple(whole)))
    else:
        made = part if not any(low.values()) else b.pad(
            part, low=tuple(low.values()), high=(0,) * len(whole), interior=(0,) * len(whole),
            value=0.0)
    return b.reshape(made, shape=tuple(itertools.chain.from_iterable(
        (dim, 1) if letter in rows else (dim,)
        for letter, dim in zip(found.letters, whole, strict=True))))


def _interleaved(b: Any, found: _Adjoint, parts: Sequence[Any]) -> Any:
    """The phases, which are in the order of their numbers, between each other."""
    axes = {each.axis: each for each in found.windows}
    place: dict[str, int] = {}
    for letter in found.letters:
        place[letter] = len(place) + sum(other in axes for other in place)
    for each in reversed(found.windows):
        if each.stride > 1:
            parts = [b.concatenate(*parts[at:at + each.stride], axis=place[each.axis] + 1)
                     for at in range(0, len(parts), each.stride)]
    (made,) = parts
    sizes = [-(-axes[letter].size // axes[letter].stride) * axes[letter].stride
             if letter in axes else made.shape[place[letter]] for letter in found.letters]
    made = b.reshape(made, shape=tuple(sizes))
    shape = tuple(axes[letter].size if letter in axes else size
                  for letter, size in zip(found.letters, sizes, strict=True))
    if shape == made.shape:
        return made
    return b.slice(made, start=(0,) * len(shape), step=(1,) * len(shape), shape=shape)


def _adjoint(g: Any, axes: tuple[int, ...]) -> _Adjoint | None:
    """What g, summed over ``axes``, is the cotangent of."""
    skews: list[tuple[int, int, int]] = []
    pending: tuple[int, ...] | None = axes
    value = g
    while value.node is not None and len(pending or (0,)) == 1:
        attrs, role = value.node.attrs, _ROLES.get(value.node.op.name)
        if role is _SKEW and pending == (attrs["along"],) and attrs["step"] == -1:
            skews.append((attrs["axis"], attrs["along"], attrs["size"]))
            pending = None
        elif role is _SUM and pending is None:
            pending = attrs["axes"]
        elif role is _PAD and pending is None:
            return _spread(value, skews)
        else:
            return None
        value = value.node.inputs[0]
    return None


def _spread(pad: Any, skews: Sequence[tuple[int, int, int]]) -> _Adjoint | None:
    """The same from the pad that spreads a contraction, and what is done with it, the last first.
    None if nothing else is spread than axes of windows and their elements."""
    product, attrs = pad.node.inputs[0], pad.node.attrs
    letters = _letters(product)
    sizes = (*pad.shape, *(size for _, _, size in skews))
    if letters is None or any(attrs["low"]) or attrs["value"] != 0 or not all(
            isinstance(size, int) for size in sizes):
        return None
    gaps = dict(zip(letters, attrs["interior"], strict=True))
    left, windows = list(letters), []
    for axis, along, size in reversed(skews):
        windows.append(_Windows(left[axis], left[along], size, gaps[left[axis]] + 1,
                                gaps[left[along]] + 1))
        del left[along]
    known = {letter for each in windows for letter in (each.axis, each.along)}
    padded = {letter for letter, high, gap in zip(
        letters, attrs["high"], attrs["interior"], strict=True) if high or gap}
    strided = any(each.stride > 1 or each.rate > 1 for each in windows)
    distinct = len(known) == 2 * len(windows)
    return _Adjoint(product, tuple(windows), "".join(left)) if (
        strided and distinct and padded <= known) else None


_SKEW, _SUM, _PAD = range(3)
_ROLES = {"skew": _SKEW, "sum": _SUM, "pad": _PAD}
