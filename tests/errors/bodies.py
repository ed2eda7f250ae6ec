"""Wrong programs whose functions do not fit what they are given to; see ``programs``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .programs import W, X, wrong


@wrong("W114", TypeError)
def a_body_without_the_number_of_the_round() -> None:
    @weft.compile
    def doubled(x: Any) -> Any:
        return weft.fori_loop(0, 3, lambda x: x * 2, x)  # here

    doubled(X)


@wrong("W114", TypeError)
def branches_that_take_what_is_not_given() -> None:
    @weft.compile
    def signed(x: Any) -> Any:
        return weft.cond(np.sum(x) > 0, lambda x: x, lambda x: -x)  # here

    signed(X)


@wrong("W114", TypeError)
def values_in_place_of_branches() -> None:
    @weft.compile
    def signed(x: Any) -> Any:
        return weft.cond(np.sum(x) > 0, x, -x)  # here

    signed(X)


@wrong("W114", TypeError)
def a_condition_that_is_computed_already() -> None:
    @weft.compile
    def halved(x: Any) -> Any:
        return weft.while_loop(np.max(x) > 1, lambda x: x / 2, x)  # here

    halved(X)


@wrong("W114", TypeError)
def the_state_of_a_loop_spread_over_arguments() -> None:
    @weft.compile
    def counted(x: Any) -> Any:
        def body(n: Any, x: Any) -> Any:  # here
            return n + 1, x * 2

        return weft.while_loop(lambda s: s[0] < 3, body, (0, x))

    counted(X)


@wrong("W114", TypeError)
def a_gradient_of_a_value() -> None:
    loss = np.float64(3.0)
    weft.grad(loss)  # here


@wrong("W114", TypeError)
def a_batch_of_results() -> None:
    weft.vmap(np.tanh(X))  # here


@wrong("W114", TypeError)
def values_to_be_computed_again() -> None:
    weft.remat(np.tanh(X))  # here


@wrong("W114", TypeError)
def a_backward_function_without_what_was_saved() -> None:
    @weft.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defvjp(lambda x: (x * 2, None), lambda ct: (ct * 2,))  # here


@wrong("W102", ValueError)
def a_cotangent_of_another_length() -> None:
    @weft.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    def backward(saved: Any, ct: Any) -> Any:  # here
        return (ct[:1] * 2,)

    doubled.defvjp(lambda x: (x * 2, None), backward)
    weft.grad(lambda x: doubled(x).sum())(np.ones(3))


@wrong("W102", ValueError)
def a_forward_function_with_another_nest() -> None:
    @weft.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    def forward(x: Any) -> Any:  # here
        return (x * 2, x), None

    doubled.defvjp(forward, lambda _, ct: (ct * 2,))
    weft.grad(lambda x: np.sum(doubled(x)))(X)


@wrong("W102", ValueError)
def a_cotangent_of_another_shape() -> None:
    @weft.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct.sum(),))  # here
    weft.grad(lambda x: np.sum(doubled(x)))(X)


@wrong("W102", ValueError)
def a_cotangent_of_the_argument() -> None:
    @weft.compile
    def pulled(x: Any) -> Any:
        _, pull = weft.vjp(lambda x: x @ W, x)
        return pull(x)  # here

    pulled(X)


@wrong("W102", ValueError)
def one_cotangent_for_two_results() -> None:
    @weft.compile
    def pulled(x: Any) -> Any:
        _, pull = weft.vjp(lambda x: (x, np.sum(x)), x)
        return pull(x)  # here

    pulled(X)


@wrong("W102", ValueError)
def rounds_that_give_nothing() -> None:
    @weft.compile
    def doubled(x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:  # here
            x = x * 2

        return weft.fori_loop(0, 3, body, x)

    doubled(X)


@wrong("W102", ValueError)
def a_round_that_drops_a_part_of_the_state() -> None:
    @weft.compile
    def counted(x: Any) -> Any:
        return weft.while_loop(
            lambda s: s[0] < 3,
            lambda s: s[0] + 1,  # here
            (0, x))

    counted(X)


@wrong("W102", ValueError)
def more_rounds_than_rows() -> None:
    @weft.compile
    def added(x: Any) -> Any:
        return weft.scan(lambda total, row: (total + row, total), x[0], x, length=5)  # here

    added(X)


@wrong("W202", TypeError)
def what_a_round_left_in_a_list() -> None:
    @weft.compile
    def added(x: Any) -> Any:
        seen = []

        def step(total: Any, row: Any) -> Any:
            seen.append(row)
            return total + row, None

        total, _ = weft.scan(step, x[0], x)
        return total + seen[-1]  # here

    added(X)


@wrong("W202", TypeError)
def a_total_kept_by_side_effect() -> None:
    @weft.compile
    def doubled(x: Any) -> Any:
        total = [0.0]

        def body(i: Any, x: Any) -> Any:
            total[0] = total[0] + np.sum(x)
            return x * 2

        return weft.fori_loop(0, 3, body, x) + total[0]  # here

    doubled(X)


@wrong("W121", IndexError)
def results_without_the_axis_asked_for() -> None:
    @weft.compile
    def rows(x: Any) -> Any:
        return weft.vmap(lambda row: row, out_axes=2)(x)  # here

    rows(X)


@wrong("W102", ValueError)
def nothing_that_is_a_batch() -> None:
    @weft.compile
    def product(x: Any, w: Any) -> Any:
        return weft.vmap(lambda x, w: x @ w, in_axes=(None, None))(x, w)  # here

    product(X, W)


@wrong("W114", TypeError)
def a_gradient_of_an_argmax() -> None:
    @weft.compile
    def chosen(x: Any) -> Any:
        return weft.grad(lambda x: np.argmax(x))(x)  # here

    chosen(X)


@wrong("W114", TypeError)
def auxiliary_results_that_are_not_there() -> None:
    @weft.compile
    def both(x: Any) -> Any:
        return weft.value_and_grad(lambda x: np.sum(x), has_aux=True)(x)  # here

    both(X)


@wrong("W201", TypeError)
def a_slice_of_a_length_that_is_computed() -> None:
    @weft.compile
    def first(x: Any, n: Any) -> Any:
        return x[np.array([0, 1]), :n]  # here

    first(X, np.array(2))


@wrong("W124", IndexError)
def a_slice_over_the_end_at_run_time() -> None:
    @weft.compile
    def two(x: Any, i: Any) -> Any:
        return x[i:i + 2]  # here

    two(X, 2)
