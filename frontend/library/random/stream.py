"""A stream of random words: a key, and a counter of the words used.

    counter   0 ...         draws          2**62 ...       keys that ``split`` gives of a key
              2**63 ...     spawned        3 * 2**62 ...   streams of a batch's elements

Keys made of a key are words of its stream that no draw reaches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ....ir.index import Dim, Expr, product
from ....ir.ops.table import OPS
from ....runtime.state import Writer, commit
from ...numpy_api.select.index import as_number
from ...tracing.arrays.variable import Variable
from ...tracing.operand import as_int, as_shape, cast, reshape, spread, to_tracer
from ...tracing.recorder import active, context_for, current
from ...tracing.tracer import Tracer

U64 = np.dtype(np.uint64)
_SPLIT, _SPAWNED, _LANES = 1 << 62, 2 << 62, 3 << 62
_BATCHES: ContextVar[tuple[Any, ...]] = ContextVar("batches", default=())


@contextmanager
def lanes(index: Any) -> Iterator[None]:
    """Let what the body draws differ from element to element of a batch, of which ``index`` is the
    number (an integer, traced or not): each has a stream of its own. Batches nest."""
    token = _BATCHES.set((*_BATCHES.get(), index))
    try:
        yield
    finally:
        _BATCHES.reset(token)


def split(key: Any, size: Any = 2) -> Any:
    """New keys, uint64 of shape ``size``, of one: the same ones each time.

    A key makes one generator or is split, not both.

    >>> split(7, 2)
    array([...], dtype=uint64)
    """
    def record() -> Tracer:
        shape = as_shape(size)
        return words_at(key, _places(shape) + np.uint64(_SPLIT))

    ctx = context_for((key,))
    if ctx is not None:
        made: Tracer = ctx.apply(record, (), stem="keys")
        return made
    shape = tuple(as_int(dim, "size") for dim in as_shape(size))
    return word_at(key, np.arange(math.prod(shape), dtype=U64) + np.uint64(_SPLIT)).reshape(shape)


def word_at(key: Any, counter: Any) -> Any:
    """Words of a plain key."""
    return OPS["threefry"].meaning(*np.broadcast_arrays(np.asarray(key, U64),
                                                        np.asarray(counter, U64)))


def words_at(key: Any, counters: Tracer) -> Tracer:
    """Words of a key, as nodes."""
    return current().emit("threefry", spread(key, U64, counters.type.shape), counters)


def child_key(key: Any, number: int) -> Any:
    """The key of a spawned generator."""
    ctx = context_for((key,)) if isinstance(key, Tracer) else None
    if ctx is None:
        return word_at(key, _SPAWNED + number)
    return ctx.apply(lambda: words_at(key, to_tracer(np.uint64(_SPAWNED + number))), (),
                     stem="key")


def _places(shape: tuple[Dim, ...]) -> Any:
    """The numbers of the elements, in order."""
    flat = current().emit("iota", axis=0, dtype=to_tracer(np.uint64(0)).type.dtype,
                          shape=(product(shape),))
    return reshape(flat, shape)


class Stream:
    """See the module docstring. The key is a number, an array without dims or a traced value."""

    def __init__(self, key: Any, counter: Variable) -> None:
        self.counter = counter
        # An array, so that the key is a hidden parameter: another seed does not compile again.
        self.key = key if isinstance(key, Tracer) else np.array(key, U64)

    def traced(self, shape: tuple[Dim, ...], each: int) -> tuple[Any, Any]:
        """The key of a draw that is being recorded, and for each element the place of the first of
        ``each`` words that are its own."""
        ctx = current()
        used = product(shape) * each
        step = cast(to_tracer(as_number(used)), U64) if isinstance(used, Expr) else ctx.full(
            used, U64)
        # The read comes after the update, so that fetching the numbers alone advances the counter.
        advanced = ctx.write("update_var", self.counter, step)
        with ctx.waiting(advanced):
            start: Any = ctx.read(self.counter) - step
        key = self.key
        for index in _BATCHES.get():
            key = words_at(key, cast(to_tracer(index), U64) + np.uint64(_LANES))
        return key, placed(start, shape, each)

    def reserved(self, count: int) -> Any:
        """The first of so many words that nobody else has; at once."""
        cell = self.counter.cell

        def step() -> Any:
            first = cell.value
            with np.errstate(over="ignore"):
                commit([cell], [np.asarray(first + np.uint64(count))])
            return first

        return Writer([cell]).run(step)


def placed(start: Any, shape: tuple[Dim, ...], each: int) -> Any:
    """Where the words of each element begin."""
    places = _places(shape)
    return start + (places if each == 1 else places * np.uint64(each))


def counter_of() -> Variable:
    """The counter of a new generator. One that is made while a function is traced begins anew at
    each call, as one that is made in plain Python does."""
    counter = Variable(np.uint64(0), name="rng_counter", trainable=False)
    ctx = active()
    if ctx is not None and ctx.made is not None:
        counter.assign(np.uint64(0))
    return counter

