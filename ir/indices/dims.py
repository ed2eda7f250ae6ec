"""What is known of sizes: what a graph requires of them, and the symbols that follow from the sizes
of arguments.

A symbol is a size, so it is never negative; an expression may be, as ``b - 3`` is for short arrays.
What can be proved before the arguments are known is (``proof``). What cannot is a
``Requirement`` of the graph, asked of every step before it touches memory. ``solve`` is the one
solver: it takes sizes that are numbers, when a step runs, and symbols that stand for them, when
code is written that will be told the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from ..diagnose import error
from ..graph import Graph, Node, control_of
from ..loc import Loc
from ..ops.control.region import Looping
from ..plans.plan import Plan, Relation, Rounds
from ..record import record, replace
from ..types import TensorType
from .affine import coefficient, unclamped
from .index import Dim, Expr, plain_symbol, positive, symbol, symbols_of, terms_of
from .proof import maxima, nonnegative
from .rounds import (
    Counts,
    counts_inside,
    is_natural_when_tried,
    range_of,
    rounds_behind,
    rounds_that_follow,
)
from .walk import evaluate, substitute


class Shaped(Protocol):
    """What an array tells of itself."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...


@record(frozen=True)
class Requirement(Relation):
    """A relation of sizes that a graph needs, and the error when it does not hold."""

    code: str
    message: str
    locs: tuple[Loc, ...] = ()


def sizes_of_params(graph: Graph) -> tuple[Dim, ...]:
    """The symbolic dims of arguments and variables, which are sizes of arrays."""
    types = (*(value.type for value in graph.params), *graph.variables.values())
    return tuple(dict.fromkeys(dim for type_ in types for dim in type_.shape
                               if isinstance(dim, Expr)))


def requirements(graph: Graph) -> list[Requirement]:
    """What a graph requires of sizes: what its rows say, and that no size is negative.

    What is known without looking is left out.
    """
    found: list[Requirement] = []
    facts = sizes_of_params(graph)
    places = _places(graph)
    known: set[tuple[Dim, str, Dim]] = set()
    for node, counts in _all_nodes(graph):
        if _is_known(node):
            continue
        for own in node_requirements(node):
            if own.sign == "==":
                own = replace(own, message=f"dims {_placed(own.left, places)} and "
                                           f"{_placed(own.right, places)} must be equal")
            for need in _in_all_rounds(own, counts, facts):
                key = need.left, need.sign, need.right
                if key in known or _holds(need, facts):
                    continue
                known.add(key)
                found.append(need)
                facts += need.facts
    return found


def inner_requirements(graph: Graph) -> Iterator[tuple[Requirement, bool]]:
    """What bodies require of sizes that is not known to hold in all rounds, and whether it goes by
    the numbers of these: branches, and rounds after one that ends the loop, may not ask it (``if
    i == 3: y[:i] = z``)."""
    facts, outer = sizes_of_params(graph), set(map(id, graph.nodes))
    for node, counts in _all_nodes(graph):
        if id(node) in outer or _is_known(node):
            continue
        for need in node_requirements(node):
            if not all(_holds(each, facts) for each in _in_all_rounds(need, counts, facts)):
                yield need, bool(rounds_behind(need.left - need.right, counts))


def _holds(need: Requirement, facts: tuple[Dim, ...]) -> bool:
    """Whether a requirement is met whatever the arguments."""
    return all(nonnegative(fact, facts) for fact in need.facts)


def _is_known(node: Node) -> bool:
    """Whether all sizes of a node are numbers, as most are, of which there may be a million."""
    return all(type(dim) is int for value in (*node.inputs, *node.results) for dim in value.shape)


def _all_nodes(graph: Graph, counts: Counts = MappingProxyType({})) -> Iterator[
        tuple[Node, Counts]]:
    """The nodes of a graph and of the graphs that they hold, with the counts of the rounds around
    each that have an end."""
    for node in graph.nodes:  # recursion is by nesting of graphs only
        yield node, counts
        control = control_of(node)
        inner = (counts_inside(counts, control.index, control.count)
                 if isinstance(control, Looping) else counts)
        for attr in node.attrs.values():
            if isinstance(attr, Graph):
                yield from _all_nodes(attr, inner)


