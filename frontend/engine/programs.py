"""The programs of a function: one for each kind of arguments.

A call with arguments of known kinds does not come here: native code tries the walks of the last few
specialisations in turn. Any other call flattens its nests, looks up (or makes) the specialisation
for their types, runs it and rebuilds the results. Called while another function is traced, it
becomes a part of that trace.
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
from typing import Any

import numpy as np

from ...ir.diagnose import FailedAssertionError, OutOfRangeError, ShapeError, error
from ...ir.forks import freed
from ..face import tree
from ..face.boundary import leave
from ..face.collector import paused_collector
from ..face.function import Function, OnRecompile, RecompileWarning
from ..face.options import Hook, Options
from ..face.signature import Signature
from ..face.source import user_loc
from ..numpy_api.host import Warned
from ..rewriting.lists.room import is_full
from ..rewriting.retrace import attempt_as_written
from ..tracing.arguments import Call, described
from ..tracing.arrays.variable import Variable
from ..tracing.context.active import context_for
from ..tracing.context.dependencies import checked
from ..tracing.context.recorder import ACTIVE, TraceContext
from ..tracing.context.request import Need, Request
from ..tracing.failing import exception
from ..tracing.operand import fits_int64
from ..tracing.trace import Traced
from .attempts import Attempts
from .flow import make_step
from .inout import check_containers, shared_memory
from .methods import Methods
from .outline import walker_of
from .pipeline import BUILDING, STEPS
from .progress import compiling, taken
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
from .storing import Keeper

_trace = ACTIVE.get  # the trace that records the running code, looked up at each call
_ALIASES = 4096  # raw argument kinds remembered for one function


class Programs:
    """What a compiled function runs, and has learned of how it is traced."""

    def __init__(
        self, function: Callable[..., Any], name: str, options: Options, signature: Signature,
        on_recompile: OnRecompile, disable: bool, progress: Hook | None, shares: bool,
    ) -> None:
        self._function, self._name = function, name
        self._options, self._on_recompile = options, on_recompile
        self._disable, self._progress, self._shares = disable, progress, shares
        self._warned: Warned | None = set() if options.on_unsupported == "host" else None
        self._made: dict[Any, Specialisation] = {}
        self._aliases: dict[Any, Specialisation] = {}
        self._lock = freed(threading.RLock())
        self._attempts = Attempts(signature, self._lock, options.inout == "allow")
        self._keeper = Keeper(function, name, options, signature)
        self.methods: Methods[Function[..., Any]] = Methods(self._lock)

    @staticmethod
    def of(function: Function[..., Any]) -> Programs:
        """Those of a compiled function, of which none is made yet."""
        return Programs(function.py_func, function.__name__, function.options, function.signature,
                        function.on_recompile, function.disable, function.progress,
                        function.shares)

    def prepared(
        self, function: Function[..., Any], problem: BaseException
    ) -> BaseException | None:
        """What is to be raised of what a call has raised: an exception of the function's own in
        the place of a check. None if the call is to be made again, with longer lists."""
        told: BaseException = problem
        if isinstance(problem, FailedAssertionError):
            told = exception(problem, [made.traced.failures for made in self.specialisations()])
        leave(problem)
        if isinstance(problem, OutOfRangeError) and is_full(problem) and (
                self._more_capacity(function)):
            return None
        return told

    @property
    def fixed(self) -> Mapping[str, str]:
        """The arguments that have become static by themselves, and why."""
        return self._attempts.fixed

    @property
    def _signature(self) -> Signature:
        return self._attempts.signature

    def _more_capacity(self, function: Function[..., Any]) -> bool:
        """Have programs made anew whose lists are too short; False if they may not be longer."""
        with self._lock:
            capacity = self._attempts.capacity
            if all(made.traced.capacity != capacity for made in self._made.values()):
                return True  # another thread was first
            if not self._attempts.more_capacity():
                return False
            for made in self._made.values():
                if self._outdated(made):
                    self._forget(function, made)
            return True

    def _outdated(self, made: Specialisation) -> str | None:
        """Why a specialisation is to be made again, if it is."""
        if 0 < made.traced.capacity < self._attempts.capacity:
            return f"a list has become longer than {made.traced.capacity} items"
        failed = made.traced.guards.failed()
        return None if failed is None else failed.changed()

    def call(
        self, function: Function[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A call of the function that has them, which may be one of a method of some object."""
        if self._disable:
            return self._function(*args, **kwargs)
        if (ctx := _trace()) is not None:
            return self._recorded(ctx, args, kwargs)
        method = self.methods.called(function, args)
        if method is not function:
            return method(*args[1:], **kwargs)
        return self._look_up(function, args, kwargs)

    def _recorded(
        self, ctx: TraceContext, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A call as a part of the function that is being traced. Plain arrays among the arguments
        are read when that function runs, as they would be by native code."""
        arguments = self._signature.arguments(args, kwargs)
        leaves, structure = tree.flatten(arguments)
        inputs = [ctx.captured(leaf) for leaf in leaves]
        function = ctx.as_written(self._function)
        if any(x is not leaf for x, leaf in zip(inputs, leaves, strict=True)):
            args, kwargs = tree.unflatten(structure, inputs)
        first = len(ctx.graph.nodes)
        result = function(*args, **kwargs)
        return checked(ctx, result, first) if ctx.endless else result

    def _look_up(
        self, function: Function[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        call = Call.of(self._signature, args, kwargs)
        found = self._aliases.get((call.structure, tuple(map(_kind_of, call.leaves))))
        if found is None or self._outdated(found):
            graph = context_for(call.leaves)
            if graph is not None:  # arguments of a graph that is not being built just now
                with graph.activate():
                    return self._recorded(graph, args, kwargs)
            if function.ready.find(function, args, kwargs):
                return function(*args, **kwargs)
            found, call = self._made_for(function, call)
        if found.traced.written and (shared := shared_memory(found.traced, call.leaves)):
            found, call = self._made_for(function, call.sharing(shared))
        if found.traced.changed:
            check_containers(found.traced, call.arguments())
        given = found.traced.given(call.leaves)
        if self._options.verify:
            return verified(found, given, call.leaves, call.arguments)
        raw = found.program.run(given)
        self._offer(function, found)
        return found.traced.results(raw, call.leaves, call.arguments)

    def _offer(self, function: Function[..., Any], made: Specialisation) -> None:
        """Have calls try the walk of a specialisation first, unless they do."""
        walk = made.walk
        if walk is None:
            return
        with self._lock:
            # Else the cache was cleared meanwhile, or another has taken its place.
            if any(made is each for each in self._made.values()):
                function.offer(made, walk)

    def _made_for(
        self, function: Function[..., Any], call: Call
    ) -> tuple[Specialisation, Call]:
        """The program for a call, and the call that it is for: some numbers may be static now."""
        start = time.perf_counter()
        made, call = self._attempts.until_made(
            lambda call, request: self._specialised(function, call, request, start), call)
        aliases = self._aliases
        if len(aliases) >= _ALIASES:
            aliases.clear()
        if not call.shared:
            aliases[call.structure, tuple(map(_kind_of, call.leaves))] = made
        return made, call

    def _specialised(
        self, function: Function[..., Any], call: Call, request: Request, start: float
    ) -> Specialisation | Need:
        """The program for a call, which has waited for it since ``start``."""
        key = call.structure, call.types, call.shared, tuple(
            id(leaf) for leaf in call.leaves if isinstance(leaf, Variable))
        found = self._made.get(key)
        if found is not None and not self._outdated(found):
            return found  # it does not wait for others to be made
        with self._lock:
            found = self._made.get(key)
            old = None if found is None else self._outdated(found)
            if found is not None and old is None:
                return found
            change = Change(old, "pass it as an argument") if old else difference(
                self._made.values(), call.names, call.types)
            if self._made and self._on_recompile == "error":
                raise error("W405", f"{self._name} would be compiled again: {change.text}",
                            locs=user_loc(),
                            hint=f"{change.advice}, or allow it with on_recompile='warn'")
            made = self._make(call, request, start) if not self._shares or self._made else recent(
                f"program {request.capacity} {request.optional}", self._function, call.leaves,
                call.structure, lambda: self._make(call, request, start), without_arrays,
                functools.partial(with_arrays, self._function))
            if isinstance(made, Need):
                return made
            longer = found is not None and 0 < found.traced.capacity < made.traced.capacity
            if self._made and self._on_recompile == "warn" and not longer and not (
                    change.text == ANOTHER_STATIC and self._is_choice(call.structure)):
                self._warn(change, made.milliseconds)
            self._made[key] = made
            if found is not None:
                self._forget(function, found)
            return made

    def _make(self, call: Call, request: Request, start: float) -> Specialisation | Need:
        asked = self._keeper.question(call)
        with paused_collector(), self._compiling():
            with taken("trace", self._name):
                traced = self._traced(call, request)
            if isinstance(traced, Need):
                return traced
            stages, sources = stages_of(traced, self._options)
            program = make_step(stages, sources, traced.variables)
        variables = {at: leaf for at, leaf in enumerate(call.leaves) if isinstance(leaf, Variable)}
        # Only Python tells what is shared.
        walker = _no_walk if call.shared else walker_of(
            traced, program, call.signature, variables)
        made = Specialisation(
            traced, stages, program, tuple(call.names), call.types,
            1e3 * (time.perf_counter() - start), walker)
        self._keeper.keep(asked, call, made, self.fixed)
        return made

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
        return compiling(self._name, self._progress, (not traced) + len(STEPS) + len(BUILDING))

    def _forget(self, function: Function[..., Any], old: Specialisation) -> None:
        """Let go of a specialisation that another one has taken the place of."""
        function.withdraw(old)
        for key in [key for key, made in list(self._aliases.items()) if made is old]:
            self._aliases.pop(key, None)

    def _warn(self, change: Change, spent: float) -> None:
        place = user_loc()
        where = f" at {place[0]}" if place else ""
        frame, level = sys._getframe(1), 2
        package = __name__.partition(".")[0]
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(package):
            frame, level = frame.f_back, level + 1
        warnings.warn(f"{self._name} recompiled ({spent:.0f} ms): {change.text}{where}; "
                      f"{change.advice}", RecompileWarning, stacklevel=level)

    # -- stages ---------------------------------------------------------------------------------

    def trace(
        self, function: Function[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Traced:
        """See ``Function.trace``."""
        method = self.methods.called(function, args)
        if method is not function:
            return method.trace(*args[1:], **kwargs)
        call = described(self._function, args, kwargs, self._signature)
        return self._attempts.until_made(self._traced, call)[0]

    def _traced(self, call: Call, request: Request) -> Traced | Need:
        return attempt_as_written(self._function, call, request, host=self._warned)

    def lower(
        self, function: Function[..., Any], first: tuple[Any, ...], args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Lowered:
        """See ``Function.lower_with``."""
        args = (*first, *args)
        method = self.methods.called(function, args)
        if method is not function:
            return method.lower_with((), args[1:], kwargs)
        traced = self.trace(function, args, kwargs)
        stages, sources = stages_of(traced, self._options)

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
                return traced.results(program.run(traced.given(leaves)), leaves, functools.partial(
                    self._signature.arguments, args, kwargs))

            return call

        return Lowered(traced, stages, compile_now)

    # -- specialisations ------------------------------------------------------------------------

    def specialisations(self) -> list[Specialisation]:
        """All of this function, then those for the objects whose method it is."""
        others = (function.programs.specialisations() for function in self.methods)
        return [*self._made.values(), *(made for each in others for made in each)]

    def signatures(self) -> list[dict[str, str]]:
        """The argument types of each specialisation, in the order they were made."""
        return [made.signature() for made in self.specialisations()]

    def explain(self) -> str:
        """A table of the specialisations: types, compile time, kernels; and which arguments have
        become static by themselves."""
        all_made, signatures = self.specialisations(), self.signatures()
        lines = [f"{self._name}: {len(all_made)} specialisations"]
        for number, (made, types) in enumerate(zip(all_made, signatures, strict=True), 1):
            shown = ", ".join(f"{name}: {type_}" for name, type_ in types.items())
            lines.append(f"  {number}. ({shown})  {made.milliseconds:.0f} ms, "
                         f"{made.program.each} launches, arena {made.stages.arena} bytes")
            lines += [f"     as long as {guard.said()}" for guard in made.traced.guards]
        fixed = {name: f"it is {what}" for made in all_made
                 for name, below in self._signature.statics(made.traced.in_tree).items()
                 if (what := tree.constant(below.meta))}
        lines += [f"  '{name}' is static: {why}, so each value has a program of its own"
                  for name, why in {**fixed, **self.fixed}.items()]
        return "\n".join(lines)

    def milliseconds(self) -> list[float]:
        """What each specialisation has cost."""
        return [made.milliseconds for made in self.specialisations()]

    def clear(self, function: Function[..., Any]) -> None:
        """Forget all specialisations. Their code is unmapped as soon as no call is running it and
        nothing else holds it."""
        with self._lock:
            held = self._made, self._aliases, function.withdraw()
            self._made, self._aliases = {}, {}
            function.ready.clear()
        del held  # here, where no lock is held, code is unmapped
        for each in self.methods:
            each.clear_cache()


def _no_walk() -> None:
    return None


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
