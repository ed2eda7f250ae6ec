"""Wrong programs with layers, losses, optimizers and random numbers; see ``programs``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .programs import W, X, wrong

IMAGES = np.ones((1, 3, 8, 8), np.float32)


@wrong("W132", ValueError)
def a_rate_in_percent() -> None:
    rng = weft.random.default_rng(0)

    @weft.compile
    def dropped(x: Any) -> Any:
        return weft.nn.dropout(x, 20, rng)  # here

    dropped(X)


@wrong("W112", TypeError)
def a_seed_in_place_of_a_generator() -> None:
    @weft.compile
    def dropped(x: Any) -> Any:
        return weft.nn.dropout(x, 0.2, 0)  # here

    dropped(X)


@wrong("W123", IndexError)
def ids_and_table_the_other_way_round() -> None:
    @weft.compile
    def embedded(table: Any, ids: Any) -> Any:
        return weft.nn.embedding(table, ids)  # here

    embedded(W, np.array([0, 2]))


@wrong("W102", ValueError)
def labels_of_another_batch() -> None:
    @weft.compile
    def loss(scores: Any, labels: Any) -> Any:
        return weft.nn.cross_entropy(scores, labels)  # here

    loss(X, np.zeros(4, np.int64))


@wrong("W124", IndexError)
def a_class_that_is_not_there() -> None:
    @weft.compile
    def loss(scores: Any, labels: Any) -> Any:
        return weft.nn.cross_entropy(scores, labels)  # here

    loss(X, np.array([0, 1, 9]))


@wrong("W102", ValueError)
def channels_that_do_not_fit_the_kernel() -> None:
    weft.nn.conv2d(IMAGES, np.ones((4, 2, 3, 3), np.float32))  # here


@wrong("W102", ValueError)
def a_kernel_larger_than_the_image() -> None:
    weft.nn.conv2d(IMAGES, np.ones((4, 3, 9, 9), np.float32), padding="VALID")  # here


@wrong("W102", ValueError)
def an_image_without_a_batch() -> None:
    weft.nn.conv2d(IMAGES[0], np.ones((4, 3, 3, 3), np.float32))  # here


@wrong("W102", ValueError)
def a_scale_of_another_width() -> None:
    weft.nn.layer_norm(X, np.ones(3, np.float32), np.zeros(3, np.float32))  # here


@wrong("W104", ValueError)
def keys_of_another_width() -> None:
    @weft.compile
    def attended(q: Any, k: Any, v: Any) -> Any:
        return weft.nn.scaled_dot_product_attention(q, k, v)  # here

    attended(X[None], W.T[None, :, :3], W.T[None])


@wrong("W102", ValueError)
def a_gradient_of_the_transposed_parameter() -> None:
    adam = weft.optim.Adam(1e-3)
    params = {"w": W}
    adam.update({"w": W.T}, adam.init(params), params)  # here


@wrong("W102", ValueError)
def gradients_of_another_nest() -> None:
    adam = weft.optim.Adam(1e-3)
    params = {"w": W}
    adam.update({"weight": W}, adam.init(params), params)  # here


@wrong("W111", TypeError)
def a_parameter_that_is_an_integer() -> None:
    adam, counts = weft.optim.Adam(1e-3), np.arange(3)

    @weft.compile
    def stepped(counts: Any) -> Any:
        return adam.update(counts, adam.init(counts), counts)  # here

    stepped(counts)


@wrong("W112", TypeError)
def a_rate_by_name() -> None:
    weft.optim.SGD("cosine")  # here


@wrong("W114", TypeError)
def a_step_down_a_vector() -> None:
    w, sgd = weft.Variable(W, name="weights"), weft.optim.SGD(0.1)

    @weft.compile
    def train(x: Any) -> Any:
        return sgd.minimize(lambda: (x @ w) ** 2, [w])  # here

    train(X)


@wrong("W102", ValueError)
def more_best_ones_than_there_are() -> None:
    @weft.compile
    def best(x: Any) -> Any:
        return weft.top_k(x, 9)  # here

    best(X)


@wrong("W124", IndexError)
def a_segment_that_is_not_there() -> None:
    @weft.compile
    def pooled(x: Any, ids: Any) -> Any:
        return weft.segment_sum(x, ids, 2)  # here

    pooled(X, np.array([0, 1, 2]))


@wrong("W201", TypeError)
def as_many_draws_as_a_traced_number() -> None:
    rng = weft.random.default_rng(0)

    @weft.compile
    def noise(n: Any) -> Any:
        return rng.normal(size=n)  # here

    noise(np.array(3))


@wrong("W112", TypeError)
def a_seed_that_is_a_fraction() -> None:
    weft.random.default_rng(0.5)  # here


@wrong("W132", ValueError)
def a_rate_below_zero() -> None:
    weft.optim.Adam(-1e-3)  # here


@wrong("W132", ValueError)
def a_decay_in_percent() -> None:
    weft.optim.SGD(0.1, momentum=90)  # here


@wrong("W114", TypeError)
def variables_that_the_loss_does_not_read() -> None:
    other = weft.Variable(np.ones(3), name="other")
    weft.optim.SGD(0.1).minimize(lambda: np.sum(W * W), [other])  # here


@wrong("W201", TypeError)
def a_loop_of_python_in_a_graph() -> None:
    with weft.Graph().as_default():
        y = weft.placeholder("f32", name="y")
        while y < 100:  # here
            y = y * 2
