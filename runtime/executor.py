"""Run a compiled plan: arguments in, results out, variables read before and committed after.

A step that writes variables computes into spare buffers and swaps references once the program has
succeeded: a failed step leaves every variable as it was, and a concurrent reader sees a whole old
or a whole new value. Steps that write a variable take turns; all others run side by side.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np

from ..ir.diagnose import error
from ..ir.index import Expr, evaluate, symbols_of
from ..ir.plan import CheckSite, Plan, Slot
from .native_call import Array, CtypesCall, NativeCall

class State(Protocol):
    """A variable as the executor sees it."""

    name: str
    value: Array
    lock: threading.RLock


def default_threads() -> int:
    """Threads a program may use: OMP_NUM_THREADS, else the CPUs this process may run on.

    A control group's quota counts as its number of whole CPUs.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return max(1, min(len(os.sched_getaffinity(0)), _quota()))


def _quota() -> int:
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            limit, period = file.read().split()
        return max(1, int(limit) // int(period))
    except (OSError, ValueError):
        return 1 << 10


class Program:
    """A plan, its native call and where each of the plan's parameters comes from.

    ``captured`` maps parameter names to closed-over arrays, ``variables`` variable names to their
    objects; all other parameters are arguments, in order. ``kinds`` says which arguments are
    Python scalars.
    """

    def __init__(
        self,
        plan: Plan,
        call: NativeCall | CtypesCall,
        checked: CtypesCall,
        *,
        kinds: Sequence[str],
        captured: Mapping[str, Array],
        variables: Mapping[str, State],
    ) -> None:
        self.plan, self._native, self._call, self._checked = plan, call, call.call, checked
        self.launches = 0
        self._sources: list[int | Array | State] = []
        self._slots: list[Slot] = []
        self._kinds = list(kinds)
        for slot in plan.params:
            if slot.var:
                self._sources.append(variables[slot.var])
            elif slot.name in captured:
                self._sources.append(captured[slot.name])
            else:
                self._sources.append(len(self._slots))
                self._slots.append(slot)
        self._written = [(variables[slot.var], slot) for slot in plan.results if slot.var]
        # Always in one order, so that steps that write several variables cannot deadlock.
        self._locks = [state.lock for state, _ in sorted(self._written, key=lambda w: id(w[0]))]
        self._spare: dict[int, Array] = {}
        # With nothing to bind or commit, callers may skip this object altogether.
        self.direct = call.call if len(self._slots) == len(plan.params) and not self._written else None

    @property
    def arguments(self) -> list[Slot]:
        """The parameters that a caller gives."""
        return self._slots

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
        if not self._written:
            return self._step(leaves, ())
        with ExitStack() as stack:
            for lock in self._locks:
                stack.enter_context(lock)
            targets = tuple(self._target(at) for at in range(len(self._written)))
            results = self._step(leaves, targets)
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

    def _step(self, leaves: Sequence[Any], targets: tuple[Array, ...]) -> tuple[Array, ...]:
        args = [leaves[source] if type(source) is int else
                source if isinstance(source, np.ndarray) else source.value  # type: ignore[union-attr]
                for source in self._sources]
        self.launches += self.plan.launches
        results = self._call(*args, *targets)
        if results is NotImplemented:
            results = self._retry(args, targets)
        return results if type(results) is tuple else (results,)

    def _retry(self, args: list[Any], targets: tuple[Array, ...]) -> Any:
        """Bring arguments into the form the program wants, or say what is wrong with them."""
        kinds = iter(self._kinds)
        fitted = []
        bound: dict[str, int] = {}
        for source, slot, value in zip(self._sources, self.plan.params, args, strict=True):
            kind = next(kinds, "array") if type(source) is int else "array"
            fitted.append(fit(slot, kind, value, bound))
        results = self._call(*fitted, *targets)
        if results is not NotImplemented:
            return results
        ran = self._checked.attempt(*fitted, *targets)
        if ran is not None and ran[0] == 0:
            return tuple(array for array, slot in zip(ran[1], self.plan.results, strict=True)
                         if not slot.var)
        if ran is None:
            raise error("W303", "the arguments do not fit the compiled program",
                        types=[slot.type for slot in self._slots])
        raise check_failed(self.plan.checks[ran[0] - 1])


def check_failed(site: CheckSite) -> Exception:
    """The error of a failed run-time check."""
    return error(site.code, site.message, locs=site.locs,
                 hint="indices run from -n to n - 1 in an axis of n elements")


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
        raise error("W303", f"'{slot.name}' must be {wanted}, got shape {array.shape}")
    for dim, size in zip(wanted.shape, array.shape, strict=True):
        expected = _expected(dim, bound, size)
        if expected != size:
            raise error("W105" if isinstance(dim, Expr) else "W303",
                        f"'{slot.name}' must be {wanted}, got shape {array.shape}: "
                        f"{dim} is {expected}")
    dense = np.require(array, numpy, ("C", "A"))
    return dense if type(dense) is np.ndarray else np.array(dense, copy=True, subok=False)


def _expected(dim: Any, bound: dict[str, int], size: int) -> int:
    if isinstance(dim, int):
        return dim
    names = symbols_of(dim)
    if str(dim) in names:
        return bound.setdefault(str(dim), size)
    return evaluate(dim, bound) if names <= set(bound) else size


