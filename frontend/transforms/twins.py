"""Masks that are one, and stay one through a branch or a loop.

    while len(z):             z and c are chosen by one mask, before a round and after it: what a
        m = abs(z) < 2        loop carries for c is what it carries for z, so that inside of it,
        z, c = z[m], c[m]     and behind it, their elements stand side by side

Of a branch it is known when both sides are traced. Of a loop it is taken for granted, until a round
shows that it is not so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...ir.graph import Value
from ...ir.types import BOOL
from ..tracing.arrays.selection import computed_alike
from ..tracing.values.tracer import Tracer

Twins = Mapping[int, int]  # a number, and that of the first one which is the same


def twins(*sides: Sequence[Value], apart: Collection[int] = ()) -> dict[int, int]:
    """The masks among values that are computed as an earlier one is, on all sides; but for those
    that are known to be ``apart``."""
    found: dict[int, int] = {}
    for at, value in enumerate(sides[0]):
        if value.dtype != BOOL or not value.type.rank or at in apart:
            continue
        first = next((other for other in range(at) if other not in found and all(
            side[other].type == side[at].type and computed_alike(side[other], side[at])
            for side in sides)), None)
        if first is not None:
            found[at] = first
    return found


def as_one(tracers: Sequence[Tracer], pairs: Twins) -> list[Tracer]:
    """Tracers, of which twins have one value."""
    found = list(tracers)
    for at, first in pairs.items():
        old, same = found[at], found[first]
        found[at] = made = Tracer(same.ctx, same.value, weak=old.weak)
        made.ordered, made.dense = old.ordered, old.dense
    return found
