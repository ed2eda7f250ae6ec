"""Functions that are not written in Python and look at what they are given.

    np.random.default_rng(n)       the type of n is no number's: what decides n becomes static
    rng.permutation(x)             x[rng.permutation(len(x))], as NumPy does; so do shuffle, choice
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from inspect import getattr_static
from types import CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any

import numpy as np

from ...face import tree
from ...tracing.context.active import current
from ...tracing.foreign import asks, refused
from ...tracing.values.drawn import refused_draw
from ...tracing.values.tracer import SymbolicDim, Tracer
from ..regions.state import is_traced


def _is_generator(x: Any) -> bool:
    """Whether an object is one of NumPy's generators, which are imported when first used."""
    return "numpy.random" in sys.modules and isinstance(
        x, (np.random.Generator, np.random.RandomState))


def is_foreign(function: Any) -> bool:
    """Whether a function, a method or a class has no code of Python's, and is no builtin, of which
    some look at the frame that calls them."""
    inner = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(inner, FunctionType) or getattr(inner, "__module__", None) in (
            None, "builtins", "sys"):
        return False
    if isinstance(inner, type):
        return not any(isinstance(getattr(inner, name, None), FunctionType)
                       for name in ("__init__", "__new__"))
    return not isinstance(getattr_static(type(inner), "__call__", None), FunctionType)


def looking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Such a function, that says what it has asked for when it refuses a traced number."""
    def call(*args: Any, **options: Any) -> Any:
        own = _drawing(function, args)
        if own is not None:
            return own(*args, **options)
        try:
            return _noted(function(*args, **options))
        except (TypeError, ValueError) as problem:
            numbers = [leaf for leaf in tree.leaves((args, options)) if isinstance(leaf, Tracer)]
            if not numbers or not refused(problem):
                raise
            raise asks(function.__name__, numbers) from None

    return call


def calls_only(code: CodeType) -> bool:
    """Whether it is code that only calls such a function, for the user's."""
    return code.co_filename == __file__ and code.co_qualname.startswith(looking.__name__)


def _noted(made: Any) -> Any:
    """What is made, remembered where it is a generator: the same one is made at each call."""
    if _is_generator(made):
        current().root.generators.append(made)
    return made


def _drawing(function: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    rng = getattr(function, "__self__", None)
    if not args or not _is_generator(rng):
        return None
    x, found = args[0], _ORDERS.get(function.__name__)
    whole = is_traced(x) and np.ndim(x) and not isinstance(x.shape[0], SymbolicDim)
    if found is None or not (whole or (type(x) is list and any(map(is_traced, x)))):
        return None
    if not any(rng is each for each in current().root.generators):  # it draws on at each call
        raise refused_draw(made_here=True) or asks(function.__name__, ())
    return lambda x, *args, **options: found(rng, x, *args, **options)


def _permutation(rng: Any, x: Any, axis: int = 0) -> Any:
    if type(x) is list:
        x = np.array(x)
    return np.take(x, rng.permutation(x.shape[axis]), axis=axis)


def _shuffle(rng: Any, x: Any, axis: int = 0) -> None:
    """In the order that NumPy gives an array of so many rows, which depends on its dims."""
    places = np.arange(len(x) if type(x) is list else x.shape[axis])
    if type(x) is list or x.ndim == 1:
        rng.shuffle(places)
    else:
        rows = places.reshape(-1, 1)
        rng.shuffle(rows)
        places = rows[:, 0]
    x[:] = [x[at] for at in places] if type(x) is list else np.take(x, places, axis=axis)


def _choice(rng: Any, x: Any, *args: Any, axis: int = 0, **options: Any) -> Any:
    """What stands where NumPy draws of so many."""
    if type(x) is list:
        x = np.array(x)
    return np.take(x, rng.choice(x.shape[axis], *args, **options), axis=axis)


_ORDERS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "permutation": _permutation, "shuffle": _shuffle, "choice": _choice})
