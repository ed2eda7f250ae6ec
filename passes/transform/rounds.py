"""How many rounds a loop can have: a part of its test looks at one number only, which each round
moves on by itself.

    n = 0                             n is 0, 1, 2, ..., whatever x is, so that the second part
    while x.sum() > 1 and n < 20:     of the test fails after 20 rounds at the latest
        x, n = x / 2, n + 1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.graph import Node, Value, constant_of, control_of
from ...ir.ops.control.region import Branching, Looping
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.record import record
from ..simplify.rewrite import Rule, matched

MOST = 10_000        # rounds that are counted one by one
_EVEN = 1 << 24      # rounds that are counted where each adds the same
_TOGETHER = 1 << 16  # of these at a time
_LONG = 20           # ops of a round
_NOT = Rule("not", "not_(x)", "x")
_SIGNS = MappingProxyType({"add": 1, "sub": -1})
_BOTH = {True: Rule("and", "and_(x, y)", "x"), False: Rule("or", "or_(x, y)", "x")}

Outer = Mapping[Value, Value]
"""The parameters of bodies of branches, and what they stand for."""


@record(frozen=True)
class _Part:
    """What must be True, or False, for a loop to go on."""

    value: Value
    wanted: bool
    outer: Outer


def most_rounds(node: Node, control: Looping) -> int | None:
    """The number of rounds after which the test of a loop fails whatever else it looks at, or None
    where that is not known."""
    test, body = control.test, control.body
    assert test is not None
    parts = [(part, test.params, 0) for part in _parts(test.results[0], True, {})]
    flags = [(at, part.wanted) for part, _, _ in parts for at in range(control.carried)
             if part.value is test.params[at]]  # that the round before has settled
    parts += [(part, body.params, 1) for at, wanted in flags
              for part in _parts(body.results[at], wanted, {})]
    for at in range(control.carried):
        start, number = constant_of(node.inputs[at]), body.params[at]
        step = None if start is None or number.type.shape else _ops(body.results[at], number, {})
        if step is None:
            continue
        for part, params, later in parts:
            ops = _ops(part.value, params[at], part.outer)
            rounds = None if ops is None else _counted(
                number.dtype.numpy.type(start), _Computed(number, step, body.results[at], {}),
                _Computed(params[at], ops, part.value, part.outer), part.wanted)
            if rounds is not None:
                return rounds + later
    return None


def _parts(flag: Value, wanted: bool, outer: Outer) -> Iterator[_Part]:
    """What all has to hold for a flag to be as wanted: the sides of ``and``, and of a denied
    ``or``, of Python's or NumPy's."""
    flag = _resolved(flag, outer)
    node = flag.node
    control = None if node is None else control_of(node)
    if node is not None and matched(_NOT, flag) is not None:
        yield from _parts(node.inputs[0], not wanted, outer)
    elif node is not None and matched(_BOTH[wanted], flag) is not None:
        for side in node.inputs:
            yield from _parts(side, wanted, outer)
    elif node is not None and isinstance(control, Branching):
        condition, *around = node.inputs
        place = node.results.index(flag)
        inside = {**outer, **dict(zip(control.then.params, around, strict=True)),
                  **dict(zip(control.other.params, around, strict=True))}
        for taken, way, instead in ((True, control.other, control.then),
                                    (False, control.then, control.other)):
            result = _resolved(way.results[place], inside)
            known = constant_of(result)
            if result is _resolved(condition, inside):
                known = not taken
            if known is (not wanted):  # so this way is not gone
                yield from _parts(condition, taken, outer)
                yield from _parts(instead.results[place], wanted, inside)
    else:
        yield _Part(flag, wanted, outer)


def _resolved(value: Value, outer: Outer) -> Value:
    while value in outer:
        value = outer[value]
    return value


def _ops(value: Value, number: Value, outer: Outer) -> list[Node] | None:
    """The ops that compute a value of one number and constants, in order; None for one that
    depends on other things."""
    found: dict[Node, None] = {}

    def visit(value: Value) -> bool:
        value = _resolved(value, outer)
        node = value.node
        if value is number or node in found:
            return True
        if node is None or node.op.kind is not Kind.MAP or node.op.effect is not None or (
                value.type.shape or len(found) > _LONG):
            return False
        if not all(map(visit, node.inputs)):
            return False
        found[node] = None
        return True

    return list(found) if visit(value) else None


@record(frozen=True)
class _Computed:
    """A value that some ops compute of one number."""

    number: Value
    ops: list[Node]
    result: Value
    outer: Outer

    def __call__(self, number: Any) -> Any:
        known = {self.number: number}
        for node in self.ops:
            made = node.op.meaning(*[known[_resolved(x, self.outer)] for x in node.inputs],
                                   **node.attrs)
            (value,) = node.results
            known[value] = np.asarray(made).astype(value.dtype.numpy)[()]
        return known[_resolved(self.result, self.outer)]


def _counted(number: Any, step: _Computed, test: _Computed, wanted: bool) -> int | None:
    """For how many rounds a test gives what is wanted, of a number that each round moves on."""
    with np.errstate(all="ignore"):
        added = _added(step)
        if added is not None:
            return _counted_evenly(int(number), added, test, wanted)
        for rounds in range(MOST):
            if test(number) != wanted:
                return rounds
            number = step(number)
    return None


def _added(step: _Computed) -> int | None:
    """What a round adds to an integer, if it does nothing else."""
    node = _resolved(step.result, step.outer).node
    if node is not None and node.op is OPS["unwrapped"]:  # fails where the sum would wrap
        node = _resolved(node.inputs[0], step.outer).node
    sign = None if node is None else _SIGNS.get(node.op.name)
    if node is None or sign is None or not step.number.dtype.is_int:
        return None
    number, added = (_resolved(value, step.outer) for value in node.inputs)
    if number is not step.number and sign > 0:
        number, added = added, number
    constant = constant_of(added)
    return sign * constant if number is step.number and type(constant) is int else None


def _counted_evenly(number: int, added: int, test: _Computed, wanted: bool) -> int | None:
    """The same for a number to which each round adds the same."""
    info = np.iinfo(test.number.dtype.numpy)
    for rounds in range(0, _EVEN, _TOGETHER):
        ends = number + added * rounds, number + added * (rounds + _TOGETHER)
        if min(ends) < info.min or max(ends) > info.max:
            return None
        numbers = np.arange(_TOGETHER, dtype=info.dtype) * info.dtype.type(added)
        failed = np.flatnonzero(test(numbers + info.dtype.type(ends[0])) != wanted)
        if failed.size:
            return rounds + int(failed[0])
    return None
