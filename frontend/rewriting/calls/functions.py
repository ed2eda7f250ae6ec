"""Functions of the user's that rewritten code calls, as their own rewritten copies."""

from __future__ import annotations

import functools
import sys
from inspect import getattr_static
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...face.source import is_internal_name
from ...tracing.arrays.recorded import Vectorized
from ...tracing.classes import class_of
from ...tracing.context.active import active
from ..regions.unseen import is_set
from ..source.definition import rewrite
from .builtins import BUILTINS

_OURS = __name__.partition(".")[0]
_LIBRARIES = {*sys.stdlib_module_names, "scipy"} - {"__main__"}


def converted(function: Any, runtime: ModuleType) -> Any:
    """A function, method or partial of the user's as its rewritten copy; anything else as it is."""
    if isinstance(function, FunctionType):
        module = str(function.__globals__.get("__name__") or "")
        if is_ours(function):
            return _holding(function, runtime)
        own = not is_internal_name(module) or module.startswith("numpy.polynomial.")
        if not own or module.partition(".")[0] in _LIBRARIES:
            return _holding(function, runtime)  # @contextmanager
        if "_weft" in function.__code__.co_freevars:
            return function
        made = rewrite(function, runtime)
        if (ctx := active()) is not None:
            ctx.enter(function)
        return function if made is None else made
    if isinstance(function, MethodType):
        inner = called_as(function.__func__, runtime)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if isinstance(function, np.vectorize):
        plain: Any = function.pyfunc
        inner = BUILTINS.get(plain) or converted(plain, runtime)
        return function if type(function) is Vectorized else Vectorized(
            inner, function.otypes, excluded=function.excluded, signature=function.signature)
    if type(function) is functools.partial:
        inner = runtime.called(function.func)
        return function if inner is function.func else functools.partial(
            inner, *function.args, **function.keywords)
    if _is_made_of_functions(function):
        return function.converted(lambda part: converted(part, runtime))
    return function


def called_as(function: Any, runtime: ModuleType) -> Any:
    """``converted`` of what is to be called, which may be an object of a user's class."""
    if isinstance(function, FunctionType) and hasattr(function, "registry") and (
            dispatch := getattr(function, "dispatch", None)) is not None:  # @singledispatch
        return lambda *args, **options: called_as(dispatch(class_of(args[0])), runtime)(
            *args, **options)
    if is_function(function):
        return converted(function, runtime)
    if isinstance(function, type):
        return _class(function, runtime)
    if isinstance(origin := getattr(function, "__origin__", None), type):  # Vector[int]
        return called_as(origin, runtime)
    method = getattr_static(type(function), "__call__", None)
    if not isinstance(method, FunctionType):
        return function
    bound = MethodType(method, function)
    copy = converted(bound, runtime)
    return function if copy is bound else copy


def _class(kind: type, runtime: ModuleType) -> Any:
    """A class of the user's, whose ``__new__`` and ``__init__`` are entered as its other methods
    are, and so is the ``__post_init__`` of a dataclass."""
    if type(kind).__call__ is not type.__call__:
        return kind
    first, *others = (getattr_static(kind, name, None)
                      for name in ("__new__", "__init__", "__post_init__"))
    if isinstance(first, staticmethod):
        first = first.__func__
    copies = [converted(each, runtime) if isinstance(each, FunctionType) else each
              for each in (first, *others)]
    if all(copy is each for copy, each in zip(copies, (first, *others), strict=True)):
        return kind
    new, init, later = copies

    def make(*args: Any, **options: Any) -> Any:
        made: Any = (new if isinstance(new, FunctionType) else kind.__new__)(kind, *args, **options)
        if not isinstance(made, kind):
            return made
        own: dict[str, Any] = getattr(made, "__dict__", {})  # of none, without
        called = later is not others[1]  # by an __init__ without source
        if called:
            own["__post_init__"] = MethodType(later, made)
        try:
            result = init(made, *args, **options)
        finally:
            if called:
                own.pop("__post_init__", None)
        if result is not None:
            raise TypeError(f"__init__() should return None, not '{type(result).__name__}'")
        return made

    return make


def is_ours(function: Any) -> bool:
    """Whether a function is one of Weft's own, such as ``weft.grad(f)``."""
    names = getattr(function, "__globals__", {})  # wraps() copies __module__
    return str(names.get("__name__") or "").partition(".")[0] == _OURS


def is_function(x: Any) -> bool:
    """Whether a value may be a function of the user's."""
    return isinstance(x, (FunctionType, MethodType, functools.partial, np.vectorize)) or (
        _is_compiled(x) or _is_made_of_functions(x))


def _is_compiled(x: Any) -> bool:
    """Whether a value is a compiled function, which becomes a part of the trace."""
    return (type(x).__module__ or "").partition(".")[0] == _OURS and hasattr(x, "py_func")


def _is_made_of_functions(x: Any) -> bool:
    """Whether a value is ours and has parts that are functions of the user's: ``custom_vjp``."""
    return (type(x).__module__ or "").partition(".")[0] == _OURS and hasattr(x, "converted")


def _holding(function: FunctionType, runtime: ModuleType) -> FunctionType:
    """A function of ours around functions of the user's (``weft.grad(f)``) with their copies."""
    cells = function.__closure__ or ()
    held = [each.cell_contents if is_set(each) else None for each in cells]
    made = [converted(each, runtime) if is_function(each) and each is not function else each
            for each in held]  # which may have itself among them
    if all(new is old for new, old in zip(made, held, strict=True)):
        return function
    closure = tuple(old if new is item else CellType(new) for old, item, new in zip(
        cells, held, made, strict=True))
    copy = FunctionType(function.__code__, function.__globals__, function.__name__,
                        function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    return copy
