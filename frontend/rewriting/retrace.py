"""Tracing a function as its rewritten copy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, update_wrapper
from types import CodeType
from typing import Any

from ...ir.diagnose import Error, error
from ...ir.loc import Loc
from ...ir.record import replace
from ..face.source import definition, is_internal
from ..tracing.arguments import Call
from ..tracing.context.request import Need, Request
from ..tracing.context.traced import Traced
from ..tracing.guards.weakmethod import WeakMethod
from ..tracing.trace import attempt, done
from . import operators
from .regions.state import LOST, lost_name
from .source.names import changed_within
from .source.parsed import definition_of


def attempt_as_written(
    function: Callable[..., Any], call: Call, request: Request, **options: Any
) -> Traced | Need:
    """``attempt`` of the rewritten copy of a function; of the function itself where its source is
    not at hand."""
    with lost_names():
        found = attempt(function, call, request, rewritten=as_written, changes=_changes,
                        **options)
        if isinstance(found, Traced):
            return found
        problem: Exception | None = None
        unbound = found.unbound
        if isinstance(found.problem, NameError):
            problem = _without_value(found.problem)
            name = lost_name(found.problem)
            if isinstance((LOST.get() or {}).get(name), str):  # and has no value of another type
                unbound = frozenset((name,))
        elif isinstance(found.problem, RecursionError):
            problem = error(
                "W201", "the function calls itself without an end while it is traced: the number "
                        "that ends it is not known then", locs=definition(function),
                hint="pass the number as a static argument, or write a loop")
        return found if problem is None else replace(found, problem=problem, unbound=unbound)


def trace_as_written(function: Callable[..., Any], call: Call, **options: Any) -> Traced:
    """The rewritten copy of a function, traced with those loops that work. Raises TracerError
    (W201) for what needs more than that."""
    request = Request()
    while True:
        found = attempt_as_written(function, call, request, **options)
        given_up = isinstance(found, Need) and found.measured and found.problem is None
        loops = None if given_up or isinstance(found, Traced) else request.loops.after(found)
        if loops is not None:
            request = replace(request, loops=loops)
        elif isinstance(found, Need) and found.measured and request.rounds:
            request = Request(measures=False, rounds=False)
        else:
            return done(found)


@functools.lru_cache(1024)
def _changes(code: CodeType) -> frozenset[str]:
    """What code changes by names and attributes; nothing where its source is not at hand."""
    node = definition_of(code)
    return frozenset() if node is None else changed_within(node)


def as_written(function: Any) -> Any:
    """A function, a method, or an object that can be called, as its rewritten copy, if there is
    one."""
    if not isinstance(function, WeakMethod):
        return operators.entered(function)
    copy = operators.entered(function.function)
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
    name = lost_name(problem)
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
