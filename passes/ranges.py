"""Ranges of integers: what a value is at least and at most, as expressions of other values.

    for t0 in range(max(n - 1, 0)):            t0: 0 .. n - 2           n: what the caller gives
        i = t0 + 1                             i = t0 + 1               0 <= i - 1, i <= n - 1
        for t1 in range(max(i, 0)):            t1: 0 .. i - 1
            A[i, t1]                           t1 < i <= n - 1
            if t1 >= 1: A[i, t1 - 1]           t1: 1 .. i - 1

Every integer of a graph is an expression that is linear in *symbols*: numbers of rounds, sizes, and
values of which no more is known. Each symbol has bounds below and above, which are linear in older
symbols, so that the largest value of an expression follows by putting bounds in the place of
symbols, the newest first. A comparison that leads into a branch, or into the next round, bounds the
newest symbol that it has.

Of arrays, the expression is that of any element: symbols of arrays stand for elements at one place.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import cached_property
from types import MappingProxyType

from ..ir.graph import Node, Value, constant_of
from ..ir.indices.index import Dim, Expr, Symbol, bounds, symbol, symbols_of, terms_of
from ..ir.ops.table import OPS
from ..ir.record import field, record, replace
from ..ir.types import BOOL, DType

_TRIES = 200  # bounds that are put in the place of symbols, for one question
_MOST_BOUNDS = 4  # of a symbol, on a side


@record(frozen=True)
class Limits:
    """What bounds a symbol: ``low <= symbol <= high`` for each of both. ``least`` are values of
    which it is the larger one; ``age`` is larger for what came later."""

    age: int
    low: tuple[Dim, ...]
    high: tuple[Dim, ...]
    least: tuple[Dim, ...] = ()
    scalar: bool = True

    @cached_property
    def numbers(self) -> tuple[int, int] | None:
        """The bounds, if they are numbers."""
        low = [bound for bound in self.low if isinstance(bound, int)]
        high = [bound for bound in self.high if isinstance(bound, int)]
        whole = low and high and len(low) + len(high) == len(self.low) + len(self.high)
        return (max(low), min(high)) if whole else None


Known = tuple[Dim, ...]
"""Expressions that are not negative."""


@record
class Ranges:
    """What is known at a place of a program; ``inside`` gives that of a body."""

    limits: MutableMapping[str, Limits] = field(default_factory=dict)
    exprs: MutableMapping[Value, Dim] = field(default_factory=dict)
    # What holds if a truth value is true, and if it is false.
    truths: MutableMapping[Value, tuple[Known, Known]] = field(default_factory=dict)
    _serial: list[int] = field(default_factory=lambda: [0])

    def inside(self, index: str = "") -> Ranges:
        """The same, to learn more that is not known outside; what is known of a symbol ``index``
        is of another one."""
        if index not in self.limits:
            return Ranges(ChainMap({}, self.limits), ChainMap({}, self.exprs),
                          ChainMap({}, self.truths), self._serial)
        limits = {name: replace(each, low=_without(each.low, index), high=_without(
            each.high, index), least=()) for name, each in self.limits.items() if name != index}
        exprs = {value: expr for value, expr in self.exprs.items()
                 if index not in symbols_of(expr)}
        return Ranges(limits, exprs, {}, self._serial)

    # -- symbols --------------------------------------------------------------------------------

    def bound(self, name: str, low: Sequence[Dim], high: Sequence[Dim], *,
              least: Sequence[Dim] = (), scalar: bool = True) -> Expr:
        """A new symbol with bounds."""
        self._serial[0] += 1
        self.limits[name] = Limits(self._serial[0], tuple(low), tuple(high), tuple(least), scalar)
        return symbol(name)

    def some(self, dtype: DType, low: Sequence[Dim] = (), high: Sequence[Dim] = (), *,
             least: Sequence[Dim] = (), scalar: bool = True) -> Expr:
        """A symbol for a value of which no more is known."""
        first, last = limits_of(dtype)
        return self.bound(f"%{self._serial[0]}", (first, *low), (last, *high), least=least,
                          scalar=scalar)

    def expr(self, value: Value) -> Dim:
        """The expression of an integer."""
        found = self.exprs.get(value)
        if found is None:
            number = constant_of(value)
            found = self.exprs[value] = int(number) if isinstance(number, int) else self.some(
                value.dtype, scalar=not value.shape)
        return found

    def is_uniform(self, expr: Dim) -> bool:
        """Whether an expression has one value, whatever element it is taken for."""
        return all(name not in self.limits or self.limits[name].scalar
                   for name in symbols_of(expr))

    # -- questions ------------------------------------------------------------------------------

    def least(self, expr: Dim) -> int | None:
        """What an expression is at least; None where nothing is known."""
        found = self._most(-1 * expr, [_TRIES])
        return None if found is None else -found

    def most(self, expr: Dim) -> int | None:
        """What an expression is at most."""
        return self._most(expr, [_TRIES])

    def holds(self, expr: Dim) -> bool | None:
        """Whether ``expr >= 0``: always, never, or None."""
        least = self.least(expr)
        if least is not None and least >= 0:
            return True
        most = self.most(expr)
        return False if most is not None and most < 0 else None

    def fits(self, expr: Dim, dtype: DType) -> bool:
        """Whether an expression surely is a number of a dtype."""
        low, high = limits_of(dtype)
        least, most = self.least(expr), self.most(expr)
        return least is not None and most is not None and low <= least and most <= high

    def _most(self, expr: Dim, tries: list[int]) -> int | None:
        if isinstance(expr, int):
            return expr
        found = self._of_numbers(expr)
        if found is not None:
            return found
        tries[0] -= 1
        newest, scale = self._newest(expr)
        if not newest:  # there are sizes alone
            return bounds(expr)[1]
        if tries[0] < 0:
            return None
        limits = self.limits[newest]
        rest, best = expr - scale * symbol(newest), None
        for bound in limits.high if scale > 0 else limits.low:
            found = self._most(rest + scale * bound, tries)
            if found is not None and (best is None or found < best):
                best = found
        return best

    def _of_numbers(self, expr: Expr) -> int | None:
        """What an expression is at most, if all of its symbols have numbers as bounds."""
        total = 0
        for atoms, scale in terms_of(expr):
            if not atoms:
                total += scale
                continue
            atom = atoms[0]
            limits = self.limits.get(atom.name) if len(atoms) == 1 and isinstance(
                atom, Symbol) else None
            if limits is None or limits.numbers is None:
                return None
            total += scale * limits.numbers[scale > 0]
        return total

    def _newest(self, expr: Dim) -> tuple[str, int]:
        """The newest symbol of the terms that are linear, with its factor; empty if there is
        none."""
        found = [(atoms[0].name, scale) for atoms, scale in terms_of(expr)
                 if len(atoms) == 1 and isinstance(atoms[0], Symbol)
                 and atoms[0].name in self.limits]
        return max(found, key=lambda pair: self.limits[pair[0]].age, default=("", 0))

    # -- what is learned ------------------------------------------------------------------------

    def learn(self, known: Iterable[Dim]) -> None:
        """Take it that expressions are not negative."""
        for expr in known:
            newest, scale = self._newest(expr)
            unknown = any(name[0] == "%" and name not in self.limits for name in symbols_of(expr))
            if abs(scale) != 1 or unknown:  # of another body
                continue
            limits = self.limits[newest]
            rest = expr - scale * symbol(newest)
            if scale > 0:
                self.limits[newest] = replace(limits, low=_more(limits.low, -1 * rest))
            else:
                high = _more(limits.high, rest)
                for each in self._parts(rest, newest):
                    high = _more(high, each)
                self.limits[newest] = replace(limits, high=high)

    def _parts(self, bound: Dim, name: str) -> list[Dim]:
        """Of ``t <= max(a, b) - 1`` where b <= 0 <= t: ``a - 1``."""
        found: list[Dim] = []
        for inner in symbols_of(bound):
            limits = self.limits.get(inner)
            if limits is None or len(limits.least) != 2 or not self.holds(symbol(name)):
                continue
            rest = bound - symbol(inner)
            if inner in symbols_of(rest):
                continue
            for one, other in (limits.least, limits.least[::-1]):
                below = self.most(rest + other)
                if below is not None and below < 0:
                    found.append(rest + one)
        return found


def _without(found: tuple[Dim, ...], name: str) -> tuple[Dim, ...]:
    return tuple([bound for bound in found if name not in symbols_of(bound)])


def _more(known: tuple[Dim, ...], bound: Dim) -> tuple[Dim, ...]:
    """Bounds with one more, the latest first."""
    others = [each for each in known if each != bound]
    numbers = [each for each in others if isinstance(each, int)]
    return (bound, *[each for each in others if not isinstance(each, int)][:_MOST_BOUNDS], *numbers)


def limits_of(dtype: DType) -> tuple[int, int]:
    """The least and the largest number of a dtype of integers or truth values."""
    if dtype == BOOL:
        return 0, 1
    bits = dtype.itemsize * 8
    return (-2**(bits - 1), 2**(bits - 1) - 1) if dtype.kind == "i" else (0, 2**bits - 1)


def learn_node(ranges: Ranges, node: Node) -> None:
    """Note what is known of the results of a node; they are integers, or truth values."""
    if len(node.results) != 1:
        return
    (result,) = node.results
    if result.dtype == BOOL and (rule := _TRUTHS.get(node.op.name)) is not None:
        ranges.truths[result] = rule(ranges, node)
    elif result.dtype.is_int and (form := _FORMS.get(node.op.name)) is not None:
        found = form(ranges, node)
        if found is not None:
            ranges.exprs[result] = found


def exact(ranges: Ranges, node: Node) -> Dim | None:
    """What a sum or product of two integers is, were there no end of them; None if it is not
    linear."""
    rule = _SUMS.get(node.attrs.get("of", node.op.name))
    return None if rule is None else rule(*map(ranges.expr, node.inputs[-2:]))


_SUMS: Mapping[str, Callable[[Dim, Dim], Dim | None]] = MappingProxyType({
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b if isinstance(a, int) or isinstance(b, int) else None,
})


def _arithmetic(ranges: Ranges, node: Node) -> Dim | None:
    expr = exact(ranges, node)
    return expr if expr is not None and ranges.fits(expr, node.results[0].dtype) else None


def _negated(ranges: Ranges, node: Node) -> Dim | None:
    expr = -1 * ranges.expr(node.inputs[0])
    return expr if ranges.fits(expr, node.results[0].dtype) else None


def _same(ranges: Ranges, node: Node) -> Dim | None:
    """Elements of the first operand, at other places perhaps."""
    value, (result,) = node.inputs[0], node.results
    if not (value.dtype.is_int or value.dtype == BOOL):
        return None
    expr = ranges.expr(value)
    if not ranges.fits(expr, result.dtype):
        return None
    if ranges.is_uniform(expr) or (value.shape == result.shape and node.op is OPS["cast"]):
        return expr
    return _between(ranges, result, ranges.least(expr), ranges.most(expr))


def _between(ranges: Ranges, value: Value, low: int | None, high: int | None) -> Expr:
    return ranges.some(value.dtype, [low] if low is not None else [],
                       [high] if high is not None else [], scalar=not value.shape)


def _extreme(sign: int) -> Callable[[Ranges, Node], Dim | None]:
    def found(ranges: Ranges, node: Node) -> Dim | None:
        a, b = map(ranges.expr, node.inputs)
        return _extreme_of(ranges, node, a, b, sign)

    return found


def _extreme_of(ranges: Ranges, node: Node, a: Dim, b: Dim, sign: int) -> Dim:
    """The larger of two, or with a sign of -1 the smaller."""
    first, (result,) = ranges.holds((a - b) * sign), node.results
    if first is not None:
        return a if first else b
    uniform = ranges.is_uniform(a) and ranges.is_uniform(b)
    if sign > 0:
        ends = [ranges.most(a), ranges.most(b)]
        high = [] if None in ends else [max(end for end in ends if end is not None)]
        return ranges.some(result.dtype, [a, b], high, least=(a, b) if uniform else (),
                           scalar=uniform)
    ends = [ranges.least(a), ranges.least(b)]
    low = [] if None in ends else [min(end for end in ends if end is not None)]
    return ranges.some(result.dtype, low, [a, b], scalar=uniform)


def _chosen(ranges: Ranges, node: Node) -> Dim | None:
    """One of two, of which each is bounded by what chooses it: ``a if a < b else b``."""
    a, b = map(ranges.expr, node.inputs[1:])
    cases = [ranges, ranges]
    if known := ranges.truths.get(node.inputs[0]):
        cases = [ranges.inside(), ranges.inside()]
        for case, facts in zip(cases, known, strict=True):
            case.learn(facts)
        for sign in (1, -1):  # the larger, the smaller
            if cases[0].holds((a - b) * sign) and cases[1].holds((b - a) * sign):
                return _extreme_of(ranges, node, a, b, sign)
    lows = [case.least(each) for case, each in zip(cases, (a, b), strict=True)]
    highs = [case.most(each) for case, each in zip(cases, (a, b), strict=True)]
    return _between(ranges, node.results[0],
                    None if None in lows else min(low for low in lows if low is not None),
                    None if None in highs else max(high for high in highs if high is not None))


def _remainder(ranges: Ranges, node: Node) -> Dim | None:
    a, b = map(ranges.expr, node.inputs)
    if not isinstance(b, int) or b <= 0:
        return None
    if ranges.holds(a) and ranges.holds(b - 1 - a):
        return a
    return _between(ranges, node.results[0], 0, b - 1)


def _quotient(ranges: Ranges, node: Node) -> Dim | None:
    a, b = map(ranges.expr, node.inputs)
    if not isinstance(b, int) or b <= 0:
        return None
    low, high = ranges.least(a), ranges.most(a)
    return _between(ranges, node.results[0], None if low is None else low // b,
                    None if high is None else high // b)


def _common_bits(ranges: Ranges, node: Node) -> Dim | None:
    """``a & b``: no bits but those of one that is not negative."""
    if not _are_numbers(node):
        return None
    most = [ranges.most(expr) for expr in map(ranges.expr, node.inputs) if ranges.holds(expr)]
    if not most:
        return None
    known = [each for each in most if each is not None]
    return _between(ranges, node.results[0], 0, min(known) if known else None)


def _all_bits(ranges: Ranges, node: Node) -> Dim | None:
    """``a | b`` and ``a ^ b`` of what is not negative: no more bits than the longer one has."""
    if not _are_numbers(node) or not all(ranges.holds(ranges.expr(x)) for x in node.inputs):
        return None
    most = [ranges.most(ranges.expr(value)) for value in node.inputs]
    bits = [each.bit_length() for each in most if each is not None]
    return _between(ranges, node.results[0], 0,
                    None if None in most else (1 << max(bits)) - 1)


def _shifted(ranges: Ranges, node: Node) -> Dim | None:
    """``a >> b`` by a number of bits that is known, of what is not negative."""
    a, b = map(ranges.expr, node.inputs)
    if not isinstance(b, int) or not 0 <= b < node.results[0].dtype.bits or not ranges.holds(a):
        return None
    low, high = ranges.least(a), ranges.most(a)
    return _between(ranges, node.results[0], 0 if low is None else low >> b,
                    None if high is None else high >> b)


def _place_in_axis(ranges: Ranges, node: Node) -> Dim | None:
    size = node.inputs[0].shape[node.attrs["axis"]]
    return ranges.some(node.results[0].dtype, [0], [size - 1], scalar=not node.results[0].shape)


def _counted(ranges: Ranges, node: Node) -> Dim | None:
    size = node.attrs["shape"][node.attrs["axis"]]
    return ranges.some(node.results[0].dtype, [0], [size - 1], scalar=False)


def _size(ranges: Ranges, node: Node) -> Dim | None:
    size: Dim = node.attrs["size"]
    return size


_FORMS: Mapping[str, Callable[[Ranges, Node], Dim | None]] = MappingProxyType({
    "dim": _size, "iota": _counted, "neg": _negated,
    # Of one that is checked no more is known before: what uses it does so all the same.
    **dict.fromkeys(("add", "sub", "mul", "unwrapped"), _arithmetic),
    **dict.fromkeys(("cast", "broadcast", "reshape", "slice", "transpose", "identity", "gather"),
                    _same),
    "maximum": _extreme(1), "minimum": _extreme(-1), "select": _chosen, "mod": _remainder,
    "floordiv": _quotient, "and_": _common_bits, "shr": _shifted,
    **dict.fromkeys(("or_", "xor"), _all_bits), "narrow": _same,
    "argmax": _place_in_axis, "argmin": _place_in_axis,
})


def _less(strict: int, swap: bool) -> Callable[[Ranges, Node], tuple[Known, Known]]:
    """``a < b``, or with ``swap`` ``b < a``: ``b - a - 1 >= 0``, and if false ``a - b >= 0``."""
    def found(ranges: Ranges, node: Node) -> tuple[Known, Known]:
        if not _are_numbers(node) or any(value.shape for value in node.inputs):
            return (), ()
        a, b = map(ranges.expr, node.inputs[::-1] if swap else node.inputs)
        return (b - a - strict,), (a - b - (1 - strict),)

    return found


def _equal(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    if not _are_numbers(node) or any(value.shape for value in node.inputs):
        return (), ()
    a, b = map(ranges.expr, node.inputs)
    return (a - b, b - a), ()


def _both(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    one, other = (ranges.truths.get(value, ((), ())) for value in node.inputs)
    return (*one[0], *other[0]), ()


def _either(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    one, other = (ranges.truths.get(value, ((), ())) for value in node.inputs)
    return (), (*one[1], *other[1])


def _chosen_truth(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    """Python's ``c and a``, which is ``c`` where that is false, and ``c or b``."""
    c, a, b = node.inputs
    truths = [ranges.truths.get(value, ((), ())) for value in node.inputs]
    return ((*truths[0][0], *truths[1][0]) if b is c else (),
            (*truths[0][1], *truths[2][1]) if a is c else ())


