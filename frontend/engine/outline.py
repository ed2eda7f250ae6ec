"""The outline of a specialisation: what native code is to know of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...runtime.entry.walk import Walk
from ...runtime.program import Program
from ..face.signature import Signature
from ..ready.walks import Outline, walk_of
from ..tracing.arrays.variable import Variable
from ..tracing.trace import Traced


def outline_of(traced: Traced, program: Any, variables: Mapping[int, Variable]) -> Outline | None:
    """The outline of a program, None where only Python can call it. ``variables`` are those leaves
    of its arguments that are some, by number."""
    if type(program) is not Program or not program.walkable or traced.changed or any(
            not traced.leaves[at].type.shape for at in traced.written):
        return None
    given = {at: number for number, at in enumerate(
        at for at, entry in enumerate(traced.leaves) if entry.param is not None)}
    returned = len(program.results) - len(program.written)
    return Outline(
        in_tree=traced.in_tree, variables=variables, out_tree=traced.out_tree,
        out_kinds=tuple(given[kind] if isinstance(kind, int) else kind
                        for kind in traced.out_kinds),
        guards=traced.guards.all, sources=program.sources, written=tuple(program.written),
        inout=tuple((given[at], program.sources.index(given[at]),
                     returned - len(traced.written) + place)
                    for place, at in enumerate(traced.written)),
        bytes=tuple(slot.type.dtype.itemsize if item.kind == "array" else 0
                    for slot, item in zip(program.params, program.inputs, strict=True)),
        results=returned, single=program.single)


def walker_of(
    traced: Traced, program: Any, signature: Signature, variables: Mapping[int, Variable],
) -> Callable[[], Walk | None]:
    """What makes the walk of a program, with the objects that its guards expect by then."""
    def make() -> Walk | None:
        outline = outline_of(traced, program, variables)
        return None if outline is None else walk_of(
            outline, signature, program.native.address, program.native.call)

    return make
