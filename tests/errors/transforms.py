"""Wrong programs with transforms; see ``programs``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .programs import W, X, wrong


@wrong("W102", ValueError)
def batches_of_different_sizes() -> None:
    @weft.compile
    def scores(x: Any, ids: Any) -> Any:
        return weft.vmap(lambda row, at: row[at])(x, ids)  # here

    scores(X, np.zeros(len(X) + 1, np.int64))


@wrong("W121", IndexError)
def a_shared_argument_without_none() -> None:
    @weft.compile
    def scaled(x: Any, scale: Any) -> Any:
        return weft.vmap(lambda row, scale: row * scale)(x, scale)  # here

    scaled(X, np.float32(2))


@wrong("W102", ValueError)
def in_axes_of_another_nest() -> None:
    @weft.compile
    def model(params: Any, x: Any) -> Any:
        return weft.vmap(lambda p, x: x @ p["w"], in_axes=({"b": None}, 0))(params, x)  # here

    model({"w": W}, X)


@wrong("W102", ValueError)
def a_result_of_the_batch_is_called_shared() -> None:
    @weft.compile
    def norms(x: Any) -> Any:
        return weft.vmap(lambda row: row @ row, out_axes=None)(x)  # here

    norms(X)


@wrong("W113", NotImplementedError)
def an_assignment_for_each_example() -> None:
    total = weft.Variable(np.float32(0), name="total")

    @weft.compile
    def counted(x: Any) -> Any:
        def one(row: Any) -> Any:
            total.assign_add(row.sum())  # here
            return row * 2

        return weft.vmap(one)(x)

    counted(X)


@wrong("W113", NotImplementedError)
def an_assignment_on_one_way_of_a_batch() -> None:
    seen = weft.Variable(np.float32(0), name="seen")

    @weft.compile
    def counted(x: Any) -> Any:
        def one(row: Any) -> Any:
            return weft.cond(row[0] > 0, lambda: (seen.assign_add(1), row)[1], lambda: row)  # here

        return weft.vmap(one)(x)

    counted(X)


@wrong("W102", ValueError)
def a_tangent_of_another_shape() -> None:
    @weft.compile
    def slope(x: Any) -> Any:
        return weft.jvp(np.tanh, (x,), (x[0],))[1]  # here

    slope(X)


@wrong("W114", TypeError)
def primals_that_are_no_tuple() -> None:
    weft.jvp(np.tanh, X, X)  # here


@wrong("W111", TypeError)
def a_direction_of_integers() -> None:
    @weft.compile
    def slope(n: Any) -> Any:
        return weft.jvp(lambda n: n * 2.0, (n,), (n,))[1]  # here

    slope(np.arange(3))


@wrong("W113", NotImplementedError)
def forward_mode_of_a_custom_gradient() -> None:
    @weft.custom_vjp
    def rounded(x: Any) -> Any:
        return np.rint(x)

    rounded.defvjp(lambda x: (np.rint(x), None), lambda _, ct: (ct,))

    @weft.compile
    def slope(x: Any) -> Any:
        return weft.jvp(lambda x: rounded(x) * 2, (x,), (x,))[1]  # here

    slope(X)


@wrong("W102", ValueError)
def cotangents_that_are_too_many() -> None:
    @weft.custom_vjp
    def scaled(x: Any, scale: Any) -> Any:
        return x * scale

    def back(saved: Any, ct: Any) -> Any:  # here
        return ct * saved

    scaled.defvjp(lambda x, scale: (x * scale, scale), back)
    weft.compile(weft.grad(lambda x: np.sum(scaled(x, 2.0))))(X)


@wrong("W114", TypeError)
def a_custom_gradient_that_is_missing() -> None:
    @weft.custom_vjp
    def scaled(x: Any) -> Any:  # here
        return x * 2

    weft.compile(lambda x: scaled(x))(X)


@wrong("W113", NotImplementedError)
def a_custom_gradient_of_what_is_no_argument() -> None:
    @weft.compile
    def loss(x: Any, scale: Any) -> Any:
        def inner(scale: Any) -> Any:
            f = weft.custom_vjp(lambda x: x * scale)
            f.defvjp(lambda x: (x * scale, None), lambda _, ct: (ct,))
            return np.sum(f(x))  # here

        return weft.grad(inner)(scale)

    loss(X, np.float32(2))
