"""Arrays for the samples of NumPy's rows: ``x[3,4]`` floats, ``p`` positive ones, ``i`` small
integers from 0 on, ``m`` truth values, ``z`` complex numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.frontend.numpy_api.registry import Row

_ARRAY = re.compile(r"\b([xpimz])\[([\d,\s]*|\(\))\]")


def samples(text: str, dtype: Any = np.float64) -> list[Any]:
    """The arrays that a text mentions, in order. Of an integer dtype, ``x`` are integers."""
    rng = np.random.default_rng(7)
    return [_array(rng, *found, dtype) for found in _ARRAY.findall(text)]


def _array(rng: np.random.Generator, kind: str, dims: str, dtype: Any) -> Any:
    shape = tuple(int(dim) for dim in dims.split(",") if dim.strip("() "))
    if kind == "m":
        return np.asarray(rng.random(shape) < 0.6)
    if kind == "i":
        return np.asarray(rng.integers(0, 3, shape))
    if kind == "z":
        values = rng.uniform(-2, 2, shape) + 1j * rng.uniform(-2, 2, shape)
        return np.asarray(values).astype(np.result_type(dtype, np.complex64))
    low, high = (0.2, 3) if kind == "p" else (-3, 3)
    values = rng.uniform(low, high, shape)
    return np.asarray(np.ceil(values) if np.dtype(dtype).kind in "iu" else values).astype(dtype)


@dataclass(frozen=True)
class Sample:
    """One call of a row's function; its arrays are the arguments of ``call``."""

    row: Row
    text: str

    def arrays(self, dtype: Any) -> list[Any]:
        return samples(self.text, dtype)

    def call(self, *arrays: Any) -> Any:
        """The function on arrays in the places of those in the text."""
        given = iter(arrays)
        scope: dict[str, Any] = {"np": np, "f": self.row.functions[0]}

        def name(_: Any) -> str:
            key = f"a{len(scope)}"
            scope[key] = next(given)
            return key

        call = _ARRAY.sub(name, self.text)
        return eval(f"f({call})", scope)
