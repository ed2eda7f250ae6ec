"""What tracing gives: a graph, and how the arguments and results of calls map to it."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from operator import methodcaller
from types import CodeType, MappingProxyType
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from ....ir.graph import Graph, Value
from ....ir.indices.index import Dim
from ....ir.record import field, record
from ....ir.text.printer import print_graph
from ....ir.types import TensorType
from ...face import tree
from ...face.kinds import MADE
from ...face.loading import load
from ..arrays.variable import Variable
from ..containers import Change, Fill, Path, filling, found_at, resolved
from ..failing import Failure
from ..guards.guard import Guards
from .captures import Capture

# What makes a result of what native code gives, by the kind that it has.
CONVERSIONS: MappingProxyType[str, Callable[[Any], Any]] = MappingProxyType(
    {"number": methodcaller("item"), **MADE})


@record(frozen=True)
class Leaf:
    """One leaf of the arguments: ``kind`` is array, scalar (NumPy's), number (Python's) or
    variable."""

    name: str  # as the user would write it: x, params['w']
    kind: str
    type: TensorType
    param: Value | None = None  # None for a variable, which is read inside the graph


@record(frozen=True, eq=False)
class Traced:
    """A traced function: its graph, and how arguments and results map to it."""

    graph: Graph
    in_tree: tree.TreeDef
    out_tree: tree.TreeDef
    leaves: tuple[Leaf, ...]
    # Of each result: array, number, or 0-d, which is no scalar; or the argument that it is, or the
    # capture, counted behind these; of captures that nobody holds, from -1 on, a copy.
    out_kinds: tuple[str | int, ...]
    captures: tuple[Capture, ...]
    variables: Mapping[str, Variable]
    guards: Guards = Guards(())  # what it takes for granted of the world around
    # Exceptions of the function's own and texts of assertions, by what a failed check says.
    failures: Mapping[str, Failure] = field(default_factory=dict)
    # Arguments that the last results are the new elements of; captures are counted behind them.
    written: tuple[int, ...] = ()
    containers: tuple[Path, ...] = ()  # lists, dicts and objects among the arguments,
    changed: tuple[Fill, ...] = ()     # and those that are filled with what is behind the result
    capacity: int = 0  # of lists of which nobody knows how long they become, in items
    codes: frozenset[CodeType] = frozenset()  # of the functions that were entered

    _bound: ClassVar[WeakKeyDictionary[Graph, tuple[
        Mapping[str, Variable], tuple[Capture, ...]]]] = WeakKeyDictionary()

    def __post_init__(self) -> None:
        Traced._bound[self.graph] = self.variables, self.captures

    @staticmethod
    def bound(graph: Graph) -> tuple[Mapping[str, Variable], tuple[Capture, ...]]:
        """The variables and arrays that a function had when this graph was traced of it; the graph
        alone, ``f.trace(x).graph``, can so be run."""
        return Traced._bound.get(graph, ({}, ()))

    def closing_over(self, arrays: Sequence[Any], guards: Guards) -> Traced:
        """The same with other closed-over arrays and guards. Of these the bare graph, which
        both share, is not to know: it would keep them alive."""
        other = copy(self)
        object.__setattr__(other, "captures", tuple(each._replace(array=array) for each, array in
                                                    zip(self.captures, arrays, strict=True)))
        object.__setattr__(other, "guards", guards)
        return other

    def as_text(self) -> str:
        """The graph in text."""
        return print_graph(self.graph)

    def _repr_html_(self) -> str:
        document = load("frontend.viz.document").graph_document(self.graph)
        return str(load("frontend.viz.page").frame(document))

    def given(self, leaves: Sequence[Any]) -> list[Any]:
        """Those leaves of a call that become parameters: all but variables."""
        return [leaf for leaf, entry in zip(leaves, self.leaves, strict=True)
                if entry.param is not None]

    @property
    def written_shapes(self) -> list[tuple[Dim, ...]]:
        """The shapes of the arrays that calls write to."""
        return [self.type_of(at).shape for at in self.written]

    def written_in(self, leaves: Sequence[Any]) -> list[Any]:
        """The arrays that a call with these leaves writes to."""
        return [self._given(at, leaves) for at in self.written]

    def _given(self, at: int, leaves: Sequence[Any]) -> Any:
        if at < 0:
            return self.captures[-1 - at].array.copy()
        return leaves[at] if at < len(leaves) else self.captures[at - len(leaves)].array

    def type_of(self, at: int) -> TensorType:
        """The type of an argument or a capture, which a result may be."""
        count = len(self.leaves)
        return self.leaves[at].type if 0 <= at < count else (
            self.captures[at - count if at >= 0 else -1 - at].param.type)

    def results(
        self, arrays: Sequence[Any], leaves: Sequence[Any], arguments: Callable[[], Any]
    ) -> Any:
        """What the graph gives, as the function would return it: NumPy's functions give scalars
        for arrays without dims, and operations of Python numbers are Python numbers. Arrays among
        the ``leaves`` and containers among the ``arguments`` that are changed become what they are
        to be, all or none."""
        found = iter(arrays)
        result = tree.unflatten(self.out_tree, [
            self._given(kind, leaves) if isinstance(kind, int) else _as_result(kind, next(found))
            for kind in self.out_kinds])
        new = arrays[len(arrays) - len(self.written):] if self.written else ()
        changes: list[Change] = [partial(operator.setitem, memory, ..., array) for memory, array in
                                 zip(self.written_in(leaves), new, strict=True)]
        if self.changed:
            nest = arguments()
            own = partial(_own, nest, self.containers)
            result, contents = resolved(result, own)
            for fill, content in zip(self.changed, contents, strict=True):
                changes += filling(own(fill.number), content, fill)
        # One call of C code, and of C code alone: no signal is looked for.
        deque(map(operator.call, changes), maxlen=0)
        return result


def _own(arguments: Any, paths: Sequence[Path], number: int) -> Any:
    return found_at(arguments, paths[number])


def _as_result(kind: str, array: Any) -> Any:
    if kind in CONVERSIONS:
        return CONVERSIONS[kind](array)
    return array[()] if array.ndim == 0 else array
