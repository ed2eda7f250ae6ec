"""What tracing would lose or freeze without a word, noticed when a trace ends.

    self.w = self.w - g          a traced value on an object, where no number will ever be   warning
    params["w"] = w - g          a dict of the trace changes, the caller's does not          W203
    h + np.random.normal(...)    drawn once, while tracing; a constant from then on          warning

All of it is looked at while tracing only: a call of a compiled function pays nothing.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import gc
import pickle
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from ..ir.diagnose import error
from ..ir.types import Loc
from . import tree
from .bound import WeakMethod
from .source import definition, is_internal_name
from .tracer import Tracer

if TYPE_CHECKING:
    Rng = np.random.Generator | np.random.RandomState | random.Random

_Twister = random.Random.__base__ or random.Random
_MOST_FUNCTIONS = 200  # looked through for generators
_MOST_WARNINGS = 3
_NOTHING = object()


class TracingWarning(UserWarning):
    """Something in a traced function does not do what it would do in Python."""


def _warn(message: str, locs: Sequence[Loc]) -> None:
    place = locs[0] if locs else Loc("<unknown>", 0, "")
    warnings.warn_explicit(message, TracingWarning, place.file, place.line)


# -- arguments ----------------------------------------------------------------------------------


def check_unchanged(
    nest: Any, structure: tree.TreeDef, inputs: Sequence[Any],
    names: Callable[[tree.TreeDef], Sequence[str]], function: Callable[..., Any],
) -> None:
    """Raises TracerError (W203) if a nest of arguments is not what the function was given."""
    leaves, found = tree.flatten_again(nest, structure)
    if found == structure and all(x is y for x, y in zip(leaves, inputs, strict=True)):
        return
    before, after = names(structure), names(found)
    known = dict(zip(before, inputs, strict=True))
    culprit, what = None, "an argument was changed"
    for name, leaf in zip(after, leaves, strict=True):
        if name not in known or known[name] is not leaf:
            culprit, what = leaf, f"{name} was {'set' if name in known else 'added'}"
            break
    else:
        gone = [name for name in before if name not in after]
        what = f"{gone[0]} was removed" if gone else what
    raise error("W203", f"{what} in the traced function, but not in what the caller holds",
                locs=_made_at(culprit) or definition(function),
                hint="leave arguments as they are: change a copy and return it "
                     "(params = {**params, 'w': w})")


def _made_at(x: Any) -> tuple[Loc, ...]:
    node = x._value.node if isinstance(x, Tracer) and x._value is not None else None
    return node.locs[:1] if node is not None else ()


# -- values that outlive their trace ------------------------------------------------------------


def check_leaks(made: Sequence[ref[Tracer]], function: Callable[..., Any]) -> None:
    """Warn of tracers that are still held somewhere; their trace has let go of all of them."""
    # What is part of a cycle only is not held by anybody. Nearly always all of it is young, if
    # the collector was paused; a full collection takes as long as all objects of the process do.
    for generation in (None, 0, 2):
        if generation is not None:
            gc.collect(generation)
        if not _alive(made):
            return
    alive = _alive(made)
    ours = {id(alive), *(id(part) for tracer in alive for part in _views(tracer))}
    shown = 0
    for tracer in alive:
        where = _holder(tracer, ours)
        if where and shown < _MOST_WARNINGS:
            shown += 1
            value = tracer._value
            what = f"{value.name} ({value.type})" if value is not None else "a size"
            _warn(f"{what} is a traced value, which {where} still holds after the trace of "
                  f"{_name(function)}: there will never be a number in it. Return it from the "
                  "function and store the result, or keep state in a weft.Variable",
                  _made_at(tracer) or definition(function))


def _alive(made: Sequence[ref[Tracer]]) -> list[Tracer]:
    return [tracer for each in made if (tracer := each()) is not None]


def _views(tracer: Tracer) -> Iterator[Any]:
    """What a view holds the array by that it is of."""
    if tracer.taken is not None:
        yield from (tracer.taken, tracer.taken[1])
    if tracer.link is not None:
        yield tracer.link
        for way in (tracer.link.follow, tracer.link.undo):
            yield from way.__closure__ or ()


def _holder(tracer: Tracer, ours: set[int]) -> str:
    """Who holds a tracer, in words; '' if it is another tracer, or a part of one."""
    owners = [owner for owner in gc.get_referrers(tracer)
              if id(owner) not in ours and not isinstance(owner, (FrameType, Tracer))]
    for owner in owners:
        key = _key_of(tracer, owner)
        if isinstance(owner, dict):
            if owner.get("__name__") is not None and "__builtins__" in owner:
                return f"the global variable '{key}' of {owner['__name__']}"
            objects = [x for x in gc.get_referrers(owner) if getattr(x, "__dict__", None) is owner]
            return (f"the attribute '{key}' of {type(objects[0]).__name__}" if objects
                    else f"a dict, as {key!r},")
        if isinstance(owner, CellType):
            return "a variable of an enclosing function"
        if key is not None:
            return f"the attribute '{key}' of {type(owner).__name__}"
    return f"a {type(owners[0]).__name__}" if owners else ""


def _key_of(wanted: Any, owner: Any) -> Any:
    items = owner if isinstance(owner, dict) else getattr(owner, "__dict__", {})
    return next((key for key, value in items.items() if value is wanted), None)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


# -- random numbers -----------------------------------------------------------------------------


@functools.cache
def _generators() -> tuple[tuple[type, ...], dict[str, Any]]:
    """The classes of generators, and the two of the process. Not asked for before the first trace:
    NumPy imports its own when they are first used, which takes as long as a tenth of ours."""
    kinds = np.random.Generator, np.random.RandomState, random.Random
    functions: dict[str, Any] = {"np.random": np.random.random, "random": random.random}
    return kinds, {label: function.__self__ for label, function in functions.items()}


class Draws:
    """The generators that a function may draw from, as they were before it was traced."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.functions, found = _reachable(function)
        sources = {**_generators()[1], **found}
        self._before = [(label, rng, _state(rng)) for label, rng in sources.items()]

    def check(self) -> None:
        """Warn of each that has moved, with the line of the draw if it can be found."""
        for label, rng, state in self._before:
            if _state(rng) != state:
                _warn(f"{label} was drawn from while {_name(self._function)} was traced: the "
                      "numbers are constants of the program, the same at each call. Draw from "
                      "weft.random.default_rng(seed), or pass the numbers as an argument",
                      _drawn_at(rng, label, self.functions) or definition(self._function))


