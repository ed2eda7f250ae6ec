"""What a sound plan is: buffers, launches, and an arena in which nothing live overlaps.

A check yields (step, message) for each broken rule; the step is None where the first line of the
plan is meant. Sizes and offsets with symbolic dims are compared at a few values of the dims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..access import may_share, reads_and_stores
from ..dims import nonnegative
from ..index import divide, evaluate, symbols_of
from ..kernel import Check
from ..plan import ALIGNMENT, Alloc, Copy, Launch, Plan, Step, facts_of, sizes_of
from ..types import TensorType
from .graph import symbols_in

Problems = Iterator[tuple[Step | None, str]]


def buffers_of(step: Step) -> tuple[str, ...]:
    """The buffers that a step reads or writes."""
    if isinstance(step, Launch):
        return step.args
    return (step.source, step.target) if isinstance(step, Copy) else ()


def reads_and_writes(plan: Plan, step: Step) -> tuple[list[str], list[str]]:
    """The buffers whose contents a step needs, and those that it changes."""
    if isinstance(step, Copy):
        return [step.source], [step.target]
    if isinstance(step, Alloc):
        return [], []
    kernel = plan.kernels[step.kernel]
    needed, stored = reads_and_stores(kernel)
    pairs = list(zip(kernel.params, step.args, strict=True))
    return ([arg for param, arg in pairs if param.name in needed],
            [arg for param, arg in pairs if param.name in stored])


def check_kernels(plan: Plan) -> Problems:
    """Kernels are listed under their names, and every launched one is there."""
    for name, kernel in plan.kernels.items():
        if name != kernel.name:
            yield None, f"kernel @{kernel.name} is listed as '{name}'"
    for step in plan.steps:
        if isinstance(step, Launch) and step.kernel not in plan.kernels:
            yield step, f"no kernel @{step.kernel}"


def check_buffers(plan: Plan) -> Problems:
    """Buffers have unique names and are listed above the steps that use them."""
    known: set[str] = set()
    for slot in (*plan.params, *plan.results):
        if slot.name in known or not slot.name:
            yield None, f"the name %{slot.name} is taken or empty"
        known.add(slot.name)
    for step in plan.steps:
        if isinstance(step, Alloc):
            if step.name in known or not step.name:
                yield step, f"the name %{step.name} is taken or empty"
            known.add(step.name)
        for name in buffers_of(step):
            if name not in known:
                yield step, f"no buffer %{name} above"


def check_arguments(plan: Plan) -> Problems:
    """Launches and copies fit: as many elements, of the same dtype."""
    types = plan.types()
    for step in plan.steps:
        if isinstance(step, Launch):
            kernel = plan.kernels[step.kernel]
            if len(step.args) != len(kernel.params):
                yield step, f"{len(step.args)} buffers for {len(kernel.params)} parameters"
                continue
            for param, arg in zip(kernel.params, step.args, strict=True):
                if not _same_memory(param.type, types[arg]):
                    yield step, f"%{arg} is {types[arg]}, parameter {param.name} is {param.type}"
        elif isinstance(step, Copy) and not _same_memory(types[step.source], types[step.target]):
            yield step, f"%{step.source} is {types[step.source]}, " \
                        f"%{step.target} is {types[step.target]}"


def _same_memory(a: TensorType, b: TensorType) -> bool:
    return a.dtype == b.dtype and a.size == b.size


def check_dims(plan: Plan) -> Problems:
    """Every symbolic dim occurs in the type of a parameter, which binds it."""
    known = frozenset[str]().union(*(symbols_in(slot.type) for slot in plan.params))
    for need in plan.requires:
        if (symbols_of(need.left) | symbols_of(need.right)) - known:
            yield None, f"require {need} has a dim that no parameter binds"
    for slot in plan.results:
        if symbols_in(slot.type) - known:
            yield None, f"%{slot.name}: {slot.type} has a dim that no parameter binds"
    if symbols_of(plan.arena) - known:
        yield None, f"arena = {plan.arena} has a dim that no parameter binds"
    for step in plan.steps:
        used = frozenset[str]()
        if isinstance(step, Alloc):
            used = symbols_in(step.type) | symbols_of(step.offset)
        elif isinstance(step, Launch):
            used = frozenset(plan.kernels[step.kernel].dims)
        if used - known:
            yield step, f"no parameter binds dim {min(used - known)}"


def check_sizes(plan: Plan) -> Problems:
    """No size is negative, whatever the arguments: it is proved, or the plan requires it."""
    facts = facts_of(plan)
    for size in dict.fromkeys(sizes_of(plan)):
        if not nonnegative(size, facts):
            yield None, f"the size {size} may be negative"


def check_writes(plan: Plan) -> Problems:
    """Parameters are never written, results are, and nothing is read before it is written."""
    params = {slot.name for slot in plan.params}
    empty = {name for name, type_ in plan.types().items() if type_.size == 0}
    written = params | empty
    for step in plan.steps:
        reads, writes = reads_and_writes(plan, step)
        for name in reads:
            if name not in written:
                yield step, f"%{name} is read before it is written"
        for name in writes:
            if name in params:
                yield step, f"parameter %{name} is written"
        written.update(writes)
    for slot in plan.results:
        if slot.name not in written:
            yield None, f"result %{slot.name} is never written"


def check_sites(plan: Plan) -> Problems:
    """The numbers of run-time checks are those of the plan's list."""
    for need in plan.requires:
        if not 1 <= need.site <= len(plan.checks):
            yield None, f"check {need.site} of {len(plan.checks)}"
    for step in plan.steps:
        if isinstance(step, Launch):
            for stmt in plan.kernels[step.kernel].body:
                if isinstance(stmt, Check) and not (
                        0 < step.first_check <= step.first_check + stmt.site - 1
                        <= len(plan.checks)):
                    number = step.first_check + stmt.site - 1
                    yield step, f"check {number} of {len(plan.checks)}"


