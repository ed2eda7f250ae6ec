"""Rows of the REGION family: ops that hold graphs.

``fused`` is one kernel. The bodies of the others hang on operands and results in one of three ways,
which is all that passes ask for (``OpDef.control``):

    Branching   operands: the condition, then those of both bodies; results: those of the bodies
    Looping     operands: what is carried, what is scanned row by row, what every round reads;
                results: what is carried, then the stacked rows of the others
    Calling     operands and results: those of the body, whose nodes the node stands for; it says
                how they are differentiated, and ``passes/control/inline`` puts them in its place

Dims of the graph around may occur in bodies; so may the symbol ``index``, the number of the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...diagnose import error
from ...indices.index import Dim, Expr
from ...indices.space import space_problem
from ...record import record
from ...types import BOOL, TensorType
from ..op import Kind, OpDef

ENDLESS = -1  # the limit of a while without one


@record(frozen=True)
class Branching:
    """The bodies of a node of which one is run."""

    then: Any
    other: Any


@record(frozen=True)
class Looping:
    """The body of a node that is run for each round, and the test that comes before each.

    ``count`` is the number of rounds, or the most there may be (None: no end).
    """

    body: Any
    test: Any | None
    carried: int
    scanned: int
    count: Dim | None
    reverse: bool
    index: str


@record(frozen=True)
class Custom:
    """A gradient that the user wrote. Both graphs have the operands after the arguments as well.

    ``forward``: operands to the results, then what is saved. ``backward``: what is saved and the
    cotangents of the results to those of the operands number ``wrt``; the arguments come first
    among the operands.
    """

    forward: Any
    backward: Any
    wrt: tuple[int, ...]

    def counts(self, results: int) -> tuple[int, int]:
        """How many values are saved, and how many operands come after the arguments."""
        saved = len(self.forward.results) - results
        return saved, len(self.backward.params) - saved - results


@record(frozen=True)
class Calling:
    """The body of a node that stands for the nodes of it. ``again`` says that the backward pass
    computes them anew and saves none of their values."""

    body: Any
    again: bool = False
    custom: Custom | None = None


Control = Branching | Looping | Calling


class Runner(Protocol):
    """What the meaning of a region is told: how to run a graph, and what shapes are."""

    def __call__(self, graph: Any, operands: Sequence[Any], **dims: int) -> list[Any]: ...
    def shape(self, type_: TensorType) -> tuple[int, ...]: ...


def _wrong(op: str, what: str) -> Exception:
    return error("W601", f"{op}: {what}")


def _types(values: Sequence[Any]) -> tuple[TensorType, ...]:
    return tuple(value.type for value in values)


def _fused_infer(*types: TensorType, body: Any, space: str) -> tuple[TensorType, ...]:
    if _types(body.params) != types:
        raise _wrong("fused", "the operands are not those of the body")
    problem = space_problem(body, space)
    if problem:
        raise _wrong("fused", problem)
    return _types(body.results)


def _fused_ref(run: Runner, *operands: Any, body: Any, space: str) -> Any:
    return tuple(run(body, operands))


def _cond_infer(
    condition: TensorType, *types: TensorType, then: Any, other: Any
) -> tuple[TensorType, ...]:
    if condition != TensorType(BOOL, ()):
        raise _wrong("cond", f"the condition is {condition}")
    for body in (then, other):
        if _types(body.params) != types:
            raise _wrong("cond", "the operands are not those of both bodies")
    if _types(then.results) != _types(other.results):
        raise _wrong("cond", "the bodies have different results")
    return _types(then.results)


def _cond_ref(run: Runner, condition: Any, *operands: Any, then: Any, other: Any) -> Any:
    return tuple(run(then if condition else other, operands))


def _while_infer(
    *types: TensorType, carried: int, limit: Dim, index: str, test: Any, body: Any
) -> tuple[TensorType, ...]:
    for graph in (test, body):
        if _types(graph.params) != types:
            raise _wrong("while", "the operands are not those of the test and the body")
    if _types(test.results) != (TensorType(BOOL, ()),):
        raise _wrong("while", "the test does not give one bool")
    results = _types(body.results)
    if not 0 <= carried <= len(types) or results[:carried] != types[:carried]:
        raise _wrong("while", "the body does not give what is carried")
    if limit == ENDLESS and len(results) > carried:
        raise _wrong("while", "rows are stacked, of which nobody knows how many there may be")
    return (*types[:carried],
            *(result.with_shape((limit, *result.shape)) for result in results[carried:]))


def _while_ref(
    run: Runner, *operands: Any, carried: int, limit: int, index: str, test: Any, body: Any
) -> Any:
    state, rest, at = list(operands[:carried]), operands[carried:], 0
    stacked = [np.zeros((limit, *run.shape(value.type)), value.type.dtype.numpy)
               for value in body.results[carried:]]
    while at != limit and run(test, [*state, *rest], **{index: at})[0]:
        results = run(body, [*state, *rest], **{index: at})
        state = results[:carried]
        for array, row in zip(stacked, results[carried:], strict=True):
            array[at] = row
        at += 1
    return (*state, *stacked)


def _scan_infer(
    *types: TensorType, carried: int, scanned: int, length: Dim, reverse: bool, index: str,
    body: Any,
) -> tuple[TensorType, ...]:
    if min(carried, scanned) < 0 or carried + scanned > len(types):
        raise _wrong("scan", "there are fewer operands than it says")
    rows = types[carried:carried + scanned]
    if any(row.rank == 0 or row.shape[0] != length for row in rows):
        raise _wrong("scan", f"what is scanned has not {length} rows")
    inside = (*types[:carried], *(row.with_shape(row.shape[1:]) for row in rows),
              *types[carried + scanned:])
    if _types(body.params) != inside:
        raise _wrong("scan", "the operands are not those of the body")
    results = _types(body.results)
    if results[:carried] != types[:carried]:
        raise _wrong("scan", "the body does not give what is carried")
    return (*types[:carried],
            *(result.with_shape((length, *result.shape)) for result in results[carried:]))


def _scan_ref(
    run: Runner, *operands: Any, carried: int, scanned: int, length: int, reverse: bool,
    index: str, body: Any,
) -> Any:
    state, rows = list(operands[:carried]), operands[carried:carried + scanned]
    rest = operands[carried + scanned:]
    stacked = [np.zeros((length, *run.shape(value.type)), value.type.dtype.numpy)
               for value in body.results[carried:]]
    for at in range(length):
        place = length - 1 - at if reverse else at
        results = run(body, [*state, *(row[place] for row in rows), *rest], **{index: at})
        state = results[:carried]
        for array, row in zip(stacked, results[carried:], strict=True):
            array[place] = row
    return (*state, *stacked)


def _call_infer(*types: TensorType, body: Any, again: bool) -> tuple[TensorType, ...]:
    if _types(body.params) != types:
        raise _wrong("call", "the operands are not those of the body")
    return _types(body.results)


def _call_ref(run: Runner, *operands: Any, body: Any, **_: Any) -> Any:
    return tuple(run(body, operands))


def _custom_infer(
    *types: TensorType, body: Any, forward: Any, backward: Any, wrt: tuple[int, ...]
) -> tuple[TensorType, ...]:
    if not _types(body.params) == _types(forward.params) == types:
        raise _wrong("custom_vjp", "the operands are not those of the body")
    results = _types(body.results)
    found = _types(forward.results)
    if found[:len(results)] != results:
        raise _wrong("custom_vjp", "the results are not those of forward")
    _, more = Custom(forward, backward, wrt).counts(len(results))
    if more < 0 or _types(backward.params) != (
            *found[len(results):], *results, *types[len(types) - more:]):
        raise _wrong("custom_vjp", "backward does not take what is saved and the cotangents")
    if _types(backward.results) != tuple(types[at] for at in wrt):
        raise _wrong("custom_vjp", "backward does not give the cotangents of the arguments")
    return results


ROWS: tuple[OpDef, ...] = (
    OpDef("fused", Kind.REGION, _fused_infer, None,
          "a region that becomes one kernel; space says which axes its nodes have "
          "(``ir/indices/space``)",
          {"body": object, "space": str}, ref=_fused_ref, differentiable=False),
    OpDef("cond", Kind.REGION, _cond_infer, None, "one of two bodies, by a condition",
          {"then": object, "other": object}, ref=_cond_ref,
          control=lambda then, other: Branching(then, other)),
    OpDef("while", Kind.REGION, _while_infer, None,
          "a body for as long as a test is true, at most limit times (-1: without end); the rows "
          "that it stacks are limit, of which those of rounds that were run have values",
          {"carried": int, "limit": Expr, "index": str, "test": object, "body": object},
          ref=_while_ref,
          control=lambda carried, limit, index, test, body: Looping(
              body, test, carried, 0, None if limit == ENDLESS else limit, False, index)),
    OpDef("scan", Kind.REGION, _scan_infer, None,
          "a body for each row of what is scanned, first to last or the other way",
          {"carried": int, "scanned": int, "length": Expr, "reverse": bool, "index": str,
           "body": object},
          ref=_scan_ref,
          control=lambda carried, scanned, length, reverse, index, body: Looping(
              body, None, carried, scanned, length, reverse, index)),
    OpDef("call", Kind.REGION, _call_infer, None,
          "its body; again: computed anew in the backward pass, which saves memory",
          {"body": object, "again": bool}, ref=_call_ref,
          control=lambda body, again: Calling(body, again)),
    OpDef("custom_vjp", Kind.REGION, _custom_infer, None,
          "its body, whose gradient is that of two other graphs (``Custom``)",
          {"body": object, "forward": object, "backward": object, "wrt": tuple}, ref=_call_ref,
          control=lambda body, forward, backward, wrt: Calling(
              body, custom=Custom(forward, backward, wrt))),
)
