"""A whole loop as one kernel: what it carries are values of a ``seq`` axis.

    h, hs = scan h, u {round: h = a*h + u[t]}        par i, seq t:  %2 = carry %0 next %5 over t
                                                                    ...  hs[t, i] = %5
                                                     h[i] = last %2 over t

Where all that goes round has one shape, each element is a task's; else it is a few numbers, and
each of them is carried by itself (``ir/rounds`` says which loops are one of both). Rounds that hand
on nothing are tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ....ir.graph import Value, control_of
from ....ir.indices.index import Dim
from ....ir.indices.space import Index
from ....ir.kernels.build import Scalar
from ....ir.kernels.kernel import Kernel, Param
from ....ir.ops.control.region import Looping
from ....ir.record import field, record, replace
from ....ir.rounds import common_shape
from ..lower import Evaluator, Lowering


@record
class _Round(Lowering):
    """The body of a loop: its parameters are what is carried, rows, or arrays from around."""

    outer: Sequence[str] = ()
    control: Looping | None = None
    row: Dim = 0
    held: dict[tuple[int, Index], Scalar] = field(default_factory=dict)

    def _load(self, value: Value, index: Index, guard: Scalar | None) -> Evaluator:
        yield from ()
        assert self.control is not None
        at = self.body.params.index(value)
        if at < self.control.carried:
            if guard is not None and (at, index) not in self.held:
                return self.builder.const(0, value.dtype)  # beyond the array, where no guard holds
            return self.held[at, index]
        if at < self.control.carried + self.control.scanned:
            index = (self.row, *index)
        return self.builder.load(self.outer[at], value.dtype, index, guard)


def lower_rounds(low: Lowering, name: str) -> Kernel:
    """The kernel of a region that is one loop."""
    node = low.body.nodes[-1]
    control = control_of(node)
    assert isinstance(control, Looping) and control.count is not None
    body, count = control.body, control.count
    t = low.axis(control.index, count, "seq" if control.carried else "par")
    shape = common_shape(control)
    if shape is not None:
        axes = tuple(0 if dim == 1 else low.axis("i", dim) for dim in shape)

    def places(value: Value) -> list[Index]:
        if shape is not None:
            return [axes]
        if value.type.size == 0:  # whatever its other dims are
            return []
        return [tuple(at) for at in product(*(range(n) for n in value.shape))]  # type: ignore[arg-type]

    outer = [low.param_name(value) for value in node.inputs]
    round_ = _Round(body, None, low.checks, low.builder, low.axes, outer=outer, control=control,
                    row=count - 1 - t if control.reverse else t)
    carried = [(at, index) for at, value in enumerate(body.params[:control.carried])
               for index in places(value)]
    inits = [low.builder.load(outer[at], body.params[at].dtype, index) for at, index in carried]

    def step(held: list[Scalar]) -> list[Scalar]:
        round_.held = dict(zip(carried, held, strict=True))
        for at, value in enumerate(body.results[control.carried:], control.carried):
            for index in places(value):
                low.builder.store(f"y{at}", (round_.row, *index), round_.value(value, index))
        return [round_.value(body.results[at], index) for at, index in carried]

    lasts = low.builder.carries(inits, str(t), step)
    for (at, index), last in zip(carried, lasts, strict=True):
        low.builder.store(f"y{at}", index, last)
    outputs = [Param(f"y{at}", value.type, mutable=True)
               for at, value in enumerate(low.body.results)]
    kernel = low.kernel(name, outputs)
    used = {str(t)}.union(*kernel.value_axes.values(), *kernel.effect_axes.values())
    return replace(kernel, axes=tuple(sorted(
        (axis for axis in kernel.axes if axis.name in used), key=lambda axis: axis.kind == "seq")))
