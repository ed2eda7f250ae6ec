"""The outline of a specialisation: what native code is to know of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...runtime.entry.walk import Walk
from ...runtime.program import Program, Source
from ...runtime.tree import TreeDef
from ..face.signature import Signature
from ..face.tree import Static
from ..ready.walks import Outline, walk_of
from ..tracing.arrays.variable import Variable
from ..tracing.guards.guard import Guard
from ..tracing.trace import Traced

_BUILT = frozenset({None, type(None), tuple, list, dict, Static})


def outline_of(traced: Traced, program: Any, variables: Mapping[int, Variable]) -> Outline | None:
    """The outline of a program, None where only Python can call it. ``variables`` are those leaves
    of its arguments that are some, by number."""
    if traced.changed or any(not traced.leaves[at].type.shape for at in traced.written):
        return None
    given = {at: number for number, at in enumerate(
        at for at, entry in enumerate(traced.leaves) if entry.param is not None)}
    return outline_of_program(
        program, traced.in_tree, traced.out_tree,
        [given[kind] if isinstance(kind, int) else kind for kind in traced.out_kinds],
        guards=traced.guards.all, variables=variables, inout=[given[at] for at in traced.written])


def outline_of_program(
    program: Any, in_tree: TreeDef, out_tree: TreeDef, out_kinds: Sequence[str | int],
    sources: Sequence[Source] | None = None, guards: Sequence[Guard] = (),
    variables: Mapping[int, Variable] = MappingProxyType({}), inout: Sequence[int] = (),
) -> Outline | None:
    """The outline of a program that has these arguments and results; ``inout`` are the arguments
    that are written, by number."""
    if type(program) is not Program or not program.walkable:
        return None
    own = program.sources if sources is None else tuple(sources)
    returned = len(program.results) - len(program.written)
    return Outline(
        in_tree=in_tree, variables=variables, out_tree=out_tree, out_kinds=tuple(out_kinds),
        guards=tuple(guards), sources=own, written=tuple(program.written),
        inout=tuple([_inout(program, leaf, own.index(leaf), returned - len(inout) + place,
                            _runs_no_code(out_tree)) for place, leaf in enumerate(inout)]),
        bytes=tuple([slot.type.dtype.itemsize if item.kind == "array" else 0
                     for slot, item in zip(program.params, program.inputs, strict=True)]),
        results=returned, single=program.single)


def _inout(
    program: Program, leaf: int, param: int, result: int, last: bool
) -> tuple[int, int, int, bool]:
    """How an argument is written; ``last``: nothing can fail any more when the program is done."""
    hands_on = program.plan.hands_on
    return leaf, param, result, last and bool(hands_on) and param in hands_on[result]


def _runs_no_code(out_tree: TreeDef) -> bool:
    """Whether results are put together without any code of the user's, as in ``__init__``."""
    return out_tree.kind in _BUILT and all(map(_runs_no_code, out_tree.children))


def walker_of(
    traced: Traced, program: Any, signature: Signature, variables: Mapping[int, Variable],
) -> Callable[[], Walk | None]:
    """What makes the walk of a program, with the objects that its guards expect by then."""
    def make() -> Walk | None:
        outline = outline_of(traced, program, variables)
        return None if outline is None else walk_of(
            outline, signature, program.native.address, program.native.call)

    return make
