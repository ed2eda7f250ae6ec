"""Writing the statements of a kernel, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..indices.index import Dim
from ..record import field, record
from ..scalar.primitives import PRIMITIVES, result_dtype
from ..types import BOOL, I64, DType, as_dtype
from .combine import Order
from .kernel import (
    Apply,
    Carry,
    Check,
    Const,
    Contract,
    Index,
    Last,
    Load,
    Reduce,
    Stmt,
    Store,
)
from .rows import Compress, Ranked, Sort


@record
class KernelBuilder:
    """Writes statements, giving one value to equal ones; the ``s`` that op bodies are called with.

    Every primitive is a method: ``s.tanh(x)``, ``s.select(c, a, b)``; operands are ``Scalar``s.
    """

    body: list[Stmt] = field(default_factory=list)
    _known: dict[tuple[Any, ...], Scalar] = field(default_factory=dict)

    def _define(self, make: type[Stmt], dtype: DType, *parts: Any) -> Scalar:
        key = (make, dtype, *((type(p), repr(p)) if isinstance(p, (int, float)) else p
                              for p in parts))
        known = self._known.get(key)
        if known is None:
            name = f"%{len(self._known)}"
            self.body.append(make(name, dtype, *parts))
            known = self._known[key] = Scalar(name, dtype)
        return known

    def const(self, value: bool | int | float, dtype: DType | str) -> Scalar:
        dtype = as_dtype(dtype)
        python = {"b": bool, "i": int, "u": int}.get(dtype.kind, float)
        return self._define(Const, dtype, python(value))

    def index(self, expr: Dim, dtype: DType = I64) -> Scalar:
        """An index expression as an i64 value, cast to ``dtype``."""
        if isinstance(expr, int):
            return self.const(expr, dtype)
        return self.cast(self._define(Index, I64, expr), dtype)

    def load(
        self, param: str, dtype: DType, indices: tuple[Dim, ...], guard: Scalar | None = None
    ) -> Scalar:
        return self._define(Load, dtype, param, indices, guard.name if guard else "")

    def reduce(
        self, combine: str, value: Scalar, axis: str, order: Order | None = None
    ) -> Scalar:
        return self._define(Reduce, value.dtype, combine, value.name, axis, order)

    def carry(self, init: Scalar, axis: str, step: Callable[[Scalar], Scalar]) -> Scalar:
        """What ``step`` makes of a value carried along an axis, which it is at the next index."""
        at = len(self.body)
        held = Scalar(f"%{len(self._known)}", init.dtype)
        self._known[Carry, held.name] = held
        following = step(held)
        self.body.insert(at, Carry(held.name, held.dtype, init.name, following.name, axis))
        return following

    def carries(
        self, inits: Sequence[Scalar], axis: str,
        step: Callable[[list[Scalar]], Sequence[Scalar]],
    ) -> list[Scalar]:
        """The last values of several that are carried along an axis: ``step`` makes of them what
        they are at the next index."""
        at, held = len(self.body), list[Scalar]()
        for init in inits:
            held.append(Scalar(f"%{len(self._known)}", init.dtype))
            self._known[Carry, held[-1].name] = held[-1]
        above = {stmt.name for stmt in self.body} | {each.name for each in held}

        def below(value: Scalar) -> Scalar:
            if value.name not in above:
                return value
            return self.apply("select", self.const(True, BOOL), value, value)

        following = list(map(below, step(held)))
        self.body[at:at] = [Carry(each.name, each.dtype, init.name, value.name, axis)
                            for each, init, value in zip(held, inits, following, strict=True)]
        return [self._define(Last, each.dtype, each.name, axis) for each in held]

    def contract(
        self, lhs: Scalar, rhs: Scalar, axes: tuple[str, ...], chunk: int = 0
    ) -> Scalar:
        return self._define(Contract, lhs.dtype, lhs.name, rhs.name, axes, chunk)

    def store(
        self, param: str, indices: tuple[Dim, ...], value: Scalar, *,
        accumulate: bool = False, guard: Scalar | None = None,
    ) -> None:
        self.body.append(Store("", value.dtype, param, indices, value.name, accumulate,
                               guard.name if guard else ""))

    def sort(self, param: str, indices: tuple[Dim, ...], value: Scalar, axis: str, *, places: bool,
             room: str) -> None:
        self.body.append(Sort("", value.dtype, param, indices, value.name, axis, places, room))

    def ranked(self, param: str, indices: tuple[Dim, ...], value: Scalar, axis: str, rank: Scalar,
               ranks: str, *, places: bool, room: str, whole: bool) -> None:
        self.body.append(Ranked("", value.dtype, param, indices, value.name, axis, rank.name,
                                ranks, whole, places, room))

    def compress(self, param: str, value: Scalar, axis: Dim, mask: Scalar,
                 chosen: Dim) -> None:
        self.body.append(Compress("", value.dtype, param, (chosen,), value.name, str(axis),
                                  mask.name, str(chosen)))

    def check(self, value: Scalar, site: int) -> None:
        if (Check, value.name, site) not in self._known:
            self._known[Check, value.name, site] = value
            self.body.append(Check("", BOOL, value.name, site))

    def cast(self, value: Scalar, dtype: DType | str) -> Scalar:
        dtype = as_dtype(dtype)
        if value.dtype == dtype:
            return value
        return self._define(Apply, dtype, "cast", (value.name,))

    def bitcast(self, value: Scalar, dtype: DType | str) -> Scalar:
        return self._define(Apply, as_dtype(dtype), "bitcast", (value.name,))

    def apply(self, prim: str, *args: Scalar) -> Scalar:
        dtype = result_dtype(prim, tuple(arg.dtype for arg in args))
        return self._define(Apply, dtype, prim, tuple(arg.name for arg in args))

    def __getattr__(self, name: str) -> Callable[..., Scalar]:
        if name not in PRIMITIVES:
            raise AttributeError(name)
        return lambda *args: self.apply(name, *args)


@record(frozen=True)
class Scalar:
    """A value of a kernel being built."""

    name: str
    dtype: DType
