"""Run a compiled plan: arguments in, results out, variables read before and committed after.

A step that writes variables computes into spare buffers and swaps references once the program has
succeeded: a failed step leaves every variable as it was, and a concurrent reader sees a whole old
or a whole new value. Steps that write a variable take turns; all others run side by side.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from ..ir.diagnose import error
from ..ir.index import Expr, evaluate, symbols_of
from ..ir.interp import bind_dims
from ..ir.plan import NO_MEMORY, CheckSite, Plan, Relation, Slot
from .native_call import Array, CtypesCall, NativeCall


class State(Protocol):
    """A variable as the executor sees it."""

    name: str
    value: Array
    lock: threading.RLock


Source = int | Array | State

_MOST_BYTES = 1 << 60  # more than any machine has


class Program:
    """A plan, its native call and where each of the plan's parameters comes from.

    ``sources`` has an entry for each parameter of the plan: the position of a caller's argument,
    a closed-over array, or a variable; ``kinds`` its form: array, float, int or bool.
    """

    def __init__(
        self,
        plan: Plan,
        call: NativeCall | CtypesCall,
        checked: CtypesCall,
        *,
        sources: Sequence[Source],
        kinds: Sequence[str],
        written: Mapping[str, State],
    ) -> None:
        self.plan, self._native, self._call, self._checked = plan, call, call.call, checked
        self.launches, self._each = 0, plan.launches
        self._sources, self._kinds = list(sources), list(kinds)
        self._count = sum(isinstance(source, int) for source in self._sources)
        self._written = [(written[slot.var], slot) for slot in plan.results if slot.var]
        # Always in one order, so that steps that write several variables cannot deadlock.
        states = sorted({id(state): state for state, _ in self._written}.items())
        self._locks = [state.lock for _, state in states]
        self._spare: dict[int, Array] = {}

    @property
    def stateless(self) -> bool:
        """True if results depend on the arguments and closed-over arrays alone."""
        return not self._written and all(isinstance(source, (int, np.ndarray))
                                         for source in self._sources)

    @property
    def direct(self) -> Callable[..., Any]:
        """Calls of a stateless program straight to native code: arguments to raw results."""
        call = self._call
        held = tuple(source for source in self._sources if isinstance(source, np.ndarray))
        if not held:
            return call
        # Closed-over arrays come after the arguments.
        return lambda *args: call(*args, *held)

    @property
    def threads(self) -> int:
        """The number of threads that steps may use, from the next one on."""
        return self._native.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self._native.threads = self._checked.threads = count

    def run(self, leaves: Sequence[Any]) -> tuple[Array, ...]:
        """Run one step and commit its variables; results in order, without the variables.

        Raises OutOfRangeError (W124) and the like when a run-time check fails.
        """
        results = self._run(leaves, self._retry)
        assert results is not NotImplemented, "a retry gives results or raises"
        return results  # type: ignore[no-any-return]

    def attempt(self, *leaves: Any) -> Any:
        """``run``, or NotImplemented, with nothing done, if the arguments are not just right."""
        if len(leaves) != self._count:
            return NotImplemented
        return self._run(leaves, lambda args, targets: NotImplemented)

    def _run(self, leaves: Sequence[Any], otherwise: Callable[..., Any]) -> Any:
        """One step; ``otherwise(args, targets)`` gives the results where the call has none."""
        if not self._written:
            return self._step(leaves, (), otherwise)
        with ExitStack() as stack:
            for lock in self._locks:
                stack.enter_context(lock)
            targets = tuple(self._target(at) for at in range(len(self._written)))
            results = self._step(leaves, targets, otherwise)
            if results is NotImplemented:
                return NotImplemented
            for at, (state, _) in enumerate(self._written):
                old, state.value = state.value, targets[at]
                # Nobody else holds the old value: its memory serves the next step.
                if sys.getrefcount(old) == 2 and old.base is None:
                    old.flags.writeable = True
                    self._spare[at] = old
            return results

    def _target(self, at: int) -> Array:
        spare = self._spare.pop(at, None)
        if spare is not None:
            return spare
        state, slot = self._written[at]
        return np.empty(state.value.shape, slot.type.dtype.numpy)

    def _step(
        self, leaves: Sequence[Any], targets: tuple[Array, ...], otherwise: Callable[..., Any]
    ) -> Any:
        args = [leaves[source] if isinstance(source, int) else
                source if isinstance(source, np.ndarray) else source.value
                for source in self._sources]
        self.launches += self._each
        results = self._call(*args, *targets)
        if results is NotImplemented:
            results = otherwise(args, targets)
        return (results,) if isinstance(results, np.ndarray) else results

    def _retry(self, args: list[Any], targets: tuple[Array, ...]) -> Any:
        """Bring arguments into the form the program wants, or say what is wrong with them."""
        bound = plain_dims(self.plan.params, args)
        fitted = [fit(slot, kind, value, bound)
                  for slot, kind, value in zip(self.plan.params, self._kinds, args, strict=True)]
        results = self._call(*fitted, *targets)
        if results is not NotImplemented:
            return results
        ask_sizes(self.plan, fitted)
        try:
            ran = self._checked.attempt(*fitted, *targets)
        except MemoryError:
            raise no_memory(self.plan, fitted) from None
        if ran is not None and ran[0] == 0:
            return tuple(array for array, slot in zip(ran[1], self.plan.results, strict=True)
                         if not slot.var)
        if ran is not None and ran[0] == NO_MEMORY:
            raise no_memory(self.plan, fitted)
        if ran is None or ran[0] < 0:
            raise error("W303", "the arguments do not fit the compiled program",
                        types=[slot.type for slot in self.plan.params],
                        hint="their sizes must make one solution for the symbolic dims")
        raise check_failed(self.plan.checks[ran[0] - 1])


def plain_dims(slots: Sequence[Slot], args: Sequence[Any]) -> dict[str, int]:
    """The sizes that arguments give to dims that are just a symbol; the first one counts."""
    bound: dict[str, int] = {}
    for slot, value in zip(slots, args, strict=True):
        for dim, size in zip(slot.type.shape, np.shape(value), strict=False):
            if symbols_of(dim) == {str(dim)}:
                bound.setdefault(str(dim), size)
    return bound


def ask_sizes(plan: Plan, args: Sequence[Any]) -> None:
    """Raise what is wrong with the sizes of arguments, if anything is: dims without a solution
    (W105), what the plan requires and does not hold, or more memory than there can be."""
    dims = _dims_of(plan, args)
    for need in plan.requires:
        check_sizes(need, plan.checks[need.site - 1], dims)
    if _bytes_of(plan, dims) >= _MOST_BYTES:
        raise no_memory(plan, args)


def check_sizes(need: Relation, site: CheckSite, dims: Mapping[str, int]) -> None:
    """Raise the error of a requirement that does not hold."""
    left, right = evaluate(need.left, dims), evaluate(need.right, dims)
    if not need.holds(left, right):
        values = ", ".join(f"{name} is {size}" for name, size in sorted(dims.items())
                           if name in symbols_of(need.left) | symbols_of(need.right))
        raise check_failed(site, f" ({values})")


def no_memory(plan: Plan, args: Sequence[Any]) -> MemoryError:
    """The error of a step whose results and temporaries do not fit into memory."""
    size = _bytes_of(plan, _dims_of(plan, args))
    return MemoryError(f"{plan.name}: results and temporaries of {size} bytes, or an array on the "
                       "way to them, do not fit into memory")


def _dims_of(plan: Plan, args: Sequence[Any]) -> dict[str, int]:
    arrays = [np.asarray(arg, slot.type.dtype.numpy)
              for slot, arg in zip(plan.params, args, strict=True)]
    return bind_dims([slot.type for slot in plan.params], arrays,
                     [slot.name for slot in plan.params])


def _bytes_of(plan: Plan, dims: Mapping[str, int]) -> int:
    return evaluate(plan.arena, dims) + sum(evaluate(slot.type.nbytes, dims)
                                            for slot in plan.results)


_HINTS = MappingProxyType({
    "W124": "indices run from -n to n - 1 in an axis of n elements",
    "W105": "only a dim that is written as 1 is repeated; all others must be equal",
    "W102": "call it with larger arrays",
})


def check_failed(site: CheckSite, values: str = "") -> Exception:
    """The error of a failed run-time check; ``values`` says what the sizes are."""
    return error(site.code, site.message + values, locs=site.locs, hint=_HINTS.get(site.code, ""))


def fit(slot: Slot, kind: str, value: Any, bound: dict[str, int]) -> Any:
    """``value`` as a dense array (or Python scalar) of the slot's type; binds symbolic dims.

    Raises W303 or W105 if it has another dtype or shape; nothing is converted silently but
    memory order, byte order and NumPy scalars.
    """
    if kind != "array":
        python = {"float": float, "int": int, "bool": bool}[kind]
        return python(value)
    array = np.asarray(value)
    wanted = slot.type
    numpy = wanted.dtype.numpy
    if array.dtype != numpy and array.dtype.newbyteorder("=") != numpy:
        raise error("W303", f"'{slot.name}' must be {wanted}, got {array.dtype}"
                            f"{list(array.shape)}", hint=f"convert it: x.astype(np.{numpy})")
    if array.ndim != wanted.rank:
        raise error("W303", f"'{slot.name}' must be {wanted}, got shape {array.shape}",
                    hint=f"reshape it to {wanted.rank} dims")
    for axis, (dim, size) in enumerate(zip(wanted.shape, array.shape, strict=True)):
        expected = _expected(dim, bound, size)
        if expected != size:
            known = f" ({dim} is {expected})" if isinstance(dim, Expr) else ""
            raise error("W105" if isinstance(dim, Expr) else "W303",
                        f"'{slot.name}' must be {wanted}{known}, its axis {axis} has {size}",
                        hint="dims with one symbol have one size" if known else
                             "give it that shape; a dim named by a symbol may have any size")
    dense = np.require(array, numpy, ("C", "A"))
    return dense if type(dense) is np.ndarray else np.array(dense, copy=True, subok=False)


def _expected(dim: Any, bound: dict[str, int], size: int) -> int:
    if isinstance(dim, int):
        return dim
    names = symbols_of(dim)
    if str(dim) in names:
        return bound.setdefault(str(dim), size)
    return evaluate(dim, bound) if names <= set(bound) else size


