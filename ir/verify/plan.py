"""What a sound plan is: buffers, windows, launches, loops, and an arena in which nothing live
overlaps.

A check yields (step, message) for each broken rule; the step is None where the first line of the
plan is meant. Sizes and offsets with symbolic dims are compared at a few values of the dims.
Recursion is by nesting of steps only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import combinations

from ..diagnose import Error
from ..indices.dims import nonnegative
from ..indices.index import divide, symbols_of
from ..indices.walk import evaluate
from ..kernels.access import may_share
from ..kernels.kernel import Check
from ..kernels.workspace import scratch_bytes
from ..ops.op import Kind
from ..ops.table import OPS
from ..plans.fused import why_not_fused
from ..plans.plan import (
    ALIGNMENT,
    Alloc,
    Branch,
    Copy,
    Group,
    Host,
    Launch,
    Loop,
    Plan,
    Relation,
    Step,
    Window,
    all_steps,
    facts_of,
    host_types,
    sizes_of,
    window_type,
)
from ..plans.times import times_type
from ..record import record
from ..types import BOOL, TensorType
from .graph import symbols_in
from .lives import Life, Timeline, reads_and_writes, windows_of

Problem = tuple[Step | None, str]
Problems = Iterator[Problem]


def _with_loops(
    steps: Sequence[Step], loops: tuple[Loop, ...] = ()
) -> Iterator[tuple[Step, tuple[Loop, ...]]]:
    """All steps, each with the loops around it, outermost first; a loop is around its condition."""
    for step in steps:
        match step:
            case Loop():
                inside = (*loops, step)
                yield step, inside
                yield from _with_loops(step.test, inside)
                yield from _with_loops(step.body, inside)
            case Branch():
                yield step, loops
                yield from _with_loops(step.then, loops)
                yield from _with_loops(step.other, loops)
            case _:
                yield step, loops
                if isinstance(step, Group):
                    yield from _with_loops(step.launches, loops)


def check_kernels(plan: Plan) -> Problems:
    """Kernels are listed under their names, and every launched one is there."""
    for name, kernel in plan.kernels.items():
        if name != kernel.name:
            yield None, f"kernel @{kernel.name} is listed as '{name}'"
    for step in all_steps(plan.steps):
        if isinstance(step, Launch) and step.kernel not in plan.kernels:
            yield step, f"no kernel @{step.kernel}"


def check_buffers(plan: Plan) -> Problems:
    """Buffers have unique names and are listed above the steps that use them, or around them."""
    taken: set[str] = set()
    for slot in (*plan.params, *plan.results):
        if slot.name in taken or not slot.name:
            yield None, f"the name %{slot.name} is taken or empty"
        taken.add(slot.name)
    yield from _buffers_in(plan.steps, set(taken), taken)


def _buffers_in(steps: Sequence[Step], known: set[str], taken: set[str]) -> Problems:
    for step in steps:
        if isinstance(step, Alloc):
            if step.name in taken or not step.name:
                yield step, f"the name %{step.name} is taken or empty"
            taken.add(step.name)
            known.add(step.name)
        tested = set(known)
        if isinstance(step, Loop):
            yield from _buffers_in(step.test, tested, taken)
            for pair in step.carried:
                for name in (pair.buffer, pair.next):
                    if name not in known:
                        yield step, f"no buffer %{name} above"
        for window in windows_of(step):
            if window.buffer not in tested:
                yield step, f"no buffer %{window.buffer} above"
        match step:
            case Loop():
                yield from _buffers_in(step.body, tested, taken)
            case Branch():
                yield from _buffers_in(step.then, set(known), taken)
                yield from _buffers_in(step.other, set(known), taken)
            case Group():
                yield from _buffers_in(step.launches, set(known), taken)


def check_dims(plan: Plan) -> Problems:
    """Every symbolic dim occurs in the type of a parameter, which binds it, or is the index of a
    loop around; these have names of their own."""
    known = frozenset[str]().union(*(symbols_in(slot.type) for slot in plan.params))
    for need in plan.requires:
        if (symbols_of(need.left) | symbols_of(need.right)) - known:
            yield None, f"require {need} has a dim that no parameter binds"
    for slot in plan.results:
        if symbols_in(slot.type) - known:
            yield None, f"%{slot.name}: {slot.type} has a dim that no parameter binds"
    if symbols_of(plan.arena) - known:
        yield None, f"arena = {plan.arena} has a dim that no parameter binds"
    for step, loops in _with_loops(plan.steps):
        indices = [loop.index for loop in loops]
        used, bound = frozenset[str](), known
        if isinstance(step, Alloc):
            used = symbols_in(step.type) | symbols_of(step.offset)
        elif isinstance(step, Loop):
            used = symbols_of(step.count) if step.count is not None else used
            bound = known.union(indices[:-1])
            if step.index in known or step.index in indices[:-1]:
                yield step, f"the name '{step.index}' is taken"
        elif isinstance(step, Launch):
            used, bound = frozenset(plan.kernels[step.kernel].dims), known.union(indices)
        if used - bound:
            yield step, f"no parameter binds dim {min(used - bound)}"
        if isinstance(step, (Launch, Group)) and isinstance(step.parallel, Relation):
            free = (symbols_of(step.parallel.left) | symbols_of(step.parallel.right)) - known
            if free or step.parallel.sign != ">=":
                yield step, f"'parallel if {step.parallel}' is no >= of sizes that parameters bind"
        if isinstance(step, Launch) and step.parallel and step.device.kind == "gpu":
            yield step, "'parallel' is for the workers of a CPU"
        for window in windows_of(step):
            unknown = symbols_in(window.indices) - known.union(indices)
            if unknown:
                yield step, f"'{min(unknown)}' is the index of no loop around"


def check_arguments(plan: Plan) -> Problems:
    """Windows have no more indices than their buffers have dims. Launches and copies fit: as many
    elements, of the same dtype, where complex numbers are two real ones."""
    types = plan.types()
    for step in all_steps(plan.steps):
        long = [w for w in windows_of(step) if len(w.indices) > types[w.buffer].rank]
        if long:
            yield step, f"%{long[0].buffer} is {types[long[0].buffer]}, of fewer dims than indices"
            continue
        if isinstance(step, Launch):
            kernel = plan.kernels[step.kernel]
            if len(step.args) != len(kernel.params):
                yield step, f"{len(step.args)} buffers for {len(kernel.params)} parameters"
                continue
            for param, arg in zip(kernel.params, step.args, strict=True):
                type_ = window_type(arg, types)
                if not _same_memory(param.type, type_):
                    yield step, f"%{arg.buffer} is {type_}, parameter {param.name} is {param.type}"
        elif isinstance(step, Host):
            yield from _host_arguments(step, types)
        elif isinstance(step, Copy):
            source, target = (window_type(w, types) for w in (step.source, step.target))
            if not _same_memory(source, target):
                yield step, f"%{step.source.buffer} is {source}, %{step.target.buffer} is {target}"


def _host_arguments(step: Host, types: Mapping[str, TensorType]) -> Problems:
    """A function of the host sees its windows as what they are, perhaps in another shape. A row
    writes what it infers; of others nothing is known."""
    stated = host_types(step, types)
    for window, type_ in zip((*step.inputs, *step.outputs), stated, strict=True):
        if not _same_memory(window_type(window, types), type_):
            yield step, f"%{window.buffer} is {window_type(window, types)}, not {type_}"
    row, count = OPS.get(step.function), len(step.inputs)
    if row is None or row.kind is not Kind.HOST:
        return
    try:
        inferred = row.infer(*stated[:count], **dict(step.attrs))
    except (Error, TypeError) as problem:
        yield step, f"@{row.name}: {problem}"
        return
    if tuple(stated[count:]) != inferred:
        yield step, f"@{row.name} gives {', '.join(map(str, inferred))}"


def _same_memory(a: TensorType, b: TensorType) -> bool:
    return a.dtype.part == b.dtype.part and a.parts.size == b.parts.size


def check_control(plan: Plan) -> Problems:
    """Conditions are one bool. What a loop carries are two temporaries of one type, each in one
    pair, from outside of the loop; a loop with a test has a condition, and one of them an end."""
    types = plan.types()
    slots = {slot.name for slot in (*plan.params, *plan.results)}
    for step in all_steps(plan.steps):
        if isinstance(step, (Loop, Branch)) and step.condition is not None:
            type_ = window_type(step.condition, types)
            if not _same_memory(type_, TensorType(BOOL, ())):
                yield step, f"the condition %{step.condition.buffer} is {type_}"
        if not isinstance(step, Loop):
            continue
        if step.condition is None and (step.count is None or step.test):
            yield step, "a loop has a count, or a condition for its test"
        names = [name for pair in step.carried for name in (pair.buffer, pair.next)]
        for name in names:
            if name in slots:
                yield step, f"%{name} is the caller's and cannot be carried"
            if names.count(name) > 1:
                yield step, f"%{name} is carried twice"
        for pair in step.carried:
            if types[pair.buffer] != types[pair.next]:
                yield step, (f"%{pair.buffer} is {types[pair.buffer]}, its next is "
                             f"{types[pair.next]}")


def check_windows(plan: Plan) -> Problems:
    """Windows are inside of their buffers in the first and the last round of each loop around."""
    types = plan.types()
    for step, loops in _with_loops(plan.steps):
        for window in windows_of(step):
            used = symbols_in(window.indices)
            moving = [loop for loop in loops if loop.index in used]
            endless = next((loop for loop in moving if loop.count is None), None)
            if endless is not None:
                yield step, f"%{window.buffer}: the loop over {endless.index} has no end"
                continue
            wrong = next((at for values in _bindings(plan) for at in _corners(loops, values)
                          if not _inside(window, types[window.buffer], at)), None)
            if wrong is not None:
                at = ", ".join(str(evaluate(index, wrong)) for index in window.indices)
                yield step, f"%{window.buffer}[{at}] is not inside of {types[window.buffer]}"


def _corners(loops: Sequence[Loop], values: dict[str, int]) -> Iterator[dict[str, int]]:
    """The values with the first and last ones of the indices; none if a loop runs no round. How
    many rounds there are may count on those of the loops around."""
    if not loops:
        yield values
        return
    loop, *inner = loops
    count = 1 if loop.count is None else evaluate(loop.count, values)
    for at in sorted({0, count - 1}) if count > 0 else ():
        yield from _corners(inner, {**values, loop.index: at})


def _inside(window: Window, type_: TensorType, values: dict[str, int]) -> bool:
    return all(0 <= evaluate(index, values) < evaluate(dim, values)
               for index, dim in zip(window.indices, type_.shape, strict=False))


def check_sizes(plan: Plan) -> Problems:
    """No size is negative, whatever the arguments: it is proved, or the plan requires it."""
    facts = facts_of(plan)
    for size in dict.fromkeys(sizes_of(plan)):
        if not nonnegative(size, facts):
            yield None, f"the size {size} may be negative"


def check_writes(plan: Plan) -> Problems:
    """Parameters are never written, results are, and nothing is read before it is written."""
    params = frozenset(slot.name for slot in plan.params)
    empty = {name for name, type_ in plan.types().items() if type_.size == 0}
    known = yield from _Flow(plan, params).after(plan.steps, params | empty)
    for slot in plan.results:
        if slot.name not in known:
            yield None, f"result %{slot.name} is never written"


@record(frozen=True)
class _Flow:
    """What is known to be written as steps run; yields what is read before that.

    A loop may run no round: then only those of its windows that move with its index are all there.
    """

    plan: Plan
    params: frozenset[str]

    def after(
        self, steps: Sequence[Step], known: frozenset[str]
    ) -> Generator[Problem, None, frozenset[str]]:
        new = set(known)
        for step in steps:
            reads, written = reads_and_writes(self.plan, step)
            if isinstance(step, Branch):
                reads = [step.condition]
            for window in reads:
                if window.buffer not in new:
                    yield step, f"%{window.buffer} is read before it is written"
            for window in written:
                if window.buffer in self.params:
                    yield step, f"parameter %{window.buffer} is written"
                new.add(window.buffer)
            match step:
                case Group():
                    before = frozenset(new)
                    for launch in step.launches:
                        new |= yield from self.after([launch], before)
                case Branch():
                    then = yield from self.after(step.then, frozenset(new))
                    new = set(then & (yield from self.after(step.other, frozenset(new))))
                case Loop():
                    new = set((yield from self._after_loop(step, frozenset(new))))
        return frozenset(new)

    def _after_loop(
        self, loop: Loop, known: frozenset[str]
    ) -> Generator[Problem, None, frozenset[str]]:
        tested = yield from self.after(loop.test, known)
        if loop.condition is not None and loop.condition.buffer not in tested:
            yield loop, f"the condition %{loop.condition.buffer} is never written"
        for pair in loop.carried:
            if pair.buffer not in known:
                yield loop, f"%{pair.buffer} is carried, but has no first value"
        inside = yield from self.after(loop.body, tested)
        for pair in loop.carried:
            if pair.next not in inside:
                yield loop, f"%{pair.next} is carried, but the loop does not write it"
        moving = {window.buffer for step in all_steps(loop.body)
                  for window in reads_and_writes(self.plan, step)[1]
                  if loop.index in symbols_in(window.indices)}
        runs = loop.condition is None and isinstance(loop.count, int) and loop.count > 0
        after = tested | (inside if runs else inside & moving)
        return after - {pair.next for pair in loop.carried}


def check_sites(plan: Plan) -> Problems:
    """The numbers of run-time checks are those of the plan's list."""
    for need in plan.requires:
        if not 1 <= need.site <= len(plan.checks):
            yield None, f"check {need.site} of {len(plan.checks)}"
    for step in all_steps(plan.steps):
        if isinstance(step, Launch):
            for stmt in plan.kernels[step.kernel].body:
                if isinstance(stmt, Check) and not (
                        0 < step.first_check <= step.first_check + stmt.site - 1
                        <= len(plan.checks)):
                    number = step.first_check + stmt.site - 1
                    yield step, f"check {number} of {len(plan.checks)}"