def _in_all_rounds(need: Requirement, counts: Counts, facts: tuple[Dim, ...]) -> list[Requirement]:
    """What a requirement of each round is of the sizes that are known before the first one."""
    gap = need.left - need.right
    behind = rounds_behind(gap, counts)
    if not behind:
        return [need]
    facts = (*facts, *rounds_that_follow(behind))
    if all(nonnegative(fact, facts) or is_natural_when_tried(fact, behind)
           for fact in need.facts):
        return []
    least, most = range_of(gap, behind)
    return [replace(need, left=end, right=0)
            for end in ((least, most) if need.sign == "==" else (least,))]


def _places(graph: Graph) -> dict[Dim, str]:
    """Where a symbolic dim is seen among the arguments."""
    return {dim: f"axis {axis} of '{value.name.removesuffix(':0')}'"
            for value in reversed(graph.params) for axis, dim in enumerate(value.type.shape)
            if isinstance(dim, Expr)}


def _placed(dim: Dim, places: Mapping[Dim, str]) -> str:
    return f"{dim} ({places[dim]})" if dim in places else str(dim)


def not_negative(size: Dim, locs: tuple[Loc, ...] = ()) -> Requirement:
    """What every size is required to be."""
    return Requirement(size, ">=", 0, "W102", f"the size {size} is negative", locs)


def node_requirements(node: Node) -> Iterator[Requirement]:
    """What one node requires of sizes."""
    symbolic = any(isinstance(dim, Expr) for value in (*node.inputs, *node.results)
                   for dim in value.type.shape)
    if symbolic and node.op.requires is not None:
        types = [value.type for value in node.inputs]
        for left, sign, right, code, message in node.op.requires(*types, **node.attrs):
            yield Requirement(left, sign, right, code, message, node.locs)
    for value in node.results:
        for dim in value.type.shape:
            if not nonnegative(dim):
                yield not_negative(dim, node.locs)


def is_surely_size(size: Dim, rounds: Rounds, facts: tuple[Dim, ...]) -> bool:
    """True if a size is never negative in such rounds, whatever the arguments."""
    if not rounds:
        return nonnegative(size, facts)
    counts = dict(rounds)
    more = (*map(symbol, counts), *rounds_that_follow(counts))
    if any(len(monomial) > 1 for monomial, _ in terms_of(size)):  # as of t * (n - t)
        for atom in dict.fromkeys(maxima((size,))):
            more += positive(atom.value), positive(-1 - atom.value)
        more += tuple(a * b for a, b in combinations_with_replacement(more, 2))
    return nonnegative(size, (*facts, *more)) or nonnegative(range_of(size, counts)[0], facts) or (
        is_natural_when_tried(size, counts))


def check_requirement(need: Requirement, dims: Mapping[str, int]) -> None:
    """Raise the error of a requirement that sizes do not meet."""
    if not need.holds(dims):
        raise error(need.code, need.message, locs=need.locs)


@record(frozen=True)
class Told:
    """A dim of an argument, and its size: a number, or a symbol that stands for it."""

    dim: Dim
    size: Dim
    argument: str

    def __str__(self) -> str:
        return f"dim {self.dim} of argument {self.argument} is {self.size}"


def solve(sizes: Sequence[Told]) -> tuple[dict[str, Dim], Told | None]:
    """The symbols that follow from sizes, and a size from which none follows, if there is one.

    Of 3 told for ``b`` and 9 for ``2*s + b``, b is 3 and s is 3; of symbols, b is as told and s
    the half of the rest. A size that clamps is asked last, as it tells one of several values.
    Numbers are checked: raises ShapeError (W105) for one that does not go with those before it.
    """
    found: dict[str, Dim] = {}
    pending = list(sizes)
    while pending:
        later = [told for told in pending if not _settled(told, found, coefficient)]
        if len(later) == len(pending) and not any(
                _settled(told, found, unclamped) for told in later):
            return found, later[0]
        pending = later
    return found, None


