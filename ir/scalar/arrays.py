"""Expansions as NumPy functions: what special functions mean where NumPy has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import DTYPES, DType, as_dtype
from .primitives import PRIMITIVES, RAW, Primitive


@dataclass(frozen=True)
class Array:
    """An array under the name that expansions know its dtype by."""

    data: Any
    dtype: str


class ArrayScalars:
    """A scalar builder that computes at once, on arrays."""

    def const(self, value: Any, dtype: DType | str) -> Array:
        found = _dtype(dtype)
        return Array(np.array(value, found.numpy), found.name)

    def cast(self, x: Array, dtype: DType | str) -> Array:
        return self.apply("cast", x, to=_dtype(dtype))

    def bitcast(self, x: Array, dtype: DType | str) -> Array:
        return self.apply("bitcast", x, to=_dtype(dtype))

    def rarely(
        self, cond: Array, function: Callable[..., Array], args: tuple[Array, ...], usual: Array
    ) -> Array:
        return self.apply("select", cond, function(self, *args), usual) if np.any(
            cond.data) else usual

    def loop(
        self, limit: int, going: Callable[..., Array], step: Callable[..., tuple[Array, ...]],
        state: tuple[Array, ...],
    ) -> tuple[Array, ...]:
        for _ in range(limit):
            cond = going(*state)
            if not np.any(cond.data):
                break
            state = tuple(self.apply("select", cond, new, old)
                          for new, old in zip(step(*state), state, strict=True))
        return state

    def apply(self, name: str, *args: Array, to: DType | None = None) -> Array:
        primitive: Primitive = PRIMITIVES.get(name) or RAW[name]
        data = [x.data for x in args]
        result = np.asarray(primitive.numpy(*data, to) if to is not None
                            else primitive.numpy(*data))
        return Array(result, as_dtype(result.dtype).name)

    def __getattr__(self, name: str) -> Callable[..., Array]:
        return lambda *args: self.apply(name, *args)


def _dtype(dtype: DType | str) -> DType:
    return DTYPES[dtype] if isinstance(dtype, str) else dtype


def computed(expand: Callable[..., Array]) -> Callable[..., Any]:
    """An expansion as a function of arrays."""
    def call(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            given = (Array(np.asarray(x), as_dtype(np.asarray(x).dtype).name) for x in arrays)
            return expand(ArrayScalars(), *given).data

    return call
