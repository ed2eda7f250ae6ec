"""The nodes of loops: ``rounds`` makes a ``while``, ``scanned`` a ``scan``.

What a loop carries keeps its types from round to round, so a first value that is a Python number
takes the dtype that the first round gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.diagnose import Error, error
from ...ir.graph import effects_of, writes
from ...ir.indices.index import Dim, symbol, symbols_of
from ...ir.indices.proof import differ
from ...ir.ops.control.region import ENDLESS
from ...ir.ops.table import OPS
from ...ir.record import field, record, replace
from ..face import tree
from ..face.source import definition, user_loc
from ..tracing.arrays.selection import computed_alike
from ..tracing.context.active import current
from ..tracing.context.distance import goes_by_rounds, in_round, tell_end
from ..tracing.context.recorder import TraceContext
from ..tracing.operand import cast, matched, to_tracer
from ..tracing.trace import Region, trace_region
from ..tracing.values.operation import Operation
from ..tracing.values.tracer import Tracer
from .regions import (
    ChangedError,
    PromotedError,
    Slot,
    common_dtype,
    condition_of,
    made_at,
    name_of_body,
    reading_outside,
    recorded,
    results_of,
    traced,
    variable_at,
    with_closure,
)
from .twins import Twins, as_one, twins


def _index_name(ctx: TraceContext) -> str:
    """A symbol for the number of the round that is no dim, and no index of a loop around."""
    depth, root = 0, ctx
    while root.parent is not None:
        depth, root = depth + 1, root.parent
    taken = {name for value in root.graph.params for dim in value.shape for name in symbols_of(dim)}
    name = f"t{depth}"
    while name in taken:
        name += "_"
    return name


def _index(name: str) -> Tracer:
    """The number of the round, which promotes as a Python integer."""
    ctx = current()
    made: Tracer = ctx.apply(lambda: Tracer(ctx, ctx.dim(symbol(name)), weak=True), ())
    return made


@record(frozen=True)
class _Carry:
    """What a loop carries: parameters of its body, and how its nest is put together."""

    what: str
    function: Callable[..., Any]
    slots: tuple[Slot, ...]
    structure: tree.TreeDef
    same: Twins = field(default_factory=dict)  # masks that are one when a round begins

    def begun(self, nest: Any) -> Any:
        """A carry as a round begins with it."""
        return tree.unflatten(self.structure, as_one(
            tree.matched(self.structure, nest), self.same)) if self.same else nest

    def fitted(self, nest: Any) -> list[Tracer]:
        """The leaves of a carry after a round, in the types that they had before it."""
        nest = tree.map(lambda leaf: None if isinstance(leaf, Operation) else leaf, nest)
        _, found = tree.split(nest)
        try:
            leaves = tree.matched(self.structure, nest)
        except Error:
            raise error("W102", f"{self.what}: the carry is {self.structure!r}, after a round "
                                f"{found!r}", locs=definition(self.function),
                        hint="return a carry of the nest of the first one") from None
        paths = tree.paths(self.structure)
        made = [self._fit(at, leaf, path) for at, (leaf, path) in enumerate(
            zip(leaves, paths, strict=True))]
        value = current().value_of
        parted = [at for at, first in self.same.items()
                  if not computed_alike(value(made[at]), value(made[first]))]
        if parted:
            raise PartedError(parted)
        return made

    def _fit(self, at: int, leaf: Any, path: str) -> Tracer:
        ctx, slot = current(), self.slots[at]
        tracer: Tracer = ctx.apply(to_tracer, (leaf,))
        if tracer.type == slot.type:
            if slot.weak and not tracer.weak:
                raise PromotedError(at, slot.type.dtype, False)
            return tracer
        shape, wanted = tracer.type.shape, slot.type.shape
        if shape != wanted and len(shape) == len(wanted) and not any(
                map(differ, shape, wanted)) and not self._is_measured(shape):
            tracer = ctx.apply(matched, (tracer, wanted))
        dtype = tracer.type.dtype
        if tracer.type.shape == wanted and dtype != slot.type.dtype:
            common = common_dtype(slot.type.dtype, dtype, (slot.weak, tracer.weak)) if (
                slot.weak or tracer.weak) else None
            if common == slot.type.dtype:
                return ctx.apply(cast, (tracer, common))  # type: ignore[no-any-return]
            if slot.weak and common is not None:
                raise PromotedError(at, common, tracer.weak)
        if tracer.type == slot.type:
            return tracer
        problem = self._changed(tracer, slot, path)
        raise ChangedError(at, problem) if self.what in ("while", "for") else problem

    def _is_measured(self, shape: Sequence[Dim]) -> bool:
        """Whether each round of one of Python's loops has a size of that shape of its own."""
        sizes = {name for _, size in current().extents
                 for name in symbols_of(size)}
        return self.what in ("while", "for") and (goes_by_rounds(current(), *shape) or any(
            not sizes.isdisjoint(symbols_of(dim)) for dim in shape))

    def _changed(self, tracer: Tracer, slot: Slot, path: str) -> Error:
        code = "W111" if tracer.type.shape == slot.type.shape else "W102"
        python = self.what in ("while", "for")
        hint = (f"convert it: x.astype(np.{slot.type.dtype.numpy}), or start from a value of "
                f"{tracer.type.dtype.numpy}" if code == "W111" else
                "make it of its last shape before the loop, and set rows: out[i] = row" if python
                else "keep its shape, or stack rows as a second result of scan")
        message = (f"{variable_at(path)} is {slot.type} before the loop and {tracer.type} after a "
                   "round" if python else
                   f"{self.what}: the carry{path} is {slot.type}, after a round {tracer.type}")
        return error(code, message, locs=made_at(tracer.value) or definition(self.function),
                     types=[slot.type, tracer.type], hint=hint)


