"""Operands with which a node does not fail, for examples of a batch that do not come by it.

Of a branch that examples take by themselves, both ways are computed for all; what those of the
other way have there is not asked for: an index that is out of range, a matrix without an inverse.

    np.linalg.inv(a) where det > 0      inv (select active, a, 1 on the diagonal)
"""

from __future__ import annotations

from ...ir.graph import Builder, Graph, Node, Value, constant_of
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.types import BOOL, I64, TensorType

_FIRST = {Kind.GATHER: 1, Kind.SCATTER: 2}  # the first operand that is an index


def harmless(
    b: Builder, node: Node, active: Value, operands: list[tuple[Value, bool]]
) -> list[Value]:
    """The operands, of which some have the axis of the batch first, with others where an example is
    not ``active``: the first element for an index, the identity for a matrix, what a check holds
    of."""
    matrices = node.op.kind is Kind.HOST and node.op.room == "linalg"
    safe = 0 if node.op.check is None else node.op.check.safe
    made = []
    for at, (value, batched) in enumerate(operands):
        kept = at < _FIRST.get(node.op.kind, 0) or constant_of(value) is not None
        if node.op.kind is Kind.HOST:
            kept = not matrices or value.dtype.is_int or value.type.rank < 2
        if kept:
            made.append(value)
            continue
        other = identity(b, value.type) if matrices else b.full(safe, value.type)
        here, axes = (active, (0,)) if batched else (b.any(active, axes=(0,)), ())
        made.append(b.select(b.broadcast(here, shape=value.shape, axes=axes), value, other))
    return made


def identity(b: Builder, type_: TensorType) -> Value:
    """Matrices with ones on the diagonal, which each function of linear algebra takes."""
    row, column = (b.iota(axis=type_.rank - at, dtype=I64, shape=type_.shape) for at in (2, 1))
    made: Value = b.cast(b.eq(row, column), dtype=type_.dtype)
    return made


def guarded(node: Node) -> Graph:
    """The body of one example of a node that runs a function of the user's: operands, then whether
    the example comes by. Where it does not, results are zeros and nothing is called."""
    body = Graph(node.op.name)
    params = [body.add_param(value.type, f"x{at}") for at, value in enumerate(node.inputs)]
    active = body.add_param(TensorType(BOOL, ()), "active")
    ways = []
    for called in (True, False):
        way = Graph("called" if called else "left")
        inner = Builder(way, OPS, share=False, fold=False)
        given = [way.add_param(value.type, f"x{at}") for at, value in enumerate(node.inputs)]
        with inner.like(node):
            way.results = list(inner.emit(node.op, given, node.attrs).results) if called else [
                inner.full(0, value.type) for value in node.results]
        ways.append(way)
    builder = Builder(body, OPS, share=False, fold=False)
    with builder.like(node):
        body.results = list(builder.emit(OPS["cond"], [active, *params], {
            "then": ways[0], "other": ways[1]}).results)
    return body