def check_arena(plan: Plan) -> Problems:
    """Allocations are aligned and inside the arena."""
    for step in plan.steps:
        if not isinstance(step, Alloc):
            continue
        if divide(step.offset, ALIGNMENT)[1] != 0:
            yield step, f"offset {step.offset} is not a multiple of {ALIGNMENT}"
        for values in _bindings(plan):
            window = _window(step, values)
            if window and (window.start < 0 or window.stop > evaluate(plan.arena, values)):
                yield step, f"bytes {window.start} to {window.stop} are not in the arena"
                break


def check_sharing(plan: Plan) -> Problems:
    """A buffer is given to a kernel twice only if each element is read before it is written."""
    for step in plan.steps:
        if isinstance(step, Launch) and len(set(step.args)) < len(step.args):
            kernel = plan.kernels[step.kernel]
            pairs = list(zip(kernel.params, step.args, strict=True))
            for at, (target, arg) in enumerate(pairs):
                for other, (source, name) in enumerate(pairs):
                    if (target.mutable and other != at and name == arg
                            and not may_share(kernel, source.name, target.name)):
                        yield step, f"%{arg} is both {source.name} and {target.name}"


def check_overlap(plan: Plan) -> Problems:
    """Temporaries that are live at the same time do not overlap in the arena.

    A temporary is live from the first step that uses it to the last. One that dies at a launch
    may share its memory with one that the launch writes in place.
    """
    lives = _lives(plan)
    for values in _bindings(plan):
        active: list[_Life] = []
        for life in sorted(lives, key=lambda life: life.first):
            active = [other for other in active if other.last >= life.first]
            window = _window(life.alloc, values)
            for other in active:
                rival = _window(other.alloc, values)
                meet = window.start < rival.stop and rival.start < window.stop
                if meet and not (window == rival and _in_place(plan, other, life)):
                    yield life.alloc, (f"%{life.alloc.name} and %{other.alloc.name} overlap in the "
                                       f"arena while both are live")
            if window:
                active.append(life)


@dataclass(frozen=True)
class _Life:
    alloc: Alloc
    first: int
    last: int


def _lives(plan: Plan) -> list[_Life]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, step in enumerate(plan.steps):
        for name in buffers_of(step):
            first.setdefault(name, at)
            last[name] = at
    return [_Life(step, first[step.name], last[step.name]) for step in plan.steps
            if isinstance(step, Alloc) and step.name in first]


def _bindings(plan: Plan) -> list[dict[str, int]]:
    """Values of the plan's dims to try: none if it has none, else small, unequal and large, as far
    as the plan admits them."""
    dims = sorted(frozenset[str]().union(*(symbols_in(slot.type) for slot in plan.params)))
    if not dims:
        return [{}]
    values = [{name: start + step * at for at, name in enumerate(dims)}
              for start, step in ((0, 0), (1, 0), (3, 4), (64, 0), (1009, 130))]
    return [bound for bound in values if all(need.holds(bound) for need in plan.requires)]


def _window(alloc: Alloc, values: dict[str, int]) -> range:
    start = evaluate(alloc.offset, values)
    return range(start, start + evaluate(alloc.type.nbytes, values))


def _in_place(plan: Plan, dying: _Life, born: _Life) -> bool:
    step = plan.steps[born.first]
    if dying.last != born.first or not isinstance(step, Launch):
        return False
    kernel = plan.kernels[step.kernel]
    names = dict(zip(step.args, (param.name for param in kernel.params), strict=True))
    once = all(step.args.count(life.alloc.name) == 1 for life in (dying, born))
    return once and may_share(kernel, names[dying.alloc.name], names[born.alloc.name])


PLAN_CHECKS: tuple[Callable[[Plan], Problems], ...] = (
    check_kernels, check_buffers, check_arguments, check_dims, check_sizes, check_writes,
    check_sites, check_arena, check_sharing, check_overlap,
)