class PartedError(Exception):
    """Masks that are one before a loop are not after a round: their numbers."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(numbers)
        self.numbers = numbers


def _until_stable(
    ctx: TraceContext, carry: _Carry, leaves: list[Tracer],
    trace: Callable[[_Carry], Region],
) -> tuple[_Carry, list[Tracer], Region]:
    """Trace a body; again with other first values where Python numbers among them promote."""
    apart: set[int] = set()
    while True:
        carry = replace(carry, same=twins([x.value for x in leaves], apart=apart))
        try:
            return carry, leaves, trace(carry)
        except PartedError as found:
            apart.update(found.numbers)
        except PromotedError as found:
            slots, at = list(carry.slots), found.at
            made: Tracer = ctx.apply(cast, (leaves[at], found.dtype))
            leaves[at] = Tracer(ctx, made.value, weak=found.weak)
            slots[at] = replace(slots[at], type=leaves[at].type, weak=found.weak)
            carry = replace(carry, slots=tuple(slots))


def scanned(
    what: str, f: Callable[[Any, Any, Any], Any], function: Callable[..., Any], init: Any,
    xs: Any, length: Dim | None, reverse: bool, ctx: TraceContext,
) -> tuple[Any, Any]:
    """Rounds of ``f(carry, x, index)``, which calls the user's ``function``."""
    leaves, structure = traced(ctx, init)
    rows, row_tree = traced(ctx, xs)
    count = _count(rows, row_tree, length)
    rows = [ctx.apply(matched, (x, (count, *x.type.shape[1:]))) for x in rows]
    row_slots = [Slot(x.name, x.type.with_shape(x.type.shape[1:]), False) for x in rows]
    name = _index_name(ctx)
    tell_end(ctx, name, count)
    _, args = tree.split((tree.unflatten(structure, [0] * len(leaves)),
                          tree.unflatten(row_tree, [0] * len(rows))))

    def trace(carry: _Carry) -> Region:
        def body(state: Any, x: Any) -> Any:
            out = f(carry.begun(state), x, _index(name) if what in ("fori_loop", "for") else None)
            if not (isinstance(out, tuple) and len(out) == 2):
                raise error("W102", f"{what}: the body returns {type(out).__name__}, not (carry, "
                                    "y)", locs=definition(function),
                            hint="return a pair; y may be None")
            return carry.fitted(out[0]), out[1]

        with in_round(ctx, name):
            return trace_region(body, [*carry.slots, *row_slots], args,
                                name_of_body(function, what))

    first = _Carry(what, function, tuple(Slot.of(x) for x in leaves), structure)
    carry, leaves, region = _until_stable(ctx, first, leaves, trace)
    (region,) = reading_outside(ctx, [region])
    closure = with_closure([region], [len(leaves) + len(rows)])

    def record() -> list[Tracer]:
        inputs = [ctx.value_of(x) for x in (*leaves, *rows, *closure)]
        node = ctx.builder.emit(OPS["scan"], inputs, {
            "carried": len(leaves), "scanned": len(rows), "length": count, "reverse": reverse,
            "index": name, "body": region.graph})
        weak = [slot.weak for slot in carry.slots]
        return results_of(ctx, node, weak + [False] * (len(node.results) - len(weak)))

    made = recorded(ctx, record, [region], what)
    return (carry.begun(tree.unflatten(structure, made[:len(leaves)])),
            tree.unflatten(region.out_tree.children[1], made[len(leaves):]))


