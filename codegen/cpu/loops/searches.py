"""Searches for extremes: pairs of a value and its index, as they go round a loop.

A pair is replaced where a term is strictly better, or is no number where the value is one: so the
first of equal extremes stays, and the first NaN. Along vectors each lane has a pair, of which the
index is that of the vector:

    search max of 3 1 4 1 5 9 2 6     value 3 1 4 1   ->   5 9 4 6
                                         at 0 0 0 0        4 4 0 4   ->   9 at 4 + 1
"""

from __future__ import annotations

from functools import partial

from ....ir.kernels.combine import identity
from ....ir.kernels.kernel import Search
from ....ir.types import DTYPES, I32, I64, DType
from ..types import LLVM_TYPES, vector_type
from .accumulators import Sums
from .scope import Scope
from .values import LlvmPair, LlvmValue, halved


class Searches(Sums):
    """Of searches: pairs."""

    def neutral(self, stmt: Search) -> LlvmValue:
        """What no term is worse than."""
        dtype = self.dtypes[stmt.value]
        return self.s.const(identity(stmt.combine, dtype), dtype)

    def initial(self, stmt: Search, width: int) -> LlvmPair:
        """Before all terms: nothing is worse, and of terms that are no better the first counts."""
        place = self._place_dtype(stmt)
        return self._pair(self.s.splat(self.neutral(stmt), width),
                          self.s.splat(self.s.const(0, place), width))

    def accumulated(self, stmt: Search, held: LlvmValue, scope: Scope) -> LlvmPair:
        return self.taken(stmt, held, scope.values[stmt.value], scope.axes[stmt.axis])

    def taken(self, stmt: Search, held: LlvmValue, term: LlvmValue, at: str) -> LlvmPair:
        value, place = self._parts(held)
        term = self.s.splat(term, value.width)
        better = self._better(stmt, term, value)
        index = self.s.splat(self.s.cast(LlvmValue(at, "i64"), place.dtype), value.width)
        return self._pair(self.s.select(better, term, value),
                          self.s.select(better, index, place))

    def ended(self, stmt: Search, held: LlvmValue) -> LlvmValue:
        """The index that a search has found."""
        return self.s.cast(self._parts(held)[1], stmt.dtype)

    def of_lanes(self, stmt: Search, held: LlvmValue) -> LlvmValue:
        """The index that the lanes of a vector have found: the first of their best."""
        value, place = self._parts(held)
        dtype = DTYPES[place.dtype]
        element = LLVM_TYPES[dtype.name]
        numbers = ", ".join(f"{element} {lane}" for lane in range(value.width))
        place = self.s.add(place, LlvmValue(f"<{numbers}>", dtype.name, value.width))
        best = halved(self.f, value, partial(self.s.apply, stmt.combine))
        hit = self.s.eq(value, best)
        if DTYPES[value.dtype].is_float:
            hit = self.s.or_(hit, self.s.ne(value, value))
        beyond = self.s.const(identity("min", dtype), dtype)
        place = self.s.select(hit, place, beyond)
        return self.s.cast(halved(self.f, place, self.s.min), stmt.dtype)

    def _better(self, stmt: Search, term: LlvmValue, held: LlvmValue) -> LlvmValue:
        if not DTYPES[held.dtype].is_float:
            return self.s.apply("gt" if stmt.combine == "max" else "lt", term, held)
        word = "ugt" if stmt.combine == "max" else "ult"  # also if one of them is no number
        above = self.f(f"fcmp {word} {held.type} {term.ref}, {held.ref}")
        number = self.f(f"fcmp ord {held.type} {held.ref}, {held.ref}")
        type_ = vector_type("i1", held.width)
        return LlvmValue(self.f(f"and {type_} {above}, {number}"), "bool", held.width)

    def _place_dtype(self, stmt: Search) -> DType:
        """As wide as the values, if that is enough, so that one mask serves both."""
        return I64 if stmt.dtype == I64 or self.dtypes[stmt.value].bits == I64.bits else I32

    def _pair(self, value: LlvmValue, place: LlvmValue) -> LlvmPair:
        pair = LlvmPair("poison", value.dtype, value.width, place.dtype)
        for at, part in enumerate((value, place)):
            ref = self.f(f"insertvalue {pair.type} {pair.ref}, {part.type} {part.ref}, {at}")
            pair = LlvmPair(ref, value.dtype, value.width, place.dtype)
        return pair

    def _parts(self, held: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
        assert isinstance(held, LlvmPair)
        value, place = (self.f(f"extractvalue {held.type} {held.ref}, {at}") for at in (0, 1))
        return (LlvmValue(value, held.dtype, held.width),
                LlvmValue(place, held.place, held.width))
