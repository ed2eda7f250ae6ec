"""One run of a plan on a device: loops, branches and copies are walked here, kernels run there.

A step is told to a stream as soon as the ones before it are; the host waits only for what it has to
know: the condition of a branch or loop, and whether a check has failed. So no more rounds of a loop
begin than there are, and nothing is computed with an index that was out of range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.indices.walk import evaluate
from ...ir.plans.image import KernelImage
from ...ir.plans.plan import (
    Alloc,
    Branch,
    Copy,
    Group,
    Launch,
    Loop,
    Plan,
    Step,
    Window,
    window_type,
)
from ...ir.record import record
from .device import Stream


@record(frozen=True)
class Loaded:
    """A kernel on its device, and what it was loaded from."""

    image: KernelImage
    kernel: Any


class CheckFailed(Exception):  # noqa: N818 (it is told of as another error)
    """The check of this number of the plan does not hold."""

    def __init__(self, site: int) -> None:
        super().__init__(site)
        self.site = site


class Walk:
    """The addresses of one run, and the values of sizes and of the indices of loops.

    ``buffers`` has the addresses of parameters and results, ``arena`` that of temporaries,
    ``status`` that of the int32 which checks write to.
    """

    def __init__(
        self, plan: Plan, kernels: Mapping[str, Loaded], stream: Stream, dims: Mapping[str, int],
        buffers: Mapping[str, int], arena: int, status: int,
    ) -> None:
        self.plan, self.kernels, self.stream = plan, kernels, stream
        self.dims, self.buffers = dict(dims), dict(buffers)
        self.types = plan.types()
        self.arena, self.status, self._clear = arena, status, False

    def run(self) -> None:
        """Run the plan. Raises CheckFailed, and what the stream raises."""
        self.begin()
        self.stream.synchronise()

    def begin(self) -> None:
        """Tell the stream of all steps; wait for what has to be known. Raises as ``run``."""
        self._steps(self.plan.steps)

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:  # recursion is by nesting of steps only
            match step:
                case Alloc():
                    self.buffers[step.name] = self.arena + evaluate(step.offset, self.dims)
                case Launch():
                    self._launch(step)
                case Copy():
                    size = evaluate(window_type(step.source, self.types).nbytes, self.dims)
                    self.stream.copy(self._address(step.source), self._address(step.target), size)
                case Group():
                    self._steps(step.launches)
                case Loop():
                    self._loop(step)
                case Branch():
                    self._steps(step.then if self._holds(step.condition) else step.other)
                case _:
                    raise error("W601", f"a device cannot run the step {type(step).__name__}")

    def _address(self, window: Window) -> int:
        address, type_ = self.buffers[window.buffer], self.types[window.buffer]
        if not window.indices:
            return address
        at = 0
        for index, dim in zip(window.indices, type_.shape, strict=False):
            at = at * evaluate(dim, self.dims) + evaluate(index, self.dims)
        return address + at * evaluate(window_type(window, self.types).nbytes, self.dims)

    def _holds(self, condition: Window) -> bool:
        found = np.empty(1, np.bool_)
        self.stream.download(self._address(condition), found)
        return bool(found[0])

    def _loop(self, loop: Loop) -> None:
        rounds = count() if loop.count is None else range(evaluate(loop.count, self.dims))
        for at in rounds:
            self.dims[loop.index] = at
            self._steps(loop.test)
            if loop.condition is not None and not self._holds(loop.condition):
                break
            self._steps(loop.body)
            self.buffers.update({each: self.buffers[other] for carry in loop.carried
                                 for each, other in carry.pairs})

    def _launch(self, step: Launch) -> None:
        loaded = self.kernels[step.kernel]
        image = loaded.image
        grid = evaluate(image.grid, self.dims)
        if not grid:
            return
        arguments = [self._address(window) for window in step.args]
        arguments += [self.dims[name] for name in image.dims]
        if not image.checked:
            self.stream.launch(loaded.kernel, grid, arguments)
            return
        status = np.zeros(1, np.int32)
        if not self._clear:
            self.stream.upload(status, self.status)
            self._clear = True  # as it stays unless a check fails, which ends the run
        self.stream.launch(loaded.kernel, grid, [*arguments, self.status])
        self.stream.download(self.status, status)
        if status[0]:
            raise CheckFailed(step.first_check + int(status[0]) - 1)
