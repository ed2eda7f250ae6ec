"""The outline of a specialisation: what native code is to know of its calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ....runtime.entry.layout import Array
from ....runtime.entry.walk import Walk
from ....runtime.program import Program, Source
from ....runtime.tree import TreeDef
from ...face.signature import Signature
from ...ready.walks import Outline, walk_of
from ...tracing.arrays.variable import Variable
from ...tracing.containers import Fill, Path
from ...tracing.context.traced import Traced
from ...tracing.guards.guard import Guard, Kind
from .handing import Handed, handed, lent


def outline_of(
    traced: Traced, program: Any, variables: Mapping[int, Variable], donated: Collection[str] = (),
) -> Outline | None:
    """The outline of a program, None where only Python can call it. ``variables`` are those leaves
    of its arguments that are some, by number; ``donated`` arguments are needed no more after a
    call."""
    copied = any(isinstance(kind, int) and kind < 0 for kind in traced.out_kinds)
    # Only Python knows whether what is known of an array has the memory of an argument.
    known = traced.written and any(guard.kind is Kind.CONTENT for guard in traced.guards.all)
    if copied or known or not all(traced.written_shapes) or type(program) is not Program:
        return None
    given = {at: number for number, at in enumerate(
        at for at, entry in enumerate(traced.leaves) if entry.param is not None)}
    return outline_of_program(
        program, traced.in_tree, traced.out_tree,
        [kind if isinstance(kind, str) else given[kind] if kind < len(traced.leaves) else
         traced.captures[kind - len(traced.leaves)].array for kind in traced.out_kinds],
        guards=traced.guards.all, variables=variables,
        inout=handed(traced, program.plan, donated), containers=traced.containers,
        fills=traced.changed)


def outline_of_program(
    program: Any, in_tree: TreeDef, out_tree: TreeDef, out_kinds: Sequence[str | int | Array],
    sources: Sequence[Source] | None = None, guards: Sequence[Guard] = (),
    variables: Mapping[int, Variable] = MappingProxyType({}), inout: Sequence[Handed] = (),
    containers: Sequence[Path] = (), fills: Sequence[Fill] = (),
) -> Outline | None:
    """The outline of a program that has these arguments and results; see ``Outline``."""
    if type(program) is not Program or not program.walkable:
        return None
    return Outline(
        in_tree=in_tree, variables=variables, out_tree=out_tree, out_kinds=tuple(out_kinds),
        guards=tuple(guards), sources=program.sources if sources is None else tuple(sources),
        written=tuple(program.written), inout=(*inout, *lent(program.plan, out_tree)),
        containers=tuple(containers), fills=tuple(fills),
        bytes=tuple([slot.type.dtype.itemsize if item.kind == "array" else 0
                     for slot, item in zip(program.params, program.inputs, strict=True)]),
        results=len(program.results) - len(program.written), single=program.single)


def walker_of(
    traced: Traced, program: Any, signature: Signature, variables: Mapping[int, Variable],
    donated: Collection[str] = (), owner: Callable[[], Any] | None = None,
) -> Callable[[], Walk | None]:
    """What makes the walk of a program, with the objects that its guards expect by then. ``owner``
    gives the object that stands for the first argument, what it holds."""
    def make() -> Walk | None:
        outline = outline_of(traced, program, variables, donated)
        return None if outline is None else walk_of(
            outline, signature, program.native.address, program.native.call, owner)

    return make
