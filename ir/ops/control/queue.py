"""Rows of the RESOURCE family: what a step does with queues.

Such a node may wait for other threads, so it is never part of native code: whoever runs steps
starts it when its operands are there, and goes on when it is done. Nodes on one queue run in the
order of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...diagnose import error
from ...indices.index import Dim
from ...types import I64, TensorType
from ..op import Kind, OpDef

Wake = Callable[[], object]


class Pending(Protocol):
    """What begins when it is entered, and may have to wait; ``wake`` is called when it is done."""

    done: bool

    def enter(self) -> None: ...
    def results(self) -> tuple[np.ndarray[Any, Any], ...]: ...
    def wait(self, timeout: float | None = None) -> tuple[np.ndarray[Any, Any], ...]: ...
    def drop(self) -> None: ...


class Queue(Protocol):
    """``runtime.queues.Queue``, as far as rows know it."""

    def put(self, columns: Sequence[Any], many: bool, wake: Wake | None) -> Pending: ...
    def take(self, count: int, partial: bool, wake: Wake | None) -> Pending: ...
    def count(self, wake: Wake | None) -> Pending: ...
    def shut(self, cancel_pending: bool, wake: Wake | None) -> Pending: ...


def _enqueue_infer(
    *operands: TensorType, queue: str, types: tuple[TensorType, ...], many: bool
) -> tuple[TensorType, ...]:
    if len(operands) != len(types):
        raise error("W305", f"elements of queue '{queue}' have {len(types)} arrays, got "
                            f"{len(operands)}")
    for x, wanted in zip(operands, types, strict=True):
        shape = x.shape[1:] if many else x.shape
        if x.dtype != wanted.dtype or x.rank < many or len(shape) != wanted.rank or any(
                isinstance(dim, int) and isinstance(size, int) and dim != size
                for dim, size in zip(wanted.shape, shape, strict=True)):
            raise error("W305", f"queue '{queue}' takes {'rows of ' if many else ''}{wanted}, got "
                                f"{x}", hint="convert the value, or give the queue other specs")
    return ()


def _dequeue_infer(
    *, queue: str, count: int, partial: bool, results: tuple[TensorType, ...]
) -> tuple[TensorType, ...]:
    for type_ in results:
        first: Dim | None = type_.shape[0] if type_.shape else None
        if count < 0 or (count and not partial and first != count) or (partial and not count):
            raise error("W601", f"{count} elements of a queue are not {type_}")
    return results


ROWS: tuple[OpDef, ...] = (
    OpDef("enqueue", Kind.RESOURCE, _enqueue_infer, None, "an element, or many rows, go into a "
          "queue, when there is room", {"queue": str, "types": tuple, "many": bool}, foreign=True,
          ref=lambda q, *x, queue, types, many, wake=None: q.put(x, many, wake),
          puts=lambda *x, queue, types, many: x[0].shape[0] if many else 1),
    OpDef("dequeue", Kind.RESOURCE, _dequeue_infer, 0, "elements of a queue, stacked, when they "
          "are there; of a count of 0, one by itself",
          {"queue": str, "count": int, "partial": bool, "results": tuple}, foreign=True,
          ref=lambda q, *, queue, count, partial, results, wake=None: q.take(count, partial, wake)),
    OpDef("queue_size", Kind.RESOURCE, lambda *, queue: (TensorType(I64, ()),), 0,
          "how many elements are in a queue", {"queue": str}, foreign=True,
          ref=lambda q, *, queue, wake=None: q.count(wake)),
    OpDef("queue_close", Kind.RESOURCE, lambda *, queue, cancel_pending: (), 0,
          "nothing more goes into a queue", {"queue": str, "cancel_pending": bool}, foreign=True,
          ref=lambda q, *, queue, cancel_pending, wake=None: q.shut(cancel_pending, wake)),
)
