"""Tracing a function, and its rewritten copy where Python asks for the truth of a traced value, or
where loops in loops would be traced round by round."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial, update_wrapper
from typing import Any

from ...ir.diagnose import Error, error
from ...ir.types import Loc
from ..tracing.guards.weakmethod import WeakMethod
from ..tracing.source import definition, is_internal
from ..tracing.trace import Traced, trace_function
from . import operators
from .calls.functions import is_ours
from .patience import LongError, grown
from .regions.counting import counted
from .regions.state import LOST
from .source.identity import asks_identity


def trace_as_written(
    function: Callable[..., Any], *args: Any, flags: Collection[str] = (), **options: Any
) -> Traced:
    """``trace_function``; a function whose ``if``, ``while`` or ``for`` depends on traced values is
    traced again as its rewritten copy; one that asks for the identity of truths and classes, at
    once, and one that stores what is traced into a copy of a plain array. Raises TracerError (W201)
    for what cannot be rewritten, and where a truth is asked for that the arguments ``flags`` alone
    decide."""
    if asks_identity(function) and (copy := as_written(function)) is not function:
        try:
            return _traced(copy, *args, **options)
        except Error as problem:
            if not problem.asked and flags:  # the program may be another one for each of them
                problem.asked, problem.truth = frozenset(flags), True
            raise
    try:
        return _as_it_stands(function, *args, **options)
    except Error as problem:
        if (problem.code != "W201" and not problem.rewrites) or (
                problem.truth and problem.asked and problem.asked.issubset(flags)):
            raise
        first, copy = problem, as_written(function)
        if copy is function and not is_ours(function):
            raise
    except Exception as problem:  # of the user's own, which may tell traced values
        copy = as_written(function)
        if copy is function and not is_ours(function):
            raise
        return _raising(function, copy, problem, *args, **options)
    try:
        return _traced(copy, *args, **options)
    except Error as problem:
        if not problem.asked:
            problem.asked, problem.truth = first.asked, first.truth
        raise


def _raising(
    function: Callable[..., Any], copy: Callable[..., Any], first: Exception, *args: Any,
    **options: Any
) -> Traced:
    """The trace of a rewritten copy of what ends in an exception as it stands. Where neither that
    nor the function itself raises anything again, the exception was not about traced values: it is
    the user's, and not to be lost."""
    try:
        traced = _traced(copy, *args, **options)
    except Exception as again:
        if (type(again), str(again)) == (type(first), str(first)):
            raise first from None  # without the calls of ours on its way
        raise
    if not traced.failures:
        try:
            _as_it_stands(function, *args, **options)
        except Exception:
            return traced
        raise first
    return traced


def _as_it_stands(function: Callable[..., Any], *args: Any, **options: Any) -> Traced:
    try:
        return trace_function(function, *args, grown=grown, **options)
    except LongError:
        return _in_loops(function, *args, **options)
    except RecursionError:
        raise _endless(function) from None


def _endless(function: Callable[..., Any]) -> Error:
    return error("W201", "the function calls itself without an end while it is traced: the number "
                         "that ends it is not known then", locs=definition(function),
                 hint="pass the number as a static argument, or write a loop")


def _in_loops(function: Callable[..., Any], *args: Any, **options: Any) -> Traced:
    """The trace of a function with loops that are the program's; where they cannot be, as it is
    written."""
    copy = as_written(function)
    if copy is not function or is_ours(function):
        with suppress(Exception):  # which the function itself raises again, if it is its own
            return _counted(copy, True, *args, **options)
    return trace_function(function, *args, **options)


def _traced(copy: Callable[..., Any], *args: Any, **options: Any) -> Traced:
    """The trace of a rewritten copy."""
    try:
        try:
            return _counted(copy, False, *args, grown=grown, **options)
        except LongError:
            with suppress(Exception):
                return _counted(copy, True, *args, **options)
        return _counted(copy, False, *args, **options)
    except RecursionError:
        raise _endless(copy) from None


def _counted(
    copy: Callable[..., Any], straight: bool, *args: Any, **options: Any
) -> Traced:
    def trace() -> Traced:
        with lost_names():
            return trace_function(copy, *args, rewritten=as_written, **options)

    return counted(trace, straight)


def as_written(function: Any) -> Any:
    """A function, a method, or an object that can be called, as its rewritten copy, if there is
    one."""
    if not isinstance(function, WeakMethod):
        return operators.called(function)
    copy = operators.called(function.function)
    if copy is function.function:
        return function
    return update_wrapper(partial(copy, function.instance()), function)


@contextmanager
def lost_names() -> Iterator[None]:
    """Around rewritten code: who reads a name that only some ways bind gets an error (W201)."""
    token = LOST.set({})
    try:
        yield
    except NameError as problem:
        unknown = _without_value(problem)
        if unknown is None:
            raise
        raise unknown from None
    finally:
        LOST.reset(token)


def _without_value(problem: NameError) -> Error | None:
    """The error of a name that only some ways bind."""
    named = re.search(r"variable '(\w+)'|name '(\w+)'", str(problem))
    name = next(filter(None, named.groups()), "") if named else ""
    where = (LOST.get() or {}).get(name)
    if where is None or isinstance(where, Error):
        return where
    at = problem.__traceback__
    frame = None
    while at is not None:
        if not is_internal(at.tb_frame):
            frame = at
        at = at.tb_next
    locs = () if frame is None else (Loc(
        frame.tb_frame.f_code.co_filename, frame.tb_lineno, frame.tb_frame.f_code.co_name,
        frame.tb_frame.f_code, frame.tb_lasti),)
    return error("W201", f"{name} has a value {where}", locs=locs,
                 hint=f"give {name} a first value before it")
