"""``errors/bodies.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from ..programs import W, X
from .fixing import fixed

ONES = np.ones((3, 4), np.float32)


@fixed("lambda i, state:")
def a_body_without_the_number_of_the_round() -> Any:
    @weft.compile
    def doubled(x: Any) -> Any:
        return weft.fori_loop(0, 3, lambda i, state: state * 2, x)

    return doubled(X), 8 * ONES


@fixed("let it take no argument")
def branches_that_take_what_is_not_given() -> Any:
    signed = weft.compile(lambda x: weft.cond(np.sum(x) > 0, lambda: x, lambda: -x))
    return signed(-X), ONES


@fixed("a def or a lambda, without calling it")
def values_in_place_of_branches() -> Any:
    signed = weft.compile(lambda x: weft.cond(np.sum(x) > 0, lambda: x, lambda: -x))
    return signed(-X), ONES


@fixed("a def or a lambda, without calling it")
def a_condition_that_is_computed_already() -> Any:
    halved = weft.compile(lambda x: weft.while_loop(
        lambda x: np.max(x) > 1, lambda x: x / 2, x))
    return halved(5 * X), 0.625 * ONES


@fixed("lambda state:")
def the_state_of_a_loop_spread_over_arguments() -> Any:
    counted = weft.compile(lambda x: weft.while_loop(
        lambda s: s[0] < 3, lambda state: (state[0] + 1, state[1] * 2), (0, x)))
    return counted(X), (3, 8 * ONES)


@fixed("give the function itself")
def a_gradient_of_a_value() -> Any:
    def loss(x: Any) -> Any:
        return 3.0 * x * x

    return weft.grad(loss)(2.0), 12.0


@fixed("give the function itself")
def a_batch_of_results() -> Any:
    return weft.vmap(np.tanh)(X), np.tanh(X)


@fixed("give the function itself")
def values_to_be_computed_again() -> Any:
    return weft.remat(np.tanh)(X), np.tanh(X)


@fixed("lambda saved, ct:")
def a_backward_function_without_what_was_saved() -> Any:
    @weft.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defvjp(lambda x: (x * 2, None), lambda saved, ct: (ct * 2,))
    return weft.grad(lambda x: doubled(x).sum())(np.ones(3)), np.full(3, 2.0)


@fixed("return cotangents of the type of the arguments")
def a_cotangent_of_another_length() -> Any:
    @weft.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defvjp(lambda x: (x * 2, None), lambda saved, ct: (ct * 2,))
    return weft.grad(lambda x: doubled(x).sum())(np.ones(3)), np.full(3, 2.0)


@fixed("with the same result")
def a_forward_function_with_another_nest() -> Any:
    @weft.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defvjp(lambda x: (x * 2, x), lambda saved, ct: (ct * 2,))
    return weft.grad(lambda x: np.sum(doubled(x)))(X), 2 * ONES


@fixed("return cotangents of the type of the arguments")
def a_cotangent_of_another_shape() -> Any:
    @weft.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 2,))
    return weft.grad(lambda x: np.sum(doubled(x)))(X), 2 * ONES


@fixed("the shapes of the result")
def a_cotangent_of_the_argument() -> Any:
    @weft.compile
    def pulled(x: Any) -> Any:
        y, pull = weft.vjp(lambda x: x @ W, x)
        return pull(np.ones_like(y))

    return pulled(X), (5 * ONES,)


@fixed("a cotangent of the nest")
def one_cotangent_for_two_results() -> Any:
    @weft.compile
    def pulled(x: Any) -> Any:
        _, pull = weft.vjp(lambda x: (x, np.sum(x)), x)
        return pull((x, np.float32(1)))

    return pulled(X), (2 * ONES,)


@fixed("return a carry of the nest of the first one")
def rounds_that_give_nothing() -> Any:
    return weft.compile(lambda x: weft.fori_loop(0, 3, lambda i, x: x * 2, x))(X), 8 * ONES


@fixed("return a carry of the nest of the first one")
def a_round_that_drops_a_part_of_the_state() -> Any:
    counted = weft.compile(lambda x: weft.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x)))
    return counted(X), (3, ONES)


@fixed("give arrays with equal first axes")
def more_rounds_than_rows() -> Any:
    added = weft.compile(lambda x: weft.scan(
        lambda total, row: (total + row, None), x[0], x, length=3)[0])
    return added(X), np.full(4, 4.0)


@fixed("return the value from the traced function")
def what_a_round_left_in_a_list() -> Any:
    @weft.compile
    def added(x: Any) -> Any:
        total, seen = weft.scan(lambda total, row: (total + row, row), x[0], x)
        return total + seen[-1]

    return added(X), np.full(4, 5.0)


@fixed("return the value from the traced function")
def a_total_kept_by_side_effect() -> Any:
    @weft.compile
    def doubled(x: Any) -> Any:
        x, total = weft.fori_loop(
            0, 3, lambda i, s: (s[0] * 2, s[1] + np.sum(s[0])), (x, np.float32(0)))
        return x + total

    return doubled(X), np.full((3, 4), 8 + 12 + 24 + 48.0)


@fixed("give an axis that it has")
def results_without_the_axis_asked_for() -> Any:
    rows = weft.compile(lambda x: weft.vmap(lambda row: row, out_axes=1)(x))
    return rows(X), ONES.T


@fixed("a number for at least one argument")
def nothing_that_is_a_batch() -> Any:
    product = weft.compile(lambda x, w: weft.vmap(lambda x, w: x @ w, in_axes=(0, None))(x, w))
    return product(X, W), np.full((3, 5), 4.0)


@fixed("compute it from floating-point values")
def a_gradient_of_an_argmax() -> Any:
    return weft.compile(lambda x: weft.grad(lambda x: np.max(x * x))(x))(np.array([1.0, 3.0])), [
        0.0, 6.0]


@fixed("return a pair, of which the first one is differentiated")
def auxiliary_results_that_are_not_there() -> Any:
    both = weft.compile(lambda x: weft.value_and_grad(lambda x: (np.sum(x), x[0]), has_aux=True)(x))
    return both(X), ((12.0, ONES[0]), ONES)


@fixed("np.where(np.arange(n) < i, x, 0)")
def a_slice_of_a_length_that_is_computed() -> Any:
    n = 4

    @weft.compile
    def first(x: Any, i: Any) -> Any:
        x = x[np.array([0, 1])]
        return np.where(np.arange(n) < i, x, 0)

    return first(X, np.array(2)), [[1.0, 1, 0, 0]] * 2


@fixed("indices run from -n to n - 1")
def a_slice_over_the_end_at_run_time() -> Any:
    return weft.compile(lambda x, i: x[i:i + 2])(X, 1), ONES[1:]
