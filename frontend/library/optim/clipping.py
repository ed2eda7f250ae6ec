"""Gradients kept from being too large, on nests."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ...face import tree
from .checks import check_number


def global_norm(nest: Any) -> Any:
    """The length of all leaves as one vector.

    >>> global_norm({"w": np.array([3.0]), "b": 4.0})
    np.float64(5.0)
    """
    return np.sqrt(functools.reduce(operator.add, (
        np.sum(squared(leaf)) for leaf in tree.leaves(nest))))


def squared(x: Any) -> Any:
    """The squares of what elements are away from 0, real ones of complex numbers."""
    return x * x if np.result_type(x).kind != "c" else (
        np.square(np.real(x)) + np.square(np.imag(x)))


def clip_by_global_norm(grads: Any, limit: Any) -> Any:
    """The gradients, all scaled alike if their ``global_norm`` is above ``limit``, to have it
    (Pascanu et al., 2013)."""
    check_number("limit", limit)
    if not tree.leaves(grads):
        return grads
    scale = limit / np.maximum(global_norm(grads), limit)
    return tree.map(lambda grad: grad * scale.astype(np.result_type(grad)), grads)


def clip_by_value(grads: Any, limit: Any) -> Any:
    """The gradients with every element between ``-limit`` and ``limit``, of complex ones both
    parts."""
    check_number("limit", limit)

    def clipped(grad: Any) -> Any:
        if np.result_type(grad).kind != "c":
            return np.clip(grad, -limit, limit)
        real, imag = (np.clip(part, -limit, limit) for part in (np.real(grad), np.imag(grad)))
        return real + 1j * imag

    return tree.map(clipped, grads)
