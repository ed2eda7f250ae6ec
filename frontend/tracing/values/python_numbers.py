"""What Python's numbers have beside operators: ``x.is_integer()``, ``n.bit_length()``.

Most follows from the number. What gives a text, bytes, or integers of any size (``x.hex()``,
``n.to_bytes(2)``, ``x.as_integer_ratio()``) needs the number itself, so that an argument which
decides it becomes static.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

_BITS = (1, 2, 4, 8, 16, 32)


def _is_integer(x: Any) -> Any:
    if x.dtype.kind != "f":
        return np.equal(x, x)
    return np.logical_and(np.isfinite(x), np.floor(x) == x)


def _magnitude(x: Any) -> Any:
    """The absolute value, which is one of 64 bits without a sign for the least integer, too."""
    wide: Any = x.astype(np.int64) if x.dtype != np.uint64 else x
    return np.where(wide < 0, np.negative(wide), wide).astype(np.uint64)


def _bit_length(x: Any) -> Any:
    """All bits below the highest one set, and counted."""
    found = _magnitude(x)
    for bits in _BITS:
        found = found | (found >> np.uint64(bits))
    return np.bitwise_count(found).astype(np.int64)


def _bit_count(x: Any) -> Any:
    return np.bitwise_count(_magnitude(x)).astype(np.int64)


_OF_ALL: Mapping[str, Callable[[Any], Any]] = MappingProxyType({"is_integer": _is_integer})
_OF_INTEGERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType({
    **_OF_ALL, "bit_length": _bit_length, "bit_count": _bit_count})


def attribute(x: Any, name: str) -> Any:
    """An attribute that the class of a traced number has, and arrays have not."""
    whole = x.dtype.kind in "biu"
    if whole and name in ("numerator", "denominator"):
        return x.real if name == "numerator" else 1
    method = (_OF_INTEGERS if whole else _OF_ALL).get(name)

    def call(*args: Any, **options: Any) -> Any:
        if args or options or (method is None and not (whole and name == "as_integer_ratio")):
            raise x._no_number(f"what .{name}() gives")
        if method is None:
            return x.real, 1
        found = method(x)
        found.weak = True
        return found

    return call
