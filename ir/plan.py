"""The linear executable plan: what one native program does, step by step.

A plan owns nothing: inputs and results are buffers of the caller, temporaries are windows of one
arena whose offsets were decided by the memory pass. Variables appear as slots with a ``var``: a
parameter that is read, a result that is written; the runtime commits results only after the
program has succeeded, so a failed step leaves every variable as it was.

    plan @mlp(%x: f32[b,784], %w: f32[784,10] var "w") -> (%y: f32[b,10]) arena = 40*b {
      alloc %t: f32[b,10] at 0
      launch @contract_0(%x, %w, %t) on cpu:0
      copy %t to %y
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from .index import Dim, ceil_div, evaluate, product
from .kernel import Kernel
from .types import CPU0, Device, Loc, TensorType

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
# What a compiled plan returns besides 0 and the number of a check that failed: its sizes are past
# all memory, or those of its arguments do not agree.
NO_MEMORY, MISFIT = -1, -5
MOST_BYTES = 1 << 60  # more than any machine has; sizes below it are computed without overflow


@dataclass(frozen=True)
class Slot:
    """A buffer of the caller; ``var`` names the variable it is read from or committed to."""

    name: str
    type: TensorType
    var: str = ""


@dataclass(frozen=True)
class Alloc:
    """A temporary at a byte offset of the arena."""

    name: str
    type: TensorType
    offset: Dim


@dataclass(frozen=True)
class Launch:
    """Run a kernel on buffers, in the order of its parameters.

    A kernel numbers its checks from 1; ``first_check`` is the number that its first one has in
    this plan, so launches of one kernel stand for different lines of the user.
    """

    kernel: str
    args: tuple[str, ...]
    device: Device = CPU0
    first_check: int = 1


@dataclass(frozen=True)
class Copy:
    """Copy a whole buffer."""

    source: str
    target: str


Step = Alloc | Launch | Copy


@dataclass(frozen=True)
class CheckSite:
    """What a failed run-time check means, and the user's line it stands for."""

    code: str
    message: str
    locs: tuple[Loc, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Require(Relation):
    """What a plan asks before it touches any memory; ``site`` is the check that fails otherwise."""

    site: int


@dataclass(frozen=True, eq=False)
class KernelCall:
    """A kernel with the graph values (by name) that are its parameters: input of the memory pass.

    ``updates`` pairs a result value with the value whose contents it must hold when the kernel
    starts (the base of a scatter): the same memory if that value dies here, else a copy.
    ``checks`` are what the run-time checks of the kernel stand for here.
    """

    kernel: Kernel
    args: tuple[str, ...]
    updates: tuple[tuple[str, str], ...] = ()
    checks: tuple[CheckSite, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """Parameters, results, steps and the kernels they launch; check numbers start at 1.

    ``requires`` holds before the first step: with it, no size of the plan is negative.
    """

    name: str
    params: tuple[Slot, ...]
    results: tuple[Slot, ...]
    steps: tuple[Step, ...]
    arena: Dim
    kernels: dict[str, Kernel]
    checks: tuple[CheckSite, ...] = ()
    requires: tuple[Require, ...] = ()

    @property
    def launches(self) -> int:
        """How many kernels one step launches."""
        return sum(isinstance(step, Launch) for step in self.steps)

    def types(self) -> dict[str, TensorType]:
        """The type of every buffer by name."""
        table = {slot.name: slot.type for slot in (*self.params, *self.results)}
        table.update({step.name: step.type for step in self.steps if isinstance(step, Alloc)})
        return table


def sizes_of(plan: Plan) -> Iterator[Dim]:
    """Every size of a plan, those of its parameters aside: dims of buffers and of the parameters of
    kernels, and the extents of axes."""
    for name, type_ in plan.types().items():
        if all(name != slot.name for slot in plan.params):
            yield from type_.shape
    for kernel in plan.kernels.values():
        for param in kernel.params:
            yield from param.type.shape
        for axis in kernel.axes:
            yield axis.extent


def facts_of(plan: Plan) -> tuple[Dim, ...]:
    """What is not negative when a step runs: sizes of arguments, and what the plan requires."""
    facts: list[Dim] = [dim for slot in plan.params for dim in slot.type.shape
                        if not isinstance(dim, int)]
    facts += [fact for need in plan.requires for fact in need.facts]
    return tuple(dict.fromkeys(facts))


def tasks_of(kernel: Kernel) -> Dim:
    """The number of independent tasks of a kernel: its par blocks."""
    return product(ceil_div(axis.extent, axis.block) for axis in kernel.axes if axis.kind == "par")
