"""The reference interpreter of plans.

A plan runs its kernels (``interp.kernel``) in a real arena, filled with garbage at first, so that a
wrong offset or a missing store gives wrong numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from ..diagnose import error
from ..dims import bind_dims
from ..index import evaluate
from ..kernel import Kernel
from ..plan import Alloc, Copy, Launch, Plan
from .kernel import Array, ChecksFailedError, run_kernel

Runner = Callable[[Kernel, Mapping[str, Array], Mapping[str, int]], None]

POISON = 0xA5  # every byte of fresh memory


def run_plan(
    plan: Plan,
    args: Sequence[Any],
    variables: MutableMapping[str, Any] | None = None,
    kernel_runner: Runner = run_kernel,
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
    for need in plan.requires:
        if not need.holds(dims):
            site = plan.checks[need.site - 1]
            raise error(site.code, site.message, locs=site.locs)
    buffers: dict[str, Array] = {}
    for slot, array in zip(plan.params, arrays, strict=True):
        buffers[slot.name] = np.ascontiguousarray(array).reshape(-1)
        buffers[slot.name].flags.writeable = False
    for slot in plan.results:
        fresh = np.full(evaluate(slot.type.nbytes, dims), POISON, np.uint8)
        buffers[slot.name] = fresh.view(slot.type.dtype.numpy)
    arena = np.full(evaluate(plan.arena, dims), POISON, np.uint8)
    for step in plan.steps:
        if isinstance(step, Alloc):
            buffers[step.name] = _window(step, arena, dims)
        elif isinstance(step, Copy):
            buffers[step.target][...] = buffers[step.source]
        else:
            _launch(plan, step, [buffers[arg] for arg in step.args], dims, kernel_runner)
    results = [buffers[slot.name].reshape([evaluate(dim, dims) for dim in slot.type.shape])
               for slot in plan.results]
    held.update({slot.var: result for slot, result in zip(plan.results, results, strict=True)
                 if slot.var})
    return [result for slot, result in zip(plan.results, results, strict=True) if not slot.var]


def _window(alloc: Alloc, arena: Array, dims: Mapping[str, int]) -> Array:
    offset = evaluate(alloc.offset, dims)
    window = arena[offset:offset + evaluate(alloc.type.nbytes, dims)]
    if offset < 0 or window.size != evaluate(alloc.type.nbytes, dims):
        raise error("W601", f"%{alloc.name} is not inside the arena of {arena.size} bytes")
    return window.view(alloc.type.dtype.numpy)


def _launch(
    plan: Plan, step: Launch, args: Sequence[Array], dims: Mapping[str, int], runner: Runner
) -> None:
    kernel = plan.kernels[step.kernel]
    shaped = {param.name: arg.reshape([evaluate(dim, dims) for dim in param.type.shape])
              for param, arg in zip(kernel.params, args, strict=True)}
    try:
        runner(kernel, shaped, dims)
    except ChecksFailedError as failed:
        site = plan.checks[step.first_check + min(failed.sites) - 2]
        raise error(site.code, site.message, locs=site.locs) from None
