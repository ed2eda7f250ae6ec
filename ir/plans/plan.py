"""The executable plan: what one native program does, as a tree of steps.

A plan owns nothing: inputs and results are buffers of the caller, temporaries are parts of one
arena whose offsets were decided by the memory pass. Variables appear as slots with a ``var``: a
parameter that is read, a result that is written; the runtime commits results only after the
program has succeeded, so a failed step leaves every variable as it was.

    plan @rnn(%xs: f32[9,4,8], %h0: f32[4,2]) -> (%ys: f32[9,4,2], %h1: f32[4,2]) arena = 128 {
      alloc %h: f32[4,2] at 0
      alloc %h.next: f32[4,2] at 64
      copy %h0 to %h
      loop t in 9 carry (%h = %h.next) {
        launch @cell(%xs[t], %h, %h.next) on cpu:0
        copy %h.next to %ys[t]
      }
      copy %h to %h1
    }

A *window* is a buffer, or the contiguous part of it at leading indices (``%xs[8 - t]``),
expressions over the dims of the plan and the indices of the loops around.

A loop runs its body for each round, with its index from 0. The pairs that it *carries* exchange
their memory at the end of each round: what was ``%h.next`` is ``%h`` in the next one and after the
loop, whichever bytes that are, and nothing is copied. A round that may overwrite what it has read
needs no pair: it writes to ``%h``. ``loop t while %more limit 9 { test { ... } ... }`` runs the
steps of ``test`` before each round, the first one too, and ends where they leave ``%more`` false.

With ``arena = 4224 scratch = 4096`` the last bytes of the arena are what the calling thread needs
besides for the tasks of kernels; workers have memory of their own for that.

The tasks of a launch run one after the other in the calling thread, or with ``parallel`` at the
end of its line on all workers as well, which take chunks of them: four for each thread.
``parallel if 8*b >= 262144`` asks the sizes of each call.

``measure n = %count check 2 arena = 64*n`` makes a number the size n, for the steps after it in its
list: buffers of such sizes lie in memory of their own, so many bytes of it, until the list ends
(``alloc %c: i64[n] at 0 of n``). Results of such sizes are the caller's, who makes them then.

The launches of a ``group`` may run in any order, or at once: none of them reads or writes what
another one writes. Their tasks are shared out like those of one launch, if the group says so; a
group with checks is run launch by launch, as each of them says. ``host``, ``send`` and ``recv`` are
the doors to functions of the host and to the plans of other devices:

    host @qr(%a: f32[4,3]) -> (%q: f32[4,3], %r: f32[3,3]) {mode = "reduced"}  // from model.py:12
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from ..graph import Node
from ..indices.index import Dim, ceil_div, product, symbol, symbols_of
from ..indices.rounds import Counts, counts_inside, rounds_behind
from ..indices.walk import evaluate
from ..kernels.kernel import Kernel
from ..loc import Loc
from ..record import field, record, replace
from ..types import CPU0, Device, TensorType

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
# Bytes of a buffer that a fused loop has as a local, and copies where others are exchanged.
LOCAL = 64
# What a compiled plan returns besides 0 and the number of a check that failed: its sizes are past
# all memory, or those of its arguments do not agree. Then nothing has happened.
NO_MEMORY, MISFIT = -1, -5
EXHAUSTED = -7  # there is no memory for what is as large as a size that was measured
# More than any machine has, and more elements than one can walk in a day; sizes below it are
# computed without overflow, and divided exactly in floating point.
MOST_BYTES = 1 << 52


@record(frozen=True)
class Slot:
    """A buffer of the caller; ``var`` names the variable it is read from or committed to."""

    name: str
    type: TensorType
    var: str = ""


@record(frozen=True)
class Alloc:
    """A temporary at a byte offset of the arena, or of the memory of a measured ``size``."""

    name: str
    type: TensorType
    offset: Dim
    size: str = ""


@record(frozen=True)
class Window:
    """A buffer, or the part of it at leading indices."""

    buffer: str
    indices: tuple[Dim, ...] = ()

    def at(self, *indices: Dim) -> Window:
        """The part of this window at more indices."""
        return Window(self.buffer, (*self.indices, *indices))


@record(frozen=True)
class Launch:
    """Run a kernel on windows, in the order of its parameters.

    A kernel numbers its checks from 1; ``first_check`` is the number that its first one has in
    this plan, so launches of one kernel stand for different lines of the user. ``parallel`` says
    whether its tasks go to the workers, always, never or if sizes are so. ``origin`` is the fused
    node that the kernel computes here, with the user's lines, where it is known; text has it not.
    """

    kernel: str
    args: tuple[Window, ...]
    device: Device = CPU0
    first_check: int = 1
    parallel: bool | Relation = False
    origin: Node | None = field(default=None, compare=False, repr=False)


@record(frozen=True)
class Copy:
    """Copy a whole window."""

    source: Window
    target: Window


@record(frozen=True)
class Group:
    """Launches that do not depend on each other's order."""

    launches: tuple[Launch, ...]
    parallel: bool | Relation = False


