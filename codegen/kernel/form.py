"""The kernel of a fused node, and how the node calls it. Kinds that are alone in a region have a
lowering of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from ...ir.graph import Graph, Node, freeze
from ...ir.indices.index import Dim, product
from ...ir.indices.space import known_stores, natural
from ...ir.indices.walk import substitute
from ...ir.kernels.build import Scalar
from ...ir.kernels.kernel import Kernel, Param
from ...ir.kernels.rows import room_of
from ...ir.ops.op import Kind
from ...ir.ops.places.view import unravel
from ...ir.plans.plan import CheckSite, KernelCall
from ...ir.record import record, replace
from ...ir.types import I64, TensorType
from .axes.unroll import with_short_axes_unrolled
from .lower import Lowering
from .rounds.whole import lower_rounds


def lower_scatter(low: Lowering, name: str) -> Kernel:
    """Rows of updates in order (seq), the dims that are not indexed in parallel, as are those of
    indices of which each is at a place of its own."""
    anchor = low.body.nodes[-1]
    base, updates, *indices = anchor.inputs
    axes = anchor.attrs["axes"]
    rest = [low.axis(f"i{at}", dim) for at, dim in enumerate(base.shape) if at not in axes]
    shape = indices[0].shape
    known = known_stores(anchor)
    row: tuple[Dim, ...]
    if known is None:
        loop = low.axis("u", product(shape), "seq")
        row = unravel(loop, shape)
    else:
        row = tuple([low.axis(f"u{number}", dim) for number, dim in enumerate(shape)])
    at: dict[int, Dim] = {}
    guard: Scalar | None = None
    for number, (axis, operand) in enumerate(zip(axes, indices, strict=True)):
        if known is not None and (place := known[number]) is not None:
            at[axis] = substitute(place, dict(zip(map(str, natural(shape)), row, strict=True)))
            continue
        at[axis], guard = low.checked_index(
            anchor, number, low.value(operand, row), guard, row)
    value = low.value(updates, (*row, *rest))
    if known is None and (guard is None or str(loop) not in low.axes_under(guard)):
        # To the same place each time: a store runs along the axes that its guard depends on, too.
        s = low.builder
        guard = low.both(guard, s.ge(s.index(loop), s.const(0, I64)))
    others = iter(rest)
    target = tuple(at[axis] if axis in at else next(others) for axis in range(len(base.shape)))
    out = Param("y0", base.type, mutable=True)
    low.builder.store("y0", target, value, accumulate=bool(anchor.op.combine), guard=guard)
    return low.kernel(name, [out])


def lower_sort(low: Lowering, name: str) -> Kernel:
    """One task for each row of the last axis."""
    anchor = low.body.nodes[-1]
    (operand, *ranks), (result,), op = anchor.inputs, anchor.results, anchor.op
    places, whole = op.places, op.whole
    *outer, length = operand.shape
    count = product(outer)
    row: Dim = 0 if count == 1 else low.axis("i", count)
    place = low.axis("j", length, "seq")
    rows = unravel(row, tuple(outer))
    value = low.value(operand, (*rows, place))
    out = Param("y0", result.type.with_shape((count, result.shape[-1])), mutable=True)
    many = ranks[0].shape[-1] if ranks else None
    room = Param("y1", room_of(operand.dtype, (count, length), places=places, ranks=many,
                               whole=whole), mutable=True)
    if many is None:
        low.builder.sort(out.name, (row, place), value, str(place), places=places, room=room.name)
    else:
        at = low.axis("k", many, "seq")
        low.builder.ranked(out.name, (row, place if whole else at), value, str(place),
                           low.value(ranks[0], (*rows, at)), str(at), places=places,
                           room=room.name, whole=whole)
    return low.kernel(name, [out, room])


def lower_compress(low: Lowering, name: str) -> Kernel:
    """One task, as where an element goes depends on those before it."""
    anchor = low.body.nodes[-1]
    (x, mask), (result,) = anchor.inputs, anchor.results
    place, chosen = (low.axis(axis, value.shape[0], "seq") for axis, value in (
        ("j", x), ("k", result)))
    out = Param("y0", result.type, mutable=True)
    low.builder.compress(out.name, low.value(x, (place,)), place, low.value(mask, (place,)),
                         chosen)
    return low.kernel(name, [out])


@record(frozen=True)
class Form:
    """The kernel of a body, and how a node that holds such a body calls it."""

    kernel: Kernel
    kept: tuple[int, ...]                       # the operands and results that it has to do with
    updates: tuple[tuple[int, int], ...]        # results, and the operands that they start from
    checks: tuple[tuple[CheckSite, int], ...]   # and the nodes of the body that they are of
    rooms: tuple[TensorType, ...] = ()          # memory beside the operands and results

    def call(self, node: Node) -> KernelCall:
        """The call for a node; errors name the lines that are its own."""
        rooms = tuple((f"{node.name}.room{at}:0", type_) for at, type_ in enumerate(self.rooms))
        names = [*(value.name for value in (*node.inputs, *node.results)),
                 *(name for name, _ in rooms)]
        nodes = node.attrs["body"].nodes
        return KernelCall(
            self.kernel, tuple(names[at] for at in self.kept),
            tuple((names[result], names[base]) for result, base in self.updates),
            tuple(replace(site, locs=nodes[at].locs) for site, at in self.checks), rooms, node)


def form_key(node: Node) -> Hashable:
    """What the form of a fused node follows from, names and lines left out."""
    body: Graph = node.attrs["body"]
    number = {id(value): at for at, value in enumerate(body.values())}
    return (node.attrs["space"], tuple(param.type for param in body.params),
            tuple((inner.op.name, tuple(number[id(value)] for value in inner.inputs),
                   tuple((key, freeze(attr)) for key, attr in sorted(inner.attrs.items())))
                  for inner in body.nodes),
            tuple(number[id(value)] for value in body.results))


def lower(node: Node, name: str) -> Form:
    """Lower the body of a fused node."""
    body: Graph = node.attrs["body"]
    special = _ALONE.get(body.nodes[-1].op.kind)
    low = Lowering(body, None if special else node.attrs["space"])
    kernel = special(low, name) if special else with_short_axes_unrolled(low.finish(name))
    rooms = tuple(param.type for param in kernel.params[len(body.params) + len(node.results):])
    used = kernel.accesses.keys()
    kept = tuple(at for at, param in enumerate(kernel.params)
                 if param.name in used or param.mutable)
    updates: tuple[tuple[int, int], ...] = ()
    if body.nodes[-1].op.kind is Kind.SCATTER:
        updates = ((len(body.params), body.params.index(body.nodes[-1].inputs[0])),)
    place = {id(inner): at for at, inner in enumerate(body.nodes)}
    return Form(replace(kernel, params=tuple(kernel.params[at] for at in kept)), kept, updates,
                tuple((site, place[id(inner)]) for site, inner in low.checks), rooms)


_ALONE: Mapping[Kind, Callable[[Lowering, str], Kernel]] = {
    Kind.SCATTER: lower_scatter, Kind.SORT: lower_sort, Kind.COMPRESS: lower_compress,
    Kind.REGION: lower_rounds,
}
