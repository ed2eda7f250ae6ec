"""Stand-ins for the functions of NumPy that make arrays: NumPy does not dispatch these.

While a function is traced, ``np.zeros``, ``np.array`` and so on are replaced in the module numpy.
Called by the traced code they give a ``Buffer``, which becomes traced when a traced value is
written into it; of traced values (``np.array([[c, -s], [s, c]])``, ``np.asarray(x)``) they give
what the rows of these functions say. All others, in other threads too, get what NumPy gives. After
the last trace NumPy is as it was.

WEFT_STANDINS=0 turns this off; ``np.zeros(n, like=x)`` and ``weft.numpy`` do without it.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.forks import held
from ..context.scope import RECORDING
from ..source import is_internal_name, user_loc
from . import swapped
from .buffer import is_traced, own

NAMES = ("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like",
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require", "copy",
    "arange", "linspace", "logspace", "geomspace", "eye", "identity", "tri", "indices",
    "fromfunction", "fromiter", "meshgrid", "diag", "diagflat", "vander", "tile", "repeat",
    "concatenate", "stack", "hstack", "vstack", "hanning", "hamming", "blackman", "bartlett",
    "kaiser")
# These make no arrays to write into, but NumPy does not look into a list for who is to answer:
# np.min([a, b, c]).
LISTED = ("sum", "prod", "max", "min", "amax", "amin", "mean", "median", "average", "var", "std",
    "ptp", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "sort", "argsort", "diff",
    "percentile", "quantile", "dot", "outer", "inner", "transpose", "ravel", "reshape", "shape",
    "nansum", "nanmean", "nanmax", "nanmin", "count_nonzero", "trapezoid", "cross", "kron", "vdot",
    "interp", "polyval", "round", "clip", "flip", "append", "isclose", "allclose",
    "array_equal", "searchsorted", "squeeze", "cov", "corrcoef", "convolve", "correlate",
    "where", "nonzero", "flatnonzero", "argwhere", "partition", "argpartition", "lexsort", "unique",
    "isin", "union1d", "intersect1d", "setdiff1d", "bincount", "digitize", "histogram", "nanprod",
    "nanvar", "nanstd", "nanmedian", "nanquantile", "nanpercentile", "nanargmax", "nanargmin",
    "nancumsum", "nancumprod", "cumulative_sum", "cumulative_prod", "gradient", "ediff1d", "unwrap",
    "tensordot", "einsum", "trace", "diagonal", "tril", "triu", "pad", "resize", "insert", "delete",
    "array_split", "expand_dims", "broadcast_to", "atleast_1d", "atleast_2d", "atleast_3d",
    "moveaxis", "swapaxes", "fliplr", "flipud", "rot90", "matrix_transpose", "size", "ndim",
    "nan_to_num", "real", "imag", "angle", "apply_along_axis", "polyfit", "polyder", "polyint",
    "polyadd", "polysub", "polymul",
    "histogram2d", "select", "setxor1d", "compress", "extract", "column_stack", "dstack",
    "around", "sinc")
# Of what these are given NumPy does not ask to dispatch: indices, shifts, and what it takes for a
# list.
_UNASKED = ("take", "poly", "roots", "roll")
_LINEAR = ("norm", "det", "slogdet", "inv", "pinv", "solve", "lstsq", "cholesky", "qr", "svd",
    "svdvals", "eig", "eigh", "eigvals", "eigvalsh", "matrix_power", "matrix_rank", "cond")
_FOURIER = ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "fftn", "ifftn", "fftshift",
    "ifftshift")
_MODULES: Mapping[str, ModuleType] = MappingProxyType({
    **dict.fromkeys((*NAMES, *LISTED, *_UNASKED), np), "fftfreq": np.fft, "rfftfreq": np.fft,
    **dict.fromkeys(_LINEAR, np.linalg), **dict.fromkeys(_FOURIER, np.fft)})

# What memory held before would be a part of the program.
_DETERMINED: Mapping[Any, Any] = MappingProxyType({
    np.empty: np.zeros, np.empty_like: np.zeros_like})


def recording(
    original: Callable[..., Any], skipped: Callable[[FrameType], bool] = lambda _: False
) -> Callable[..., Any]:
    """A function that makes arrays, as one that a trace records, but for callers to skip."""
    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        ctx = RECORDING.get()
        if ctx is None or skipped(sys._getframe(1)):
            return original(*args, **options)
        if is_traced((args, options)):
            options.pop("like", None)
            return ctx.apply(ctx.api.function, (original, args, options), stem=original.__name__)
        made = _DETERMINED.get(original, original)
        return own(_of_its_own(made(*args, **options), args), (args, options))

    return call


def _of_items(original: Callable[..., Any]) -> Callable[..., Any]:
    """``np.fromiter``, which takes one item after the other from whatever has some."""
    @functools.wraps(original)
    def call(iter: Any, *args: Any, **options: Any) -> Any:
        if RECORDING.get() is None or _is_library(sys._getframe(1)):
            return original(iter, *args, **options)
        items = iter if isinstance(iter, np.ndarray) else list(iter)
        return recording(original)(items, *args, **options)

    return call


def _for_lists(original: Callable[..., Any]) -> Callable[..., Any]:
    kinds = object if original.__name__ in _UNASKED else (list, tuple)

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        ctx = RECORDING.get()
        if ctx is None or not args or not any(
                isinstance(arg, kinds) and is_traced(arg) for arg in args) or (
                _is_library(sys._getframe(1))):
            return original(*args, **options)
        return ctx.apply(ctx.api.function, (original, args, options), stem=original.__name__)

    return call


def _is_library(frame: FrameType) -> bool:
    """True for code that is not traced for its own sake."""
    name = frame.f_globals.get("__name__") or ""
    return (is_internal_name(name) or name.startswith("scipy.")) and not name.startswith(
        "numpy.polynomial.")


def _of_its_own(made: Any, args: tuple[Any, ...]) -> Any:
    """A new array that NumPy gives as a view of another new one, as one that owns its memory."""
    hidden = type(made) is np.ndarray and made.base is not None and not any(
        isinstance(arg, np.ndarray) and np.may_share_memory(made, arg) for arg in args)
    return made.copy() if hidden else made


_ORIGINALS = MappingProxyType({name: getattr(home, name) for name, home in _MODULES.items()})
_STAND_INS = MappingProxyType({
    name: _of_items(function) if name == "fromiter" else
    _for_lists(function) if name in (*LISTED, *_UNASKED, *_LINEAR, *_FOURIER) else
    recording(function, _is_library)
    for name, function in _ORIGINALS.items()})
# The same for weft.numpy: whoever calls these means them.
CONSTRUCTORS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    name: recording(function) for name, function in _ORIGINALS.items() if name in NAMES})
for _constructor in CONSTRUCTORS.values():
    _constructor.__module__ = "weft.numpy"


def original(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's own function behind a stand-in, which is what NumPy finds for ``like=``."""
    name = getattr(function, "__name__", "")
    of_ours = function in (_STAND_INS.get(name), CONSTRUCTORS.get(name))
    return _ORIGINALS[name] if of_ours else function