@record(frozen=True)
class Carry:
    """Buffers that exchange their memory after each round: each has that of the one behind it from
    then on, and the last one that of the first. The first one has a value before the loop, and so
    may others."""

    buffers: tuple[str, ...]

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each buffer, and the one whose memory it has next."""
        return zip(self.buffers, (*self.buffers[1:], self.buffers[0]), strict=True)


@record(frozen=True)
class Loop:
    """``body`` for each value of ``index`` below ``count`` (None: without end), which may be of the
    indices of loops around.

    With a ``condition`` the steps of ``test`` come before each round, and the loop ends where they
    leave it false. One that is ``fused`` is one piece of code, which one thread runs.
    """

    index: str
    count: Dim | None
    body: tuple[Step, ...]
    carried: tuple[Carry, ...] = ()
    condition: Window | None = None
    test: tuple[Step, ...] = ()
    fused: bool = False

    @property
    def exchanged(self) -> tuple[str, ...]:
        """All buffers that exchange their memory after each round."""
        return tuple([name for carry in self.carried for name in carry.buffers])


@record(frozen=True)
class Branch:
    """``then`` where the condition is true, else ``other``."""

    condition: Window
    then: tuple[Step, ...]
    other: tuple[Step, ...] = ()


@record(frozen=True)
class Host:
    """Call a function of the host, a HOST row with its attributes, that reads some windows and
    writes others. It sees them as arrays of these ``types``, inputs then outputs; empty if they are
    those of the windows."""

    function: str
    inputs: tuple[Window, ...]
    outputs: tuple[Window, ...]
    types: tuple[TensorType, ...] = ()
    attrs: tuple[tuple[str, Any], ...] = ()
    locs: tuple[Loc, ...] = field(default=(), compare=False)


@record(frozen=True)
class Send:
    """Give the contents of a window to another device, under a key."""

    source: Window
    device: Device
    key: str


@record(frozen=True)
class Recv:
    """Wait for what another device sends under a key."""

    target: Window
    device: Device
    key: str


@record(frozen=True)
class Measure:
    """Make a number, an i64 in memory, a ``size``, and ``arena`` bytes for what is so large; check
    ``site`` fails where it is negative."""

    size: str
    number: Window
    site: int
    arena: Dim = 0


Step = Alloc | Launch | Copy | Group | Loop | Branch | Host | Send | Recv | Measure


def bodies_of(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The lists of steps that a step holds, in the order in which they run."""
    match step:
        case Loop():
            return step.test, step.body
        case Branch():
            return step.then, step.other
        case Group():
            return (step.launches,)
    return ()


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """All steps of a tree, each before those that it holds."""
    pending = list(steps)[::-1]
    while pending:
        step = pending.pop()
        yield step
        for body in reversed(bodies_of(step)):
            pending += reversed(body)


def map_launches(
    steps: Iterable[Step], change: Callable[[Launch], Launch],
    regroup: Callable[[Group], Group] = lambda group: group,
) -> tuple[Step, ...]:
    """The same tree with other launches, and then with other groups."""
    def moved(step: Step) -> Step:  # recursion is by nesting of steps only
        match step:
            case Launch():
                return change(step)
            case Group():
                return regroup(replace(step, launches=tuple(map(change, step.launches))))
            case Loop():
                return replace(step, body=tuple(map(moved, step.body)),
                               test=tuple(map(moved, step.test)))
            case Branch():
                return replace(step, then=tuple(map(moved, step.then)),
                               other=tuple(map(moved, step.other)))
        return step

    return tuple(map(moved, steps))