def _settled(
    told: Told, found: dict[str, Dim], divide: Callable[[Dim, str], tuple[Dim, Dim] | None]
) -> bool:
    """Check a dim of known symbols, or find its only unknown one, which ``divide`` splits off;
    False if there are more."""
    # Numbers simplify what is to be split; symbols, which may have the names of those here, do not.
    numbers = {name: value for name, value in found.items() if isinstance(value, int)}
    left = substitute(told.dim, numbers)
    unknown = symbols_of(left) - found.keys()
    if not unknown:
        if isinstance(left, int) and isinstance(told.size, int) and left != told.size:
            raise error("W105", f"{told}, should be {left}")
        return True
    name = min(unknown)
    split = divide(left, name) if len(unknown) == 1 else None
    if split is None or not isinstance(split[0], int):
        return False
    scale, rest = split[0], substitute(split[1], found)
    value = (told.size - rest) // scale
    if isinstance(value, int) and (value < 0 or scale * value + rest != told.size):
        raise error("W105", f"{told}, which fits no {name}")
    found[name] = value
    return divide is coefficient or _settled(told, found, coefficient)


def bind_dims(
    types: Sequence[TensorType], arrays: Sequence[Shaped], names: Sequence[str]
) -> dict[str, int]:
    """The values of symbolic dims that make ``types`` those of ``arrays``.

    Raises W303 for another dtype, rank or size and W105 for dims without a solution.
    """
    sizes: list[Told] = []
    for type_, array, name in zip(types, arrays, names, strict=True):
        fits = array.dtype == type_.dtype.numpy and array.ndim == type_.rank and all(
            isinstance(dim, Expr) or dim == size
            for dim, size in zip(type_.shape, array.shape, strict=True))
        if not fits:
            raise error("W303", f"argument {name} is {array.dtype}{list(array.shape)}, "
                                f"should be {type_}")
        sizes += [Told(dim, size, name)
                  for dim, size in zip(type_.shape, array.shape, strict=True)
                  if isinstance(dim, Expr)]
    found, stuck = solve(sizes)
    if stuck is not None:
        raise error("W105", f"{stuck}, from which no dim follows")
    return {name: evaluate(value, {}) for name, value in found.items()}


def plain_dims(
    types: Sequence[TensorType], shapes: Sequence[Sequence[int]]
) -> dict[str, int]:
    """The sizes of dims that are just a symbol; the first one counts, and nothing is checked."""
    bound: dict[str, int] = {}
    for type_, shape in zip(types, shapes, strict=True):
        for dim, size in zip(type_.shape, shape, strict=False):
            name = plain_symbol(dim)
            if name is not None:
                bound.setdefault(name, size)
    return bound


def argument_sizes(plan: Plan) -> dict[str, Dim]:
    """The symbolic dims of the parameters by their text: the sizes a program is told."""
    return {str(dim): dim for slot in plan.params for dim in slot.type.shape
            if isinstance(dim, Expr)}


def symbols_from(sizes: Mapping[str, Dim]) -> dict[str, Dim]:
    """Every symbol in terms of the given sizes, each of which is a symbol of that name here.

    ``{"b": b, "2*s + b": 2*s + b}`` gives b as it is and s as the half of the rest. Raises
    ShapeError (W105) for a symbol that follows from no size.
    """
    plain_first = sorted(sizes, key=lambda name: len(symbols_of(sizes[name])))
    found, stuck = solve([Told(sizes[name], symbol(name), name) for name in plain_first])
    if stuck is not None:
        missing = sorted(symbols_of(stuck.dim) - found.keys())
        raise error("W105", f"the size {missing[0]} cannot be told from an argument's {stuck.dim}",
                    hint=f"give an argument with {missing[0]} as a dim" if len(missing) == 1 else
                    f"give arguments with {' and '.join(missing)} as dims")
    return found
