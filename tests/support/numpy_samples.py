"""Arrays for the samples of NumPy's rows: ``x[3,4]`` floats, ``p`` positive ones, ``i`` small
integers from 0 on, ``m`` truth values, ``z`` complex numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import with_source

import weft.frontend.numpy_api.dispatch  # noqa: F401  its modules add the rows
from weft.frontend.numpy_api.registry import Row

_ARRAY = re.compile(r"\b([xpimz])\[([\d,\s]*|\(\))\]")
_DTYPES = {"i": "i64", "m": "bool", "z": "c128"}


def samples(text: str, dtype: Any = np.float64) -> list[Any]:
    """The arrays that a text mentions, in order. Of an integer dtype, ``x`` are integers."""
    return drawn(text, lambda dim: dim, dtype)


def drawn(text: str, size: Callable[[int], int], dtype: Any = np.float64) -> list[Any]:
    """The arrays that a text mentions, with other sizes in the place of those it gives."""
    rng = np.random.default_rng(7)
    return [_array(rng, kind, tuple(map(size, _shape(dims))), dtype)
            for kind, dims in _ARRAY.findall(text)]


def shapes(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The dtypes and shapes of the arrays that a text mentions."""
    return [(_DTYPES.get(kind, "f64"), _shape(dims)) for kind, dims in _ARRAY.findall(text)]


def kinds(text: str) -> list[str]:
    """The letters of the arrays that a text mentions."""
    return [kind for kind, _ in _ARRAY.findall(text)]


def _shape(dims: str) -> tuple[int, ...]:
    return tuple(int(dim) for dim in dims.split(",") if dim.strip("() "))


def _array(rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: Any) -> Any:
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

    def __str__(self) -> str:
        return f"{self.row.name}({self.text})"

    def arrays(self, dtype: Any) -> list[Any]:
        return samples(self.text, dtype)

    def call(self, *arrays: Any, function: Any = None) -> Any:
        """The function, or another one, on arrays in the places of those in the text."""
        given = iter(arrays)
        scope: dict[str, Any] = {"np": np, "f": function or self.row.functions[0]}

        def name(_: Any) -> str:
            key = f"a{len(scope)}"
            scope[key] = next(given)
            return key

        call = _ARRAY.sub(name, self.text)
        try:
            return with_source.function(f"lambda: f({call})", scope)()
        finally:
            scope.clear()  # its text, which is kept, has it


def agree(found: Any, wanted: Any, rtol: float) -> None:
    if isinstance(wanted, (tuple, list)) and not all(isinstance(x, int) for x in wanted):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            agree(one, other, rtol)
        return
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    rtol = max(rtol, 2e-6) if np.asarray(wanted).dtype in (np.float32, np.complex64) else rtol
    wide = np.complex128 if np.iscomplexobj(wanted) else np.float64
    size = np.abs(np.asarray(wanted, wide))
    scale = rtol * float(np.max(size, where=np.isfinite(size), initial=0))
    exact = np.asarray(wanted).dtype.kind in "iub"
    found, wanted = (np.asarray(x, None if exact else wide) for x in (found, wanted))
    np.testing.assert_allclose(found, wanted, rtol=0 if exact else rtol, atol=0 if exact else scale)


def parts(result: Any) -> list[Any]:
    """The arrays that a call gives."""
    return [x for part in result for x in parts(part)] if isinstance(
        result, (tuple, list)) else [result]


def differences(
    loss: Callable[..., Any], arrays: list[Any], at: int, step: float = 1e-6
) -> Any:
    """The gradient of a loss by central differences: of complex numbers, by the real parts less i
    times that by the imaginary ones."""
    wanted = np.zeros_like(arrays[at])
    for place in np.ndindex(wanted.shape):
        for way in (1, 1j) if np.iscomplexobj(wanted) else (1,):
            ends = []
            for sign in (1, -1):
                moved = [x.copy() for x in arrays]
                moved[at][place] += sign * way * step
                ends.append(loss(*moved))
            wanted[place] += (ends[0] - ends[1]) / (2 * step * way)
    return wanted
