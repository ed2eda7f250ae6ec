"""Random numbers that a traced function draws, which are constants of its program.

    h + np.random.normal(size=3)                     drawn once, while tracing             warning
    np.random.default_rng().normal(size=3)           from a generator that has no seed     warning
    np.random.default_rng(0).normal(size=3)          the same at each call in Python, too

A generator that the function can see has moved when the trace ends; one without a seed that it
makes itself shows in its code. A call of a compiled function pays nothing.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import importlib
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.loc import Loc
from ...face.source import definition, is_internal_name
from ...ready.code import codes
from ..values.tracer import Tracer
from .lost import name_of, warn
from .weakmethod import WeakMethod

if TYPE_CHECKING:
    Rng = np.random.Generator | np.random.RandomState | random.Random

_Twister = random.Random.__base__ or random.Random
_MOST_FUNCTIONS = 200  # looked through for generators
_NOTHING = object()
_NUMPYS = "numpy.random"


def _generators() -> tuple[tuple[type, ...], dict[str, Any]]:
    """The classes of generators, and those of the process. NumPy imports its own when they are
    first used, which takes as long as a tenth of ours: before that there are none."""
    return _generators_with(_NUMPYS in sys.modules)


@functools.cache
def _generators_with(numpys: bool) -> tuple[tuple[type, ...], dict[str, Any]]:
    kinds: tuple[type, ...] = (random.Random,)
    functions: dict[str, Any] = {"random": random.random}
    if numpys:
        kinds = np.random.Generator, np.random.RandomState, *kinds
        functions = {"np.random": np.random.random, **functions}
    return kinds, {label: function.__self__ for label, function in functions.items()}


class Draws:
    """The generators that a function may draw from, as they were before it was traced."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.functions, found = _reachable(function)
        if any("random" in code.co_names for each in self.functions
               for code in codes(each.__code__)):
            importlib.import_module(_NUMPYS)  # so that its state is known from the start
        sources = {**_generators()[1], **found}
        self._before = [(label, rng, _state(rng)) for label, rng in sources.items()]
        self._without = _NUMPYS not in sys.modules

    def check(self) -> None:
        """Warn of each that has moved, with the line of the draw if it can be found."""
        moved = [(label, rng) for label, rng, state in self._before if _state(rng) != state]
        if self._without and _NUMPYS in sys.modules and _is_used():
            moved.append(("np.random", _generators()[1]["np.random"]))
        for label, rng in moved:
            warn(f"{label} was drawn from while {name_of(self._function)} was traced: the "
                 "numbers are constants of the program, the same at each call. Draw from "
                 "weft.random.default_rng(seed), or pass the numbers as an argument",
                 _drawn_at(rng, label, self.functions) or definition(self._function))
        for maker, place in _unseeded(self.functions):
            warn(f"{maker} has no seed, so it makes other numbers at each call; while "
                 f"{name_of(self._function)} was traced it made those that are constants of the "
                 "program. Draw from weft.random.default_rng(seed), or pass the numbers as an "
                 "argument", (place,))


def _is_used() -> bool:
    """Whether NumPy's own generator was drawn from since it was imported."""
    held = _generators()[1]["np.random"].get_state(legacy=False)
    fresh = np.random.RandomState().get_state(legacy=False)
    return bool(held["state"]["pos"] != fresh["state"]["pos"] or held["has_gauss"])


def _state(rng: Rng) -> Any:
    """What tells whether numbers were drawn.

    Of a Mersenne twister the bytes in memory: to make Python numbers of its 624 words takes as
    long as tracing a small function.
    """
    if isinstance(rng, random.Random):
        return _memory(rng, _Twister), rng.gauss_next  # type: ignore[attr-defined]
    if isinstance(rng, np.random.RandomState):  # of a process that has imported them
        # Normal numbers are made in pairs, the second of which is kept in the object itself.
        return _memory(rng, np.random.RandomState), _state_of(rng._bit_generator)
    return _state_of(rng.bit_generator)


def _state_of(bits: Any) -> bytes:
    if isinstance(bits, np.random.MT19937):
        return _memory(bits, np.random.MT19937, np.random.BitGenerator)
    return pickle.dumps(bits.state)


def _memory(held: Any, kind: type, base: type = object) -> bytes:
    """The fields that a class written in C adds to those of its base."""
    start = base.__basicsize__
    return ctypes.string_at(id(held) + start, kind.__basicsize__ - start)


