"""When two Python values are one to a program: by type and value, all the way down.

``==`` is too generous for what selects code: 1, 1.0 and True are equal, 0.0 and -0.0 are, and so
are (1,) and (1.0,); a nan, in turn, differs from itself. ``exact`` gives keys without that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

_PLAIN = frozenset({str, type(None)})  # never equal to a value of another type, once wrapped
_TEXTS = frozenset({str})
_SPELLED = frozenset({float, complex})  # their repr says all there is to them


_IMMUTABLE = frozenset({type(None), bool, int, float, complex, str, bytes})


def immutable(value: Any) -> bool:
    """True for what surely never changes: numbers, texts, and tuples of them."""
    if type(value) is tuple:
        return all(map(immutable, value))
    return type(value) in _IMMUTABLE


class UnhashableError(TypeError):
    """The name of a class whose objects have no hash."""


def exact(value: Any) -> Hashable:
    """A hashable key that two values share only if no program can tell them apart.

    Tuples, frozensets, slices, ranges and frozen dataclasses are taken by their items; objects of
    other classes by their own ``==``. Raises UnhashableError, a TypeError.

    >>> exact((1, 0.0)) == exact((1, 0.0)), exact(1) == exact(True), exact((0.0,)) == exact((-0.0,))
    (True, False, False)
    """
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if isinstance(value, tuple):
        if kind is tuple and _TEXTS.issuperset(map(type, value)):
            return value
        return (kind, *map(exact, value))
    if kind in _SPELLED or (kind.__module__, kind.__qualname__) == ("decimal", "Decimal"):
        return kind, repr(value)
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, (float, complex)):  # a subclass, which may hold more than the number
        return kind, repr(complex(value)), value
    if isinstance(value, frozenset):
        return kind, frozenset(map(exact, value))
    if isinstance(value, (slice, range)):
        return kind, exact(value.start), exact(value.stop), exact(value.step)
    params = kind.__dict__.get("__dataclass_params__")
    if params is not None and params.frozen and params.eq:
        return (kind, *[exact(getattr(value, field.name))
                        for field in dataclasses.fields(value) if field.compare])
    try:
        hash(value)
    except TypeError:
        raise UnhashableError(kind.__name__) from None
    return kind, value
