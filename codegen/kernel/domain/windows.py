"""Loops over what a mask leaves of a row, whose ends are values: from one to the other.

    lane i in 7767 {                               lane i in 7767 from %6 to %11 {
      %7 = ge (index i), %6                          %7 = ge (index i), %6
      %12 = lt (index i), %11                        ...
      %16 = select (and_ %7, %12), %14, 0.0
      %17 = reduce add %16 over i {...}

A window says that what lies outside of it is nothing to all that the axis has: identities of its
reductions, checks that hold, elements that are stored where they are. So a back end may leave it
out, or not: the masks stay, and so does the order of a sum, which is that of the whole row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ....ir.indices.index import plain_symbol
from ....ir.kernels.combine import identity
from ....ir.kernels.kernel import (
    Apply,
    Axis,
    Check,
    Const,
    Index,
    Kernel,
    Load,
    Reduce,
    Stmt,
    Store,
)
from ....ir.kernels.rows import row_stmt
from ....ir.plans.plan import Launch, Plan, all_steps
from ....ir.record import record, replace
from ....ir.scalar.primitives import PRIMITIVES
from ....ir.types import BOOL, I64

Pairs = frozenset[tuple[str, str]]  # parameters that are one memory

LEAST = 64  # elements, below which a loop is as fast as finding where it begins


def with_windows(plan: Plan) -> Plan:
    """The plan with kernels that have the windows that their masks tell."""
    shared = shared_memory(plan)
    return replace(plan, kernels={name: _windowed(kernel, shared.get(name, frozenset()))
                                  for name, kernel in plan.kernels.items()})


def shared_memory(plan: Plan) -> dict[str, Pairs]:
    """For each kernel the parameters that are one memory wherever it is launched."""
    shared: dict[str, Pairs] = {}
    for step in all_steps(plan.steps):
        if isinstance(step, Launch):
            pairs = _shared(plan.kernels[step.kernel], step)
            shared[step.kernel] = shared.get(step.kernel, pairs) & pairs
    return shared


def _shared(kernel: Kernel, launch: Launch) -> Pairs:
    pairs = list(zip(kernel.params, launch.args, strict=True))
    return frozenset((one.name, other.name) for one, where in pairs if one.mutable
                     for other, there in pairs if where == there)


def _windowed(kernel: Kernel, shared: Pairs) -> Kernel:
    if row_stmt(kernel) is not None or any(axis.low or axis.high for axis in kernel.axes):
        return kernel
    return replace(kernel, axes=tuple(
        axis if isinstance(axis.extent, int) and axis.extent < LEAST
        else _with_window(kernel, axis, shared) for axis in kernel.axes))


def _with_window(kernel: Kernel, axis: Axis, shared: Pairs) -> Axis:
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    ends: dict[str, tuple[str, str]] = {}
    for test, end, value in _ends(kernel, axis.name):
        ends.setdefault(end, (test, value))
    if not ends:
        return axis
    along = [stmt for at, stmt in enumerate(kernel.body) if axis.name in (
        kernel.value_axes[stmt.name] if stmt.name else kernel.effect_axes.get(at, ()))
        or (isinstance(stmt, Reduce) and stmt.axis == axis.name)]
    for some in (ends.keys(), {"low"}, {"high"}):
        tests = frozenset(ends[end][0] for end in some if end in ends)
        outside = Outside(axis.name, by_name, _values_outside(kernel, tests), shared)
        if tests and all(map(outside.is_nothing, along)):
            return replace(axis, **{end: value for end, (_, value) in ends.items() if end in some})
    return axis


def _ends(kernel: Kernel, axis: str) -> Iterator[tuple[str, str, str]]:
    """Comparisons of an index of the axis with a value that is one for all of the kernel: their
    names, which end they are, and the value."""
    by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
    for stmt in kernel.body:
        if isinstance(stmt, Apply) and stmt.prim in ("ge", "lt"):
            place, value = (by_name[name] for name in stmt.args)
            if isinstance(place, Index) and plain_symbol(place.expr) == axis and (
                    value.dtype == I64 and not kernel.value_axes[value.name]):
                yield stmt.name, "low" if stmt.prim == "ge" else "high", value.name


def needed(kernel: Kernel, names: Iterable[str]) -> list[Stmt]:
    """The statements that values are made of, in order."""
    wanted = set(names)
    found = []
    for stmt in reversed(kernel.body):
        if stmt.name in wanted:
            wanted.update(stmt.operands)
            found.append(stmt)
    return found[::-1]


def _values_outside(kernel: Kernel, tests: frozenset[str]) -> dict[str, Any]:
    """What has one value wherever not all of some tests hold, and which."""
    found: dict[str, Any] = {}
    hold: dict[str, frozenset[str]] = {}  # the tests that all hold where a value is true
    for stmt in kernel.body:
        if isinstance(stmt, Const):
            found[stmt.name] = np.asarray(stmt.value, stmt.dtype.numpy)
        if not isinstance(stmt, Apply):
            continue
        args = [found.get(name) for name in stmt.args]
        if stmt.name in tests:
            hold[stmt.name] = frozenset((stmt.name,))
        elif stmt.prim == "and_":
            hold[stmt.name] = frozenset().union(*(hold.get(name, ()) for name in stmt.args))
        if tests and tests <= hold.get(stmt.name, frozenset()):
            value: Any = np.False_
        elif stmt.prim == "select" and args[0] is not None:
            value = args[1 if args[0] else 2]
        elif stmt.prim in ("and_", "or_") and stmt.dtype == BOOL and any(
                arg is not None and bool(arg) == (stmt.prim == "or_") for arg in args):
            value = np.bool_(stmt.prim == "or_")
        else:
            value = None if any(arg is None for arg in args) else _applied(stmt, args)
        if value is not None:
            found[stmt.name] = value
    return found


def _applied(stmt: Apply, args: list[Any]) -> Any:
    primitive = PRIMITIVES[stmt.prim]
    more = (stmt.dtype,) if primitive.rule == "convert" else ()
    with np.errstate(all="ignore"):
        return np.asarray(primitive.numpy(*args, *more)).astype(stmt.dtype.numpy)


@record(frozen=True)
class Outside:
    """What statements do along an axis where values are known, as they are there."""

    axis: str
    by_name: Mapping[str, Stmt]
    values: Mapping[str, Any]
    shared: Pairs

    def is_nothing(self, stmt: Stmt) -> bool:
        """Whether a statement does nothing there."""
        if isinstance(stmt, Check):
            return bool(self.values.get(stmt.value, False))
        if isinstance(stmt, Store):
            return self._stays(stmt)
        if not isinstance(stmt, Reduce) or stmt.axis != self.axis:
            return isinstance(stmt, (Apply, Const, Index, Load, Reduce))
        value = self.values.get(stmt.value)
        neutral = [identity(stmt.combine, stmt.dtype)]
        if stmt.combine == "add" and stmt.dtype.is_float:
            neutral.append(-0.0)  # which changes no sum
        return value is not None and value.tobytes() in [
            np.asarray(each, stmt.dtype.numpy).tobytes() for each in neutral]

    def _stays(self, stmt: Store) -> bool:
        """Whether an element is stored where it has been read."""
        if stmt.guard or stmt.accumulate:
            return False
        source = self.by_name[stmt.value]
        while isinstance(source, Apply) and source.prim == "select" and (
                source.args[0] in self.values):
            source = self.by_name[source.args[1 if self.values[source.args[0]] else 2]]
        return isinstance(source, Load) and not source.guard and (
            source.indices == stmt.indices and (stmt.param, source.param) in self.shared)
