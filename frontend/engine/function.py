"""``@weft.compile``: a Python function becomes one native program for each kind of arguments.

A call with arguments of known kinds goes straight to native code: the last few specialisations are
tried in turn, as each refuses what is not for it. Any other call flattens its nests, looks up (or
makes) the specialisation for their types, runs it and rebuilds the results. Called while another
function is traced, it becomes a part of that trace.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Generic, Literal, NamedTuple, ParamSpec, TypeVar

import numpy as np

from ...ir.diagnose import FailedAssertionError, OutOfRangeError, ShapeError, error
from ...ir.forks import freed
from ..face import tree
from ..face.boundary import boundary, leave
from ..face.signature import Signature
from ..face.source import user_loc
from ..numpy_api.host import Warned
from ..rewriting.lists.room import is_full
from ..rewriting.retrace import attempt_as_written
from ..tracing.arguments import Call, described
from ..tracing.arrays.variable import Variable
from ..tracing.context.active import context_for
from ..tracing.context.collector import paused_collector
from ..tracing.context.dependencies import checked
from ..tracing.context.recorder import ACTIVE, TraceContext
from ..tracing.context.request import Need, Request
from ..tracing.failing import exception
from ..tracing.guards.rebound import rebound
from ..tracing.operand import fits_int64
from ..tracing.spec import Spec
from ..tracing.trace import Traced
from .attempts import Attempts
from .flow import make_step
from .methods import Methods
from .pipeline import BUILDING, STEPS, Options
from .progress import Hook, compiling, taken
from .recent import recent
from .specialisation import (
    ANOTHER_STATIC,
    Change,
    Specialisation,
    difference,
    stages_of,
    verified,
    with_arrays,
    without_arrays,
)
from .stages import Lowered
from .ways import miss

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
OnRecompile = Literal["warn", "silent", "error"]

_trace = ACTIVE.get  # the trace that records the running code, looked up at each call
_ALIASES = 4096  # raw argument kinds remembered for one function
_WAYS = 8  # specialisations of one function that a call tries before it looks for its own


class RecompileWarning(UserWarning):
    """A function was compiled again, because arguments came with another type."""


class CacheInfo(NamedTuple):
    """Specialisations of one function, and the milliseconds spent on making them."""

    specialisations: int
    milliseconds: float


class Function(Generic[P, R]):
    """A compiled function; see ``weft.compile``."""

    __name__: str
    __qualname__: str

    def __init__(
        self, function: Callable[P, R], options: Options, signature: Signature,
        on_recompile: OnRecompile, disable: bool, binds: type | None = None,
        progress: Hook | None = None,
    ) -> None:
        self.__name__ = self.__qualname__ = type(function).__name__  # for what has no name: partial
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self._on_recompile, self._disable, self._progress = on_recompile, disable, progress
        self.shares = False  # programs with others of the same code, see ``recent``
        self._warned: Warned | None = set() if options.on_unsupported == "host" else None
        self._made: dict[Any, Specialisation] = {}
        self._aliases: dict[Any, Specialisation] = {}
        self._direct: Callable[..., Any] = miss
        self._ways: tuple[Callable[..., Any], ...] = ()  # this one, then older ones
        self._lock = freed(threading.RLock())
        self._attempts = Attempts(signature, self._lock)
        self._methods: Methods[Function[..., Any]] = Methods(binds if binds is not None else (
            object if hasattr(type(function), "__get__") else staticmethod), self._lock)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if not kwargs and _trace() is None:
                result = self._direct(*args)
                if result is not NotImplemented:
                    return result  # type: ignore[no-any-return]
            return self._call(args, kwargs)  # type: ignore[no-any-return]
        except FailedAssertionError as problem:
            own = exception(problem, [made.traced.failures for made in self._specialisations()])
            leave(problem)
            if own is problem:
                raise
            raise own from problem
        except OutOfRangeError as problem:
            leave(problem)
            if not (is_full(problem) and self._more_capacity()):
                raise
        except BaseException as problem:
            leave(problem)
            raise
        return self(*args, **kwargs)

    @property
    def fixed(self) -> Mapping[str, str]:
        """The arguments that have become static by themselves, and why."""
        return self._attempts.fixed

    @property
    def _signature(self) -> Signature:
        return self._attempts.signature

    def _more_capacity(self) -> bool:
        """Have programs made anew whose lists are too short; False if they may not be longer."""
        with self._lock:
            capacity = self._attempts.capacity
            if all(made.traced.capacity != capacity for made in self._made.values()):
                return True  # another thread was first
            if not self._attempts.more_capacity():
                return False
            for made in self._made.values():
                if self._outdated(made):
                    self._forget(made)
            return True

    def _outdated(self, made: Specialisation) -> str | None:
        """Why a specialisation is to be made again, if it is."""
        if 0 < made.traced.capacity < self._attempts.capacity:
            return f"a list has become longer than {made.traced.capacity} items"
        other = rebound(made.traced.names)
        return None if other is None else f"the array '{other}' is another"

    def __set_name__(self, owner: type, name: str) -> None:
        self._methods.belongs_to(owner)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Methods can be compiled: the instance becomes the first argument."""
        return self._methods.bound(self, self._signature, instance, owner)

    def __repr__(self) -> str:
        return f"<weft.compile of {self.__qualname__}>"

    def __reduce__(self) -> str:
        """Pickled by name and never copied, as Python's functions are."""
        return self.__qualname__

    def for_object(
        self, function: Callable[..., Any], signature: Signature
    ) -> Function[..., Any]:
        """The function of one object whose method this is."""
        return Function(function, self.options, signature, self._on_recompile, self._disable,
                        staticmethod, self._progress)

    def _unbound(self, args: tuple[Any, ...]) -> Function[..., Any]:
        """This function, or that of the object which a call by way of its class begins with."""
        return self._methods.called(self, self._signature, args)

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if self._disable:
            return self.py_func(*args, **kwargs)
        if (ctx := _trace()) is not None:
            return self._recorded(ctx, args, kwargs)
        signature = self._signature
        short = not kwargs and len(args) <= signature.required
        given = args if short else signature.by_position(args, kwargs)
        if given is not None:
            for way in self._ways[1:] if short else self._ways:
                result = way(*given)
                if result is not NotImplemented:
                    return result
            args, kwargs = given, {}
        method = self._unbound(args)
        if method is not self:
            return method(*args[1:], **kwargs)
        return self._look_up(args, kwargs)

    def traced_by(self) -> tuple[Any, ...]:
        """What decides how a call is recorded in a trace, arguments apart."""
        return self.py_func, self._signature.static, self._disable

    def _recorded(
        self, ctx: TraceContext, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A call as a part of the function that is being traced. Plain arrays among the arguments
        are read when that function runs, as they would be by native code."""
        arguments = self._signature.arguments(args, kwargs)
        leaves, structure = tree.flatten(arguments)
        inputs = [ctx.captured(leaf) for leaf in leaves]
        function = ctx.as_written(self.py_func)
        if any(x is not leaf for x, leaf in zip(inputs, leaves, strict=True)):
            args, kwargs = tree.unflatten(structure, inputs)
        first = len(ctx.graph.nodes)
        result = function(*args, **kwargs)
        return checked(ctx, result, first) if ctx.endless else result

    def _look_up(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        call = Call.of(self._signature, args, kwargs)
        found = self._aliases.get((call.structure, tuple(map(_kind_of, call.leaves))))
        if found is None or self._outdated(found):
            graph = context_for(call.leaves)
            if graph is not None:  # arguments of a graph that is not being built just now
                with graph.activate():
                    return self._recorded(graph, args, kwargs)
            found, call = self._made_for(call)
        given = found.traced.given(call.leaves)
        if self.options.verify:
            return verified(found, given)
        raw = found.program.run(given)
        way = found.direct
        if way is not None and way not in self._ways:
            with self._lock:
                # Else another thread was first, the cache was cleared meanwhile, or another
                # specialisation has taken its place.
                if way not in self._ways and any(found is made for made in self._made.values()):
                    self._ways = (way, *self._ways[:_WAYS - 1])
                    self._direct = way
        return found.traced.results(raw)

    def _made_for(self, call: Call) -> tuple[Specialisation, Call]:
        """The program for a call, and the call that it is for: some numbers may be static now."""
        start = time.perf_counter()
        made, call = self._attempts.until_made(
            lambda call, request: self._specialised(call, request, start), call)
        aliases = self._aliases
        if len(aliases) >= _ALIASES:
            aliases.clear()
        aliases[call.structure, tuple(map(_kind_of, call.leaves))] = made
        return made, call

    def _specialised(self, call: Call, request: Request, start: float) -> Specialisation | Need:
        """The program for a call, which has waited for it since ``start``."""
        key = call.structure, call.types, tuple(
            id(leaf) for leaf in call.leaves if isinstance(leaf, Variable))
        found = self._made.get(key)
        if found is not None and not self._outdated(found):
            return found  # it does not wait for others to be made
        with self._lock:
            found = self._made.get(key)
            old = None if found is None else self._outdated(found)
            if found is not None and old is None:
                return found
            change = Change(old, "pass the array as an argument") if old else difference(
                self._made.values(), call.names, call.types)
            if self._made and self._on_recompile == "error":
                raise error("W405", f"{self.__name__} would be compiled again: {change.text}",
                            locs=user_loc(),
                            hint=f"{change.advice}, or allow it with on_recompile='warn'")
            made = self._make(call, request, start) if not self.shares or self._made else recent(
                f"program {request.capacity} {request.optional}", self.py_func, call.leaves,
                call.structure, lambda: self._make(call, request, start), without_arrays,
                functools.partial(with_arrays, self.py_func))
            if isinstance(made, Need):
                return made
            longer = found is not None and 0 < found.traced.capacity < made.traced.capacity
            if self._made and self._on_recompile == "warn" and not longer and not (
                    change.text == ANOTHER_STATIC and self._is_choice(call.structure)):
                self._warn(change, made.milliseconds)
            self._made[key] = made
            if found is not None:
                self._forget(found)
            return made

    def _make(self, call: Call, request: Request, start: float) -> Specialisation | Need:
        with paused_collector(), self._compiling():
            with taken("trace", self.__name__):
                traced = self._traced(call, request)
            if isinstance(traced, Need):
                return traced
            stages, sources = stages_of(traced, self.options)
            program = make_step(stages, sources, traced.variables)
        return Specialisation(traced, stages, program, tuple(call.names), call.types,
                              1e3 * (time.perf_counter() - start), call.rivals())

    def _is_choice(self, structure: tree.TreeDef) -> bool:
        """Whether there is a call from which this one differs in texts, bools and members of enums
        only, of which there are a few."""
        own = self._signature.statics(structure)
        for made in self._made.values():
            known = self._signature.statics(made.traced.in_tree)
            changed = [side[name].meta for one, side in ((known, own), (own, known))
                       for name in side if name not in one or one[name].key != side[name].key]
            if changed and all(isinstance(value, (bool, str, Enum)) for value in changed):
                return True
        return False

    def _compiling(self, traced: bool = False) -> AbstractContextManager[None]:
        return compiling(self.__name__, self._progress, (not traced) + len(STEPS) + len(BUILDING))

    def _forget(self, old: Specialisation) -> None:
        """Let go of a specialisation that another one has taken the place of."""
        self._ways = tuple(way for way in self._ways if way is not old.direct)
        self._direct = self._ways[0] if self._ways else miss
        for key in [key for key, made in list(self._aliases.items()) if made is old]:
            self._aliases.pop(key, None)

    def _warn(self, change: Change, spent: float) -> None:
        place = user_loc()
        where = f" at {place[0]}" if place else ""
        frame, level = sys._getframe(1), 2
        package = __name__.partition(".")[0]
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(package):
            frame, level = frame.f_back, level + 1
        warnings.warn(f"{self.__name__} recompiled ({spent:.0f} ms): {change.text}{where}; "
                      f"{change.advice}", RecompileWarning, stacklevel=level)

    # -- stages ---------------------------------------------------------------------------------

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The graph for arguments, or specs and texts that stand for them; nothing runs."""
        method = self._unbound(args)
        if method is not self:
            return method.trace(*args[1:], **kwargs)
        call = described(self.py_func, args, kwargs, self._signature)
        return self._attempts.until_made(self._traced, call)[0]

    def _traced(self, call: Call, request: Request) -> Traced | Need:
        return attempt_as_written(self.py_func, call, request, host=self._warned)

    @boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The stages for arguments or specs; compiled only on demand."""
        return self.lower_with((), args, kwargs)

    @boundary
    def lower_with(
        self, first: tuple[Any, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Lowered:
        """``lower`` with some first arguments that the program gets at each call, as a method."""
        args = (*first, *args)
        method = self._unbound(args)
        if method is not self:
            return method.lower_with((), args[1:], kwargs)
        traced = self.trace(*args, **kwargs)
        stages, sources = stages_of(traced, self.options)

        def compile_now() -> Callable[..., Any]:
            with self._compiling(traced=True):
                program = make_step(stages, sources, traced.variables)

            def call(*args: Any, **kwargs: Any) -> Any:
                args = (*first, *args)
                if (ctx := _trace()) is not None:
                    return self._recorded(ctx, args, kwargs)
                try:
                    leaves = tree.fitted(traced.in_tree,
                                         *self._signature.flatten(args, kwargs))
                except ShapeError:
                    raise error("W303", "the arguments have another structure than those that "
                                        "the function was lowered for", locs=user_loc()) from None
                return traced.results(program.run(traced.given(leaves)))

            return call

        return Lowered(traced, stages, compile_now)

    @boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The results as a nest of ``Spec``, without compiling or running anything."""
        traced = self.trace(*args, **kwargs)
        return tree.unflatten(traced.out_tree, [
            Spec(value.dtype, value.shape) for value in traced.graph.results])

    # -- specialisations ------------------------------------------------------------------------

    def _specialisations(self) -> list[Specialisation]:
        """All of this function, then those for the objects whose method it is."""
        return [*self._made.values(),
                *(made for function in self._methods for made in function._made.values())]

    @property
    def signatures(self) -> list[dict[str, str]]:
        """The argument types of each specialisation, in the order they were made."""
        return [made.signature() for made in self._specialisations()]

    def explain(self) -> str:
        """A table of the specialisations: types, compile time, kernels; and which arguments have
        become static by themselves."""
        all_made, signatures = self._specialisations(), self.signatures
        lines = [f"{self.__name__}: {len(all_made)} specialisations"]
        for number, (made, types) in enumerate(zip(all_made, signatures, strict=True), 1):
            shown = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
            lines.append(f"  {number}. ({shown})  {made.milliseconds:.0f} ms, "
                         f"{made.program.each} launches, arena {made.stages.arena} bytes")
        fixed = {name: f"it is {what}" for made in all_made
                 for name, below in self._signature.statics(made.traced.in_tree).items()
                 if (what := tree.constant(below.meta))}
        lines += [f"  '{name}' is static: {why}, so each value has a program of its own"
                  for name, why in {**fixed, **self.fixed}.items()]
        return "\n".join(lines)

    def cache_info(self) -> CacheInfo:
        """How many specialisations there are, and what they cost."""
        made = self._specialisations()
        return CacheInfo(len(made), sum(each.milliseconds for each in made))

    def argument_names(self, count: int) -> list[str]:
        """The names of the first ``count`` positional arguments."""
        return [self._signature.name(at) for at in range(count)]

    def clear_cache(self) -> None:
        """Forget all specialisations; the next call traces again.

        Their code is unmapped as soon as no call is running it and nothing else holds it.
        """
        with self._lock:
            held = self._made, self._aliases, self._direct, self._ways
            self._made, self._aliases = {}, {}
            self._direct, self._ways = miss, ()
        del held  # here, where no lock is held, code is unmapped
        for function in self._methods:
            function.clear_cache()


def _kind_of(leaf: Any) -> Any:
    """What of an argument decides the code, as cheaply as possible."""
    if isinstance(leaf, np.ndarray):
        if type(leaf) is not np.ndarray:  # a subclass may be one that is refused
            return type(leaf), leaf.dtype, leaf.shape
        return leaf.dtype, leaf.shape
    if isinstance(leaf, np.generic):
        return leaf.dtype
    if isinstance(leaf, Variable):
        return id(leaf)
    if type(leaf) is int and not fits_int64(leaf):
        return None  # there is no program for it
    return type(leaf)
