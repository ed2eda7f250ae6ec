"""What a loop's rounds do to an integer that it carries: what they add to it, or set it to.

    for t0 in n:
        if c: k = k + 1                adds 0 to 1           first <= k <= first + t0
        run = run + 1 if d else 0      adds 1, or sets 0     0 <= run <= max(first, 0) + t0
        s = (s * 5 + 1) & 255          sets 0 to 255         min(first, 0) <= s <= max(first, 255)
        while e: m = m + 2             adds 2 in rounds      first <= m <= first + 2 * ROUNDS
                                       that nobody counts

The values of a round are evaluated over ``Change``, from the change of nothing that the carried
integer has at the round's beginning. Loops inside repeat what their rounds do, branches join.
Rounds take time, so that there are no more than ``ROUNDS`` of all loops of a program together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ...ir.graph import Graph, Node, Value, constant_of, control_of
from ...ir.ops.control.region import Branching, Looping
from ...ir.ops.table import OPS
from ...ir.record import field, record, replace
from ...ir.types import DType
from .learning import learn_node
from .ranges import Ranges, limits_of

ROUNDS = 2**58  # at one in a nanosecond they take nine years

Interval = tuple[int, int]
_NONE: Interval = (0, 0)
_PASSES = 3  # what one integer is may tell what another is
_MOST = 20_000  # values that are looked at for one loop


def _sum(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def hull(a: Interval | None, b: Interval | None) -> Interval | None:
    """The least interval around both; None is one without numbers."""
    if a is None or b is None:
        return a or b
    return min(a[0], b[0]), max(a[1], b[1])


def _around(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


@record(frozen=True)
class Change:
    """What becomes of an integer: it has one of ``added`` more, or is one of ``set``; either is
    None where that is never so. ``uncounted`` is what each round of loops of an unknown number of
    rounds adds, and ``way`` is around all that was added on the way."""

    added: Interval | None
    set: Interval | None = None
    uncounted: Interval = _NONE
    way: Interval = _NONE

    def plus(self, more: Interval) -> Change:
        added = None if self.added is None else _sum(self.added, more)
        found = None if self.set is None else _sum(self.set, more)
        return Change(added, found, self.uncounted, self.way if added is None else _around(
            self.way, added))

    def join(self, other: Change) -> Change:
        """One of both."""
        return Change(hull(self.added, other.added), hull(self.set, other.set),
                      _around(self.uncounted, other.uncounted), _around(self.way, other.way))

    def then(self, change: Change) -> Change:
        """Both, one after the other."""
        if change.added is None:
            return change
        mine = self.plus(change.added)
        way = self.way if self.added is None else _around(
            self.way, _sum(self.added, change.way))
        return Change(mine.added, hull(mine.set, change.set),
                      _sum(self.uncounted, change.uncounted), way)

    def times(self, rounds: int | None) -> Change:
        """That so many times at most; None: nobody knows how often."""
        if self.added is None:
            return replace(self, added=_NONE)
        if rounds is None:
            each = _around(_NONE, self.added)
            return replace(self, added=_NONE, uncounted=_sum(self.uncounted, each))
        low, high = _scaled(self.added, rounds)
        found = None if self.set is None else _sum(self.set, (low, high))
        before = _scaled(self.added, max(rounds - 1, 0))
        return Change((low, high), found, self.uncounted, _sum(before, _around(_NONE, self.way)))

    def after(self, first: Interval, rounds: int | None) -> Interval:
        """What an integer is after so many rounds or less, and all that it was."""
        total = self.times(rounds)
        found = _around(first, self.set or first)
        found = _sum(found, _scaled(total.uncounted, ROUNDS))
        if rounds is None:
            return _sum(found, _around(_NONE, self.way))
        return _around(_sum(found, total.added or _NONE), _sum(found, total.way))

    @property
    def number(self) -> Interval | None:
        """What it is, if it is that whatever it was before."""
        return self.set if self.added is None and self.uncounted == _NONE else None


def _scaled(each: Interval, rounds: int) -> Interval:
    return min(0, each[0] * rounds), max(0, each[1] * rounds)


SAME = Change(_NONE)


def changes(
    loop: Looping, firsts: Mapping[int, Interval], rounds: int | None
) -> dict[int, Change]:
    """What rounds do to the integers that a loop carries, by their numbers. ``firsts`` is what
    those are at first that are of interest; what some are tells what others are."""
    found: dict[int, Change] = {}
    numbers: dict[Value, Change] = {}
    known = _Known()
    for _ in range(_PASSES):
        before = len(found)
        for at, first in firsts.items():
            param, result = loop.body.params[at], loop.body.results[at]
            change = None if at in found else _Body(
                loop.body, {**numbers, param: SAME}, known).change(result)
            if change is not None and _fits(ends := change.after(first, rounds), param.dtype):
                found[at], numbers[param] = change, Change(None, ends)
        if len(found) in (before, len(firsts)):
            break
    return found


@record
class _Known:
    """What is known of graphs and their values, were nothing known of parameters; of results of
    bodies, by what is known of their parameters; and how many more values are looked at."""

    ranges: dict[int, Ranges] = field(default_factory=dict)
    plain: dict[Value, Change | None] = field(default_factory=dict)
    results: dict[tuple[Value, frozenset[tuple[Value, Change]]], Change | None] = field(
        default_factory=dict)
    left: int = _MOST


class _Body:
    """One graph, of whose parameters some are known."""

    def __init__(self, graph: Graph, known: Mapping[Value, Change], shared: _Known) -> None:
        self.graph, self.shared = graph, shared
        self.found = dict[Value, Change | None](known)

    def change(self, value: Value) -> Change | None:
        """What a value is; None if that is not known."""
        todo = [value]
        while todo:  # not by recursion: sums are long
            last = todo[-1]
            needed = [] if last.node is None or last in self.found else [
                each for each in _asked_of(last.node) if each not in self.found]
            if needed:
                todo += needed
                continue
            todo.pop()
            if last not in self.found:
                self.found[last] = self._own(last)
        return self.found[value]

    def _own(self, value: Value) -> Change | None:
        node = value.node
        self.shared.left -= 1
        if node is None or not value.dtype.is_int or value.shape or self.shared.left < 0:
            return None
        number = constant_of(value)
        if isinstance(number, int):
            return Change(None, (number, number))
        control, at = control_of(node), node.results.index(value)
        if isinstance(control, Branching):
            return self._joined(node, control, at)
        if isinstance(control, Looping):
            return self._repeated(node, control, at)
        rule = _RULES.get(node.attrs.get("of", node.op.name))
        found = None if rule is None else rule([self.found[each] for each in _asked_of(node)])
        if found is not None and (found.set is None or _fits(found.set, value.dtype)):
            return found
        return self._plain(value)

    def _inside(self, body: Graph, known: Mapping[Value, Change | None], at: int) -> Change | None:
        given = {param: change for param, change in known.items() if change is not None}
        key, results = (body.results[at], frozenset(given.items())), self.shared.results
        if key not in results:
            results[key] = _Body(body, given, self.shared).change(body.results[at])
        return results[key]

    def _joined(self, node: Node, control: Branching, at: int) -> Change | None:
        operands = [self.found[value] for value in node.inputs[1:]]
        one, other = (self._inside(body, dict(zip(body.params, operands, strict=True)), at)
                      for body in (control.then, control.other))
        return None if one is None or other is None else one.join(other)

    def _repeated(self, node: Node, loop: Looping, at: int) -> Change | None:
        if at >= loop.carried or not isinstance(loop.count, int | None):
            return None
        params, first = loop.body.params, self.found[node.inputs[at]]
        known = {param: change for param, operand in zip(params, node.inputs, strict=True)
                 if (change := self.found[operand]) is not None and change.number is not None
                 and param not in params[:loop.carried + loop.scanned]}
        each = self._inside(loop.body, {**known, params[at]: SAME}, at)
        if first is None or each is None:
            return None
        found = first.then(each.times(loop.count))
        return found if found.set is None or _fits(found.set, params[at].dtype) else None

    def _plain(self, value: Value) -> Change | None:
        """What it is whatever the parameters are."""
        plain = self.shared.plain
        if value not in plain:
            plain[value] = self._looked_up(value)
        return plain[value]

    def _looked_up(self, value: Value) -> Change | None:
        ranges = self.shared.ranges.get(id(self.graph))
        if ranges is None:
            ranges = self.shared.ranges[id(self.graph)] = Ranges()
            for node in self.graph.nodes:
                if node.op.control is None:
                    learn_node(ranges, node)
        if value not in ranges.exprs:
            return None
        low, high = (ask(ranges.exprs[value]) for ask in (ranges.least, ranges.most))
        if low is None or high is None or (low, high) == limits_of(value.dtype):
            return None
        return Change(None, (low, high))


def _asked_of(node: Node) -> Sequence[Value]:
    """The operands that count: not what is chosen by, nor a sum whose terms are there, too."""
    first = node.op in (OPS["unwrapped"], OPS["select"]) or isinstance(
        control_of(node), Branching)
    return node.inputs[first:]


def _fits(found: Interval, dtype: DType) -> bool:
    low, high = limits_of(dtype)
    return low <= found[0] and found[1] <= high


_Operands = list[Change | None]


def _added(operands: _Operands) -> Change | None:
    a, b = operands
    if a is None or b is None:
        return None
    if b.number is not None:
        return a.plus(b.number)
    return None if a.number is None else b.plus(a.number)


def _subtracted(operands: _Operands) -> Change | None:
    a, b = operands
    if a is None or b is None or b.number is None:
        return None
    return a.plus((-b.number[1], -b.number[0]))


def _multiplied(operands: _Operands) -> Change | None:
    numbers = [None if each is None else each.number for each in operands]
    if numbers[0] is None or numbers[1] is None:
        return None
    ends = [a * b for a in numbers[0] for b in numbers[1]]
    return Change(None, (min(ends), max(ends)))


def _either(operands: _Operands) -> Change | None:
    a, b = operands
    return None if a is None or b is None else a.join(b)


_RULES: Mapping[str, Callable[[_Operands], Change | None]] = MappingProxyType({
    "add": _added, "sub": _subtracted, "mul": _multiplied,
    **dict.fromkeys(("select", "maximum", "minimum"), _either),
    **dict.fromkeys(("reshape", "identity"), lambda operands: operands[0]),
})
