"""Run a compiled plan: arguments in, results out, variables read before and committed after.

New values of variables are results like all others, and committed once the program has succeeded: a
failed step leaves every variable as it was. Here they are in memory of their own; native calls may
make them in that of the last values. Steps that write a variable
take turns from their reading on, or for the commit alone if they read none of those they write or
are asynchronous; all others run side by side. ``state`` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np

from ..ir.convert import conversion
from ..ir.diagnose import HELD_IN_64_BITS, Error, error
from ..ir.indices.dims import bind_dims, plain_dims
from ..ir.indices.index import Expr, symbols_of
from ..ir.indices.walk import evaluate
from ..ir.plans.entry import SCALARS, Input
from ..ir.plans.plan import (
    EXHAUSTED,
    MOST_BYTES,
    NO_MEMORY,
    CheckSite,
    Plan,
    Relation,
    Slot,
)
from .entry.layout import Array
from .entry.native import Fail, NativeCall
from .entry.through_ctypes import CtypesCall
from .profile.recording import Recorder, active
from .profile.timed import Timed, Timing
from .remote import shaped
from .state import Cell, Value, Writer, commit, merged, peek
from .watch import Turns, Watch

Source = int | Array | Cell
_GONE = np.empty(0)  # where an array was of a program that holds none


class Program:
    """A plan, its native call and where each of the plan's parameters comes from.

    ``sources`` has an entry for each parameter of the plan: the position of a caller's argument,
    a closed-over array, or a variable's cell; ``checked`` knows its form.
    ``written`` has the cells of the variables that the plan writes, by name. With ``asynchronous``
    steps do not wait for their turn before they read: it has the names of the variables whose new
    values are made of their old ones, which are ``merged``. ``timing`` has the form that runs in
    its place while a profile is active.
    """

    part = False  # of a step that tells of itself, when it is profiled
    _timing: Timing | None = None

    def __init__(
        self,
        plan: Plan,
        call: NativeCall | CtypesCall,
        checked: CtypesCall,
        *,
        sources: Sequence[Source],
        written: Mapping[str, Cell],
        asynchronous: Collection[str] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.plan, self._native, self._call = plan, call, call.call
        self._checked: CtypesCall | Timed = checked
        self._timing, self.name = timing, plan.name
        self.each = plan.launches
        self._entry = checked.entry
        self._kinds = [item.kind for item in checked.entry.inputs]
        self.params = plan.params
        self._bind(sources, written, plan.results, asynchronous)

    def _bind(
        self, sources: Sequence[Source], written: Mapping[str, Cell], results: Sequence[Slot],
        asynchronous: Collection[str] | None = None,
    ) -> None:
        """Note where parameters come from, and where results go."""
        self.sources = tuple(sources)
        self.results = tuple(results)
        self.held = tuple(source for source in sources if isinstance(source, np.ndarray))
        self._read = tuple(source for source in sources if isinstance(source, Cell))
        self._count = self._admitted = sum(isinstance(source, int) for source in sources)
        self._watch: Watch | None = None
        self._order = _order(sources)
        # Results for the caller come first.
        self._written = [written[slot.var] for slot in results if slot.var]
        self._returned = len(results) - len(self._written)
        self._writer: Writer | Turns = Writer(self._written)
        self._settles: tuple[Any, ...] = ()  # what is told, at once, that a step has committed
        self._updates = (asynchronous is None
                         and not set(self._written).isdisjoint(self._read))
        names = [slot.var for slot in results if slot.var]
        # Of what is written, what is to be merged: where it is, and where it was read.
        self._merged = [(at, self._read.index(cell))
                        for at, (name, cell) in enumerate(zip(names, self._written, strict=True))
                        if name in (asynchronous or ()) and cell in self._read]

    @property
    def stateless(self) -> bool:
        """True if results depend on the arguments and closed-over arrays alone."""
        return not self._written and not self._read

    @property
    def walkable(self) -> bool:
        """Whether native code can do all of a step: variables are written in their turn."""
        return isinstance(self._native, NativeCall) and not self._merged and (
            self._updates or not self._written or not set(self._written) & set(self._read))

    @property
    def native(self) -> NativeCall:
        """The native entry of a program that is ``walkable``."""
        assert isinstance(self._native, NativeCall)
        return self._native

    @property
    def written(self) -> Sequence[Cell]:
        """The cells that the last results become the values of."""
        return self._written

    @property
    def inputs(self) -> Sequence[Input]:
        """What the native entry takes."""
        return self._entry.inputs

    @property
    def single(self) -> bool:
        """Whether the native entry gives its only result as it is."""
        return self._entry.single

    @property
    def direct(self) -> Callable[..., Any]:
        """Calls of a stateless program straight to native code: arguments to raw results."""
        call, held = self._call, self.held
        if not held:
            return call
        # Closed-over arrays come after the arguments.
        return lambda *args: call(*args, *held)

    def holding(self, arrays: Sequence[Array]) -> Program:
        """The same program with other closed-over arrays, of the same types."""
        other = copy(self)
        other.held, found = tuple(arrays), iter(arrays)
        other.sources = tuple([
            next(found, _GONE) if isinstance(source, np.ndarray) else source
            for source in self.sources])
        return other

    def within(self, watch: Watch) -> Program:
        """The same program for one step that raises DeadlineError (W413), and commits nothing,
        if it is not done by then. Native code looks at the time as it runs."""
        watched = copy(self)
        watched._watch, watched._call = watch, watch.calls(self._watched(watch))
        watched._writer = Turns(self._writer, watch)
        return watched

    def _watched(self, watch: Watch) -> Callable[..., Any]:
        """What runs the program, and may look at the time as it does."""
        return self._call

    @property
    def profiled(self) -> bool:
        """Whether a profile is active, so that each step is to come by ``run``."""
        return self._admitted < 0

    @profiled.setter
    def profiled(self, profiled: bool) -> None:
        self._admitted = -1 if profiled else self._count
        self._refuse(profiled)

    def _refuse(self, refusing: bool) -> None:
        self._native.refusing = refusing

    @property
    def threads(self) -> int:
        """The number of threads that steps may use, from the next one on."""
        return self._native.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self._native.threads = self._checked.threads = count

    def run(self, leaves: Sequence[Any]) -> tuple[Array, ...]:
        """Run one step and commit its variables; results in order, without the variables.

        Raises OutOfRangeError (W124) or RangeError (W131) when a run-time check fails.
        """
        found = active()
        results = self._recorded(leaves, found) if found else self._run(leaves, self._retry)
        assert results is not NotImplemented, "a retry gives results or raises"
        return results  # type: ignore[no-any-return]

    def attempt(self, *leaves: Any) -> Any:
        """``run``, or NotImplemented, with nothing done, if the arguments are not just right."""
        if len(leaves) != self._admitted:
            return NotImplemented
        return self._run(leaves, no_retry)

    def _recorded(self, leaves: Sequence[Any], found: Sequence[Recorder]) -> Any:
        """A step that profiles are told of."""
        self.prepare()
        watch = self._watch or Watch()
        step = copy(self) if self._watch is not None else self.within(watch)
        tell = step._tells(found, watch)
        try:
            return step._run(leaves, step._retry)
        finally:
            if not self.part:
                watch.tell(found, self.name, bool(self._written))
            tell(found)

    def prepare(self) -> None:
        """Make what a profiled step needs, before its time is taken."""
        if self._timing is not None:
            self._timing.form()

    def _tells(self, found: Sequence[Recorder], watch: Watch) -> Callable[..., None]:
        """Have this copy, which is for one step, keep the times of its rows; what tells of them."""
        if self._timing is None:
            return _nothing
        form = self._timing.form()
        form.threads = self.threads
        timed = Timed(form, self.part)
        self._call, self._checked = watch.calls(timed.call), timed
        return timed.tell

    def _run(self, leaves: Sequence[Any], otherwise: Callable[..., Any]) -> Any:
        """One step; ``otherwise(args)`` gives the results where the call has none."""
        if not self._written:
            return self._step(leaves, otherwise)
        if self._updates:
            return self._writer.run(self._update, leaves, otherwise)
        read = peek(self._read)
        results = self._step(leaves, otherwise, read)
        return results if results is NotImplemented else self._writer.run(
            self._commit, results, read)

    def _update(self, leaves: Sequence[Any], otherwise: Callable[..., Any]) -> Any:
        results = self._step(leaves, otherwise)
        return results if results is NotImplemented else self._commit(results)

    def _commit(self, results: tuple[Any, ...], read: Sequence[Value] = ()) -> tuple[Array, ...]:
        new: Sequence[Value] = results[self._returned:]
        if self._merged:
            new = list(new)
            for at, place in self._merged:
                new[at] = merged(read[place], new[at], peek((self._written[at],))[0])
        commit(self._written, new, *self._settles)
        return results[:self._returned]

    def _step(self, leaves: Sequence[Any], otherwise: Callable[..., Any],
              read: Sequence[Value] | None = None) -> Any:
        args = [*leaves, *self.held, *(peek(self._read) if read is None else read)]
        if self._order is not None:
            args = [args[place] for place in self._order]
        results = self._call(*args)
        if results is NotImplemented:
            results = otherwise(args)
        return results if type(results) is tuple or results is NotImplemented else (results,)

    def _arguments(self, leaves: Sequence[Any], read: Sequence[Value]) -> list[Any]:
        """What the parameters are, in order."""
        args = [*leaves, *self.held, *read]
        return args if self._order is None else [args[place] for place in self._order]

    def _retry(self, args: list[Any]) -> Any:
        """Bring arguments into the form the program wants, or say what is wrong with them."""
        fitted, _ = fit_all(self.plan.params, self._kinds, args)
        results = self._call(*fitted)
        if results is not NotImplemented:
            return results
        ask_sizes(self.plan, fitted)
        try:
            ran = self._checked.attempt(*fitted)  # where native code refuses all calls
        except MemoryError:
            raise no_memory(self.plan, fitted) from None
        if ran is not None and ran[0] == 0:
            return tuple(ran[1])
        if ran is not None and ran[0] == NO_MEMORY:
            raise no_memory(self.plan, fitted)
        raise error("W303", "the arguments do not fit the compiled program",
                    types=[slot.type for slot in self.plan.params],
                    hint="their sizes must make one solution for the symbolic dims")


def _nothing(found: Sequence[Recorder]) -> None:
    """There is nothing to tell."""


def no_retry(args: list[Any]) -> Any:
    return NotImplemented


def _order(sources: Sequence[Source]) -> list[int] | None:
    """Where each parameter is among all arguments, then all arrays, then all cells; None if they
    are in that order already."""
    arguments = sum(isinstance(source, int) for source in sources)
    arrays = count(arguments)
    cells = count(arguments + sum(isinstance(source, np.ndarray) for source in sources))
    order = [source if isinstance(source, int) else
             next(arrays) if isinstance(source, np.ndarray) else next(cells)
             for source in sources]
    return None if order == list(range(len(order))) else order


def ask_sizes(plan: Plan, args: Sequence[Any]) -> None:
    """Raise what is wrong with the sizes of arguments, if anything is: dims without a solution
    (W105), what the plan requires and does not hold, or more memory than there can be."""
    dims = _dims_of(plan, args)
    for need in plan.requires:
        if symbols_of(need.left) | symbols_of(need.right) <= dims.keys():
            check_sizes(need, plan.checks[need.site - 1], dims)
    if _bytes_of(plan, dims) >= MOST_BYTES:
        raise no_memory(plan, args)


def check_sizes(need: Relation, site: CheckSite, dims: Mapping[str, int]) -> None:
    """Raise the error of a requirement that does not hold."""
    if not need.holds(dims):
        used = symbols_of(need.left) | symbols_of(need.right)
        sizes = {name: size for name, size in sorted(dims.items()) if name in used}
        values = ", ".join(f"{name} is {size}" for name, size in sizes.items())
        problem = check_failed(site, f" ({values})")
        problem.of_sizes = sizes
        raise problem


def no_memory(plan: Plan, args: Sequence[Any]) -> MemoryError:
    """The error of a step whose results and temporaries do not fit into memory."""
    size = _bytes_of(plan, _dims_of(plan, args))
    return MemoryError(f"{plan.name}: results and temporaries of {size} bytes, or an array on the "
                       "way to them, do not fit into memory")


def _dims_of(plan: Plan, args: Sequence[Any]) -> dict[str, int]:
    arrays = [shaped(arg, slot.type.dtype.numpy)
              for slot, arg in zip(plan.params, args, strict=True)]
    return bind_dims([slot.type for slot in plan.params], arrays,
                     [slot.name for slot in plan.params])


def _bytes_of(plan: Plan, dims: Mapping[str, int]) -> int:
    """Of those sizes that are known before it runs."""
    return evaluate(plan.arena, dims) + sum(
        evaluate(slot.type.nbytes, dims) for slot in plan.results
        if symbols_of(slot.type.nbytes) <= dims.keys())


_HINTS = MappingProxyType({
    "W124": "indices run from -n to n - 1 in an axis of n elements",
    "W131": "pass a number that fits, or give the array a wider dtype: x.astype(np.int64)",
    "W132": "bring it into its range, as np.clip, np.abs and np.exp do",
    "W133": "test it first, or take a number of NumPy's, of which 1 / 0 is inf: np.float64(x)",
    "W105": "only a dim that is always 1, or 1 of x[:1], is repeated; all others must be equal",
    "W102": "call it with larger arrays",
})


# Of checks whose messages have this, before those of their codes.
_OF_MESSAGES = MappingProxyType({
    HELD_IN_64_BITS: "start from floats, which reach 1e308: float(x), or 1.0 in place of 1",
    "a number is out of bounds":
        "pass a smaller number, or keep it a float: np.trunc(x), np.floor(x)",
    "math domain error": "call the function of NumPy, which gives NaN or inf there",
    "math range error": "call the function of NumPy, which gives inf there",
    "too large for a float": "pass a smaller number, or take NumPy's, which is inf: np.float64(x)",
    "negative number is complex": "take a complex number, complex(x), or abs(x)",
    "negative integer powers": "convert the base: float(n) of a number, x.astype(np.float64)",
    "cannot have a negative size": "sizes are 0 or more: np.maximum(n, 0)",
    "negative shift count": "shift to the other side by its size: x >> -n for x << n",
})

_HOLDS = "pass arguments for which this holds"


def failing(plan: Plan) -> Fail:
    """What raises the error of a check of the plan that has failed, by its number. Those of sizes
    come before anything has happened: NotImplemented sends the call where they are known."""
    measured = {step.size for step in plan.measures}
    of_sizes = {need.site for need in plan.requires
                if measured.isdisjoint(symbols_of(need.left) | symbols_of(need.right))}

    def fail(number: int) -> Any:
        if number in of_sizes:
            return NotImplemented
        if number == EXHAUSTED:
            raise MemoryError(f"{plan.name}: an array of a size that was measured, or one on the "
                              "way to it, does not fit into memory")
        raise check_failed(plan.checks[number - 1])

    return fail


def check_failed(site: CheckSite, values: str = "") -> Error:
    """The error of a failed run-time check; ``values`` says what the sizes are."""
    of_index = site.code != "W124" or "out of range" in site.message
    hint = next((hint for part, hint in _OF_MESSAGES.items() if part in site.message), None) or (
        _HINTS.get(site.code, _HOLDS) if of_index else _HOLDS)
    return error(site.code, site.message + values, locs=site.locs, hint=hint)


def fit_all(
    slots: Sequence[Slot], kinds: Sequence[str], values: Sequence[Any]
) -> tuple[list[Any], dict[str, int]]:
    """Arguments in the form of their slots (see ``fit``), and the sizes of their symbols.

    The symbols come first: a dim such as ``2*b`` may stand before the ``b`` that it is checked by.
    """
    bound = plain_dims([slot.type for slot in slots], [np.shape(value) for value in values])
    return [fit(*each, bound) for each in zip(slots, kinds, values, strict=True)], bound


def fit(slot: Slot, kind: str, value: Any, bound: Mapping[str, int]) -> Any:
    """``value`` as a dense array (or scalar) of the slot's type, where symbols are bound.

    Raises W303 or W105 if it has another dtype or shape; nothing is converted silently but
    memory order, byte order and NumPy scalars.
    """
    if kind in SCALARS:
        return SCALARS[kind][0](value)
    array = np.asarray(value)
    wanted = slot.type
    numpy = wanted.dtype.numpy
    if array.dtype != numpy and array.dtype.newbyteorder("=") != numpy:
        raise error("W303", f"'{slot.name}' must be {wanted}, got {array.dtype}"
                            f"{list(array.shape)}", hint=conversion(value, wanted.dtype))
    if array.ndim != wanted.rank:
        raise error("W303", f"'{slot.name}' must be {wanted}, got shape {array.shape}",
                    hint=f"reshape it to {wanted.rank} dims")
    for axis, (dim, size) in enumerate(zip(wanted.shape, array.shape, strict=True)):
        # A dim of other symbols is asked for a solution later (see ``ask_sizes``).
        expected = evaluate(dim, bound) if symbols_of(dim) <= bound.keys() else size
        if expected != size:
            known = f" ({dim} is {expected})" if isinstance(dim, Expr) else ""
            raise error("W105" if isinstance(dim, Expr) else "W303",
                        f"'{slot.name}' must be {wanted}{known}, its axis {axis} has {size}",
                        hint="dims with one symbol have one size" if known else
                             "give it that shape; a dim named by a symbol may have any size")
    if kind == "scalar":
        return array.astype(numpy)[()]
    dense = np.require(array, numpy, ("C", "A"))
    return dense if type(dense) is np.ndarray else np.array(dense, copy=True, subok=False)
