"""Functions that cannot be traced, run by the host: ``weft.compile(on_unsupported="host")``.

What such a function returns is learnt by calling it, while tracing, on arrays of the traced types:
of ones, of zeros and of random numbers. Types that differ from trial to trial depend on values, as
those of ``np.unique``, and the function stays refused; so it does where it changes its arguments,
or returns a view of one. Each use is a warning, at its line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.host import HostFunction
from ...ir.indices.index import Dim
from ...ir.loc import Loc
from ...ir.types import TensorType, dtype_of
from ..face import tree
from ..face.source import user_loc
from ..tracing import host
from ..tracing.arrays.variable import Variable
from ..tracing.operand import to_tracer
from ..tracing.values.tracer import SymbolicDim, Tracer

Warned = set[tuple[str, str, int]]  # functions, with file and line


class HostWarning(UserWarning):
    """A function that Weft does not compile is run by NumPy, between native parts of a program."""


def on_host(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any],
    problem: Error, warned: Warned,
) -> Any:
    """``function(*args, **options)`` as a call of the host. Raises UnsupportedError (W113) where
    the type of its result cannot be learnt."""
    leaves, structure = tree.flatten((args, options))
    places = [at for at, leaf in enumerate(leaves)
              if isinstance(leaf, (Tracer, Variable, np.ndarray))]
    if any(isinstance(leaf, SymbolicDim) for leaf in leaves):
        raise _refused(problem, "an argument is a size that is known at run time")
    operands = [to_tracer(leaves[at]) for at in places]
    fixed = [None if at in places else leaf for at, leaf in enumerate(leaves)]
    types = [x.type for x in operands]
    if any(not isinstance(dim, int) for type_ in types for dim in type_.shape):
        raise _refused(problem, "the host can only try it on arrays of known sizes")

    def call(*arrays: Any) -> Any:
        given = list(fixed)
        for at, array in zip(places, arrays, strict=True):
            given[at] = array
        positional, named = tree.unflatten(structure, given)
        return function(*positional, **named)

    results, out = _learnt(call, types, problem)
    _warn(name, types, results, warned)
    inputs = tree.structure(tuple(range(len(places))))
    found = HostFunction(name, host.Adapter(call, inputs, out))
    return host.recorded(found, operands, results, out)


def _learnt(
    call: Callable[..., Any], types: list[TensorType], problem: Error
) -> tuple[list[TensorType], tree.TreeDef]:
    """The types of what the function returns, and their nest."""
    known: tuple[list[TensorType], tree.TreeDef] | None = None
    for arrays in _trials(types):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                leaves, out = tree.flatten(call(*arrays))
        except Exception as failed:  # any: it is not known what the function does
            reason = f"{type(failed).__name__}: {failed}"
            continue
        try:
            found = [TensorType(dtype_of(np.asarray(leaf)), np.shape(leaf))
                     for leaf in leaves]
        except (TypeError, ValueError):
            raise _refused(problem, "it returns no arrays of numbers") from None
        if not found:
            raise _refused(problem, "it returns nothing")
        if any(isinstance(leaf, np.ndarray) and np.may_share_memory(leaf, array)
               for leaf in leaves for array in arrays):
            raise _refused(problem, "it returns a view of an argument")
        if known is not None and known != (found, out):
            raise _refused(problem, "the type of its result depends on values")
        known = found, out
    if known is None:
        raise _refused(problem, f"a trial on the host failed ({reason})")
    return known


def _trials(types: list[TensorType]) -> Iterator[list[Any]]:
    """Arrays to try a function on, which it cannot change."""
    rng = np.random.default_rng(0)
    draws: tuple[Callable[[tuple[Any, ...]], Any], ...] = (np.ones, np.zeros, rng.random)
    for draw in draws:
        arrays = [np.asarray(draw(type_.shape) * 7).astype(type_.dtype.numpy) for type_ in types]
        for array in arrays:
            array.flags.writeable = False
        yield arrays


def _refused(problem: Error, reason: str) -> Error:
    return error("W113", f"{problem.message}, nor can the host run it: {reason}",
                 locs=problem.locs, types=problem.types, hint=problem.hint)


def _warn(
    name: str, types: list[TensorType], results: list[TensorType], warned: Warned
) -> None:
    """One warning for each function and line."""
    moved: Dim = sum((type_.nbytes for type_ in (*types, *results)), 0)
    message = (f"{name} is not compiled: the host runs it at each call, which stops the native "
               f"program, takes the GIL and copies {moved} bytes; it has no gradient")
    loc = next(iter(user_loc()), Loc("<unknown>", 0))
    if (name, loc.file, loc.line) not in warned:
        warned.add((name, loc.file, loc.line))
        warnings.warn_explicit(message, HostWarning, loc.file, loc.line)