def _reachable(function: Any) -> tuple[list[FunctionType], dict[str, Rng]]:
    """The user's functions that a function may call, as far as names tell, and the generators
    that they see: in globals, closures, defaults and attributes of the objects they are of."""
    functions: list[FunctionType] = []
    found: dict[str, Rng] = {}
    kinds, of_process = _generators()
    seen: set[int] = set()
    todo: list[tuple[str, Any]] = [("", function)]
    while todo and len(functions) < _MOST_FUNCTIONS:
        label, item = todo.pop()
        if id(item) in seen or isinstance(item, (type, Tracer)):
            continue
        seen.add(id(item))
        if isinstance(item, kinds):
            if not any(item is each for each in of_process.values()):
                found.setdefault(label, item)  # type: ignore[arg-type]
        elif isinstance(item, FunctionType):
            if not is_internal_name(item.__module__ or ""):
                functions.append(item)
                todo += _seen_by(item)
        else:
            todo += _parts(item)
    return functions, found


def _parts(item: Any) -> Iterable[tuple[str, Any]]:
    """What there is to look at in an object that is called or belongs to a method."""
    if isinstance(item, functools.partial):
        return [("", item.func), *[("", x) for x in item.args], *item.keywords.items()]
    if isinstance(item, MethodType):
        return [("", item.__func__), ("", item.__self__)]
    if isinstance(item, WeakMethod):
        return [("", item.function), ("", item.instance())]
    ours = is_internal_name(type(item).__module__ or "")  # of others this could run code
    inner = getattr(item, "py_func", None) if ours else None
    if inner is not None:
        return [("", inner)]
    call = type(item).__dict__.get("__call__")
    attributes = getattr(item, "__dict__", {}) if not isinstance(item, ModuleType) else {}
    return [("", call), *[(name, value) for name, value in attributes.items()
                          if isinstance(value, _generators()[0])]]


def _seen_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, _content(cell)
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "a default", value
    names = {name for code in codes(function.__code__) for name in code.co_names}
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if not isinstance(value, ModuleType):
            yield name, value
        elif not is_internal_name(value.__name__):
            yield from ((inner, vars(value)[inner]) for inner in names & vars(value).keys())


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _NOTHING


def _drawn_at(rng: Rng, label: str, functions: Sequence[FunctionType]) -> tuple[Loc, ...]:
    """The first line that names a generator, or one of its methods."""
    for function in functions:
        for code, step, value in _named(function, {label: rng}):
            if value is rng or getattr(value, "__self__", None) is rng:
                return (_place(code, step),)
    return ()


def _unseeded(functions: Sequence[FunctionType]) -> Iterator[tuple[str, Loc]]:
    """Where generators are made of the process's entropy, by a call without arguments."""
    makers: dict[str, tuple[Any, str]] = {"Random": (random.Random, "random.Random()")}
    if _NUMPYS in sys.modules:
        makers |= {"default_rng": (np.random.default_rng, "np.random.default_rng()"),
                   "RandomState": (np.random.RandomState, "np.random.RandomState()")}
    for function in functions:
        if not any(makers.keys() & set(code.co_names) for code in codes(function.__code__)):
            continue
        maker = ""
        for code, step, value in _named(function, {}):
            if step.opname in ("PUSH_NULL", "PRECALL"):
                continue
            if maker and step.opname.startswith("CALL") and step.argval == 0:
                yield maker, _place(code, step)
            made, text = makers.get(step.argval, (None, ""))
            maker = text if made is value else ""


def _named(
    function: FunctionType, attributes: dict[str, Any]
) -> Iterator[tuple[CodeType, dis.Instruction, Any]]:
    """The instructions of a function, each with the object that it names if that is known; an
    attribute of an unknown object is what ``attributes`` has for its name."""
    cells = dict(zip(function.__code__.co_freevars,
                     map(_content, function.__closure__ or ()), strict=True))
    for code in codes(function.__code__):
        value: Any = _NOTHING
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                value = function.__globals__.get(step.argval, _NOTHING)
            elif step.opname == "LOAD_DEREF":
                value = cells.get(step.argval, _NOTHING)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                known = vars(value) if isinstance(value, ModuleType) else attributes
                value = known.get(step.argval, _NOTHING)
            else:
                value = _NOTHING
            yield code, step, value


def _place(code: CodeType, step: dis.Instruction) -> Loc:
    line = step.positions.lineno if step.positions is not None else None
    return Loc(code.co_filename, line or code.co_firstlineno, code.co_name, code, step.offset)