def _count(rows: Sequence[Tracer], structure: tree.TreeDef, length: Dim | None) -> Dim:
    """The number of rows of what is scanned."""
    count, known = length, "length"
    for x, path in zip(rows, tree.paths(structure), strict=True):
        if x.ndim == 0:
            raise error("W102", f"scan: xs{path} is a scalar and has no rows", locs=user_loc(),
                        types=[x.type], hint="give arrays, or take it from around the body")
        if count is None:
            count, known = x.type.shape[0], f"xs{path}"
        elif differ(count, x.type.shape[0]):
            raise error("W102", f"scan: xs{path} has {x.type.shape[0]} rows, {known} says {count}"
                        if known == "length" else
                        f"scan: xs{path} has {x.type.shape[0]} rows, {known} has {count}",
                        locs=user_loc(), types=[x.type], hint="give arrays with equal first axes")
    if count is None:
        raise error("W102", "scan: neither xs nor length says how many rounds there are",
                    locs=user_loc(), hint="give length=")
    if isinstance(count, int) and count < 0:
        raise error("W102", f"scan: length={count} is negative", locs=user_loc(),
                    hint="give 0 or more")
    return count


def rounds(
    what: str, cond: Callable[[Any, Any], Any], body: Callable[[Any, Any], Any],
    function: Callable[..., Any], init: Any, limit: Dim, ctx: TraceContext, flag: Any = None,
    behind: frozenset[str] = frozenset(),
) -> Any:
    """Rounds of ``body(carry, index)``, which calls the user's ``function``; ``flag`` is what
    ``cond`` gave for ``init``, where that is known. How many there are is said by the arguments
    ``behind`` it, if by any."""
    leaves, structure = traced(ctx, init)
    name = _index_name(ctx)
    tell_end(ctx, name, None if limit is ENDLESS else limit, behind)
    _, args = tree.split((tree.unflatten(structure, [0] * len(leaves)),))

    def index() -> Tracer | None:
        return _index(name) if what in ("fori_loop", "for") else None

    def trace(carry: _Carry) -> Region:
        with in_round(ctx, name):
            return trace_region(lambda state: carry.fitted(body(carry.begun(state), index())),
                                carry.slots, args, name_of_body(function, "body"))

    def tested(state: Any) -> Tracer:
        found = cond(carry.begun(state), index())
        made: Tracer = current().apply(condition_of, (found, what))
        return made

    first = _Carry(what, function, tuple(Slot.of(x) for x in leaves), structure)
    carry, leaves, region = _until_stable(ctx, first, leaves, trace)
    test = trace_region(tested, carry.slots, args, "test")
    if any(writes(each) for node in test.graph.nodes for each in effects_of(node)):
        return _tested_at_the_end(what, cond, body, function, tree.unflatten(
            structure, leaves), limit, ctx, flag)
    test, region = reading_outside(ctx, [test, region])
    closure = with_closure([test, region], [len(leaves)] * 2)

    def record() -> list[Tracer]:
        inputs = [ctx.value_of(x) for x in (*leaves, *closure)]
        node = ctx.builder.emit(OPS["while"], inputs, {
            "carried": len(leaves), "limit": limit, "index": name, "test": test.graph,
            "body": region.graph})
        return results_of(ctx, node, [slot.weak for slot in carry.slots])

    return carry.begun(tree.unflatten(structure, recorded(ctx, record, [region], what)))


def _tested_at_the_end(
    what: str, cond: Callable[[Any, Any], Any], body: Callable[[Any, Any], Any],
    function: Callable[..., Any], init: Any, limit: Dim, ctx: TraceContext, flag: Any,
) -> Any:
    """Rounds whose condition assigns variables, as one that draws does. A test has no effects, so
    the condition is computed before the first round, and at the end of each for the next one:

        go = cond(x)
        while go: x = body(x); go = cond(x)
    """
    def tested(state: Any) -> Any:
        found = cond(state, None)
        return current().apply(condition_of, (found, what))

    def whole(carry: Any, index: Any) -> Any:
        state = body(carry[0], index)
        return state, tested(state)

    first = tested(init) if flag is None else ctx.apply(condition_of, (flag, what))
    return rounds(what, lambda carry, _: carry[1], whole, function, (init, first), limit, ctx)[0]
