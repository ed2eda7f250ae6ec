"""What is known of sizes: proofs that one is not negative, what a graph requires of them, and the
symbols that follow from the sizes of arguments.

A symbol is a size, so it is never negative; an expression may be, as ``b - 3`` is for short arrays.
``nonnegative`` proves what can be proved before the arguments are known. What cannot is a
``Requirement`` of the graph, asked of every step before it touches memory. ``solve`` is the one
solver: it takes sizes that are numbers, when a step runs, and symbols that stand for them, when
code is written that will be told the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol

import numpy as np

from ..diagnose import error
from ..graph import Graph, Node
from ..loc import Loc
from ..plans.plan import Plan, Relation
from ..record import record, replace
from ..types import TensorType
from .affine import coefficient, unclamped
from .index import (
    Atom,
    Dim,
    Expr,
    Maximum,
    Quotient,
    Remainder,
    bounds,
    maximum,
    minimum,
    parts_of,
    plain_symbol,
    symbol,
    symbols_of,
    terms_of,
)
from .walk import evaluate, rebuild, substitute


class Shaped(Protocol):
    """What an array tells of itself."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

_ATOMS = 3000   # that one proof looks at; what takes longer is asked at run time
_COMBINED = 3   # facts that are added up
_VALUES = 8     # of a symbol that are tried one by one
_INVOLVED = 60  # atoms of a size, above which nothing about it can be told in time


@lru_cache(maxsize=4096)
def nonnegative(dim: Dim, facts: tuple[Dim, ...] = ()) -> bool:
    """True if ``dim >= 0`` follows from ``facts``, each of which is not negative.

    A quotient is multiplied out, a maximum split into its two cases; then facts are taken off the
    expression until what is left has no negative term, or the few values that they leave a symbol
    are tried. False means that no proof was found.
    """
    if isinstance(dim, int):
        return dim >= 0
    return dim in facts or _Proof().holds(dim, facts)


class _Proof:
    def __init__(self) -> None:
        self.left = _ATOMS

    def holds(self, dim: Dim, facts: tuple[Dim, ...]) -> bool:
        low = bounds(dim)[0]
        if low is not None and low >= 0:
            return True
        self.left -= sum(1 for _ in islice(_atoms((dim, *facts)), max(self.left, 0) + 1))
        if self.left <= 0:
            return False
        if any(isinstance(fact, int) and fact < 0 for fact in facts):
            return True  # a case that never is
        whole = _multiplied_out(dim)
        if whole is not None and self.holds(whole, facts):
            return True
        split = next(_maxima((dim, *facts)), None)
        if split is None:
            return self._linear(dim, [*facts, *_divisions((dim, *facts))]) or self._each(dim, facts)
        inner = split.value
        return self._case(split, inner, inner, dim, facts) and self._case(
            split, 0, -1 - inner, dim, facts)

    def _case(
        self, split: Maximum, value: Dim, fact: Dim, dim: Dim, facts: tuple[Dim, ...]
    ) -> bool:
        def chosen(atom: Atom) -> Dim | None:
            return value if atom == split else None

        return self.holds(rebuild(dim, chosen), (fact, *(rebuild(f, chosen) for f in facts)))

    def _each(self, dim: Dim, facts: tuple[Dim, ...]) -> bool:
        """A proof for every value of a symbol of which the facts leave few, or none. There is none
        where something is divided by a size that may be 0."""
        for name, values in _ranges(facts).items():
            if len(values) <= _VALUES:
                try:
                    return all(self.holds(substitute(dim, {name: value}),
                                          tuple(substitute(fact, {name: value}) for fact in facts))
                               for value in values)
                except ZeroDivisionError:
                    return False
        return False

    def _linear(self, dim: Dim, facts: Sequence[Dim]) -> bool:
        """A proof without maxima; a quotient of what is not negative counts as a symbol."""
        table: dict[Atom, Dim] = {
            atom: symbol(f"({atom})") for atom in dict.fromkeys(_atoms((dim,)))
            if isinstance(atom, Quotient) and self._combined(atom.numerator, facts, _COMBINED)}
        if table:
            dim, facts = rebuild(dim, table.get), [rebuild(fact, table.get) for fact in facts]
        return self._combined(dim, facts, _COMBINED)

    def _combined(self, dim: Dim, facts: Sequence[Dim], depth: int) -> bool:
        self.left -= len(terms_of(dim))
        low = bounds(dim)[0]
        if low is not None and low >= 0:
            return True
        if depth == 0 or self.left < 0:
            return False
        missing = {monomial: scale for monomial, scale in terms_of(dim) if scale < 0}
        for fact in facts:
            for monomial, scale in terms_of(fact):
                if scale < 0 and monomial in missing:
                    times = -(missing[monomial] // -scale)
                    if self._combined(dim - fact * times, facts, depth - 1):
                        return True
                    break
        return False


def _multiplied_out(dim: Dim) -> Dim | None:
    """What is not negative just where ``dim`` is, without the quotient that is a term of it.

    ``n//k <= r`` is ``n <= k*r + k - 1``, and ``n//k >= -r`` is ``n >= -k*r``.
    """
    for monomial, scale in terms_of(dim):
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Quotient) and isinstance(by := atom.denominator, int) and by > 0 and (
                abs(scale) == 1):
            rest = dim - Expr(((monomial, scale),))
            return rest * by + (atom.numerator if scale > 0 else by - 1 - atom.numerator)
    return None


