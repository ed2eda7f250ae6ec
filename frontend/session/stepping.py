"""What ``make_callable`` gives: a step of a session as a function of what is fed, which native code
takes the calls of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.diagnose import FailedAssertionError, error
from ...runtime.program import Program
from ..engine.building.outline import outline_of_program
from ..face.boundary import leave
from ..face.signature import Signature
from ..face.source import user_loc
from ..face.tree import LEAF, TreeDef
from ..face.walked import Walked
from ..ready.walks import Outline, walk_of


class Stepping(Walked):
    """A step that is called. ``slowly`` is that in Python, ``failed`` what is raised of a check
    that has failed."""

    __slots__ = ("__weakref__", "_failed", "_names", "_slowly")

    def __init__(self, slowly: Callable[..., Any], failed: Callable[[Any], BaseException],
                 names: Sequence[str]) -> None:
        super().__init__()
        self._slowly, self._failed, self._names = slowly, failed, names

    def __call__(self, *arrays: Any) -> Any:
        try:
            if len(arrays) == len(self._names):
                return self._slowly(*arrays)
            raise error("W302", f"{len(self._names)} values are fed ({', '.join(self._names)}), "
                                f"got {len(arrays)}", locs=user_loc())
        except BaseException as problem:
            told = self.told(problem)
            if told is problem:
                raise
            raise told from None

    def told(self, problem: BaseException) -> BaseException:
        """See ``Walked``."""
        if isinstance(problem, FailedAssertionError):
            return self._failed(problem)
        leave(problem)
        return problem


def offer_step(
    call: Stepping, program: Program, order: Sequence[int], structure: TreeDef,
    operations: Sequence[bool],
) -> None:
    """Have native code take the calls of a step if it can. ``order``: for each argument of the
    program, which of the call's it is; ``operations``: which of the fetches give None."""
    given = iter(operations)
    arguments = TreeDef(tuple, None, (LEAF,) * len(order))
    outline: Outline | None = outline_of_program(
        program, TreeDef(tuple, None, (arguments, TreeDef(dict, (), ()))),
        _without(structure, given), ("array",) * (len(operations) - sum(operations)),
        [order[source] if isinstance(source, int) else source for source in program.sources])
    if outline is not None:
        native = program.native
        walk = walk_of(outline, Signature(_any_number), native.address, native.call)
        if walk is not None:
            call.offer(program, walk)


def _any_number(*arrays: Any) -> None:
    """Arguments by position."""


def _without(structure: TreeDef, operations: Any) -> TreeDef:
    """A structure in which operations have their value, None."""
    if structure.kind is None:
        return TreeDef(type(None)) if next(operations) else structure
    return TreeDef(structure.kind, structure.meta, tuple(
        [_without(child, operations) for child in structure.children]), structure.key)