def check_arena(plan: Plan) -> Problems:
    """Allocations are aligned and inside the arena, before the scratch of kernels."""
    for step in all_steps(plan.steps):
        if not isinstance(step, Alloc):
            continue
        if divide(step.offset, ALIGNMENT)[1] != 0:
            yield step, f"offset {step.offset} is not a multiple of {ALIGNMENT}"
        for values in _bindings(plan):
            window = _bytes(step, values)
            if window and (window.start < 0 or window.stop > evaluate(plan.scratch_at, values)):
                yield step, (f"bytes {window.start} to {window.stop} are not in the arena"
                             f"{' before its scratch' if plan.scratch else ''}")
                break


def check_scratch(plan: Plan) -> Problems:
    """The scratch is inside the arena, aligned, and enough for every kernel that is launched."""
    if plan.scratch and (plan.scratch < 0 or divide(plan.scratch_at, ALIGNMENT)[1] != 0):
        yield None, f"the scratch is {plan.scratch} bytes at {plan.scratch_at}"
    if any(evaluate(plan.scratch_at, values) < 0 for values in _bindings(plan)):
        yield None, f"a scratch of {plan.scratch} bytes is more than the arena"
    for step in all_steps(plan.steps):
        if isinstance(step, Launch) and scratch_bytes(plan.kernels[step.kernel]) > plan.scratch:
            yield step, (f"@{step.kernel} needs {scratch_bytes(plan.kernels[step.kernel])} bytes "
                         f"of scratch, the plan has {plan.scratch}")


