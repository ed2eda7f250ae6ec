"""A step of a session: fetches and feeds with their program; and as a function of what is fed,
which native code takes the calls of (``make_callable``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.diagnose import FailedAssertionError, error
from ...ir.record import record
from ...runtime.program import Program
from ...runtime.watch import Watch
from ..engine.building.flow import FlowStages
from ..engine.building.outline import outline_of_program
from ..engine.building.pipeline import Stages
from ..face import tree
from ..face.boundary import leave
from ..face.signature import Signature
from ..face.source import user_loc
from ..face.tree import LEAF, TreeDef
from ..face.walked import Walked
from ..ready.walks import walk_of
from ..tracing.failing import Failure, exception
from .feeds import Fed, convert
from .graph import Element


@record(frozen=True, eq=False)
class Compiled:
    """One (feeds, fetches) set: its stages, its program, and the feeds in the program's order."""

    stages: Stages | FlowStages
    program: Program
    feeds: tuple[Fed, ...]


class Step:
    """Fetches and feeds with all that is known of them before values are fed.

    ``asked`` keeps the objects alive by whose identities a session finds the step again.
    """

    def __init__(self, made: Compiled, elements: Sequence[Element], structure: tree.TreeDef,
                 feeds: Sequence[Fed], asked: Any) -> None:
        self.made = made
        self._program = made.program
        self._feeds = feeds
        self._asked = asked
        self._structure = structure
        self._operations = [isinstance(element, tuple) for element in elements]
        places = {value: at for at, value in enumerate(feeds)}
        order = [places[value] for value in made.feeds]
        self._order = None if order == list(range(len(feeds))) else order
        # Variables that are fed, and that nothing of the step reads.
        self._unused = [(at, feed) for at, feed in enumerate(feeds) if at not in order]
        # The program's one array is the result: native code itself is called, if it has no state.
        native = isinstance(made.stages, Stages) and made.program.stateless
        self._direct = made.program.direct if native else None
        self.single = native and structure.kind is None and not any(self._operations)
        flat = not any(self._operations) and all(
            child.kind is None for child in structure.children)
        self._plain = structure.kind if flat and structure.kind in (list, tuple) else None

    def __call__(self, *arrays: Any) -> Any:
        given = arrays if self._order is None else self._ordered(arrays)
        if self._direct is None:
            raw = self._program.attempt(*given)
        else:
            raw = self._direct(*given)
            if raw is not NotImplemented and self.single:
                return raw
        if raw is NotImplemented:
            raw = self._program.run(self._converted(given))
        return self._nest(raw if type(raw) is tuple else (raw,))

    def offer_to(self, call: Walked, signature: Signature, arguments: Sequence[TreeDef],
                 asked: Sequence[Any] = ()) -> None:
        """Have native code take the calls of this step if it can, with these arguments by position:
        first those that are the very objects that are ``asked`` for, then what is fed."""
        if self._unused:
            return
        program, order = self._program, self._order or range(len(self._feeds))
        outline = outline_of_program(
            program, TreeDef(tuple, None, (TreeDef(tuple, None, tuple(arguments)),
                                           TreeDef(dict, (), ()))),
            _without(self._structure, iter(self._operations)),
            ("array",) * (len(self._operations) - sum(self._operations)),
            [order[source] if isinstance(source, int) else source for source in program.sources],
            variables=dict(enumerate(asked)))
        if outline is not None:
            native = program.native
            walk = walk_of(outline, signature, native.address, native.call)
            if walk is not None:
                call.offer(self, walk)

    def watched(self, arrays: Sequence[Any], watch: Watch) -> Any:
        """The same, within the time that ``watch`` gives."""
        given = self._converted(self._ordered(arrays))
        raw = self._program.within(watch).run(given)
        return self._nest(raw)

    def _ordered(self, arrays: Sequence[Any]) -> Sequence[Any]:
        for at, feed in self._unused:
            convert(feed, arrays[at], whole=True)
        return arrays if self._order is None else [arrays[at] for at in self._order]

    def _converted(self, given: Sequence[Any]) -> list[Any]:
        return [convert(feed, array) for feed, array in zip(self.made.feeds, given, strict=True)]

    def _nest(self, raw: Sequence[Any]) -> Any:
        if self._plain is not None:
            return self._plain([array if array.ndim else array[()] for array in raw])
        results = iter(raw)
        leaves = [None if operation else next(results)[()] for operation in self._operations]
        return leaves[0] if self._structure.kind is None else tree.unflatten(self._structure,
                                                                             leaves)


class Stepping(Walked):
    """A step that is called. ``failures`` are what the graph's checks raise, ``names`` those of
    what is fed."""

    __slots__ = ("__weakref__", "_failures", "_names", "_slowly")

    def __init__(self, step: Step, failures: Mapping[str, Failure], names: Sequence[str]) -> None:
        super().__init__()
        self._slowly, self._failures, self._names = step, failures, names
        step.offer_to(self, Signature(_any_number), (LEAF,) * len(names))

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
        return told(problem, self._failures)


def told(problem: BaseException, failures: Mapping[str, Failure]) -> BaseException:
    """What the user is to see of a problem: of a check that has failed, an exception of the
    graph's own."""
    leave(problem)
    if not isinstance(problem, FailedAssertionError):
        return problem
    own = exception(problem, [failures])
    own.__cause__ = None if own is problem else problem
    return own


def _any_number(*arrays: Any) -> None:
    """Arguments by position."""


def _without(structure: TreeDef, operations: Any) -> TreeDef:
    """A structure in which operations have their value, None."""
    if structure.kind is None:
        return TreeDef(type(None)) if next(operations) else structure
    return TreeDef(structure.kind, structure.meta, tuple(
        [_without(child, operations) for child in structure.children]), structure.key)
