"""Functions of NumPy and SciPy that NumPy does not dispatch, as what a trace records of them.

Rewritten code asks for what it calls by identity (``recorded``): ``np.zeros``, ``np.array`` and so
on give a ``Buffer``, which becomes traced when a traced value is written into it; of traced values
(``np.array([[c, -s], [s, c]])``, ``np.asarray(x)``, ``np.min([a, b])``) they give what the rows of
these functions say. NumPy's own functions stay what they are.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from ..context.scope import RECORDING
from .buffer import is_traced, own

NAMES = ("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like",
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require", "copy",
    "arange", "linspace", "logspace", "geomspace", "eye", "identity", "tri", "indices",
    "fromfunction", "fromiter", "meshgrid", "diag", "diagflat", "vander", "tile", "repeat",
    "concatenate", "stack", "hstack", "vstack", "hanning", "hamming", "blackman", "bartlett",
    "kaiser")
# Of what these are given NumPy does not ask to dispatch: indices, shifts, and what it takes for a
# list.
_UNASKED = ("take", "poly", "roots", "roll")
_SPECIAL = frozenset({"logsumexp", "softmax", "log_softmax", "polygamma"})
# LAPACK's own names in scipy.linalg.lapack, which reads the memory of what it is given.
_LAPACK = ("sgtsv", "dgtsv", "cgtsv", "zgtsv")
_HOMES = (np, np.linalg, np.fft, np.lib.stride_tricks)

# What memory held before would be a part of the program.
_DETERMINED: Mapping[Any, Any] = MappingProxyType({
    np.empty: np.zeros, np.empty_like: np.zeros_like})


def recording(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes arrays, as one that a trace records."""
    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        ctx = RECORDING.get()
        if ctx is None:
            return original(*args, **options)
        if is_traced((args, options)):
            options.pop("like", None)
            return ctx.apply(ctx.api.function, (original, args, options), stem=original.__name__)
        made = _DETERMINED.get(original, original)
        return own(of_its_own(made(*args, **options), args), (args, options))

    return call


def _of_items(original: Callable[..., Any]) -> Callable[..., Any]:
    """``np.fromiter``, which takes one item after the other from whatever has some."""
    @functools.wraps(original)
    def call(iter: Any, *args: Any, **options: Any) -> Any:
        items = iter if isinstance(iter, np.ndarray) else list(iter)
        return recording(original)(items, *args, **options)

    return call


def _for_lists(original: Callable[..., Any]) -> Callable[..., Any]:
    kinds = object if original.__name__ in _UNASKED else (list, tuple)

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        ctx = RECORDING.get()
        if ctx is None or not ctx.api.has_row(original) or not any(
                isinstance(arg, kinds) and is_traced(arg) for arg in args):
            return original(*args, **options)
        return ctx.apply(ctx.api.function, (original, args, options), stem=original.__name__)

    return call


def _special(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function written in Python that takes traced values for what they are not."""
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        ctx = RECORDING.get()
        if ctx is None or not is_traced((args, options)):
            return function(*args, **options)
        return ctx.apply(ctx.api.special, (name, args, options), stem=name.partition(".")[0])

    return call


def of_its_own(made: Any, args: tuple[Any, ...]) -> Any:
    """A new array that NumPy gives as a view of another new one, as one that owns its memory."""
    hidden = type(made) is np.ndarray and made.base is not None and not any(
        isinstance(arg, np.ndarray) and np.may_share_memory(made, arg) for arg in args)
    return made.copy() if hidden else made


def constructed(
    shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None,
    order: Any = None,
) -> Any:
    """``np.ndarray(shape, dtype)``, which is ``np.empty`` unless it is given memory."""
    if RECORDING.get() is None or buffer is not None or offset or strides is not None:
        return np.ndarray(shape, dtype, buffer, offset, strides, order)
    return recording(np.empty)(shape, dtype, order or "C")


@functools.cache
def _recording_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a trace records of a function of NumPy's. NumPy does not look into a list for who is to
    answer: np.min([a, b, c])."""
    if function.__name__ == "fromiter":
        return _of_items(function)
    makes = function.__name__ in NAMES or function in (np.fft.fftfreq, np.fft.rfftfreq)
    return recording(function) if makes else _for_lists(function)


def _is_numpys(function: Any) -> bool:
    """Whether something is a function of NumPy's, by the name that it has there."""
    name = getattr(function, "__name__", None)
    return isinstance(name, str) and not isinstance(function, (type, np.ufunc)) and any(
        vars(home).get(name) is function for home in _HOMES)


# The same for weft.numpy: whoever calls these means them.
OF_WEFT: Mapping[str, Callable[..., Any]] = MappingProxyType({
    name: _recording_of.__wrapped__(function) for name in np.__all__
    if _is_numpys(function := getattr(np, name))})
for _function in OF_WEFT.values():
    _function.__module__ = "weft.numpy"


def recorded(function: Any) -> Callable[..., Any] | None:
    """What a trace records of a function that NumPy does not dispatch; None for any other. A module
    that is not imported stays so: nobody can hold its functions."""
    if _is_numpys(function):
        return _recording_of(function)
    if isinstance(function, FunctionType) and function.__name__ in _SPECIAL:
        own = vars(sys.modules.get("scipy.special", _NOTHING)).get(function.__name__)
        if own is not None and own is function:
            return _special(function, function.__name__)
    if type(function).__name__ == "fortran":
        home = vars(sys.modules.get("scipy.linalg.lapack", _NOTHING))
        return next((_special(function, name) for name in _LAPACK
                     if name in home and home[name] is function), None)
    return None


_NOTHING = ModuleType("nothing")


class Vectorized(np.vectorize):
    """``np.vectorize`` whose calls are recorded where an argument is traced."""

    __call__ = _special(vars(np.vectorize)["__call__"], "vectorize.__call__")


JOINING: Any = type(np.r_).__mro__[1]  # the class of np.r_ and np.c_
join = _special(vars(JOINING)["__getitem__"], "r_.__getitem__")


def original(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's own function behind what is recorded of it, which NumPy finds for ``like=``."""
    name = getattr(function, "__name__", "")
    own: Callable[..., Any] | None = getattr(function, "__wrapped__", None)
    if own is None or not _is_numpys(own):
        return function
    return own if function in (_recording_of(own), OF_WEFT.get(name)) else function