def _apart(a: Window, b: Window) -> bool:
    """True if two windows surely have no element in common, as far as their indices say."""
    gaps = (one - two for one, two in zip(a.indices, b.indices, strict=False))
    return a.buffer != b.buffer or any(isinstance(gap, int) and gap != 0 for gap in gaps)


def check_sharing(plan: Plan) -> Problems:
    """A window is given to a kernel twice only if each element is read before it is written."""
    for step in all_steps(plan.steps):
        if not isinstance(step, Launch) or len({w.buffer for w in step.args}) == len(step.args):
            continue
        kernel = plan.kernels[step.kernel]
        pairs = list(zip(kernel.params, step.args, strict=True))
        for at, (target, arg) in enumerate(pairs):
            for other, (source, window) in enumerate(pairs):
                if target.mutable and other != at and not _apart(arg, window) and not (
                        arg == window and may_share(kernel, source.name, target.name)):
                    yield step, f"%{arg.buffer} is both {source.name} and {target.name}"


def check_groups(plan: Plan) -> Problems:
    """No launch of a group reads or writes what another one writes."""
    for step in all_steps(plan.steps):
        if not isinstance(step, Group):
            continue
        touched = [(launch.args, reads_and_writes(plan, launch)[1]) for launch in step.launches]
        for (args, written), (others, theirs) in combinations(touched, 2):
            met = next((w for mine, yours in ((args, theirs), (others, written))
                        for w in mine for v in yours if not _apart(w, v)), None)
            if met is not None:
                yield step, f"%{met.buffer} is written by one launch and used by another"


