"""What a sound plan is: buffers, windows, launches, loops; ``memory`` has what its arena is.

A check yields (step, message) for each broken rule; the step is None where the first line of the
plan is meant. Sizes and offsets with symbolic dims are compared at a few values of the dims.
Recursion is by nesting of steps only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import combinations

from ..diagnose import Error
from ..indices.dims import is_surely_size
from ..indices.index import symbols_of
from ..indices.walk import evaluate
from ..kernels.access import may_share
from ..kernels.kernel import Check
from ..ops.op import Kind
from ..ops.table import OPS
from ..plans.fused import why_not_fused
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
    Relation,
    Step,
    Window,
    all_steps,
    bodies_of,
    facts_of,
    host_types,
    sizes_of,
    window_type,
)
from ..plans.times import times_type
from ..record import record
from ..types import BOOL, I64, TensorType
from .graph import symbols_in
from .lives import reads_and_writes, windows_of
from .memory import bindings, check_arena, check_overlap, check_scratch

Problem = tuple[Step | None, str]
Problems = Iterator[Problem]


def _with_loops(
    steps: Sequence[Step], loops: tuple[Loop, ...] = ()
) -> Iterator[tuple[Step, tuple[Loop, ...]]]:
    """All steps, each with the loops around it, outermost first; a loop is around its condition."""
    return ((step, around) for step, around, _ in _in_scope(steps, loops, frozenset()))


def _in_scope(
    steps: Sequence[Step], loops: tuple[Loop, ...], sizes: frozenset[str]
) -> Iterator[tuple[Step, tuple[Loop, ...], frozenset[str]]]:
    """The same, and the sizes that have been measured by then."""
    for step in steps:
        inside = (*loops, step) if isinstance(step, Loop) else loops
        yield step, inside, sizes
        for body in bodies_of(step):
            yield from _in_scope(body, inside, sizes)
        if isinstance(step, Measure):
            sizes |= {step.size}


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
            for name in step.exchanged:
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
    """Every symbolic dim occurs in the type of a parameter, which binds it, is measured by a step
    above, or is the index of a loop around; these have names of their own."""
    given = frozenset[str]().union(*(symbols_in(slot.type) for slot in plan.params))
    measured = {step.size for step in plan.measures}
    for need in plan.requires:
        if (symbols_of(need.left) | symbols_of(need.right)) - given - measured:
            yield None, f"require {need} has a dim that nothing binds"
    last = {step.size for step in plan.steps if isinstance(step, Measure)}
    for slot in plan.results:
        if symbols_in(slot.type) - given - last:
            yield None, f"%{slot.name}: {slot.type} has a dim that nothing binds"
    if symbols_of(plan.arena) - given:
        yield None, f"arena = {plan.arena} has a dim that no parameter binds"
    names = [*(loop.index for loop in all_steps(plan.steps) if isinstance(loop, Loop))]
    for step, loops, sizes in _in_scope(plan.steps, (), frozenset()):
        known = given | sizes
        indices = [loop.index for loop in loops]
        used, bound = frozenset[str](), known
        if isinstance(step, Alloc):
            used = symbols_in(step.type) | symbols_of(step.offset)
            if step.size and step.size not in sizes:
                yield step, f"no size '{step.size}' is measured above"
        elif isinstance(step, Measure):
            used, bound = symbols_of(step.arena), known | {step.size}
            if step.size in known or step.size in names:
                yield step, f"the name '{step.size}' is taken"
        elif isinstance(step, Loop):
            used = symbols_of(step.count) if step.count is not None else used
            bound = known.union(indices[:-1])
            if step.index in known or step.index in indices[:-1]:
                yield step, f"the name '{step.index}' is taken"
        elif isinstance(step, Launch):
            used, bound = frozenset(plan.kernels[step.kernel].dims), known.union(indices)
        if used - bound:
            yield step, f"nothing binds dim {min(used - bound)}"
        if isinstance(step, (Launch, Group)) and isinstance(step.parallel, Relation):
            free = (symbols_of(step.parallel.left) | symbols_of(step.parallel.right)) - known
            if free or step.parallel.sign != ">=":
                yield step, f"'parallel if {step.parallel}' is no >= of sizes that are bound"
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
    """Conditions are one bool, numbers that are measured one i64. What a loop carries are two
    temporaries of one type, each in one pair, from outside of the loop; a loop with a test has a
    condition, and one of them an end."""
    types = plan.types()
    slots = {slot.name for slot in (*plan.params, *plan.results)}
    for step in all_steps(plan.steps):
        if isinstance(step, (Loop, Branch)) and step.condition is not None:
            type_ = window_type(step.condition, types)
            if not _same_memory(type_, TensorType(BOOL, ())):
                yield step, f"the condition %{step.condition.buffer} is {type_}"
        if isinstance(step, Measure):
            type_ = window_type(step.number, types)
            if type_ != TensorType(I64, ()):
                yield step, f"the size %{step.number.buffer} is {type_}"
        if not isinstance(step, Loop):
            continue
        if step.condition is None and (step.count is None or step.test):
            yield step, "a loop has a count, or a condition for its test"
        for name in step.exchanged:
            if name in slots:
                yield step, f"%{name} is the caller's and cannot be carried"
            if step.exchanged.count(name) > 1:
                yield step, f"%{name} is carried twice"
        for carry in step.carried:
            for name, other in carry.pairs:
                if types[name] != types[other]:
                    yield step, f"%{name} is {types[name]}, its next is {types[other]}"


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
            wrong = next((at for values in bindings(plan) for at in _corners(loops, values)
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
    for size, rounds in sizes_of(plan):
        if not is_surely_size(size, rounds, facts):
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
        for carry in loop.carried:
            if carry.buffers[0] not in known:
                yield loop, f"%{carry.buffers[0]} is carried, but has no first value"
        inside = yield from self.after(loop.body, tested)
        pairs = [pair for carry in loop.carried for pair in carry.pairs]
        for name, other in pairs:
            if name in known and other not in inside:
                yield loop, f"%{other} is carried, but the loop does not write it"
        moving = {window.buffer for step in all_steps(loop.body)
                  for window in reads_and_writes(self.plan, step)[1]
                  if loop.index in symbols_in(window.indices)}
        runs = loop.condition is None and isinstance(loop.count, int) and loop.count > 0
        after = tested | (inside if runs else inside & moving)
        return after - {name for name, _ in pairs if name not in known}


def check_sites(plan: Plan) -> Problems:
    """The numbers of run-time checks are those of the plan's list."""
    for need in plan.requires:
        if not 1 <= need.site <= len(plan.checks):
            yield None, f"check {need.site} of {len(plan.checks)}"
    for step in all_steps(plan.steps):
        if isinstance(step, Measure) and not 1 <= step.site <= len(plan.checks):
            yield step, f"check {step.site} of {len(plan.checks)}"
        if isinstance(step, Launch):
            for stmt in plan.kernels[step.kernel].body:
                if isinstance(stmt, Check) and not (
                        0 < step.first_check <= step.first_check + stmt.site - 1
                        <= len(plan.checks)):
                    number = step.first_check + stmt.site - 1
                    yield step, f"check {number} of {len(plan.checks)}"


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
