"""A stream of random words: a key, and a counter of the words used.

    counter   0 ...           draws, and keys of generators that are spawned
              2**62 ...       keys that ``split`` gives of a key
              3 * 2**62 ...   streams of a batch's elements

Keys made of a key are words of its stream that no draw reaches.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.indices.index import Dim, product
from ....ir.ops.table import OPS
from ....ir.types import as_dtype
from ....runtime.state import Writer, commit
from ...tracing.arrays.variable import Variable
from ...tracing.context.active import active, context_for, current
from ...tracing.context.lanes import around_lanes, lane_numbers
from ...tracing.operand import as_int, as_shape, cast, reshape, spread
from ...tracing.values.tracer import Tracer

U64 = np.dtype(np.uint64)
_SPLIT, _LANES = 1 << 62, 3 << 62


def split(key: Any, size: Any = 2) -> Any:
    """New keys, uint64 of shape ``size``, of one: the same ones each time.

    A key makes one generator or is split, not both.

    >>> split(7, 2)
    array([4274461914022496805, 7713620025325620099], dtype=uint64)
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


def _places(shape: tuple[Dim, ...]) -> Any:
    """The numbers of the elements, in order."""
    flat = current().emit("iota", axis=0, dtype=as_dtype(U64), shape=(product(shape),))
    return reshape(flat, shape)


class Stream:
    """A key, which is a number, an array without dims or a traced value, and a counter."""

    def __init__(self, key: Any, counter: Variable) -> None:
        # An array, so that the key is a hidden parameter: another seed does not compile again.
        self.key = key if isinstance(key, Tracer) else np.array(key, U64)
        self.counter = counter
        self._lanes = len(lane_numbers())  # of whose numbers the key, made there, need not know

    def traced(self, shape: tuple[Dim, ...], each: int) -> tuple[Any, Any]:
        """The key of a draw that is being recorded, and for each element the place of the first of
        ``each`` words that are its own."""
        used, home = product(shape) * each, around_lanes(current())
        step = home.full(used, U64) if isinstance(used, int) else home.emit(
            "cast", home.tracer(home.dim(used)), dtype=as_dtype(U64))
        # The read comes after the update, so that fetching the numbers alone advances the counter.
        done = home.write("take_var", self.counter, step)
        with home.waiting(done):
            start: Any = home.read(self.counter) - step
        key = self.key
        for number in lane_numbers()[self._lanes:]:
            key = words_at(key, cast(number, U64) + np.uint64(_LANES))
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


def counter_of(begins: bool) -> Variable:
    """The counter of a new generator. If it ``begins`` where it is made, and that is a traced
    function, it does so at each call, as in plain Python."""
    counter = Variable(np.uint64(0), name="rng_counter", trainable=False)
    if begins and is_traced_function():
        home = around_lanes(current())
        home.apply(lambda: home.write("assign_var", counter, home.full(0, U64)), ())
    return counter


def is_traced_function() -> bool:
    """True in a trace that has an end, unlike that of a ``weft.Graph``."""
    ctx = active()
    return ctx is not None and ctx.made is not None
