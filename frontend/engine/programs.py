"""The programs of a function: one for each kind of arguments.

A call with arguments of known kinds does not come here: native code tries the walks of the last few
specialisations in turn. Any other call flattens its nests, looks up (or makes) the specialisation
for their types, runs it and rebuilds the results. Called while another function is traced, it
becomes a part of that trace.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...ir.diagnose import Error, FailedAssertionError, OutOfRangeError, ShapeError, error
from ...ir.forks import freed
from ..face import tree
from ..face.boundary import leave
from ..face.collector import paused_collector
from ..face.function import Function
from ..face.options import Hook, Options
from ..face.signature import Signature
from ..face.source import user_loc
from ..numpy_api.host import Warned
from ..ready.calls import ReadyCalls
from ..rewriting.lists.room import is_full
from ..rewriting.retrace import attempt_as_written
from ..tracing.arguments import Call, described
from ..tracing.arrays.buffer import Buffer
from ..tracing.arrays.variable import Variable
from ..tracing.context.active import context_for
from ..tracing.context.dependencies import checked
from ..tracing.context.recorder import ACTIVE, TraceContext
from ..tracing.context.request import Need, Request
from ..tracing.context.traced import Traced
from ..tracing.failing import exception
from ..tracing.operand import fits_int64
from .attempts import Attempts
from .building.flow import make_step
from .building.outline import walker_of
from .building.pipeline import BUILDING, STEPS
from .building.progress import compiling, taken
from .inout import check_containers, shared_memory
from .methods.methods import Methods
from .methods.stateful import Changing
from .recent import recent
from .recompiling.adopted import Made, adopted
from .recompiling.changes import Difference, Key, of_guard
from .recompiling.explained import Explanation, explained
from .recompiling.history import KEPT
from .recompiling.recompiles import Recompiles
from .specialisation import (
    Specialisation,
    stages_of,
    verified,
    with_arrays,
    without_arrays,
)
from .stages import Lowered
from .storing import Keeper

_trace = ACTIVE.get  # the trace that records the running code, looked up at each call
_ALIASES = 4096  # raw argument kinds remembered for one function
FEW = 1  # a size that a function may ask for, as nothing or one alone is often dealt with apart


class Programs:
    """What a compiled function runs, and has learned of how it is traced."""

    def __init__(
        self, function: Callable[..., Any], name: str, options: Options, signature: Signature,
        disable: bool, progress: Hook | None, shares: bool, recompiles: Recompiles,
        ready: ReadyCalls,
    ) -> None:
        self._function, self._name = function, name
        self._options = options
        self._disable, self._progress, self._shares = disable, progress, shares
        self._warned: Warned | None = set() if options.on_unsupported == "host" else None
        self._made: dict[Key, Specialisation] = {}
        self._aliases: dict[Any, Specialisation] = {}
        self._lock = freed(threading.RLock())
        self._keeper = Keeper(function, name, options, signature)
        self.methods: Methods[Function[..., Any]] = Methods(self._lock)
        self._recompiles, self.history = recompiles, recompiles.history
        self._ready = ready
        self._attempts = self._attempts_at(signature)

    @staticmethod
    def of(function: Function[..., Any]) -> Programs:
        """Those of a compiled function, of which none is made yet."""
        return Programs(function.py_func, function.__name__, function.options, function.signature,
                        function.disable, function.progress, function.shares, Recompiles(
                            function.py_func, function.__name__, function.on_recompile,
                            function.history), function.ready)

    def prepared(
        self, function: Function[..., Any], problem: BaseException
    ) -> BaseException | None:
        """What is to be raised of what a call has raised: an exception of the function's own in
        the place of a check. None if the call is to be made again, with longer lists."""
        told: BaseException = problem
        if isinstance(problem, FailedAssertionError):
            told = exception(problem, [made.traced.failures for made in self.specialisations()
                                       if isinstance(made, Specialisation)])
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

    def _outdated(self, made: Specialisation) -> Difference | None:
        """Why a specialisation is to be made again, if it is."""
        if 0 < (room := made.traced.capacity) < self._attempts.capacity:
            return Difference("list", "", f"{room} items", f"{self._attempts.capacity} items",
                              f"a list has become longer than {room} items")
        failed = made.traced.guards.failed()
        return None if failed is None else of_guard(failed)

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
            call = method.slowly if isinstance(method, Changing) else method
            return call(*args[1:], **kwargs)
        return self._look_up(function, args, kwargs)

    def _recorded(
        self, ctx: TraceContext, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A call as a part of the function that is being traced. Plain arrays among the arguments
        are read when that function runs, as they would be by native code: by the function's copy
        where it is written to read them, else here."""
        function = ctx.as_written(self._function)
        if function is self._function or ctx.root.endless:
            args, kwargs = self._read(ctx, args, kwargs)
        first = len(ctx.graph.nodes)
        result = function(*args, **kwargs)
        return checked(ctx, result, first) if ctx.endless else result

    def _read(
        self, ctx: TraceContext, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Arguments with what the trace has of plain arrays. Those that the function being traced
        has made stay what they are, to be written."""
        leaves, structure = tree.flatten(self._signature.arguments(args, kwargs))
        inputs = [leaf if isinstance(leaf, Buffer) and not leaf.is_left else ctx.captured(leaf)
                  for leaf in leaves]
        if all(x is leaf for x, leaf in zip(inputs, leaves, strict=True)):
            return args, kwargs
        args, kwargs = tree.unflatten(structure, inputs)
        return args, kwargs

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
            if self._ready.find(function, args, kwargs):
                return function(*args, **kwargs)
            first = found is None
            found, call = self._made_for(function, call)
            # A walk needs no memory for arguments that it writes. One that another call has had
            # outdated meanwhile leads back to here, and may not for ever.
            if first and self._offer(function, found):
                return function(*args, **kwargs)
        if found.traced.written and (shared := shared_memory(found.traced, call.leaves)):
            found, call = self._made_for(function, call.sharing(shared))
        try:
            return self._run(function, found, call)
        except Error as problem:
            if not problem.of_sizes or not call.signature.dynamic:
                raise
            unfit = problem
        return self._run_exactly(function, call, unfit)

    def _run(self, function: Function[..., Any], found: Specialisation, call: Call) -> Any:
        found.used = time.monotonic()
        if found.traced.changed:
            check_containers(found.traced, call.arguments())
        given = found.traced.given(call.leaves)
        if self._options.verify:
            return verified(found, given, call.leaves, call.arguments)
        raw = found.program.run(given)
        self._offer(function, found)
        return found.traced.results(raw, call.leaves, call.arguments)

    def _run_exactly(self, function: Function[..., Any], call: Call, unfit: Error) -> Any:
        """A call with sizes that the program for any sizes does not admit, for what may be on a way
        that is not taken (``x.max() if len(x) else 0.0``): by one in which sizes of 0 and 1 are
        known, or else by one for these very sizes. Raises ``unfit`` where there is none, or what
        the function raises for such sizes."""
        few = {name for name, size in (unfit.of_sizes or {}).items() if size <= FEW}
        start = time.perf_counter()
        for exact in [call.of_sizes(few)] * bool(few) + [call.of_sizes(None)]:
            found = self._made_exactly(function, exact, start)
            if found is None:
                continue
            try:
                result = self._run(function, *found)
            except Error as problem:
                if problem.of_sizes is None:
                    raise
                continue
            if not call.shared:
                self._aliases[call.structure, tuple(map(_kind_of, call.leaves))] = found[0]
            return result
        raise unfit

    def _made_exactly(
        self, function: Function[..., Any], exact: Call, start: float
    ) -> tuple[Specialisation, Call] | None:
        try:
            return self._trying(exact).until_made(functools.partial(
                self._specialised, function, start=start, told=False), exact)
        except Error:
            return None

    def _offer(self, function: Function[..., Any], made: Specialisation) -> bool:
        """Have calls try the walk of a specialisation first; whether they did not."""
        walk = None if self._options.verify else made.walk
        if walk is None:
            return False
        with self._lock:
            # Else the cache was cleared meanwhile, or another has taken its place.
            return any(made is each for each in self._made.values()) and (
                function.offer(made, walk) and bool(function.door))

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
        self, function: Function[..., Any], call: Call, request: Request, start: float,
        told: bool = True
    ) -> Specialisation | Need:
        """The program for a call, which has waited for it since ``start``. That it was made is
        ``told`` as a recompile."""
        key = Key(call.structure, call.types, call.shared, tuple(
            [id(leaf) for leaf in call.leaves if isinstance(leaf, Variable)]))
        found = self._made.get(key)
        if found is not None and not self._outdated(found):
            return found  # it does not wait for others to be made
        with self._lock:
            found = self._made.get(key)
            old = None if found is None else self._outdated(found)
            if found is not None and old is None:
                return found
            before = self._known()
            unfit, failed = self._unready(function, key)
            differences = [] if unfit or not told else self._recompiles.differences(
                before, key, call, old or failed, self.fixed, self._trial)
            made = self._make(call, request, start) if not self._shares or self._made else recent(
                f"program {request.capacity} {request.optional} {sorted(request.unbound)}",
                self._function, call.leaves, call.structure,
                lambda: self._make(call, request, start), without_arrays,
                functools.partial(with_arrays, self._function))
            if isinstance(made, Need):
                return made
            self._keep(function, key, made)
        # Where no lock is held: who is warned may run code, and what was dropped is unmapped.
        if told:
            self._recompiles.add(differences, before, call, made.milliseconds, self._trial)
        return made

    def _known(self) -> dict[Key, Made]:
        """All programs, with those of other processes that there is none of this one for."""
        return {**dict([adopted(each, self._signature) for each in self._ready.programs]),
                **self._made}

    def _unready(
        self, function: Function[..., Any], key: Key
    ) -> tuple[bool, Difference | None]:
        """Whether the program of another process that has the key of a call is unfit for it (that
        has a check that fails, say), or why it is outdated."""
        for each in self._ready.programs:
            if adopted(each, self._signature)[0] == key:
                self._ready.drop(function, each)
                failed = next((guard for guard in each.guards if not guard.holds()), None)
                return failed is None, None if failed is None else of_guard(failed)
        return False, None

    def _keep(
        self, function: Function[..., Any], key: Key, made: Specialisation
    ) -> None:
        """Keep a specialisation, in the place of one that is outdated; too many are not kept."""
        old = self._made.pop(key, None)
        made.used = time.monotonic()
        self._made[key] = made
        if old is not None:
            self._forget(function, old)
        while len(self._made) > KEPT:
            tried = map(id, function.offered)  # by native code, which tells nobody
            last = min((each for each, other in self._made.items()
                        if other is not made and id(other) not in {*tried}),
                       key=lambda each: self._made[each].used)
            dropped = self._made.pop(last)
            self._forget(function, dropped)
            self.history.drop(last, dropped)

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
        owner = getattr(self._function, "receiver", None)
        # Only Python tells what is shared.
        walker = _no_walk if call.shared else walker_of(
            traced, program, call.signature, variables, self._options.donate, owner)
        made = Specialisation(
            traced, stages, program, tuple(call.names), call.types,
            1e3 * (time.perf_counter() - start), walker, owner)
        self._keeper.keep(asked, call, made, self.fixed)
        return made

    def _compiling(self, traced: bool = False) -> AbstractContextManager[None]:
        return compiling(self._name, self._progress, (not traced) + len(STEPS) + len(BUILDING))

    def _forget(self, function: Function[..., Any], old: Specialisation) -> None:
        """Let go of a specialisation that another one has taken the place of."""
        function.withdraw(old)
        for key in [key for key, made in list(self._aliases.items()) if made is old]:
            self._aliases.pop(key, None)

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

    def _trial(self, call: Call) -> Traced:
        """A trace of a call with a signature of its own, of which nothing is learned."""
        return self._trying(call).until_made(self._traced, call)[0]

    def _trying(self, call: Call) -> Attempts:
        """Attempts at a call with a signature of its own."""
        attempts = self._attempts_at(call.signature)
        attempts.fixed, attempts.capacity = self.fixed, self._attempts.capacity
        return attempts

    def _attempts_at(self, signature: Signature) -> Attempts:
        options = self._options
        measures = all(device.startswith("cpu") for device in options.devices)
        return Attempts(signature, self._lock, Request(
            flags=True, inout=options.inout == "allow", sizes=self._recompiles.allowed,
            measures=measures, counts=False if measures else None))

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
            return method.lower(*args[1:], **kwargs)
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

    def specialisations(self) -> list[Made]:
        """All of this function, then those for the objects whose method it is."""
        others = (function.programs.specialisations() for function in self.methods)
        return [*self._known().values(), *(made for each in others for made in each)]

    def signatures(self) -> list[dict[str, str]]:
        """The argument types of each specialisation, in the order they were made."""
        return [made.signature() for made in self.specialisations()]

    def explain(self) -> Explanation:
        """See ``Function.explain``."""
        fixed = {name: why for function in self.methods for name, why in function.fixed.items()}
        return explained(self._name, self.specialisations(), self._signature,
                         {**fixed, **self.fixed}, self.history)

    def milliseconds(self) -> list[float]:
        """What each specialisation has cost."""
        return [made.milliseconds for made in self.specialisations()]

    def clear(self, function: Function[..., Any]) -> None:
        """Forget all specialisations. Their code is unmapped as soon as no call is running it and
        nothing else holds it."""
        with self._lock:
            held = self._made, self._aliases, function.withdraw()
            self._made, self._aliases = {}, {}
            self._ready.clear()
            self._recompiles.clear()
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