def _ranges(facts: Sequence[Dim]) -> dict[str, range]:
    """The values that facts about one symbol leave it, of those with a largest one."""
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for fact in facts:
        names = symbols_of(fact)
        split = coefficient(fact, name) if len(names) == 1 and (name := min(names)) else None
        if split is None:
            continue
        scale, rest = split
        low = bounds(symbol(name))[0]
        if low is None or not isinstance(scale, int) or not isinstance(rest, int):
            continue
        if scale > 0:
            least[name] = max(least.get(name, low), -(rest // scale))
        else:
            most[name] = min(most.get(name, rest // -scale), rest // -scale)
    return {name: range(least.get(name, 0), end + 1) for name, end in most.items()}


def _maxima(dims: Sequence[Dim]) -> Iterator[Maximum]:
    """Maxima in expressions, those without another one inside."""
    for atom in _atoms(dims):
        if isinstance(atom, Maximum) and not any(
                isinstance(inner, Maximum) for inner in _atoms((atom.value,))):
            yield atom


def _atoms(dims: Sequence[Dim]) -> Iterator[Atom]:
    pending = list(dims)
    while pending:
        for monomial, _ in terms_of(pending.pop(0)):
            for atom in monomial:
                yield atom
                pending += parts_of(atom)


def _divisions(dims: Sequence[Dim]) -> Iterator[Dim]:
    """What quotients and remainders are by definition; denominators are positive."""
    for atom in dict.fromkeys(_atoms(dims)):
        whole = Expr((((atom,), 1),))
        if isinstance(atom, Quotient):
            rest = atom.numerator - whole * atom.denominator
            yield from (rest, atom.denominator - 1 - rest)
        elif isinstance(atom, Remainder):
            yield atom.denominator - 1 - whole


@record(frozen=True)
class Requirement(Relation):
    """A relation of sizes that a graph needs, and the error when it does not hold."""

    code: str
    message: str
    locs: tuple[Loc, ...] = ()


def larger(a: Dim, b: Dim) -> Dim:
    """The maximum of two dims, without a ``max`` where it is known."""
    if nonnegative(a - b):
        return a
    return b if nonnegative(b - a) else maximum(a, b)


def smaller(a: Dim, b: Dim) -> Dim:
    """The minimum of two dims, without a ``max`` where it is known."""
    if nonnegative(a - b):
        return b
    return a if nonnegative(b - a) else minimum(a, b)


def involved(dim: Dim) -> bool:
    """True for an expression that is too long to compute with."""
    return any(True for _ in islice(_atoms((dim,)), _INVOLVED, None))


def differ(a: Dim, b: Dim) -> bool:
    """True if two dims are not equal, whatever the sizes of arguments."""
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    gap = a - b
    return gap != 0 and (nonnegative(gap - 1) or nonnegative(-gap - 1))


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
    for node in _all_nodes(graph):
        if _is_known(node):
            continue
        for need in node_requirements(node):
            key = need.left, need.sign, need.right
            if key in known or all(nonnegative(fact, facts) for fact in need.facts):
                continue
            known.add(key)
            if need.sign == "==":
                need = replace(need, message=f"dims {_placed(need.left, places)} and "
                                             f"{_placed(need.right, places)} must be equal")
            found.append(need)
            facts += need.facts
    return found


def _is_known(node: Node) -> bool:
    """Whether all sizes of a node are numbers, as most are, of which there may be a million."""
    return all(type(dim) is int for value in (*node.inputs, *node.results) for dim in value.shape)


def _all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the graphs that they hold."""
    pending = list(reversed(graph.nodes))
    while pending:
        node = pending.pop()
        yield node
        for attr in node.attrs.values():
            if isinstance(attr, Graph):
                pending += reversed(attr.nodes)


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
