"""Transforms of transforms, through control flow, remat and custom_vjp, and what they are.

Each function computes the sum of x ** 3 in its own way, of which all derivatives are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from weft.frontend.transforms.batch import vmap
from weft.frontend.transforms.reverse import grad

X = np.array([0.5, -1.5, 2.0])
V = np.array([1.0, 2.0, -3.0])
XS = np.stack([X, 2 * X, X - 1, X[::-1]])
VS = np.stack([V, V + 1, -V, V * 0.5])

_cube = weft.custom_vjp(lambda x: x**3)
_cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * ct * x**2,))

CUBES: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x**3,
    "cond": lambda x: weft.cond(np.sum(x) > 0, lambda x: x**3, lambda x: x * x * x, x),
    "scan": lambda x: weft.scan(lambda c, _: (c * x, None), np.ones(3), None, length=3)[0],
    "rows": lambda x: np.sum(weft.scan(
        lambda c, row: (c + row, c * 0 + row), np.zeros(3), np.stack([x**2, x - x**2]))[1], 0)
        * x**2,
    "fori": lambda x: weft.fori_loop(0, 3, lambda i, c: c * x, np.ones(3)),
    "while": lambda x: weft.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, np.ones(3)), 4)[1],
    "while_each": lambda x: weft.while_loop(  # as many rounds as the sign says
        lambda s: s[0] < 3 + (np.sum(x) > 0), lambda s: (
            s[0] + 1, np.where(s[0] < 3, s[1] * x, s[1])), (0, np.ones(3)), 6)[1],
    "remat": weft.remat(lambda x: x * x * x),
    "remat_of_scan": weft.remat(lambda x: weft.scan(
        lambda c, _: (c * x, None), np.ones(3), None, length=3)[0]),
    "scan_of_remat": lambda x: weft.scan(
        lambda c, _: (weft.remat(lambda c: c * x)(c), None), np.ones(3), None, length=3)[0],
    "custom": _cube,
    "scan_of_custom": lambda x: weft.scan(
        lambda c, row: (c + _cube(row), None), np.zeros(()), x)[0],
}

Nest = Callable[[Callable[[Any], Any]], tuple[Any, Any]]  # what is found, and what it is


def _push(f: Any, x: Any, v: Any) -> Any:
    return weft.jvp(f, (x,), (v,))[1]


def _pull(f: Any, x: Any, ct: Any) -> Any:
    return weft.vjp(f, x)[1](ct)[0]


REVERSE: dict[str, Nest] = {
    "grad": lambda f: (grad(f)(X), 3 * X**2),
    "grad_of_grad": lambda f: (grad(lambda x: grad(f)(x) @ V)(X), 6 * X * V),
    "vmap_of_grad": lambda f: (vmap(grad(f))(XS), 3 * XS**2),
    "grad_of_vmap": lambda f: (grad(lambda x: vmap(f)(x) @ np.arange(4.0))(XS),
                               3 * XS**2 * np.arange(4.0)[:, None]),
    "vmap_of_vmap": lambda f: (vmap(vmap(f))(np.stack([XS, -XS])),
                               np.stack([XS**3, -(XS**3)]).sum(-1)),
    "vmap_of_vjp": lambda f: (vmap(lambda x, ct: _pull(f, x, ct))(XS, np.arange(4.0)),
                              3 * XS**2 * np.arange(4.0)[:, None]),
    "vmap_of_grad_of_grad": lambda f: (
        vmap(grad(lambda x: grad(f)(x) @ V))(XS), 6 * XS * V),
    "grad_of_vmap_of_grad": lambda f: (
        grad(lambda x: np.sum(vmap(grad(f))(x) * VS))(XS), 6 * XS * VS),
}
FORWARD: dict[str, Nest] = {
    "jvp": lambda f: (_push(f, X, V), 3 * X**2 @ V),
    "jvp_of_jvp": lambda f: (_push(lambda x: _push(f, x, V), X, V), 6 * X @ V**2),
    "jvp_of_grad": lambda f: (_push(grad(f), X, V), 6 * X * V),
    "grad_of_jvp": lambda f: (grad(lambda x: _push(f, x, V))(X), 6 * X * V),
    "jvp_of_vjp": lambda f: (_push(lambda x: _pull(f, x, 2.0), X, V), 12 * X * V),
    "vjp_of_jvp": lambda f: (_pull(lambda x: _push(f, x, V), X, 2.0), 12 * X * V),
    "jvp_of_vmap": lambda f: (_push(vmap(f), XS, VS), (3 * XS**2 * VS).sum(-1)),
    "vmap_of_jvp": lambda f: (vmap(lambda x, v: _push(f, x, v))(XS, VS),
                              (3 * XS**2 * VS).sum(-1)),
    "hessian": lambda f: (vmap(lambda v: _push(grad(f), X, v))(np.eye(3)),
                          np.diag(6 * X)),
    "jvp_of_vmap_of_grad": lambda f: (_push(vmap(grad(f)), XS, VS), 6 * XS * VS),
    "vmap_of_grad_of_jvp": lambda f: (
        vmap(lambda x, v: grad(lambda x: _push(f, x, v))(x))(XS, VS), 6 * XS * VS),
}
# custom_vjp has no forward mode
ALL = [(cube, nest) for cube in CUBES for nest in (*REVERSE, *FORWARD)
       if nest in REVERSE or "custom" not in cube]


def nested(cube: str, nest: str) -> tuple[Any, Any]:
    """What a nest of transforms gives for one of the functions, and what it is."""
    return {**REVERSE, **FORWARD}[nest](lambda x: np.sum(CUBES[cube](x)))
