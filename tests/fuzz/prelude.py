"""What a random program may use besides NumPy: the same operation on plain and on traced arrays."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from scipy import special


def at_set(x: Any, index: Any, value: Any) -> Any:
    """x.at[index].set(value); on a plain array, a changed copy."""
    if not isinstance(x, np.ndarray):
        return x.at[index].set(value)
    changed = x.copy()
    changed[index] = value
    return changed


def at_add(x: Any, index: Any, value: Any) -> Any:
    """x.at[index].add(value): equal indices add repeatedly."""
    if not isinstance(x, np.ndarray):
        return x.at[index].add(value)
    changed = x.copy()
    if isinstance(value, int):  # to np.add.at it is an int64, which makes floats of uint64
        value = x.dtype.type(value)
    np.add.at(changed, index, value)
    return changed


class Held:
    """A variable in plain Python."""

    def __init__(self, value: Any) -> None:
        self.value = np.array(value)

    def __getitem__(self, index: Any) -> Any:
        return self.value[index].copy()

    def assign(self, value: Any) -> None:
        self.value = np.array(value, self.value.dtype)

    def assign_add(self, value: Any) -> None:
        self.value = (self.value + value).astype(self.value.dtype)

    def assign_sub(self, value: Any) -> None:
        self.value = (self.value - value).astype(self.value.dtype)

    def numpy(self) -> Any:
        return self.value


def laid(array: Any, layout: str) -> Any:
    """An array with the same elements, otherwise laid out in memory."""
    if array.ndim == 0 and layout != "unaligned":
        return array
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    if layout in ("strided", "backward"):
        step = 3 if layout == "strided" else -2
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * abs(step)), array.dtype)
        view = wide[..., ::step]
        view[...] = array
        return view
    if layout == "rows":
        wide = np.zeros((2 * array.shape[0], *array.shape[1:]), array.dtype)
        view = wide[::-2]
        view[...] = array
        return view
    if layout == "unaligned":
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
        view = raw.view(array.dtype).reshape(array.shape)
        view[...] = array
        return view
    if layout == "readonly":
        array = array.copy()
        array.flags.writeable = False
    return array


def scope() -> dict[str, Any]:
    """The names that the text of a program may use."""
    return {"np": np, "special": special, "at_set": at_set, "at_add": at_add, "zlib": zlib,
            "base64": base64}