def map_loops(steps: Iterable[Step], change: Callable[[Loop], Loop]) -> tuple[Step, ...]:
    """The same tree with other loops; what is inside of one that is ``fused`` then stays."""
    def moved(step: Step) -> Step:  # recursion is by nesting of steps only
        match step:
            case Loop():
                changed = change(step)
                return changed if changed.fused else replace(
                    changed, body=tuple(map(moved, changed.body)),
                    test=tuple(map(moved, changed.test)))
            case Branch():
                return replace(step, then=tuple(map(moved, step.then)),
                               other=tuple(map(moved, step.other)))
        return step

    return tuple(map(moved, steps))


@record(frozen=True)
class CheckSite:
    """What a failed run-time check means, and the user's line it stands for."""

    code: str
    message: str
    locs: tuple[Loc, ...] = field(default=(), compare=False)


@record(frozen=True)
class Relation:
    """Two sizes, and how they are related where all is well."""

    left: Dim
    sign: Literal["==", ">="]
    right: Dim

    @property
    def facts(self) -> tuple[Dim, ...]:
        """What is not negative once this holds."""
        gap = self.left - self.right
        return (gap,) if self.sign == ">=" else (gap, -gap)

    def holds(self, dims: Mapping[str, int]) -> bool:
        """Whether they are related so where symbols have these values."""
        left, right = evaluate(self.left, dims), evaluate(self.right, dims)
        return left >= right if self.sign == ">=" else left == right

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@record(frozen=True)
class Require(Relation):
    """What a plan asks as soon as its sizes are known, before it touches any memory but for those
    that it measures; ``site`` is the check that fails otherwise."""

    site: int


@record(frozen=True, eq=False)
class KernelCall:
    """A kernel with the graph values (by name) that are its parameters: input of the memory pass.

    ``updates`` pairs a result value with the value whose contents it must hold when the kernel
    starts (the base of a scatter): the same memory if that value dies here, else a copy.
    ``checks`` are what the run-time checks of the kernel stand for here; ``rooms`` are the
    values, by name, that are only memory for it, of which the graph knows nothing. ``origin`` is
    the fused node.
    """

    kernel: Kernel
    args: tuple[str, ...]
    updates: tuple[tuple[str, str], ...] = ()
    checks: tuple[CheckSite, ...] = ()
    rooms: tuple[tuple[str, TensorType], ...] = ()
    origin: Node | None = None


@record(frozen=True)
class Handing:
    """When a plan reads each parameter last (``last``), and when it writes each result first
    (``first``, -1 where that is a copy at the end): from then on, a result may have the memory of a
    parameter of its type that is needed no more. At that very moment, only what is ``allowed``, by
    number: each element is read before it is written, at one place."""

    last: tuple[int, ...]
    first: tuple[int, ...]
    allowed: tuple[frozenset[int], ...]

    def may(self, param: int, result: int) -> bool:
        """Whether a result may have the memory of a parameter of its type."""
        first, last = self.first[result], self.last[param]
        return last < first or (last == first and param in self.allowed[result])