PRINTED = "what is printed is not known before the function runs"


def _print(*args: Any, **options: Any) -> None:
    """``print``, of which the program is to print, each time that it runs."""
    ctx = RECORDING.get()
    if ctx is not None and ctx.prints and not _is_library(sys._getframe(1)):
        raise error("W201", PRINTED, locs=user_loc(), hint="print outside of the function")
    _PRINT(*args, **options)


_PRINT = print


class _Patches:
    """The threads whose traces need the stand-ins, as often as they do."""

    def __init__(self) -> None:
        self.lock, self.users = threading.RLock(), list[int]()
        self.swapped: list[Any] = []

    def enter(self) -> None:
        with self.lock:
            if not self.users:
                for name, stand_in in _STAND_INS.items():
                    setattr(_MODULES[name], name, stand_in)
                builtins.print = _print
                self.swapped = swapped.swap()
            self.users.append(threading.get_ident())

    def leave(self) -> None:
        with self.lock:
            self.users.remove(threading.get_ident())
            if not self.users:
                self.undo()

    def undo(self) -> None:
        swapped.undo(self.swapped)
        if builtins.print is _print:
            builtins.print = _PRINT
        for name, function in _ORIGINALS.items():
            home = _MODULES[name]
            if vars(home)[name] is _STAND_INS[name]:  # else somebody else's, to keep
                setattr(home, name, function)

    def forked(self) -> None:
        """In a forked child the traces of other threads have ended."""
        before, here = self.users, threading.get_ident()
        self.users = [user for user in before if user == here]
        if before and not self.users:
            self.undo()


_PATCHES = _Patches()
held(lambda: (_PATCHES.lock,))
os.register_at_fork(after_in_child=_PATCHES.forked)


@contextmanager
def standing_in() -> Iterator[None]:
    """Let NumPy's constructors make arrays for the trace that is active in the body."""
    if os.environ.get("WEFT_STANDINS") == "0":
        yield
        return
    _PATCHES.enter()
    try:
        yield
    finally:
        _PATCHES.leave()
