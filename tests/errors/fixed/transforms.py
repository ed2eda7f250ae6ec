"""``errors/transforms.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from ..programs import W, X
from .fixing import fixed

ONES = np.ones((3, 4), np.float32)


@fixed("give axes of one size")
def batches_of_different_sizes() -> Any:
    scores = weft.compile(lambda x, ids: weft.vmap(lambda row, at: row[at])(x, ids))
    return scores(np.arange(12.0).reshape(3, 4), np.array([0, 1, 2])), [0.0, 5, 10]


@fixed("None in in_axes")
def a_shared_argument_without_none() -> Any:
    @weft.compile
    def scaled(x: Any, scale: Any) -> Any:
        return weft.vmap(lambda row, scale: row * scale, in_axes=(0, None))(x, scale)

    return scaled(X, np.float32(2)), 2 * ONES


@fixed("a nest of them of the same structure")
def in_axes_of_another_nest() -> Any:
    @weft.compile
    def model(params: Any, x: Any) -> Any:
        return weft.vmap(lambda p, x: x @ p["w"], in_axes=({"w": None}, 0))(params, x)

    return model({"w": W}, X), np.full((3, 5), 4.0)


@fixed("give its axis in out_axes")
def a_result_of_the_batch_is_called_shared() -> Any:
    norms = weft.compile(lambda x: weft.vmap(lambda row: row @ row, out_axes=0)(x))
    return norms(X), np.full(3, 4.0)


@fixed("return the value, and assign a sum or a mean of all outside")
def an_assignment_for_each_example() -> Any:
    total = weft.Variable(np.float32(0), name="total")

    @weft.compile
    def counted(x: Any) -> Any:
        rows, sums = weft.vmap(lambda row: (row * 2, row.sum()))(x)
        total.assign_add(sums.sum())
        return rows

    return [counted(X), total.value], [2 * ONES, 12.0]


@fixed("assign before it")
def an_assignment_on_one_way_of_a_batch() -> Any:
    seen = weft.Variable(np.float32(0), name="seen")

    @weft.compile
    def counted(x: Any) -> Any:
        seen.assign_add(np.sum(x[:, 0] > 0).astype(np.float32))
        return weft.vmap(lambda row: weft.cond(row[0] > 0, lambda: row, lambda: -row))(x)

    return [counted(-X), seen.value], [ONES, 0.0]


@fixed("give a tangent of the shape of the argument")
def a_tangent_of_another_shape() -> Any:
    return weft.compile(lambda x: weft.jvp(np.square, (x,), (x,))[1])(X), 2 * ONES


@fixed("(primal,)")
def primals_that_are_no_tuple() -> Any:
    primal = X
    return weft.jvp(np.square, (primal,), (X,)), (ONES, 2 * ONES)


@fixed("pass floating-point values")
def a_direction_of_integers() -> Any:
    slope = weft.compile(lambda n: weft.jvp(lambda n: n * 2.0, (n,), (n,))[1])
    return slope(np.arange(3.0)), [0.0, 2, 4]


@fixed("weft.grad")
def forward_mode_of_a_custom_gradient() -> Any:
    @weft.custom_vjp
    def rounded(x: Any) -> Any:
        return np.rint(x)

    rounded.defvjp(lambda x: (np.rint(x), None), lambda _, ct: (ct,))
    return weft.compile(weft.grad(lambda x: np.sum(rounded(x) * 2)))(X), 2 * ONES


@fixed("return a tuple with an entry, or None, for each argument")
def cotangents_that_are_too_many() -> Any:
    @weft.custom_vjp
    def scaled(x: Any, scale: Any) -> Any:
        return x * scale

    scaled.defvjp(lambda x, scale: (x * scale, scale), lambda saved, ct: (ct * saved, None))
    return weft.compile(weft.grad(lambda x: np.sum(scaled(x, 2.0))))(X), 2 * ONES


@fixed("f.defvjp(fwd, bwd)")
def a_custom_gradient_that_is_missing() -> Any:
    def fwd(x: Any) -> Any:
        return x * 2, None

    def bwd(saved: Any, ct: Any) -> Any:
        return (ct * 3,)

    f = weft.custom_vjp(lambda x: x * 2)
    f.defvjp(fwd, bwd)
    return weft.compile(weft.value_and_grad(lambda x: np.sum(f(x))))(X), (24.0, 3 * ONES)


@fixed("weft.stop_gradient", "make it an argument of the function")
def a_custom_gradient_of_what_is_no_argument() -> Any:
    @weft.compile
    def loss(x: Any, scale: Any) -> Any:
        def inner(scale: Any) -> Any:
            held = weft.stop_gradient(scale)
            f = weft.custom_vjp(lambda x: x * held)
            f.defvjp(lambda x: (x * held, None), lambda _, ct: (ct,))
            return np.sum(f(x)) * scale

        def outer(scale: Any) -> Any:
            g = weft.custom_vjp(lambda x, scale: x * scale)
            g.defvjp(lambda x, scale: (x * scale, x), lambda x, ct: (None, np.sum(ct * x)))
            return np.sum(g(x, scale))

        return weft.grad(inner)(scale), weft.grad(outer)(scale)

    return loss(X, np.float32(2)), (24.0, 12.0)
