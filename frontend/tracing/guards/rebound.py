"""Names of closed-over arrays: a program for one array is not for another that the name got since.

    w = np.ones(3)
    f = weft.compile(lambda x: x * w)
    f(x); w[0] = 2; f(x)              the array is read at each call
    w = np.zeros(3); f(x)             another array: the function is traced again

What is computed from plain arrays alone, as ``w.sum()``, is computed while tracing. Names are those
that the code of the traced functions spells: ``w``, ``self.w``, ``params["w"]``, ``module.w``. One
that is found in vain costs a trace at most, never a result.
"""

from __future__ import annotations

import dis
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from .draws import codes
from .weakmethod import WeakMethod

Array = np.ndarray[Any, Any]
Get = Callable[[], Any]
Step = tuple[bool, Any]  # an attribute or an item, and which
Binding = tuple[Get, str, Array]
"""How to look a name up, the name, and the very array that a program needs it to be of."""

_NOTHING = object()
_GONE = (LookupError, AttributeError, TypeError, ValueError)  # ValueError: of an empty cell


def bindings(
    function: Callable[..., Any], functions: Sequence[FunctionType]
) -> tuple[Binding, ...]:
    """The names of arrays in ``functions``, those that ``function`` may call."""
    found: dict[Any, Binding] = {}
    for each in functions:
        for code in codes(each.__code__):
            reader = _Reader(each, code, _receiver(function, each))
            for name, root, steps, array in reader.read():
                key = name, id(each.__globals__ if root.func is _item else each), steps
                found[key] = _getter(root, steps), str(steps[-1][1] if steps else name), array
    return tuple(found.values())


def rebound(names: Sequence[Binding]) -> str | None:
    """The first name that is not of its array now."""
    name = None
    try:
        for get, name, array in names:
            if get() is not array:
                return name
    except _GONE:
        return name
    return None


_item: Callable[..., Any] = operator.getitem


def _getter(root: Get, steps: Sequence[Step]) -> Get:
    """Looks a name up without holding any of the objects on the way."""
    if not steps:
        return root
    if all(attribute for attribute, _ in steps):
        read = operator.attrgetter(".".join(name for _, name in steps))
        return lambda: read(root())

    def get() -> Any:
        value = root()
        for attribute, key in steps:
            value = getattr(value, key) if attribute else value[key]
        return value

    return get


def _receiver(function: Any, method: FunctionType) -> Get | None:
    """Gives the object whose method is traced, if ``method`` is its function."""
    if isinstance(function, WeakMethod):
        return function.instance if function.function is method else None
    if isinstance(function, MethodType):
        return (lambda: function.__self__) if function.__func__ is method else None
    return (lambda: function) if type(function).__dict__.get("__call__") is method else None


@functools.lru_cache(1024)
def _instructions(code: CodeType) -> tuple[tuple[str, Any, str], ...]:
    """Names, arguments and shown arguments: to take code apart is what takes the time."""
    return tuple([(step.opname, step.argval, step.argrepr) for step in dis.get_instructions(code)])


def _holder(value: Any, name: str) -> Any:
    """The dict that an attribute is in: that of the object or module, or of a class. No code of
    the user's runs, as it would for a property."""
    own = getattr(value, "__dict__", {})
    if name in own:
        return own
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    return next((vars(kind) for kind in kinds if name in vars(kind)), {})


class _Reader:
    """Follows the names in one piece of code from globals, cells and ``self`` to objects."""

    def __init__(self, function: FunctionType, code: CodeType, receiver: Get | None) -> None:
        self.code, self.globals = code, function.__globals__
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (),
                              strict=True))
        self.receiver, self.first = receiver, ""
        if receiver is not None and code is function.__code__ and code.co_argcount:
            self.first = code.co_varnames[0]
        self.name, self.root = "", partial(getattr, self, "name")
        self.steps: tuple[Step, ...] = ()
        self.value: Any = _NOTHING

    def read(self) -> Iterator[tuple[str, partial[Any], tuple[Step, ...], Array]]:
        """First part, its look-up, further parts and array of each name of one."""
        key: Any = _NOTHING
        for name, argument, shown in _instructions(self.code):
            if name == "LOAD_CONST":
                key = argument
                continue
            self._follow(name, argument, shown, key)
            key = _NOTHING
            if isinstance(self.value, np.ndarray):
                yield self.name, self.root, self.steps, self.value

    def _follow(self, op: str, name: Any, shown: str, key: Any) -> None:
        if op in ("LOAD_GLOBAL", "LOAD_NAME"):
            self._start(name, partial(_item, self.globals, name))
        elif op == "LOAD_DEREF" and name in self.cells:
            self._start(name, partial(getattr, self.cells[name], "cell_contents"))
        elif op.startswith("LOAD_FAST") and name == self.first and self.receiver is not None:
            self._start(name, partial(self.receiver))
        elif op in ("LOAD_ATTR", "LOAD_METHOD"):
            self._step(True, name)
        elif (op == "BINARY_SUBSCR" or shown == "[]") and type(self.value) in (dict, list, tuple):
            self._step(False, key)
        else:
            self.value = _NOTHING

    def _start(self, name: str, root: partial[Any]) -> None:
        self.name, self.root, self.steps = name, root, ()
        try:
            self.value = root()
        except _GONE:
            self.value = _NOTHING

    def _step(self, attribute: bool, key: Any) -> None:
        try:
            self.value = (_holder(self.value, key) if attribute else self.value)[key]
            self.steps = (*self.steps, (attribute, key))
        except _GONE:
            self.value = _NOTHING
