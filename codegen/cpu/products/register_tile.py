"""The innermost loop of a matrix product: mr x nv vectors of sums in registers, over k.

    for k in depth        nr elements of b loaded, mr of a broadcast, mr * nv fused multiply-adds

A long loop is a function of its own, since LLVM shares out registers by function: beside the code
around it, it has kept a sum in memory, and each step waited for the one before to be stored.
"""

from __future__ import annotations

import itertools

from ....ir.kernels.tiling import Tiling
from ....ir.record import record
from ..text import FunctionText
from ..types import LLVM_TYPES
from .sizes import Size, integer, prefix_mask
from .vectors import Vectors

SHORT = 64  # steps that are not worth a call


@record(frozen=True)
class Side:
    """One operand of a register tile: where it begins, elements from one index to the next."""

    origin: Size  # of the free axis; before the tile's own where the tile was moved back inside
    pointer: str
    free: int
    k: int
    last: int | None = None  # lanes of its last vector that exist, if not all


class RegisterTile(Vectors):
    """Writes the loop into a function."""

    def __init__(self, f: FunctionText, plan: Tiling) -> None:
        super().__init__(f, LLVM_TYPES[plan.dtype.name], plan.dtype.itemsize, plan.lanes)
        self.plan = plan

    def emit(self, a: Side, b: Side, sums: str, depth: Size, first: str | None) -> None:
        """Have ``depth`` products added to the vectors at ``sums``; to 0 if ``first``, or if that
        is None."""
        if isinstance(depth, int) and depth <= SHORT:
            self._multiply(a, b, sums, depth, first)
            return
        f, args = self.f, [("ptr", a.pointer), ("ptr", b.pointer), ("ptr", sums),
                           ("i64", str(depth))]
        args += [] if first is None else [("i1", first)]
        name = f"{f.name}_tile{len(f.helpers)}"
        words = ("a", "b", "sums", "depth", "first")[:len(args)]
        helper = FunctionText("void", name, [(type_, word) for (type_, _), word in zip(
            args, words, strict=True)], linkage="internal", attributes="noinline nounwind")
        RegisterTile(helper, self.plan)._multiply(
            Side(0, "%a", a.free, a.k), Side(0, "%b", b.free, b.k, b.last), "%sums", "%depth",
            None if first is None else "%first")
        helper.ret()
        f.helpers.append(helper)
        f.do(f"call void @{name}({', '.join(f'{type_} {value}' for type_, value in args)})")

    def _multiply(self, a: Side, b: Side, sums: str, depth: Size, first: str | None) -> None:
        f, plan, vector = self.f, self.plan, self.vector
        places = [self.at(sums, v * plan.lanes) for v in range(plan.mr * plan.nv)]
        values = ["zeroinitializer"] * len(places)
        if first is not None:
            loads = [self.load(place) for place in places]
            values = [f(f"select i1 {first}, {vector} zeroinitializer, {vector} {value}")
                      for value in loads]
        steps = self._turned_steps if plan.rhs == "turned" else self._steps
        for value, place in zip(steps(a, b, values, depth), places, strict=True):
            self.store(value, place)

    def _steps(self, a: Side, b: Side, values: list[str], depth: Size) -> list[str]:
        f, plan = self.f, self.plan
        mask = None if b.last is None else prefix_mask(f, plan.lanes, b.last)
        carry = [(self.vector, value) for value in values]
        with f.carried_loop("0", str(depth), 1, carry) as loop:
            row = self.at(b.pointer, self.mul(loop.index, b.k))
            column = self.at(a.pointer, self.mul(loop.index, a.k))
            right = [self.load(self.at(row, v * plan.lanes), mask if v == plan.nv - 1 else None)
                     for v in range(plan.nv)]
            for r in range(plan.mr):
                left = self.broadcast(self.at(column, r * a.free))
                loop.next += [
                    self.multiply_add(left, right[v], loop.values[r * plan.nv + v])
                    for v in range(plan.nv)
                ]
        return loop.results

    def _turned_steps(self, a: Side, b: Side, values: list[str], depth: Size) -> list[str]:
        """The same where rows of rhs lie along k and have few uses: turn them in registers."""
        f, plan = self.f, self.plan
        whole = self.sub(depth, integer(f, "srem", depth, self.group))
        for begin, end, width in ((0, whole, self.group), (whole, depth, 1)):
            if begin == end:
                continue
            carry = [(self.vector, value) for value in values]
            with f.carried_loop(str(begin), str(end), width, carry) as loop:
                right = [
                    self.transposed(self.at(b.pointer, loop.index, v * plan.lanes * b.free),
                                    b.free, plan.lanes, width)
                    for v in range(plan.nv)
                ]
                row, loop.next = self.at(a.pointer, self.mul(loop.index, a.k)), [*loop.values]
                for c, r in itertools.product(range(width), range(plan.mr)):
                    left = self.broadcast(self.at(row, r * a.free + c * a.k))
                    for v in range(plan.nv):
                        t = r * plan.nv + v
                        loop.next[t] = self.multiply_add(left, right[v][c], loop.next[t])
            values = loop.results
        return values
