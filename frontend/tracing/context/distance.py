"""How far apart two traced integers are, if the graph tells: ``i + 3`` and ``i - 1`` are 4 apart.

An integer is a sum of a constant and of values, each with a factor; so is their difference:

    hi = (i + 1) * 4      4 i + 4
    lo = i * 4            4 i            hi - lo is 4

Values that equal nodes compute are one: ``ids[k] + 2`` and ``ids[k]`` are 2 apart, although
``ids[k]`` is there twice. What has been found out about values is kept with the trace, so that each
node is looked at once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

from ....ir.graph import Node, Value, freeze
from ....ir.indices.index import Dim, Expr, positive, symbol, symbols_of
from ....ir.indices.proof import nonnegative
from ....ir.indices.rounds import range_of, rounds_behind, rounds_that_follow, simplified
from ....ir.indices.walk import substitute
from ....ir.record import field, record
from ....ir.types import I64
from ..values.tracer import SymbolicDim, Tracer
from .recorder import TraceContext
from .request import GivenUpError, Need

_DEPTH = 16  # sums of sums that are looked into for bounds

Parts = tuple[tuple[Value, Dim], ...]  # values with factors


def _constant(node: Node) -> Dim | None:
    made = _CONSTANTS.get(node.op.name)
    return None if made is None else made(node.attrs)


def _product(node: Node) -> Parts | None:
    a, b = node.inputs
    for x, other in ((a, b), (b, a)):
        number = None if other.node is None else _constant(other.node)
        if number is not None:
            return ((x, number),)
    return None


def _same(node: Node) -> Parts | None:
    """What passes its first operand on, checked or converted."""
    x = node.inputs[0]
    return ((x, 1),) if _is_place(x) else None


_CONSTANTS: Mapping[str, Callable[[Mapping[str, Any]], Dim]] = MappingProxyType({
    "full": lambda attrs: int(attrs["value"]), "dim": lambda attrs: attrs["size"]})
_PARTS: Mapping[str, Callable[[Node], Parts | None]] = MappingProxyType({
    "add": lambda node: ((node.inputs[0], 1), (node.inputs[1], 1)),
    "sub": lambda node: ((node.inputs[0], 1), (node.inputs[1], -1)),
    "neg": lambda node: ((node.inputs[0], -1),),
    "mul": _product,
    **dict.fromkeys(("unwrapped", "narrow", "ensure", "checked", "awaiting", "cast", "identity"),
                    _same),
})


_OF_SIZES: Mapping[str, Callable[[Dim, Dim], Dim | None]] = MappingProxyType({
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b if isinstance(b, int) and b > 0 else None,
    "mod": lambda a, b: a % b if isinstance(b, int) and b > 0 else None})


def _is_place(x: Value) -> bool:
    """Integers of 32 bits that wrap around are no places of an array that has less than 2**31
    elements; smaller ones may be."""
    return x.type.rank == 0 and x.dtype.is_int and x.dtype.itemsize >= 4


class Bounds(NamedTuple):
    """What an integer is at least and at most, and how many elements the longest array has that
    goes by it: the end of its range."""

    least: Dim
    most: Dim
    longest: Dim

    def times(self, factor: int) -> Bounds:
        ends = self.least * factor, self.most * factor
        return Bounds(*(ends if factor >= 0 else ends[::-1]), self.longest)

    def plus(self, other: Bounds) -> Bounds:
        return Bounds(self.least + other.least, self.most + other.most,
                      self.longest if self.longest != 0 else other.longest)


@record
class Sum:
    """A constant, and numbers of values with their factors."""

    constant: Dim = 0
    terms: dict[int, Dim] = field(default_factory=dict)

    def add(self, other: Sum, factor: Dim) -> None:
        self.constant = self.constant + other.constant * factor
        for number, own in other.terms.items():
            known = self.terms.pop(number, 0) + own * factor
            if known != 0:
                self.terms[number] = known

    @property
    def key(self) -> Hashable:
        return self.constant, frozenset(self.terms.items())


class Sums:
    """The sums that the values of a trace are, and of the traces inside of it."""

    def __init__(self) -> None:
        self.known: dict[Value, Sum] = {}
        self.numbers: dict[Hashable, int] = {}
        # By the name of the number of rounds: see ``tell_end``.
        self.rounds: dict[str, Dim | None] = {}
        self.behind: dict[str, frozenset[str]] = {}
        self.bounds: dict[Value, Bounds] = {}
        # That have been measured: values, and by number what they are made of.
        self.sizes: dict[Value, Dim] = {}
        self.told: dict[int, Dim] = {}
        self.around: list[str] = []  # loops of which a round is traced, by those names

    def number(self, key: Hashable) -> int:
        """One number for all that has this key."""
        return self.numbers.setdefault(key, len(self.numbers))

    def of(self, ctx: TraceContext, value: Value) -> Sum:
        """The sum that a value is. Values that it is made of come first; nothing recurses."""
        pending = [value]
        while pending:
            here = pending[-1]
            parts = _around(ctx, here) if here.node is None else _parts(here)
            needed = ([x for x, _ in parts] if parts is not None else
                      list(here.node.inputs) if here.node is not None else [])
            missing = [x for x in needed if x not in self.known]
            if here not in self.known and not missing:
                self.known[here] = self._made(here, parts)
            if missing:
                pending += missing
            else:
                pending.pop()
        return self.known[value]

    def _made(self, value: Value, parts: Parts | None) -> Sum:
        node, made = value.node, Sum()
        constant = self.sizes.get(value)
        if constant is None and node is not None and _is_place(value):
            constant = _constant(node)
        if constant is not None:
            made.constant = constant
        elif parts is not None:
            for x, factor in parts:
                made.add(self.known[x], factor)
        elif (size := self._of_sizes(node)) is not None:
            made.constant = size
        elif node is None or node.op.foreign or node.op.effect is not None or node.after:
            self._atom(made, self.number(value))
        else:
            attrs = tuple((name, freeze(x)) for name, x in node.attrs.items())
            inputs = tuple(self.number(self.known[x].key) for x in node.inputs)
            self._atom(made, self.number((node.op.name, value.index, attrs, inputs)))
        return made

    def _of_sizes(self, node: Node | None) -> Dim | None:
        """What is computed of sizes alone, as one."""
        rule = None if node is None else _OF_SIZES.get(node.op.name)
        if rule is None or node is None or not all(map(_is_place, node.inputs)):
            return None
        a, b = (self.known[x] for x in node.inputs)
        return None if a.terms or b.terms else rule(a.constant, b.constant)

    def _atom(self, made: Sum, number: int) -> None:
        size = self.told.get(number)
        if size is None:
            made.terms[number] = 1
        else:
            made.constant = size


def _parts(value: Value) -> Parts | None:
    if value.node is None or not _is_place(value):
        return None
    found = _PARTS.get(value.node.op.name)
    return None if found is None else found(value.node)


def _around(ctx: TraceContext, value: Value) -> Parts | None:
    """The value of a trace around that a parameter stands for."""
    here: TraceContext | None = ctx
    while here is not None:
        for param, tracer in here.closure:
            if param is value and here.parent is not None:
                return ((here.parent.value_of(tracer), 1),)
        here = here.parent
    return None


def _sums(ctx: TraceContext) -> Sums:
    """What is known of the values of a trace, those around it and those inside of it."""
    while ctx.parent is not None:
        ctx = ctx.parent
    if ctx.sums is None:
        ctx.sums = Sums()
    known: Sums = ctx.sums
    return known


def tell_end(ctx: TraceContext, number: str, rounds: Dim | None,
             behind: frozenset[str] = frozenset()) -> None:
    """Say of a loop, the number of whose rounds has this name, how many rounds there are at most.
    If that is not known (None), what goes by that number is of no known size; these arguments are
    ``behind`` it, if any and nothing else."""
    sums = _sums(ctx)
    sums.rounds[number], sums.behind[number] = rounds, behind


def tell_size(ctx: TraceContext, value: Value, size: Dim) -> None:
    """Say that an integer is the size of an array from here on. So a number that it is made of is
    known, too: n is ``size - 1`` after ``np.zeros(n + 1)``, but in a region, which measures for
    itself."""
    sums = _sums(ctx)
    constant, number, factor = _linear(ctx, value)
    if factor in (1, -1) and not ctx.nested and _is_wide(value):
        sums.told[number] = (size - constant) * factor
    else:
        sums.sizes[value] = size
    sums.known.clear()  # what has been made of it


def _is_wide(value: Value) -> bool:
    """Whether an integer is computed by numbers of 64 bits."""
    node = value.node
    parts = None if node is None else _parts(value)
    return value.dtype == I64 and (parts is None or all(_is_wide(x) for x, _ in parts))


def multiple(ctx: TraceContext, value: Value) -> tuple[int, int]:
    """A factor f and a rest r, with which an integer is f * s + r, where s is a whole number that
    is no less than 0 if the integer is: 2 and 1 of ``2 * n + 3``, of which s is ``n + 1``."""
    constant, _, factor = _linear(ctx, value)
    return (factor, constant % factor) if isinstance(constant, int) and factor > 1 else (1, 0)


def _linear(ctx: TraceContext, value: Value) -> tuple[Dim, int, int]:
    """The constant of an integer that goes by one number, that number and its factor; a factor of 0
    where it does not."""
    found = _sums(ctx).of(ctx, value)
    if len(found.terms) == 1:
        (number, factor), = found.terms.items()
        if isinstance(factor, int):
            return found.constant, number, factor
    return found.constant, -1, 0


def tell_bound(ctx: TraceContext, x: Tracer, most: Dim, least: Dim = 0,
               longest: Dim | None = None) -> None:
    """Say what an integer is at most, and at least."""
    found = Bounds(least, most, most if longest is None else longest)
    for value in (x.value, ctx.value_of(x)):  # around a region, and in it
        _sums(ctx).bounds[value] = found


def bound_of(ctx: TraceContext, x: Any) -> Dim | None:
    """What an integer is at most, if that was said or it is known."""
    found = bounds_of(ctx, x)
    return None if found is None else found.most


def most_of(found: Bounds | None) -> Dim | None:
    """What an integer is at most, in any round of the loops around."""
    if found is None:
        return None
    gap = found.longest - found.most
    return positive(found.longest if isinstance(gap, int) and gap >= 0 else found.most)


def capacity_of(ctx: TraceContext, dim: Dim) -> Dim | None:
    """What a dim is at most, in any round and in sizes of arguments; None where it counts on one
    that a number has become of which that is not known."""
    numbers = ctx.root.numbers
    dim = range_of(dim, _counts(ctx))[1]
    names = [name for name in symbols_of(dim) if name in numbers]
    limits: dict[str, Dim] = {}
    for name in names:
        home, value = numbers[name]
        most = most_of(_bounds(home, value, _DEPTH))
        if most is None:
            return None
        limits[name] = most
    if not names:
        return dim
    facts = [fact for name, most in limits.items() for fact in (symbol(name), most - symbol(name))]
    for ends in (limits, dict.fromkeys(limits, 0)):  # it grows with the sizes, or gets less
        found = substitute(dim, ends)
        if nonnegative(found - dim, tuple(facts)):
            return capacity_of(ctx, found)
    return None


def bounds_of(ctx: TraceContext, x: Any) -> Bounds | None:
    """What an integer is at least and at most, if that was said of what it is a sum of."""
    if not is_computed(x):
        return Bounds(_dim(x), _dim(x), 0)
    return _bounds(ctx, ctx.value_of(x), _DEPTH)


def _bounds(ctx: TraceContext, value: Value, depth: int) -> Bounds | None:
    known = _sums(ctx).bounds.get(value)
    if known is not None or depth == 0:
        return known
    constant = None if value.node is None or not _is_place(value) else _constant(value.node)
    if constant is not None:
        return _of_size(_sums(ctx).rounds, constant)
    parts = _around(ctx, value) if value.node is None else _parts(value)
    total = Bounds(0, 0, 0)
    for part, factor in parts or ():
        found = _bounds(ctx, part, depth - 1)
        if found is None or not isinstance(factor, int):
            return None
        total = total.plus(found.times(factor))
    return total if parts else None


def _of_size(rounds: Mapping[str, Dim | None], size: Dim) -> Bounds | None:
    """The bounds of a size, or of the number of a round."""
    numbers = rounds.keys() & symbols_of(size)
    if not numbers:
        return Bounds(size, size, 0)
    count = rounds[min(numbers)]
    if count is None or size != symbol(min(numbers)):
        return None
    return Bounds(0, count - 1, count)


def is_computed(x: Any) -> bool:
    """True for a traced integer without dims; sizes are none."""
    return isinstance(x, Tracer) and not isinstance(x, SymbolicDim) and (
        x.ndim == 0 and x.dtype.kind in "iu")


def _dim(x: Any) -> Dim:
    """A size that is no value."""
    if isinstance(x, SymbolicDim):
        return x.expr
    return x if isinstance(x, Expr) else operator.index(x)


def distance(ctx: TraceContext, start: Any, stop: Any) -> Dim | None:
    """``stop - start`` of integers, of which one is traced, if it is the same in every step, or
    goes by the number of a round of which there are so many."""
    total = Sum()
    ends: tuple[tuple[Any, int], ...] = ((stop, 1), (start, -1))
    for x, sign in ends:
        found = _sums(ctx).of(ctx, ctx.value_of(x)) if is_computed(x) else Sum(_dim(x))
        total.add(found, sign)
    rounds = _sums(ctx).rounds
    if total.terms or any(rounds.get(name, 0) is None for name in symbols_of(total.constant)):
        return None
    return total.constant


def ask_for_sizes(ctx: TraceContext, behind: Sequence[frozenset[str]]) -> None:
    """Give up a trace that would better know the numbers that say sizes in a loop, if these are
    arguments that are ``behind`` each and may become static for that."""
    if ctx.nested and ctx.request.sizes and all(behind):
        raise GivenUpError(Need(static=frozenset().union(*behind), sizes=True))


def told_by_rounds(ctx: TraceContext, x: Any, *, ask: bool = True) -> Any:
    """An integer as a size, if it is known or goes by the numbers of rounds, of which there are so
    many; as it is where a value tells it. ``ask``: for how many there are, if that is not known."""
    if not is_computed(x):
        return x
    found = _sums(ctx).of(ctx, ctx.value_of(x))
    rounds = _sums(ctx).rounds
    if found.terms:
        return x
    untold = [name for name in symbols_of(found.constant) if rounds.get(name, 0) is None]
    if untold:
        ctx.asked.counts |= ask
        if ask:
            ask_for_sizes(ctx, [_sums(ctx).behind[name] for name in untold])
        return x
    if isinstance(found.constant, int):
        return found.constant
    if not symbols_of(found.constant).isdisjoint(rounds):
        if not ctx.request.rounds:
            return x
        ctx.asked.measured = True
    return SymbolicDim(ctx, found.constant)


def is_measured(ctx: TraceContext, *dims: Dim) -> bool:
    """Whether dims go by sizes that the program measures."""
    return any(not symbols_of(dim).isdisjoint(ctx.root.numbers) for dim in dims)


def goes_by_rounds(ctx: TraceContext, *dims: Dim) -> bool:
    """Whether a dim goes by the number of a round."""
    return any(not symbols_of(dim).isdisjoint(_sums(ctx).rounds) for dim in dims)


@contextmanager
def in_round(ctx: TraceContext, number: str) -> Iterator[None]:
    """Around the trace of a round of a loop, the number of whose rounds has this name."""
    around = _sums(ctx).around
    around.append(number)
    try:
        yield
    finally:
        around.pop()


def is_in_round(ctx: TraceContext) -> bool:
    """Whether the trace is in a round of a loop."""
    return bool(_sums(ctx).around)


def is_natural_here(ctx: TraceContext, dim: Dim) -> bool:
    """Whether a dim is never negative where the trace is: in a round of each loop around, which
    there is."""
    counts = _counts(ctx)
    there = {name: counts[name] for name in _sums(ctx).around if name in counts}
    return nonnegative(dim, (*rounds_that_follow(rounds_behind(dim, counts) | there),
                             *(count - 1 for count in there.values())))


def is_natural_in_rounds(ctx: TraceContext, *dims: Dim) -> bool:
    """Whether dims are never negative, whatever the numbers of the rounds around."""
    counts = _counts(ctx)
    return all(nonnegative(dim, rounds_that_follow(rounds_behind(dim, counts))) for dim in dims)


def _counts(ctx: TraceContext) -> dict[str, Dim]:
    """How many rounds there are, where that is known, by the names of their numbers."""
    return {name: count for name, count in _sums(ctx).rounds.items() if count is not None}


def size_in_rounds(ctx: TraceContext, dim: Dim) -> Dim:
    """A dim, or 0 where it is negative."""
    return simplified_in_rounds(ctx, positive(dim))


def simplified_in_rounds(ctx: TraceContext, dim: Dim) -> Dim:
    """A dim as simple as the numbers of the rounds around allow."""
    return simplified(dim, _counts(ctx))
