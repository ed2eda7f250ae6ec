"""What the memory of a sound plan is: allocations and scratch in the arena, in which nothing live
overlaps.

Sizes and offsets with symbolic dims are compared at a few values of the dims.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..indices.index import divide
from ..indices.walk import evaluate
from ..kernels.access import may_share
from ..kernels.workspace import scratch_bytes
from ..plans.plan import ALIGNMENT, Alloc, Group, Launch, Plan, Step, all_steps
from .graph import symbols_in
from .lives import Life, Timeline

Problems = Iterator[tuple[Step | None, str]]


def bindings(plan: Plan) -> list[dict[str, int]]:
    """Values of the plan's dims to try: none if it has none, else small, unequal and large, as far
    as the plan admits them."""
    dims = sorted(frozenset(step.size for step in plan.measures).union(
        *(symbols_in(slot.type) for slot in plan.params)))
    if not dims:
        return [{}]
    values = [{name: start + step * at for at, name in enumerate(dims)}
              for start, step in ((0, 0), (1, 0), (3, 4), (64, 0), (1009, 130))]
    return [bound for bound in values if all(need.holds(bound) for need in plan.requires)]


def check_arena(plan: Plan) -> Problems:
    """Allocations are aligned and inside the arena, before the scratch of kernels, or inside the
    memory of a measured size."""
    ends = {"": plan.scratch_at, **{step.size: step.arena for step in plan.measures}}
    for step in all_steps(plan.steps):
        if not isinstance(step, Alloc):
            continue
        if divide(step.offset, ALIGNMENT)[1] != 0:
            yield step, f"offset {step.offset} is not a multiple of {ALIGNMENT}"
        for values in bindings(plan):
            window = _bytes(step, values)
            if window and (window.start < 0 or window.stop > evaluate(
                    ends.get(step.size, 0), values)):
                before = " before its scratch" if plan.scratch and not step.size else ""
                yield step, f"bytes {window.start} to {window.stop} are not in the arena{before}"
                break


def check_scratch(plan: Plan) -> Problems:
    """The scratch is inside the arena, aligned, and enough for every kernel that is launched."""
    if plan.scratch and (plan.scratch < 0 or divide(plan.scratch_at, ALIGNMENT)[1] != 0):
        yield None, f"the scratch is {plan.scratch} bytes at {plan.scratch_at}"
    if any(evaluate(plan.scratch_at, values) < 0 for values in bindings(plan)):
        yield None, f"a scratch of {plan.scratch} bytes is more than the arena"
    for step in all_steps(plan.steps):
        if isinstance(step, Launch) and scratch_bytes(plan.kernels[step.kernel]) > plan.scratch:
            yield step, (f"@{step.kernel} needs {scratch_bytes(plan.kernels[step.kernel])} bytes "
                         f"of scratch, the plan has {plan.scratch}")


def check_overlap(plan: Plan) -> Problems:
    """Temporaries that are live at the same time do not overlap in the arena.

    A temporary is live from the first step that uses it to the last; see ``lives``. One that dies
    at a launch may share its memory with one that the launch writes in place.
    """
    timeline = Timeline(plan)
    lives = timeline.lives()
    for values in bindings(plan):
        active: list[Life] = []
        for life in sorted(lives, key=lambda life: life.first):
            active = [other for other in active if other.last >= life.first]
            window = _bytes(life.alloc, values)
            for other in (each for each in active if each.alloc.size == life.alloc.size):
                rival = _bytes(other.alloc, values)
                meet = window.start < rival.stop and rival.start < window.stop
                if meet and not (window == rival and _in_place(timeline, other, life)):
                    yield life.alloc, (f"%{life.alloc.name} and %{other.alloc.name} overlap in the "
                                       f"arena while both are live")
            if window:
                active.append(life)


def _bytes(alloc: Alloc, values: dict[str, int]) -> range:
    start = evaluate(alloc.offset, values)
    return range(start, start + evaluate(alloc.type.nbytes, values))


def _in_place(timeline: Timeline, dying: Life, born: Life) -> bool:
    step = timeline.moments[born.first]
    launches = step.launches if isinstance(step, Group) else (step,)
    with_either = [launch for launch in launches if isinstance(launch, Launch) and any(
        window.buffer in (dying.alloc.name, born.alloc.name) for window in launch.args)]
    if dying.last != born.first or len(with_either) != 1:
        return False
    launch = with_either[0]
    kernel = timeline.plan.kernels[launch.kernel]
    args = [window.buffer for window in launch.args]
    names = dict(zip(args, (param.name for param in kernel.params), strict=True))
    once = all(args.count(life.alloc.name) == 1 for life in (dying, born))
    return once and may_share(kernel, names[dying.alloc.name], names[born.alloc.name])
