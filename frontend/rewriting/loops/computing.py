"""What does nothing but compute when it is called: functions of NumPy's, some of Python's, and
those of the user's that call nothing else, methods of objects among them.

    s.step(y)      the method that ``s`` has while tracing; what it calls of ``self``, in its turn
    self.n += 1    not this: who else has the object sees it round by round
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from ....ir.record import record
from ...tracing.values.tracer import Tracer
from ..source.effects import of_function

_MISSING = object()
_MEMBERS = (staticmethod, classmethod, MemberDescriptorType)  # what runs nothing to be read
# Whose functions compute; the second is ``weft.numpy``.
_MODULES = ("numpy", "weft.frontend.numpy_api", "math", "cmath", "scipy")
_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "complex", "divmod", "enumerate", "float", "int", "isinstance",
    "len", "max", "min", "range", "reversed", "round", "sorted", "sum", "tuple", "zip"})


@record(frozen=True)
class Method:
    """What a loop calls of something that it does not bind: ``model.step``, by its ``path`` from
    that on."""

    value: Any
    path: str

    @property
    def function(self) -> Any:
        """What the path leads to, if nothing runs on the way there; None if something would."""
        value = self.value
        for name in self.path.split("."):
            found = inspect.getattr_static(value, name, _MISSING)
            if found is _MISSING or (hasattr(type(found), "__get__") and not isinstance(
                    found, (FunctionType, *_MEMBERS))):
                return None
            value = getattr(value, name, None)
        return value


def all_compute(roots: Callable[[], Any]) -> bool:
    """Whether all of what a loop calls only computes."""
    try:
        return all(map(_computes, roots()))
    except NameError:
        return False


def _computes(value: Any, asked: tuple[FunctionType, ...] = ()) -> bool:
    """Whether calls of something, or of its attributes, do nothing but compute. A function of the
    user's that is being looked at is among ``asked``."""
    if isinstance(value, Method):
        return _computes(value.function, asked)
    if isinstance(value, MethodType) and isinstance(value.__func__, FunctionType):
        if value.__func__.__module__.partition(".")[0] == __name__.partition(".")[0]:
            return False  # of an array: what is not known to compute
        return value.__func__ in asked or _function_computes(
            value.__func__, (*asked, value.__func__), (value.__self__,))
    if isinstance(value, FunctionType) and not _is_at_home(value.__module__):
        return value in asked or _function_computes(value, (*asked, value))
    if isinstance(value, (np.ndarray, np.generic, np.ufunc, Tracer)):
        return True
    if any(value is getattr(builtins, name) for name in _BUILTINS):
        return True
    if isinstance(value, ModuleType):
        return _is_at_home(value.__name__)
    called = inspect.getattr_static(type(value), "__call__", None)
    if isinstance(called, FunctionType) and not _is_at_home(type(value).__module__):
        return _computes(MethodType(called, value), asked)
    return callable(value) and not isinstance(value, np.vectorize) and _is_at_home(
        getattr(value, "__module__", None))


def _is_at_home(module: str | None) -> bool:
    """Whether a module is one whose functions compute."""
    return isinstance(module, str) and "random" not in module and any(
        module == name or module.startswith(f"{name}.") for name in _MODULES)


def _function_computes(
    function: FunctionType, asked: tuple[FunctionType, ...], given: tuple[Any, ...] = ()
) -> bool:
    """Whether a function of the user's does, of which the first arguments are known."""
    code = function.__code__
    roots = of_function(code)
    if roots is None:
        return False
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    known = dict(zip(code.co_varnames, given, strict=False))
    for root in roots:
        name, _, path = root.partition(".")
        if name in code.co_varnames and name not in known:
            return False  # whatever that will be
        try:
            value = known[name] if name in known else (
                cells[name].cell_contents if name in cells else function.__globals__[name]
                if name in function.__globals__ else getattr(builtins, name))
        except (ValueError, AttributeError):  # of no value yet
            return False
        if not _computes(Method(value, path) if path else value, asked):
            return False
    return True