def _state(rng: Rng) -> Any:
    """What tells whether numbers were drawn.

    Of a Mersenne twister the bytes in memory: to make Python numbers of its 624 words takes as
    long as tracing a small function.
    """
    if isinstance(rng, random.Random):
        return _memory(rng, _Twister), rng.gauss_next  # type: ignore[attr-defined]
    if isinstance(rng, np.random.RandomState):
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
    inner = getattr(item, "py_func", None)
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


def codes(code: CodeType) -> Iterator[CodeType]:
    """A piece of code, and those of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _drawn_at(rng: Rng, label: str, functions: Sequence[FunctionType]) -> tuple[Loc, ...]:
    """The first line that names a generator, or one of its methods."""
    for function in functions:
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
                    value = _attribute(value, step.argval, rng, label)
                else:
                    value = _NOTHING
                if value is rng or getattr(value, "__self__", None) is rng:
                    line = step.positions.lineno if step.positions is not None else None
                    return (Loc(code.co_filename, line or code.co_firstlineno, code.co_name, code,
                                step.offset),)
    return ()


def _attribute(value: Any, name: str, rng: Rng, label: str) -> Any:
    if isinstance(value, ModuleType):
        return vars(value).get(name, _NOTHING)
    return rng if name == label else _NOTHING  # self.rng, whoever self is