def _not(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    one, other = ranges.truths.get(node.inputs[0], ((), ()))
    return other, one


def _are_numbers(node: Node) -> bool:
    return all(value.dtype.is_int for value in node.inputs)


_TRUTHS: Mapping[str, Callable[[Ranges, Node], tuple[Known, Known]]] = MappingProxyType({
    "lt": _less(1, False), "gt": _less(1, True), "le": _less(0, False), "ge": _less(0, True),
    "eq": _equal, "and_": _both, "or_": _either, "not_": _not,
    "select": _chosen_truth,
})


def decided(ranges: Ranges, node: Node) -> bool | None:
    """What a comparison of integers always gives; None if that is not known."""
    rule = _DECISIONS.get(node.op.name)
    if rule is None or not _are_numbers(node):
        return None
    return rule(ranges, *map(ranges.expr, node.inputs))


def _are_equal(ranges: Ranges, a: Dim, b: Dim) -> bool | None:
    if ranges.holds(a - b - 1) or ranges.holds(b - a - 1):
        return False
    return True if ranges.holds(a - b) and ranges.holds(b - a) else None


def _are_apart(ranges: Ranges, a: Dim, b: Dim) -> bool | None:
    equal = _are_equal(ranges, a, b)
    return None if equal is None else not equal


_DECISIONS: Mapping[str, Callable[[Ranges, Dim, Dim], bool | None]] = MappingProxyType({
    "lt": lambda ranges, a, b: ranges.holds(b - a - 1), "eq": _are_equal,
    "le": lambda ranges, a, b: ranges.holds(b - a), "ne": _are_apart,
    "gt": lambda ranges, a, b: ranges.holds(a - b - 1),
    "ge": lambda ranges, a, b: ranges.holds(a - b),
})


def step_of(value: Value, param: Value) -> tuple[int, bool] | None:
    """By what constant a value is more than a parameter, and whether it is checked that the sum
    does not leave its dtype; None if it is something else."""
    step, checked = 0, True
    while value is not param:
        node = value.node
        if node is None or (node.op is not OPS["add"] and node.attrs.get("of") != "add"):
            return None
        a, b = node.inputs[-2:]
        if constant_of(b) is None:
            a, b = b, a
        number = constant_of(b)
        if not isinstance(number, int):
            return None
        checked = checked and node.op is OPS["unwrapped"]
        value, step = a, step + number
    return step, checked