def check_overlap(plan: Plan) -> Problems:
    """Temporaries that are live at the same time do not overlap in the arena.

    A temporary is live from the first step that uses it to the last; see ``lives``. One that dies
    at a launch may share its memory with one that the launch writes in place.
    """
    timeline = Timeline(plan)
    lives = timeline.lives()
    for values in _bindings(plan):
        active: list[Life] = []
        for life in sorted(lives, key=lambda life: life.first):
            active = [other for other in active if other.last >= life.first]
            window = _bytes(life.alloc, values)
            for other in active:
                rival = _bytes(other.alloc, values)
                meet = window.start < rival.stop and rival.start < window.stop
                if meet and not (window == rival and _in_place(timeline, other, life)):
                    yield life.alloc, (f"%{life.alloc.name} and %{other.alloc.name} overlap in the "
                                       f"arena while both are live")
            if window:
                active.append(life)


def _bindings(plan: Plan) -> list[dict[str, int]]:
    """Values of the plan's dims to try: none if it has none, else small, unequal and large, as far
    as the plan admits them."""
    dims = sorted(frozenset[str]().union(*(symbols_in(slot.type) for slot in plan.params)))
    if not dims:
        return [{}]
    values = [{name: start + step * at for at, name in enumerate(dims)}
              for start, step in ((0, 0), (1, 0), (3, 4), (64, 0), (1009, 130))]
    return [bound for bound in values if all(need.holds(bound) for need in plan.requires)]


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


def check_times(plan: Plan) -> Problems:
    """Times of rows have a parameter with room for them."""
    if plan.times and (plan.times, times_type(plan)) not in (
            (slot.name, slot.type) for slot in plan.params):
        yield None, f"%{plan.times} is no parameter for times: {times_type(plan)}"


def check_fused(plan: Plan) -> Problems:
    """A fused loop has what one thread runs by itself."""
    for step in all_steps(plan.steps):
        if isinstance(step, Loop) and step.fused and (reason := why_not_fused(plan, step)):
            yield step, f"a fused loop has {reason}"


PLAN_CHECKS: tuple[Callable[[Plan], Problems], ...] = (
    check_kernels, check_buffers, check_dims, check_arguments, check_control, check_windows,
    check_sizes, check_groups, check_writes, check_sites, check_scratch, check_arena,
    check_sharing, check_overlap, check_times, check_fused,
)
