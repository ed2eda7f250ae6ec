"""``errors/programs.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

from ..programs import BIAS, W, X, session
from .fixing import fixed

ONES = np.ones((3, 4), np.float32)


@fixed("make the dims equal or 1")
def broadcast_mismatch() -> Any:
    dense = weft.compile(lambda x, w, b: np.maximum(x @ w + b, 0))
    return dense(X, W, np.ones(5, np.float32)), np.full((3, 5), 5.0)


@fixed("x[:1]", "is repeated")
def unknown_sizes_that_meet_and_differ() -> Any:
    @weft.compile(dynamic={"x": {0: "n"}, "y": {0: "m"}})
    def add(x: Any, y: Any) -> Any:
        return x[:1] + y

    return add(np.ones(3), np.ones(2)), [2.0, 2.0]


@fixed("make the dims equal or 1")
def where_with_another_shape() -> Any:
    return weft.compile(lambda x: np.where(x > 0, x, BIAS[:4]))(X), ONES


@fixed("reshape the arrays")
def concatenate_of_different_widths() -> Any:
    @weft.compile
    def join(x: Any, w: Any) -> Any:
        both = np.concatenate([x.reshape(-1), w.reshape(-1)], axis=0)
        return both.sum()

    return join(X, W), 32.0


@fixed("-1 for one of its dims")
def reshape_loses_elements() -> Any:
    return weft.compile(lambda x: x.reshape(-1, 2))(X), np.ones((6, 2))


@fixed("transpose or reshape one operand")
def matmul_mismatch() -> Any:
    @weft.compile
    def attend(q: Any, k: Any) -> Any:
        scores = q @ k.T
        return weft.nn.softmax(scores)

    return attend(X, X), np.full((3, 3), 1 / 3)


@fixed("transpose or reshape one operand")
def einsum_mismatch() -> Any:
    mixed = weft.compile(lambda x, w: np.einsum("ij,ik->jk", x.T, w))
    return mixed(X, W), np.full((3, 5), 4.0)


@fixed("dims with one symbol have one size")
def sizes_of_one_symbol_differ() -> Any:
    add = weft.compile(dynamic={"x": {0: "b"}, "y": {0: "b"}})(lambda x, y: x + y)
    return add(np.ones(4), np.ones(4)), np.full(4, 2.0)


@fixed("the arguments are x")
def dynamic_names_no_argument() -> Any:
    return weft.compile(dynamic={"x": {0: "b"}})(lambda x: x)(X), ONES


@fixed("its axes are 0 to 1")
def dynamic_axis_is_not_there() -> Any:
    return weft.compile(dynamic={"x": {1: "b"}})(lambda x: x)(X), ONES


@fixed("give arguments with s and t as dims")
def a_size_that_follows_from_nothing() -> Any:
    f = weft.compile(dynamic={"x": {0: "s*t"}, "y": {0: "s", 1: "t"}})(lambda x, y: x * y.sum())
    return f(X, np.ones((3, 1))), np.full((3, 4), 3.0)


@fixed("x.astype(np.int64)")
def bits_of_floats() -> Any:
    return weft.compile(lambda x: x.astype(np.int64) & 1)(X), np.ones((3, 4))


@fixed("idx.astype(np.int64)")
def index_by_floats() -> Any:
    return weft.compile(lambda x, idx: x[idx.astype(np.int64)])(X, np.array([0.0, 1.0])), ONES[:2]


@fixed("float16 to float64")
def a_dtype_that_is_none_of_numbers() -> Any:
    return weft.compile(lambda x: np.cumsum(x, dtype=np.float64))(X), np.arange(1.0, 13)


@fixed("name the argument in static_argnames")
def argument_is_an_object() -> Any:
    class Model:
        scale = 2.0

    f = weft.compile(static_argnames="model")(lambda model, x: x * model.scale)
    return f(Model(), X), 2 * ONES


@fixed("frozenset(items)")
def argument_is_a_set() -> Any:
    items = {"train"}
    return weft.compile(lambda batch: batch["x"])({"x": X, "modes": frozenset(items)}), ONES


@fixed("convert it to a real number dtype")
def argument_holds_text() -> Any:
    f = weft.compile(lambda batch: batch["x"])
    return f({"x": np.array(["1", "2"]).astype(np.float64)}), [1.0, 2.0]


@fixed("use tuples instead of lists")
def static_argument_is_a_list() -> Any:
    f = weft.compile(static_argnames="axes")(lambda x, axes: x.sum(axis=tuple(axes)))
    return f(X, (0, 1)), 12.0


@fixed("params = {**params, 'w': w}")
def argument_dict_is_changed() -> Any:
    @weft.compile
    def step(params: dict[str, Any], g: Any) -> Any:
        w = params["w"] - g
        params = {**params, 'w': w}
        return np.sum(params["w"])

    return step({"w": X}, X), 0.0


@fixed("the arguments are x, axes")
def static_name_is_no_argument() -> Any:
    return weft.compile(static_argnames="axes")(lambda x, axes: x)(X, 1), ONES


@fixed("return arrays, numbers and nests of them")
def result_is_no_array() -> Any:
    return weft.compile(lambda x: {"shape": x.shape})(X), {"shape": (3, 4)}


@fixed("use it outside of the traced function")
def unsupported_function() -> Any:
    shown = np.array_str(weft.compile(lambda x: x * 2)(X))
    return shown == np.array_str(2 * X), True


@fixed("call it outside")
def host_cannot_tell_the_type() -> Any:
    f = weft.compile(on_unsupported="host")(lambda x: x * 2)
    return f(X.getfield(np.float16)), X.getfield(np.float16) * 2


@fixed("weft.stop_gradient(result)")
def gradient_of_host_call() -> Any:
    def loss(x: Any) -> Any:
        result = weft.host_call(np.sort, "f32[3,4]", x)
        return np.sum(x * weft.stop_gradient(result))

    return weft.compile(weft.grad(loss))(X[:, ::-1] * 3), 3 * ONES


@fixed("return arrays of the dtypes and shapes")
def host_call_gives_another_dtype() -> Any:
    return weft.compile(lambda x: weft.host_call(np.float32, "f32[3,4]", x))(X), ONES


@fixed("np.linalg.pinv")
def no_inverse_of_what_is_not_square() -> Any:
    return weft.compile(lambda x: np.linalg.pinv(x))(X), np.full((4, 3), 1 / 12)


def exported(function: Any, *specs: str) -> Any:
    """What a program that was exported computes, without the files."""
    folder = tempfile.mkdtemp()
    return weft.load(weft.export(function, *specs, path=Path(folder) / "m"))


@fixed("pass its result in")
def exporting_host_functions() -> Any:
    solve = exported(lambda inverse, x: inverse @ x, "f32[4,3]", "f32[3,4]")
    return solve(np.linalg.pinv(X), X), np.full((4, 4), 0.25)


@fixed("leave it out")
def unsupported_option() -> Any:
    return weft.compile(lambda x: np.einsum("ij->i", x))(X), np.full(3, 4.0)


@fixed("call it outside")
def unsupported_method() -> Any:
    return weft.compile(lambda x: x * 1)(X.byteswap(False)), X.byteswap(False)


@fixed("np.sum")
def gradient_of_a_vector() -> Any:
    return weft.grad(lambda w: np.sum(X @ w))(W), np.full((4, 5), 3.0)


@fixed("axes run from -2 to 1")
def axis_out_of_range() -> Any:
    return weft.compile(lambda x: (x.sum(axis=-2), x.sum(axis=1)))(X), (np.full(4, 3.0),
                                                                      np.full(3, 4.0))


@fixed("axes run from -2 to 1")
def axis_of_a_layer_out_of_range() -> Any:
    return weft.compile(lambda x: weft.nn.softmax(x, axis=1))(X), np.full((3, 4), 0.25)


@fixed("give an integer")
def axis_is_a_truth_value() -> Any:
    return weft.compile(lambda x: x.sum(axis=1))(X), np.full(3, 4.0)


@fixed("indices run from -3 to 2")
def index_out_of_range() -> Any:
    return weft.compile(lambda x: (x[2], x[-3]))(X), (ONES[2], ONES[0])


@fixed("leave some out")
def too_many_indices() -> Any:
    return weft.compile(lambda x: x[0, 0])(X), 1.0


@fixed("x[mask].sum()", "np.where(mask, x, 0)")
def a_size_for_each_example() -> Any:
    def one(x: Any) -> Any:
        mask = x > 0
        return x[mask].sum() + np.where(mask, x, 0).sum()

    return weft.vmap(one)(W), np.full(4, 10.0)


@fixed("np.maximum(n, 0)")
def an_array_of_negative_size() -> Any:
    return weft.compile(lambda n: np.zeros(np.maximum(n, 0)))(np.int64(-2)), np.zeros(0)


@fixed("keep the whole array and a mask")
def a_computed_size_for_c() -> Any:
    count = exported(lambda x: (x[:, None] == np.arange(4)).sum(axis=0), "i64[6]")
    return count(np.array([0, 1, 1, 3, 3, 3])), [1, 2, 0, 3]


@fixed("pass arguments for which this holds")
def fewer_elements_than_the_mask_takes() -> Any:
    @weft.compile
    def move(x: Any, n: Any) -> Any:
        y = x.copy()
        y[x < n] = x[x >= n]
        return y

    return move(np.arange(6.0), 3), [3.0, 4, 5, 3, 4, 5]


@fixed("x[mask]")
def a_list_of_chosen_elements() -> Any:
    @weft.compile
    def chosen(x: Any) -> Any:
        mask = x > 0
        return x[mask] * 2

    return chosen(X), np.full(12, 2.0)


@fixed("return x and the mask")
def chosen_elements_for_c() -> Any:
    both = exported(lambda x: (x, x > 0), "f64[6]")
    return both(np.arange(6.0)), (np.arange(6.0), np.arange(6) > 0)


@fixed("indices run from -n to n - 1")
def row_out_of_range_at_run_time() -> Any:
    lookup = weft.compile(lambda table, ids: table[ids].sum(axis=0))
    return lookup(X, np.array([0, 2, -3])), np.full(4, 3.0)


@fixed("indices run from -n to n - 1")
def scatter_out_of_range_at_run_time() -> Any:
    count = weft.compile(lambda x, ids: x.at[ids].add(1.0))
    return count(X, np.array([1, -3])), [[2.0] * 4, [2.0] * 4, [1.0] * 4]


@fixed("x.astype(np.int64)")
def integer_constant_out_of_bounds() -> Any:
    ids = np.arange(3, dtype=np.uint32)
    return weft.compile(lambda x: x.astype(np.int64) - 1 + 2**40)(ids), np.arange(3) - 1 + 2**40


@fixed("x.astype(np.int64)")
def integer_argument_out_of_bounds_at_run_time() -> Any:
    shifted = weft.compile(lambda x, n: x.astype(np.int64) + n)
    return shifted(np.arange(3, dtype=np.uint32), -1), [-1, 0, 1]


@fixed("give y a first value before it")
def a_value_on_one_way_only() -> Any:
    @weft.compile
    def sign(x: Any) -> Any:
        y = -1.0
        if x.sum() > 0:
            y = 1.0
        return y

    return [sign(X), sign(-X)], [1.0, -1.0]


@fixed("pass arguments for which this holds")
def a_value_in_a_loop_only() -> Any:
    @weft.compile
    def last(x: Any, n: Any) -> Any:
        for i in range(n):
            y = x * i
        return y

    return last(X, np.array(3)), 2 * ONES


@fixed("np.where")
def other_shapes_on_two_ways() -> Any:
    return weft.compile(lambda x: np.where(x.sum() > 0, x, x[:1]))(X), ONES


@fixed("out[i] = row")
def a_loop_that_makes_an_array_longer() -> Any:
    @weft.compile
    def grow(x: Any) -> Any:
        out = np.zeros((6, 4), np.float32)
        for i in range(6):
            row = x[i % 3]
            out[i] = row
        return out

    return grow(X), np.ones((6, 4))


@fixed("MORE, LESS = 0, 1")
def texts_on_two_ways() -> Any:
    MORE, LESS = 0, 1
    label = weft.compile(lambda x: MORE if x.sum() > 0 else LESS)
    return [label(X), label(-X)], [0, 1]


@fixed("np.nan")
def nothing_returned_on_one_way() -> Any:
    @weft.compile
    def positive(x: Any) -> Any:
        if x.sum() > 0:
            return {"positive": x}
        return {"positive": np.full_like(x, np.nan)}

    return [positive(X)["positive"], positive(-X)["positive"]], [ONES, ONES * np.nan]


@fixed("np.where(bad, np.nan, y)")
def an_exception_on_one_way() -> Any:
    @weft.compile
    def root(x: Any) -> Any:
        bad = x.sum() < 0
        y = np.sqrt(np.abs(x))
        return np.where(bad, np.nan, y)

    return [root(X), root(-X)], [ONES, ONES * np.nan]


@fixed("np.where(x > 0,")
def the_truth_of_many_elements() -> Any:
    relu = weft.compile(lambda x: np.where(x > 0, x, x * 0))
    return [relu(X), relu(-X)], [ONES, 0 * ONES]


@fixed("(x > 0) & (x < 1)")
def conditions_joined_by_python() -> Any:
    return weft.compile(lambda x: np.where((x > 0) & (x < 1), x, 0))(X / 2), ONES / 2


@fixed("pass the number as a static argument")
def number_of_turns_from_a_tracer() -> Any:
    return weft.compile(static_argnames="n")(lambda n: np.rot90(X * n, n))(3), np.full((4, 3), 3.0)


@fixed(".copy()")
def store_into_a_plain_array() -> Any:
    y = np.zeros(3)

    @weft.compile
    def fill(x: Any) -> Any:
        own = y.copy()
        own[0] = x.sum()
        return own

    return fill(X), [12.0, 0, 0]


@fixed("return the value from the traced function")
def leaked_tracer() -> Any:
    kept = [weft.compile(lambda x: np.tanh(x))(X)]
    return kept[0] + 1, np.tanh(X) + 1


@fixed("x = x.copy()")
def argument_changed_in_place() -> Any:
    @weft.compile
    def clear(x: Any) -> Any:
        x = x.copy()
        x[0] = 0
        return x

    return clear(X), [[0.0] * 4, [1.0] * 4, [1.0] * 4]


@fixed("x = x.copy()")
def view_of_an_argument_changed_in_place() -> Any:
    @weft.compile
    def clear(x: Any) -> Any:
        x = x.copy()
        row = x[0]
        row[:] = 0
        return x

    return clear(X), [[0.0] * 4, [1.0] * 4, [1.0] * 4]


@fixed("y = np.broadcast_to(x, shape).copy()")
def repeated_array_changed_in_place() -> Any:
    shape = (2, 3, 4)

    @weft.compile
    def fill(x: Any) -> Any:
        y = np.broadcast_to(x, shape).copy()
        y[0] = 0
        return y

    return fill(X), np.stack([0 * ONES, ONES])


@fixed("np.reshape(x, shape).copy()")
def reshaped_array_changed_in_place() -> Any:
    shape = (-1,)

    @weft.compile
    def count(x: Any) -> Any:
        flat = np.reshape(x, shape).copy()
        flat += 1
        return x, flat

    return count(X), (ONES, np.full(12, 2.0))


@fixed("fill the array before it is used")
def array_changed_while_tracing() -> Any:
    table = np.arange(4.0)
    table[0] = 7
    return weft.compile(lambda x: x * table)(X), [[7.0, 1, 2, 3]] * 3


@fixed("use values of one graph together")
def values_of_two_graphs() -> Any:
    one = weft.Graph("one")
    with one.as_default():
        x = weft.placeholder("f32", (3,), name="x")
        y = weft.placeholder("f32", (3,), name="y")
        z = x + y
    return weft.Session(one).run(z, {x: [1, 2, 3], y: [1, 1, 1]}), [2.0, 3, 4]


@fixed("with weft.Graph().as_default()")
def placeholder_without_a_graph() -> Any:
    with weft.Graph().as_default():
        x = weft.placeholder("f32", (3,))
        return weft.Session().run(x * 2, {x: [1, 2, 3]}), [2.0, 4, 6]


@fixed("layer1/relu:0")
def fetch_of_an_unknown_name() -> Any:
    s, x, _ = session()
    return s.run("layer1/relu:0", {x: X}), np.full((3, 5), 4.0)


@fixed("x:0")
def feed_of_an_unknown_name() -> Any:
    s, _, relu = session()
    return s.run(relu, {"x:0": X}), np.full((3, 5), 4.0)


@fixed("use traced values, operations and names")
def fetch_of_an_array() -> Any:
    s, x, _ = session()
    return s.run(x, {x: X}), ONES


@fixed("'x:0': value", "f32[3,4]")
def missing_feed() -> Any:
    g = weft.Graph("mlp")
    with g.as_default():
        x = weft.placeholder("f32[3,4]", name="x")
        logits = x @ W
    value = X
    return weft.Session(g).run(logits, {'x:0': value}), np.full((3, 5), 4.0)


@fixed("give it that shape")
def feed_of_another_shape() -> Any:
    s, x, relu = session()
    return s.run(relu, {x: X.T.reshape(3, 4)}), np.full((3, 5), 4.0)


@fixed("np.real(x).astype(np.float32)")
def feed_of_another_dtype() -> Any:
    s, place, relu = session()
    x = X * (1 + 2j)
    return s.run(relu, {place: np.real(x).astype(np.float32)}), np.full((3, 5), 4.0)


@fixed("x.astype(np.float32)")
def lowered_for_other_arguments() -> Any:
    dense = weft.compile(lambda x, w: x @ w).lower("f32[b,4]", W).compile()
    x = X.astype(np.float64)
    return dense(x.astype(np.float32), W), np.full((3, 5), 4.0)


@fixed("convert or reshape the value")
def variable_of_another_shape() -> Any:
    w = weft.Variable(W, name="weights")
    weft.compile(lambda g: w.assign(g.reshape(4, 5)))(np.arange(20, dtype=np.float32))
    return w.value, np.arange(20.0).reshape(4, 5)


@fixed("convert or reshape the value")
def variable_assigned_outside() -> Any:
    w = weft.Variable(W, name="weights_2")
    w.assign(np.arange(20, dtype=np.float32).reshape(4, 5))
    return w.value, np.arange(20.0).reshape(4, 5)


@fixed(".map", ".batch")
def batch_of_rows_of_several_shapes() -> Any:
    rows = weft.data.from_generator(lambda: [X[0], X[0, :2]])
    return next(iter(rows.map(lambda row: row[:2]).batch(2))), np.ones((2, 2))


@fixed("'cpu:0'")
def unknown_device() -> Any:
    return weft.compile(device='cpu:0')(lambda x: x)(X), ONES


@fixed("cpu:0")
def text_that_is_no_device() -> Any:
    with weft.device("cpu:0"):
        return weft.compile(lambda x: x * 2)(X), 2 * ONES


@fixed("devices=(")
def no_such_device() -> Any:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (3,), name="x")
        with weft.device("cpu:3"):
            y = np.tanh(x)
    s = weft.Session(g, devices=("cpu:0", "cpu:3"))
    return s.run(y, {x: np.ones(3, np.float32)}), np.tanh(np.ones(3))


@fixed("devices=(")
def variable_on_no_such_device() -> Any:
    g = weft.Graph()
    with g.as_default():
        with weft.device("cpu:3"):
            v = weft.Variable(np.full(3, 2.0), name="on_cpu_3")
        x = weft.placeholder("f64", (3,), name="x")
        y = x * v
    return weft.Session(g, devices=("cpu:0", "cpu:3")).run(y, {x: np.ones(3)}), np.full(3, 2.0)


@fixed("weft.device(")
def assignments_on_two_devices() -> Any:
    g = weft.Graph()
    with g.as_default():
        with weft.device("cpu:1"):
            v = weft.Variable(np.ones(3), name="assigned_twice")
        one = v.assign_add(np.ones(3))
        two = v.assign_add(np.ones(3))
    weft.Session(g, devices=("cpu:0", "cpu:1")).run([one, two])
    return v.value, np.full(3, 3.0)


@fixed("session.measure_costs(fetches, feeds, path)")
def file_of_no_costs() -> Any:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64", (3,), name="x")
        fetches = x * 2
    session = weft.Session(g, devices=("cpu:0", "cpu:1"))
    with tempfile.TemporaryDirectory() as folder:
        path, feeds = Path(folder) / "costs.json", {x: np.ones(3)}
        session.measure_costs(fetches, feeds, path)
        s = weft.Session(g, devices=("cpu:0", "cpu:1"), costs=path)
    return s.run(fetches, feeds), np.full(3, 2.0)


@fixed("target='x86-64-v3'")
def unknown_target() -> Any:
    return weft.compile(target='x86-64-v3')(lambda x: x * 2)(X), 2 * ONES


@fixed("weft.export(function, *specs, path=")
def no_artifact() -> Any:
    function, specs = weft.compile(lambda x: x * 2), ["f64[3]"]
    with tempfile.TemporaryDirectory() as folder:
        weft.export(function, *specs, path=Path(folder) / "m")
        return weft.load(Path(folder) / "m")(np.ones(3)), np.full(3, 2.0)


@fixed("weft.compile(dynamic={'x': {0: 'n'}}")
def recompilation_forbidden() -> Any:
    f = weft.compile(dynamic={'x': {0: 'n'}}, on_recompile="error")(lambda x, k: x * k)
    return [f(X, 2.0), f(X[:2], 2.0)], [2 * ONES, 2 * ONES[:2]]


@fixed("'warn'")
def unknown_policy() -> Any:
    return weft.compile(on_recompile='warn')(lambda x: x)(X), ONES


@fixed("layout=")
def images_with_channels_last() -> Any:
    layer = weft.compile(lambda x, w: weft.nn.conv2d(x, w, padding="SAME", layout="NHWC"))
    return layer(np.ones((2, 4, 4, 3), "f4"), np.ones((5, 3, 1, 1), "f4")), np.full(
        (2, 4, 4, 5), 3.0)


@fixed('"SAME"')
def padding_by_another_name() -> Any:
    layer = weft.compile(lambda x, w: weft.nn.conv2d(x, w, padding="SAME"))
    return layer(np.ones((1, 3, 8, 8)), np.ones((4, 3, 1, 1))), np.full((1, 4, 8, 8), 3.0)


@fixed("make windows smaller")
def a_window_larger_than_the_image() -> Any:
    return weft.compile(lambda x: weft.nn.max_pool2d(x, 2))(np.ones((1, 3, 2, 8))), np.ones(
        (1, 3, 1, 4))


@fixed("a multiple of the number of heads")
def heads_that_do_not_divide_the_width() -> Any:
    def layer(x: Any, w: Any) -> Any:
        return weft.nn.multi_head_attention(x, x, x, w, w, w, w, num_heads=4)

    return weft.compile(layer)(np.ones((2, 5, 8)), np.eye(8)), np.ones((2, 5, 8))


@fixed("the dims of the scores but the last")
def labels_as_a_column() -> Any:
    loss = weft.compile(weft.nn.cross_entropy)
    return np.mean(loss(np.zeros((4, 3)), np.zeros(4, int))), np.log(3)


@fixed("give nests with the same keys")
def gradients_of_other_parameters() -> Any:
    params = {"w": X, "b": X}
    sgd = weft.optim.SGD(0.5)
    return sgd.update({"w": X, "b": X}, sgd.init(params), params)[0], {
        "w": ONES / 2, "b": ONES / 2}


@fixed("float(x)")
def integers_beyond_64_bits() -> Any:
    @weft.compile
    def factorial(n: Any) -> Any:
        total = 1.0
        for x in range(1, n + 1):
            total = total * float(x)
        return total

    return factorial(25), float(math.factorial(25))


@fixed("np.float64(x)")
def division_by_a_number_that_is_zero() -> Any:
    @weft.compile
    def rate(done: Any, x: Any) -> Any:
        return done / np.float64(x)

    return rate(5, 0.0), math.inf


@fixed("call the function of NumPy")
def a_root_of_a_negative_number() -> Any:
    @weft.compile
    def deviation(mean: Any, square: Any) -> Any:
        return np.sqrt(square - mean * mean)

    return deviation(2.0, 3.0), math.nan


@fixed("call the function of NumPy")
def an_exponential_beyond_floats() -> Any:
    return weft.compile(lambda x: np.exp(x))(1000.0), math.inf


@fixed("np.float64(x)")
def a_power_beyond_floats() -> Any:
    return weft.compile(lambda x: np.float64(x) ** 2)(1e200), math.inf


@fixed("complex(x)")
def a_power_that_is_complex() -> Any:
    return weft.compile(lambda x: complex(x) ** 0.5)(-4.0), 2j


@fixed("x >> -n")
def a_shift_by_less_than_nothing() -> Any:
    return weft.compile(lambda x, n: x >> -n)(64, -2), 16


@fixed("x.astype(np.float64)")
def an_integer_that_no_dtype_holds() -> Any:
    return weft.compile(lambda x: x.astype(np.float64) + 2**70)(np.arange(3)), np.full(3, 2.0**70)


@fixed("np.ma.filled(x, 0)", "np.ma.getmaskarray(x)")
def argument_with_a_mask() -> Any:
    x = np.ma.array([1.0, 2.0], mask=[False, True])
    f = weft.compile(lambda x, mask: (x * 2, np.where(mask, 0, x).sum()))
    return f(np.ma.filled(x, 0), np.ma.getmaskarray(x)), (np.ma.filled(x * 2, 0), x.sum())


@fixed("np.asarray(x)", "for products")
def argument_is_a_matrix() -> Any:
    x = np.array([[1.0, 2], [3, 4]]).view(np.matrix)
    product = weft.compile(lambda x: x @ x)
    return product(np.asarray(x)), np.asarray(x * x)


@fixed("np.real(idx).astype(np.int64)")
def index_by_complex_numbers() -> Any:
    f = weft.compile(lambda x, idx: x[np.real(idx).astype(np.int64)])
    return f(X * np.arange(1, 4)[:, None], np.array([1j, 2])), [[1.0] * 4, [3.0] * 4]


@fixed("weft.export(f, 'f32[3]', path=")
def an_export_of_nothing() -> Any:
    f = weft.compile(lambda x: x * 2)
    with tempfile.TemporaryDirectory() as path:
        weft.export(f, 'f32[3]', path=path + "/model")
        return weft.load(path + "/model")(X[0, :3]), np.full(3, 2.0)


@fixed("on_recompile='warn'", "pass the same nest of arguments at each call")
def recompilation_for_another_nest() -> Any:
    f = weft.compile(on_recompile="error")(lambda batch: batch["x"] * 2)
    g = weft.compile(on_recompile='warn')(lambda batch: batch["x"] * 2)
    g({"x": X})
    with pytest.warns(weft.RecompileWarning):
        found = g({"x": X, "y": X})
    return [f({"x": X}), f({"x": 2 * X}), found], [2 * ONES, 4 * ONES, 2 * ONES]


@fixed("x.astype(np.float32)")
def recompilation_for_another_dtype() -> Any:
    f = weft.compile(on_recompile="error")(lambda x: x * 2)
    x = X.astype(np.float64)
    return [f(X), f(x.astype(np.float32))], [2 * ONES, 2 * ONES]


@fixed("'x:0': value", "f32[b,4]")
def a_size_that_nothing_fed_tells() -> Any:
    g, value = weft.Graph("mlp"), X
    with g.as_default():
        x = weft.placeholder("f32[b,4]", name="x")
        zeros = weft.numpy.zeros(x.shape[0])
    return weft.Session(g).run(zeros, {'x:0': value}), np.zeros(3)


@fixed("leave it out", "s.run([])")
def fetch_of_nothing() -> Any:
    s, x, relu = session()
    return [s.run([relu], {x: X}), s.run([])], [[np.full((3, 5), 4.0)], []]


@fixed("feed numbers that f32 holds")
def feed_of_numbers_too_large() -> Any:
    s, x, _ = session()
    return s.run(x, {x: np.full((3, 4), 1e30)}), np.full((3, 4), 1e30)


@fixed("np.array([1, 2], np.float32)")
def feed_of_text() -> Any:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (2,), name="x")
    return weft.Session(g).run(x, {x: np.array([1, 2], np.float32)}), [1.0, 2.0]


@fixed("name='weights_0'")
def a_name_of_a_value() -> Any:
    return weft.Variable(W, name='weights_0').value, W


@fixed("w.assign(safetensors.numpy.load_file(path)['w'])")
def a_checkpoint_of_no_step() -> Any:
    import safetensors.numpy

    w = weft.Variable(X, name="w")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "missing"
        safetensors.numpy.save_file({"w": X * 2}, path, {"step": "last"})
        w.assign(safetensors.numpy.load_file(path)['w'])
    return w.value, 2 * ONES


@fixed("static_argnames='x'")
def names_of_static_arguments_by_number() -> Any:
    return weft.compile(static_argnames='x')(lambda n, x: np.zeros(x) + n)(1.0, 2), [1.0, 1.0]


@fixed("disable=False")
def an_option_that_is_text() -> Any:
    return weft.compile(disable=False)(lambda x: x * 2)(X), 2 * ONES


@fixed("float(n)")
def argument_of_more_than_64_bits() -> Any:
    n = 2**70
    return weft.compile(lambda x, n: x * n)(np.arange(3), float(n)), np.arange(3) * 2.0**70


@fixed("shift.astype(np.int64)")
def a_shift_by_a_half() -> Any:
    roll = weft.compile(lambda x, shift: np.roll(x, shift.astype(np.int64)))
    return roll(np.arange(4), np.array(1.5)), [3, 0, 1, 2]


@fixed("own = np.array(y)")
def an_array_of_the_function_around() -> Any:
    made, g = list[Any](), weft.Graph()

    @weft.compile
    def outer(x: Any) -> Any:
        y = np.zeros(3)
        with g.as_default():
            v = weft.placeholder("f64", (), name="v")
            own = np.array(y)
            own[0] = v
            made.extend((v, own + 0))
        return x

    outer(X)
    v, found = made
    return weft.Session(g).run(found, {v: 5}), [5.0, 0, 0]


@fixed("np.real(x).astype(np.float64)")
def complex_numbers_rounded_down() -> Any:
    floor = weft.compile(lambda x: np.floor(np.real(x).astype(np.float64)))
    return floor(X * (1.5 + 1j)), ONES


@fixed("float(k)")
def recompilation_for_another_number() -> Any:
    f = weft.compile(on_recompile="error")(lambda x, k: x * k)
    f(X, 2.0)
    return [f(X, float(k)) for k in (2, np.float32(3))], [2 * ONES, 3 * ONES]
