"""Random numbers under the names of NumPy's Generator, in and outside of traced code.

Word number c of a generator is ``threefry(key, c)``: a pure function, so every back end, thread
count and run gives the same numbers. The generator's only state is a Variable, the counter of words
used; a call takes as many as it needs and advances it.

    rng = weft.random.default_rng(0)
    x = rng.normal(size=(3, 4))          # traced: nodes; else computed at once
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.index import Dim, Expr, product
from ..compile.eager import run_eagerly
from ..numpy_api.select.index import as_number
from ..tracing.arrays.variable import Variable
from ..tracing.operand import as_shape, common_shape, reshape, spread, to_tracer
from ..tracing.recorder import active, current
from ..tracing.source import user_loc
from ..tracing.tracer import Tracer

_U64, _F32, _F64 = np.dtype(np.uint64), np.dtype(np.float32), np.dtype(np.float64)
_HALF = np.uint64(32)


def default_rng(seed: int | None = None) -> Generator:
    """A generator; the same seed gives the same numbers, None a seed from the system."""
    return Generator(seed)


class Generator:
    """A stream of random numbers; see the module docstring."""

    def __init__(self, seed: int | None = None) -> None:
        key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        # An array, so that the key is a hidden parameter: another seed does not compile again.
        self._key = np.array(key, _U64)
        self.counter = Variable(np.uint64(0), name="rng_counter", trainable=False)

    def random(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Uniform floats in [0, 1), multiples of 2**-53 (float64) or 2**-24 (float32)."""
        kind = self._float(dtype)
        return self._run(lambda: self._uniform(_shape(size), kind), "random")

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform float64 in [low, high)."""
        def record() -> Any:
            shape = _shape(size) if size is not None else common_shape((low, high))
            return self._uniform(shape, _F64) * (high - low) + low

        return self._run(record, "uniform")

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Normal floats of mean 0 and variance 1 (Box and Muller, 1958)."""
        kind = self._float(dtype)
        return self._run(lambda: self._normal(_shape(size), kind), "standard_normal")

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal float64 of mean ``loc`` and standard deviation ``scale``."""
        def record() -> Any:
            shape = _shape(size) if size is not None else common_shape((loc, scale))
            return self._normal(shape, _F64) * scale + loc

        return self._run(record, "normal")

    def integers(self, low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64,
                 endpoint: bool = False) -> Any:
        """Integers from ``low`` to before ``high`` (up to it with ``endpoint``), from 0 if only one
        is given. The bias of the remainder is below 2**-32 for ranges up to 2**32."""
        first, last = (0, low) if high is None else (low, high)
        count = int(last) - int(first) + bool(endpoint)
        if count <= 0:
            raise error("W122", f"no integers from {first} to before {last}", locs=user_loc())
        kind = np.dtype(dtype)

        def record() -> Any:
            words: Any = self._words(_shape(size))
            return (words % np.uint64(count)).astype(kind) + kind.type(first)

        return self._run(record, "integers")

    def bernoulli(self, p: Any = 0.5, size: Any = None) -> Any:
        """True with probability p."""
        def record() -> Any:
            shape = _shape(size) if size is not None else common_shape((p,))
            return self._uniform(shape, _F64) < p

        return self._run(record, "bernoulli")

    def _run(self, record: Callable[[], Any], stem: str) -> Any:
        ctx = active()
        return run_eagerly(record, ()) if ctx is None else ctx.apply(record, (), stem=stem)

    def _float(self, dtype: Any) -> np.dtype[Any]:
        kind: np.dtype[Any] = np.dtype(dtype)
        if kind not in (_F32, _F64):
            raise error("W111", f"random floats are float32 or float64, not {kind}",
                        locs=user_loc(), hint="convert the result with .astype")
        return kind

    def _words(self, shape: tuple[Dim, ...], each: int = 1) -> Tracer:
        """Fresh random words of the given shape; of ``each`` times as many, the counters of the
        first of each group."""
        ctx = current()
        used = product(shape) * each
        step = to_tracer(as_number(used)).astype(_U64) if isinstance(used, Expr) else ctx.full(
            used, _U64)
        # The read comes after the update, so that fetching the numbers alone advances the counter.
        advanced = ctx.write("update_var", self.counter, step)
        with ctx.waiting(advanced):
            start: Any = ctx.read(self.counter) - step
        count = product(shape)
        place: Any = ctx.emit("iota", axis=0, dtype=step.type.dtype, shape=(count,))
        place = reshape(place, shape)
        counters = start + (place if each == 1 else place * np.uint64(each))
        return self._bits(counters) if each == 1 else counters

    def _bits(self, counters: Tracer) -> Tracer:
        key = spread(self._key, _U64, counters.type.shape)
        return current().emit("threefry", key, counters)

    def _uniform(self, shape: tuple[Dim, ...], kind: np.dtype[Any]) -> Any:
        return _fraction(self._words(shape), kind)

    def _normal(self, shape: tuple[Dim, ...], kind: np.dtype[Any]) -> Any:
        if kind == _F32:
            word: Any = self._words(shape)
            first, second = _fraction(word, kind), _fraction(word << _HALF, kind)
        else:
            counters: Any = self._words(shape, each=2)
            first = _fraction(self._bits(counters), kind)
            second = _fraction(self._bits(counters + np.uint64(1)), kind)
        # 1 - u is in (0, 1], so its logarithm is finite.
        return np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * math.pi * second)


def _shape(size: Any) -> tuple[Dim, ...]:
    return () if size is None else as_shape(size)


def _fraction(word: Any, kind: np.dtype[Any]) -> Any:
    """The highest bits of random words as a float in [0, 1)."""
    bits = 24 if kind == _F32 else 53
    return (word >> np.uint64(64 - bits)).astype(kind) * kind.type(2.0 ** -bits)
