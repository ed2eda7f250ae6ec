"""What goes round a loop for a sum: what it is before all terms, after one more, and in the end.

Each kind of instruction that takes an axis away has a class, of which ``ACCUMULATORS`` is the
table; ``searches`` has the one whose accumulators are pairs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ....ir.kernels.combine import identity
from ....ir.kernels.kernel import Kernel
from ..types import vector_type
from .scalars import LlvmScalars
from .scope import Scope
from .values import LlvmValue, halved, parts


class Sums:
    """Of reductions: a value, in as many lanes as there are sums."""

    def __init__(self, s: LlvmScalars, kernel: Kernel) -> None:
        self.s, self.f = s, s.f
        self.dtypes = {stmt.name: stmt.dtype for stmt in kernel.body}

    def neutral(self, stmt: Any) -> LlvmValue:
        """The term that changes no accumulator."""
        return self.s.const(identity(stmt.combine, stmt.dtype), stmt.dtype)

    def initial(self, stmt: Any, width: int) -> LlvmValue:
        """An accumulator without terms."""
        return self.s.splat(self.neutral(stmt), width)

    def combine(self, stmt: Any, held: LlvmValue, term: LlvmValue) -> LlvmValue:
        """Two accumulators as one, or one and a term."""
        if held.dtype != term.dtype:
            term = self.as_bytes(term)
        return self.s.apply(stmt.combine, held, term)

    def accumulated(self, stmt: Any, held: LlvmValue, scope: Scope) -> LlvmValue:
        """An accumulator after the term that the scope has."""
        return self.combine(stmt, held, scope.values[stmt.value])

    def taken(self, stmt: Any, held: LlvmValue, terms: LlvmValue, at: str) -> LlvmValue:
        """The lanes of an accumulator after a vector of terms, of which the first is at an index:
        lane by lane, or part by part where there are fewer lanes."""
        for part in parts(self.f, terms, held.width):
            held = self.combine(stmt, held, part)
        return held

    def ended(self, stmt: Any, held: LlvmValue) -> LlvmValue:
        """What an accumulator of single terms has become after all of them."""
        return held

    def of_lanes(self, stmt: Any, lanes: LlvmValue) -> LlvmValue:
        """Halve the vector until one lane is left: the same tree on every machine."""
        lanes = halved(self.f, lanes, partial(self.combine, stmt))
        if lanes.dtype != stmt.dtype.name:  # bools that are held as bytes
            return LlvmValue(self.f(f"icmp ne i8 {lanes.ref}, 0"), stmt.dtype.name, 1)
        return lanes

    def as_bytes(self, value: LlvmValue) -> LlvmValue:
        type_ = vector_type("i8", value.width)
        return LlvmValue(self.f(f"zext {value.type} {value.ref} to {type_}"), "u8", value.width)


class Products(Sums):
    """Of contractions that are no tiles: a chain of multiply-adds."""

    def accumulated(self, stmt: Any, held: LlvmValue, scope: Scope) -> LlvmValue:
        left, right = scope.values[stmt.lhs], scope.values[stmt.rhs]
        if stmt.dtype.is_float:
            return self.s.apply("fma", left, right, held)
        product: LlvmValue = self.s.apply("mul", left, right)
        return self.s.apply("add", product, held)