@record(frozen=True, eq=False)
class Plan:
    """Parameters, results, steps and the kernels they launch; check numbers start at 1.

    ``requires`` makes sure that no size of the plan is negative. The last
    ``scratch`` bytes of the arena are what the calling thread brings to the tasks of kernels.
    ``times`` names the parameter that takes the times of rows, if there is one (``plans.times``).
    ``handing`` says which results may have the memory of which parameters, if any may.
    """

    name: str
    params: tuple[Slot, ...]
    results: tuple[Slot, ...]
    steps: tuple[Step, ...]
    arena: Dim
    kernels: dict[str, Kernel]
    checks: tuple[CheckSite, ...] = ()
    requires: tuple[Require, ...] = ()
    scratch: int = 0
    times: str = ""
    handing: Handing | None = field(default=None, compare=False, repr=False)

    @property
    def scratch_at(self) -> Dim:
        """Where in the arena the scratch begins: after all temporaries."""
        return self.arena - self.scratch

    @property
    def launches(self) -> int:
        """How many launches there are; those of a loop count once."""
        return sum(isinstance(step, Launch) for step in all_steps(self.steps))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The steps that make sizes, in order."""
        return tuple(step for step in all_steps(self.steps) if isinstance(step, Measure))

    def types(self) -> dict[str, TensorType]:
        """The type of every buffer by name."""
        table = {slot.name: slot.type for slot in (*self.params, *self.results)}
        table.update({step.name: step.type for step in all_steps(self.steps)
                      if isinstance(step, Alloc)})
        return table


def host_steps(plan: Plan) -> list[Host]:
    """The host steps of a plan, in the order of its text: native code calls them by number."""
    return [step for step in all_steps(plan.steps) if isinstance(step, Host)]


def host_types(step: Host, types: Mapping[str, TensorType]) -> Sequence[TensorType]:
    """What a host step sees its windows as, inputs then outputs."""
    return step.types or [window_type(window, types) for window in (*step.inputs, *step.outputs)]


def host_sizes(step: Host, types: Mapping[str, TensorType]) -> list[Dim]:
    """The sizes that native code tells a function of the host: those that are expressions."""
    return list(dict.fromkeys(dim for type_ in host_types(step, types) for dim in type_.shape
                              if not isinstance(dim, int)))


def window_type(window: Window, types: Mapping[str, TensorType]) -> TensorType:
    """The type of a window, whose buffer is in the table."""
    whole = types[window.buffer]
    return whole.with_shape(whole.shape[len(window.indices):])


Rounds = tuple[tuple[str, Dim], ...]  # the names of their numbers, and how many there are


def sizes_of(plan: Plan) -> Iterable[tuple[Dim, Rounds]]:
    """Every size of a plan, those of its parameters aside: dims of buffers and of the parameters of
    kernels, and the extents of axes; each with the counts of rounds that it goes by."""
    found: dict[tuple[Dim, Rounds], None] = {}

    def add(sizes: Iterable[Dim], counts: Counts) -> None:
        for size in sizes:
            found[size, tuple(rounds_behind(size, counts).items())] = None

    for slot in plan.results:
        add(slot.type.shape, {})
    for step, counts in steps_in_rounds(plan.steps):
        if isinstance(step, Alloc):
            add(step.type.shape, counts)
        if isinstance(step, Launch):
            kernel = plan.kernels[step.kernel]
            for param in kernel.params:
                add(param.type.shape, counts)
            add((axis.extent for axis in kernel.axes), counts)
    return found


def steps_in_rounds(
    steps: Iterable[Step], counts: Counts = MappingProxyType({})
) -> Iterator[tuple[Step, Counts]]:
    """All steps of a tree, each before those that it holds, with the counts of the rounds that it
    is run in, where these have an end."""
    for step in steps:  # recursion is by nesting of steps only
        yield step, counts
        inner = (counts_inside(counts, step.index, step.count) if isinstance(step, Loop)
                 else counts)
        for body in bodies_of(step):
            yield from steps_in_rounds(body, inner)


def facts_of(plan: Plan) -> tuple[Dim, ...]:
    """What is not negative when a step runs: sizes of arguments and those that are measured, and
    what the plan requires."""
    facts: list[Dim] = [dim for slot in plan.params for dim in slot.type.shape
                        if not isinstance(dim, int)]
    facts += [symbol(step.size) for step in plan.measures]
    facts += [fact for need in plan.requires for fact in need.facts]
    return tuple(dict.fromkeys(facts))


def tasks_of(kernel: Kernel) -> Dim:
    """The number of independent tasks of a kernel: its par blocks."""
    return product(ceil_div(axis.extent, axis.block) for axis in kernel.axes if axis.kind == "par")


def sizes_told(plan: Plan, dims: Iterable[Dim]) -> tuple[str, ...]:
    """The measured sizes that some dims count on, in the order in which they are known."""
    used = frozenset[str]().union(*map(symbols_of, dims))
    return tuple(step.size for step in plan.measures if step.size in used)
