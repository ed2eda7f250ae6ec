"""The reference interpreter of plans.

A plan runs its kernels (``interp.kernel``) in a real arena, filled with garbage at first, so that a
wrong offset or a missing store gives wrong numbers. Buffers that a loop carries exchange their
arrays, as the program exchanges its pointers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ..diagnose import Error, error
from ..host import call_host
from ..indices.dims import bind_dims
from ..indices.index import Dim
from ..indices.walk import evaluate
from ..kernels.kernel import Kernel
from ..ops.op import Kind, host_name
from ..ops.table import OPS
from ..plans.plan import (
    Alloc,
    Branch,
    Copy,
    Group,
    Host,
    Launch,
    Loop,
    Measure,
    Plan,
    Recv,
    Send,
    Step,
    Window,
    host_types,
    sizes_told,
)
from ..record import field, record
from ..types import TensorType
from .kernel import Array, ChecksFailedError, run_kernel

Runner = Callable[[Kernel, Mapping[str, Array], Mapping[str, int]], None]
Function = Callable[..., Any]  # of arrays, to a tuple of what it makes of them

POISON = 0xA5  # every byte of fresh memory


@record(frozen=True)
class Outside:
    """What a plan meets outside of itself: functions of the host that are no rows, and what devices
    have sent, by the sender and the key."""

    functions: Mapping[str, Function] = field(default_factory=dict)
    sent: MutableMapping[tuple[str, str], Array] = field(default_factory=dict)
    device: str = "cpu:0"  # that this plan runs on


def run_plan(
    plan: Plan,
    args: Sequence[Any],
    variables: MutableMapping[str, Any] | None = None,
    kernel_runner: Runner = run_kernel,
    outside: Outside | None = None,
) -> list[Array]:
    """Execute a plan and return its results.

    ``args`` are the parameters that are no variables, in order; ``variables`` gives those that
    are, and takes the results of variables when every step has succeeded. ``kernel_runner`` runs
    one kernel, so that compiled kernels can be tried in its place.

    Raises the error of the plan's check list when a run-time check fails.
    """
    held = {} if variables is None else variables
    if len(args) != sum(not slot.var for slot in plan.params):
        raise error("W303", f"plan @{plan.name} got {len(args)} arguments")
    given = iter(args)
    arrays = [np.asarray(held[slot.var] if slot.var else next(given)) for slot in plan.params]
    dims = bind_dims([slot.type for slot in plan.params], arrays,
                     [slot.name for slot in plan.params])
    run = _PlanRun(plan, dims, kernel_runner, outside or Outside())
    for slot, array in zip(plan.params, arrays, strict=True):
        run.buffers[slot.name] = np.ascontiguousarray(array).reshape(-1)
        run.buffers[slot.name].flags.writeable = False
    run.steps(plan.steps)
    results = [run.results[slot.name].reshape(run.shape(slot.type)) for slot in plan.results]
    held.update({slot.var: result for slot, result in zip(plan.results, results, strict=True)
                 if slot.var})
    return [result for slot, result in zip(plan.results, results, strict=True) if not slot.var]


class _PlanRun:
    """The buffers of one run, flat, and the values of dims and of the indices of loops."""

    def __init__(
        self, plan: Plan, dims: Mapping[str, int], runner: Runner, outside: Outside
    ) -> None:
        self.plan, self.runner, self.outside = plan, runner, outside
        self.dims = dict(dims)
        self.types = plan.types()
        self.buffers: dict[str, Array] = {}
        self.results: dict[str, Array] = {}
        self.arenas: dict[str, Array] = {}  # the plan's own, and those of measured sizes
        self._known("", plan.arena)

    def _known(self, size: str, arena: Dim) -> None:
        """Do what waits for a size, or, where it is none, for the start: ask what it has to be,
        take memory, make results."""
        for need in self.plan.requires:
            if self._waits_for((need.left, need.right)) == size and not need.holds(self.dims):
                raise self._failed(need.site)
        self.arenas[size] = np.full(evaluate(arena, self.dims), POISON, np.uint8)
        for slot in self.plan.results:
            if self._waits_for(slot.type.shape) == size:
                fresh = np.full(evaluate(slot.type.nbytes, self.dims), POISON, np.uint8)
                self.buffers[slot.name] = self.results[slot.name] = fresh.view(
                    slot.type.dtype.numpy)

    def _waits_for(self, dims: Sequence[Dim]) -> str:
        return next(reversed(sizes_told(self.plan, dims)), "")

    def _failed(self, number: int) -> Error:
        site = self.plan.checks[number - 1]
        return error(site.code, site.message, locs=site.locs)

    def steps(self, steps: Sequence[Step]) -> None:
        """Run steps in order; recursion is by nesting of steps only."""
        for step in steps:
            match step:
                case Alloc():
                    self.buffers[step.name] = self._memory(step)
                case Launch():
                    self._launch(step)
                case Copy():
                    target = self._window(step.target)
                    target[...] = self._window(step.source).view(target.dtype)
                case Group():
                    self.steps(step.launches)
                case Loop():
                    self._loop(step)
                case Branch():
                    self.steps(step.then if self._holds(step.condition) else step.other)
                case Host():
                    self._host(step)
                case Send():
                    sent = self._window(step.source).copy()
                    self.outside.sent[self.outside.device, step.key] = sent
                case Recv():
                    self._receive(step)
                case Measure():
                    number = self._window(step.number)[0]
                    if number < 0:
                        raise self._failed(step.site)
                    self.dims[step.size] = int(number)
                    self._known(step.size, step.arena)

    def _memory(self, alloc: Alloc) -> Array:
        offset = evaluate(alloc.offset, self.dims)
        size = evaluate(alloc.type.nbytes, self.dims)
        arena = self.arenas[alloc.size]
        window = arena[offset:offset + size]
        if offset < 0 or window.size != size:
            raise error("W601", f"%{alloc.name} is not inside the arena of {arena.size} bytes")
        return window.view(alloc.type.dtype.numpy)

    def shape(self, type_: TensorType) -> list[int]:
        """A shape with the sizes of this run."""
        return [evaluate(dim, self.dims) for dim in type_.shape]

    def _window(self, window: Window) -> Array:
        """The elements of a window, flat."""
        buffer = self.buffers[window.buffer]
        if not window.indices:
            return buffer
        at = tuple(evaluate(index, self.dims) for index in window.indices)
        shape = self.shape(self.types[window.buffer])
        if not all(0 <= index < size for index, size in zip(at, shape, strict=False)):
            raise error("W601", f"%{window.buffer}{list(at)} is not inside of {shape}")
        start = 0
        for index, size in zip(at, shape, strict=False):
            start = start * size + index
        size = math.prod(shape[len(at):])
        return buffer[start * size:(start + 1) * size]

    def _holds(self, condition: Window) -> bool:
        return bool(self._window(condition)[0])

    def _loop(self, loop: Loop) -> None:
        rounds = count() if loop.count is None else range(evaluate(loop.count, self.dims))
        for at in rounds:
            self.dims[loop.index] = at
            self.steps(loop.test)
            if loop.condition is not None and not self._holds(loop.condition):
                break
            self.steps(loop.body)
            self.buffers.update({each: self.buffers[other] for carry in loop.carried
                                 for each, other in carry.pairs})

    def _launch(self, step: Launch) -> None:
        kernel = self.plan.kernels[step.kernel]
        shaped = {param.name: self._window(arg).view(param.type.dtype.numpy).reshape(
                      self.shape(param.type))
                  for param, arg in zip(kernel.params, step.args, strict=True)}
        try:
            self.runner(kernel, shaped, {**self.dims})
        except ChecksFailedError as failed:
            raise self._failed(step.first_check + min(failed.sites) - 1) from None

    def _host(self, step: Host) -> None:
        attrs = dict(step.attrs)
        function, name = self.outside.functions.get(step.function), step.function
        if function is None:
            row = OPS.get(step.function)
            if row is None or row.kind is not Kind.HOST or row.ref is None:
                raise error("W601", f"the host has no function @{step.function}")
            function, name = row.ref, host_name(row, attrs)
        windows, count = (*step.inputs, *step.outputs), len(step.inputs)
        arrays = [self._window(window).view(type_.dtype.numpy).reshape(self.shape(type_))
                  for window, type_ in zip(
            windows, host_types(step, self.types), strict=True)]
        targets = arrays[count:]
        made = call_host(function, [array.copy() for array in arrays[:count]], attrs,
                         [(array.dtype, array.shape) for array in targets], name, step.locs)
        for target, value in zip(targets, made, strict=True):
            target[...] = value

    def _receive(self, step: Recv) -> None:
        key = str(step.device), step.key
        if key not in self.outside.sent:
            raise error("W601", f"{step.device} has sent nothing under the key \"{step.key}\"")
        self._window(step.target)[...] = self.outside.sent.pop(key)
