"""Spec: what an argument will be, wherever an example array is accepted.

    weft.Spec("f32", (None, 784))       one unknown dim, with a symbol of its own
    weft.Spec("f32", ("b", 784))        arguments whose dims share a symbol have equal sizes
    "f32[b,784]"                        the same as text
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.graph import Value
from ...ir.indices.index import (
    Dim,
    Expr,
    Quotient,
    Remainder,
    bounds,
    parts_of,
    plain_symbol,
    symbol,
    symbols_of,
    terms_of,
)
from ...ir.types import DTYPES, TensorType, as_dtype, parse_size, parse_type
from ..face.source import user_loc
from .values.tracer import SymbolicDim


class Spec:
    """dtype and shape of an argument; a dim is an int, a symbol or expression as text, or None."""

    __slots__ = ("_shape", "dtype")

    def __init__(self, dtype: Any, shape: Sequence[Any] = ()) -> None:
        try:
            self.dtype = as_dtype(dtype)
            if isinstance(shape, str | bytes | Mapping) or not isinstance(shape, Iterable):
                raise TypeError(f"a shape is a tuple of sizes, not {shape!r}")
            self._shape = tuple(_dim(dim) for dim in shape)
        except (TypeError, ValueError) as problem:
            raise _not_a_spec(problem) from None

    @staticmethod
    def parse(text: str) -> Spec:
        """A spec from text such as ``f32[b,784]``; raises DTypeError (W112)."""
        try:
            type_ = parse_type(text)
            for dim in type_.shape:
                _check_divisions(dim)
        except ValueError as problem:
            stem = text.partition("[")[0].strip()
            if is_spec(text) and stem not in DTYPES:
                raise error("W112", f"not a spec: {stem} is no dtype in {text!r}",
                            locs=user_loc(), hint=f"dtypes are {', '.join(DTYPES)}") from None
            raise _not_a_spec(problem) from None
        return Spec(type_.dtype, tuple(None if plain_symbol(dim) == "None" else dim
                                       for dim in type_.shape))

    def type(self, name: str, taken: Collection[str] = ()) -> TensorType:
        """The tensor type of an argument of that name, which gives its unknown dims symbols: none
        of those that are ``taken``, as names that differ in their signs alone would give."""
        stem = "".join(c if c.isalnum() else "_" for c in name).strip("_")
        if not stem.isidentifier():
            stem = f"n{stem}"
        while any(f"{stem}_{axis}" in taken for axis, dim in enumerate(self._shape) if dim is None):
            stem += "_"
        return TensorType(self.dtype, tuple(
            symbol(f"{stem}_{axis}") if dim is None else dim
            for axis, dim in enumerate(self._shape)))

    @property
    def shape(self) -> tuple[Dim | None, ...]:
        return self._shape

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Spec) and self.dtype == other.dtype
                and self._shape == other._shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self._shape))

    def __repr__(self) -> str:
        dims = ",".join("?" if dim is None else str(dim) for dim in self._shape)
        return f"Spec({self.dtype}[{dims}])"


def specs(types: Iterable[TensorType], params: Iterable[Value]) -> list[Spec]:
    """What results will be; a size that no parameter tells is None."""
    known = {name for param in params for dim in param.shape for name in symbols_of(dim)}
    return [Spec(each.dtype, [dim if symbols_of(dim) <= known else None for dim in each.shape])
            for each in types]


def is_spec(leaf: Any) -> bool:
    """True for a text that is meant to stand for a type."""
    if not isinstance(leaf, str):
        return False
    stem, bracket, _ = leaf.partition("[")
    return stem.strip() in DTYPES or (
        bracket != "" and stem.strip().isidentifier() and leaf.rstrip().endswith("]"))


def _not_a_spec(problem: Exception) -> Error:
    return error("W112", f"not a spec: {problem}", locs=user_loc(),
                 hint='write such as weft.Spec("f32", (None, 784)) or "f32[b,784]"')


def _dim(dim: Any) -> Dim | None:
    """A dim as the user wrote it; None and -1 are any size. Raises TypeError or ValueError."""
    if isinstance(dim, SymbolicDim):
        return dim.expr
    found = dim
    if isinstance(dim, str):
        found = parse_size(dim)
        _check_divisions(found)
    if found is None or isinstance(found, Expr):
        hidden = [name for name in symbols_of(found or 0) if name.startswith("%")]
        if hidden:
            raise ValueError(f"{hidden[0]} is no name for a size")
        return found
    if isinstance(found, (bool, np.bool_)):
        raise TypeError(f"{found} is not a size")
    size = operator.index(found)
    if size < -1:
        raise ValueError(f"the size {size} is negative")
    return None if size == -1 else size


def _check_divisions(dim: Dim) -> None:
    """Raise ValueError for a size that is divided by what may be 0, as any symbol may."""
    pending = [dim]
    while pending:
        for atom in (atom for monomial, _ in terms_of(pending.pop()) for atom in monomial):
            if isinstance(atom, (Quotient, Remainder)) and (bounds(atom.denominator)[0] or 0) < 1:
                raise ValueError(f"not a size: {dim} (divide by a number above 0, or max(b, 1))")
            pending += parts_of(atom)
