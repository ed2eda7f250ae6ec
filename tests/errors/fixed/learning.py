"""``errors/learning.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from ..learning import IMAGES
from ..programs import W, X
from .fixing import fixed

ONES = np.ones((3, 4), np.float32)


@fixed("0.1")
def a_rate_in_percent() -> Any:
    rng = weft.random.default_rng(0)
    made = weft.compile(lambda x: weft.nn.dropout(x, 0.1, rng))(np.ones(64))
    return np.isclose(made, 0) | np.isclose(made, 1 / 0.9), np.ones(64, bool)


@fixed("rng = weft.random.default_rng(0)")
def a_seed_in_place_of_a_generator() -> Any:
    rng = weft.random.default_rng(0)
    made = weft.compile(lambda x: weft.nn.dropout(x, 0.2, rng))(np.ones(64))
    return np.isclose(made, 0) | np.isclose(made, 1.25), np.ones(64, bool)


@fixed("embedding(ids, table)")
def ids_and_table_the_other_way_round() -> Any:
    embedded = weft.compile(lambda table, ids: weft.nn.embedding(ids, table))
    return embedded(np.arange(8.0).reshape(4, 2), np.array([0, 2])), [[0.0, 1], [4, 5]]


@fixed("ids have the dims of the scores but the last")
def labels_of_another_batch() -> Any:
    loss = weft.compile(weft.nn.cross_entropy)
    return np.mean(loss(X, np.zeros(3, np.int64))), np.log(4)


@fixed("indices run from -n to n - 1")
def a_class_that_is_not_there() -> Any:
    loss = weft.compile(weft.nn.cross_entropy)
    return np.mean(loss(X, np.array([0, 1, 3]))), np.log(4)


@fixed("channels taken")
def channels_that_do_not_fit_the_kernel() -> Any:
    made = weft.nn.conv2d(IMAGES, np.ones((4, 3, 1, 1), np.float32))
    return made, np.full((1, 4, 8, 8), 3.0)


@fixed('padding="SAME"')
def a_kernel_larger_than_the_image() -> Any:
    made = weft.nn.conv2d(IMAGES, np.ones((4, 3, 9, 9), np.float32), padding="SAME")
    return [made.shape, made[0, 0, 4, 4]], [(1, 4, 8, 8), 3.0 * 8 * 8]


@fixed("x has axes of batch and channels")
def an_image_without_a_batch() -> Any:
    return weft.nn.conv2d(IMAGES[:1], np.ones((4, 3, 1, 1), np.float32)), np.full(
        (1, 4, 8, 8), 3.0)


@fixed("give operands whose shapes fit")
def a_scale_of_another_width() -> Any:
    made = weft.nn.layer_norm(X, np.ones(4, np.float32), np.full(4, 2, np.float32))
    return made, 2 * ONES


@fixed("transpose or reshape one operand")
def keys_of_another_width() -> Any:
    attended = weft.compile(weft.nn.scaled_dot_product_attention)
    return attended(X[None], W.T[None], W.T[None]), np.ones((1, 3, 4))


@fixed("weft.grad")
def a_gradient_of_the_transposed_parameter() -> Any:
    sgd, params = weft.optim.SGD(0.5), {"w": W}
    grads = weft.grad(lambda params: np.sum(params["w"]))(params)
    return sgd.update(grads, sgd.init(params), params)[0], {"w": W / 2}


@fixed("give nests with the same keys")
def gradients_of_another_nest() -> Any:
    sgd, params = weft.optim.SGD(0.5), {"w": W}
    return sgd.update({"w": W}, sgd.init(params), params)[0], {"w": W / 2}


@fixed("param.astype(np.float32)")
def a_parameter_that_is_an_integer() -> Any:
    sgd, counts = weft.optim.SGD(0.5), np.arange(3)

    @weft.compile
    def stepped(param: Any) -> Any:
        counts = param.astype(np.float32)
        return sgd.update(counts, sgd.init(counts), counts)[0]

    return stepped(counts), [0.0, 0.5, 1]


@fixed("0.001")
def a_rate_by_name() -> Any:
    sgd = weft.optim.SGD(0.001)
    return sgd.update(X, sgd.init(X), X)[0], 0.999 * ONES


@fixed("np.sum")
def a_step_down_a_vector() -> Any:
    w, sgd = weft.Variable(W, name="weights"), weft.optim.SGD(0.1)
    return weft.compile(lambda x: sgd.minimize(lambda: np.sum((x @ w) ** 2), [w]))(X), 240.0


@fixed("from 0 to the size of the last axis")
def more_best_ones_than_there_are() -> Any:
    return weft.compile(lambda x: weft.top_k(x, 2))(np.array([3.0, 1, 4, 2])), ([4.0, 3], [2, 0])


@fixed("indices run from -n to n - 1")
def a_segment_that_is_not_there() -> Any:
    pooled = weft.compile(lambda x, ids: weft.segment_sum(x, ids, 2))
    return pooled(X, np.array([0, 1, 1])), [[1.0] * 4, [2.0] * 4]


@fixed("name the argument in static_argnames")
def as_many_draws_as_a_traced_number() -> Any:
    rng, other = weft.random.default_rng(0), weft.random.default_rng(0)
    noise = weft.compile(static_argnames="n")(lambda n: rng.normal(size=n))
    return noise(3), other.normal(size=3)


@fixed("give an int")
def a_seed_that_is_a_fraction() -> Any:
    return weft.random.default_rng(5).integers(1), 0


@fixed("give a number at least 0")
def a_rate_below_zero() -> Any:
    adam = weft.optim.Adam(1e-3)
    return adam.update(X, adam.init(X), X)[0], np.full((3, 4), 0.999)


@fixed("from 0 to 1")
def a_decay_in_percent() -> Any:
    sgd = weft.optim.SGD(0.1, momentum=0.9)
    return sgd.update(X, sgd.init(X), X)[0], np.full((3, 4), 0.9)


@fixed("name those that it is computed from")
def variables_that_the_loss_does_not_read() -> Any:
    other = weft.Variable(np.ones(3), name="other")
    return weft.optim.SGD(0.1).minimize(lambda: np.sum(other * other), [other]), 3.0


@fixed("@weft.compile",
       "y = weft.while_loop(lambda y: y < 100, body, y, max_iterations=1000)")
def a_loop_of_python_in_a_graph() -> Any:
    @weft.compile
    def grown(y: Any) -> Any:
        while y < 100:
            y = y * 2
        return y

    g = weft.Graph()
    with g.as_default():
        start = y = weft.placeholder("f32", name="y")
        one = grown(y)

        def body(y: Any) -> Any:
            return y * 2

        y = weft.while_loop(lambda y: y < 100, body, y, max_iterations=1000)
    return weft.Session(g).run([one, y], {start: 3}), [192.0, 192.0]
