"""Wrong programs, as users write them: each function is one, and raises the error of its code.

What is printed for each is in ``tests/golden/errors``; the line that it must point at has the mark
``# here`` (two are about a file or a text, not about a line). Keep arrays small and names telling:
people read these texts.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import weft

X, W = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
BIAS = np.ones(7, np.float32)


class Wrong(NamedTuple):
    """A program and what is expected of its error."""

    code: str
    kind: type[Exception]
    run: Callable[[], Any]


PROGRAMS: dict[str, Wrong] = {}


def wrong(code: str, kind: type[Exception] = weft.Error) -> Callable[..., Any]:
    def add(run: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[run.__name__] = Wrong(code, kind, run)
        return run

    return add


# -- shapes -------------------------------------------------------------------------------------


@wrong("W101", ValueError)
def broadcast_mismatch() -> None:
    @weft.compile
    def dense(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0)  # here

    dense(X, W, BIAS)


@wrong("W105", ValueError)
def unknown_sizes_that_meet_and_differ() -> None:
    @weft.compile(dynamic={"x": {0: "n"}, "y": {0: "m"}})
    def add(x: Any, y: Any) -> Any:
        return x + y  # here

    add(np.ones(3), np.ones(2))


@wrong("W101", ValueError)
def where_with_another_shape() -> None:
    weft.compile(lambda x: np.where(x > 0, x, BIAS))(X)  # here


@wrong("W102", ValueError)
def concatenate_of_different_widths() -> None:
    @weft.compile
    def join(x: Any, w: Any) -> Any:
        both = np.concatenate([x, w], axis=0)  # here
        return both.sum()

    join(X, W)


@wrong("W103", ValueError)
def reshape_loses_elements() -> None:
    @weft.compile
    def flat(x: Any) -> Any:
        return x.reshape(5, 2)  # here

    flat(X)


@wrong("W104", ValueError)
def matmul_mismatch() -> None:
    @weft.compile
    def attend(q: Any, k: Any) -> Any:
        scores = q @ k  # here
        return weft.nn.softmax(scores)

    attend(X, X)


@wrong("W104", ValueError)
def einsum_mismatch() -> None:
    weft.compile(lambda x, w: np.einsum("ij,ik->jk", x, w))(X, W)  # here


@wrong("W105", ValueError)
def sizes_of_one_symbol_differ() -> None:
    add = weft.compile(dynamic={"x": {0: "b"}, "y": {0: "b"}})(lambda x, y: x + y)
    add(np.ones(3), np.ones(4))  # here


@wrong("W105", ValueError)
def dynamic_names_no_argument() -> None:
    f = weft.compile(dynamic={"z": {0: "b"}})(lambda x: x)
    f(X)  # here


@wrong("W105", ValueError)
def dynamic_axis_is_not_there() -> None:
    f = weft.compile(dynamic={"x": {2: "b"}})(lambda x: x)
    f(X)  # here


@wrong("W105", ValueError)
def a_size_that_follows_from_nothing() -> None:
    f = weft.compile(dynamic={"x": {0: "s*t"}})(lambda x: x)
    f(X)  # here


# -- dtypes -------------------------------------------------------------------------------------


@wrong("W111", TypeError)
def bits_of_floats() -> None:
    weft.compile(lambda x: x & 1)(X)  # here


@wrong("W123", IndexError)
def index_by_floats() -> None:
    weft.compile(lambda x, i: x[i])(X, np.array([0.0, 1.0]))  # here


@wrong("W112", TypeError)
def a_dtype_that_is_none_of_numbers() -> None:
    @weft.compile
    def counted(x: Any) -> Any:
        return np.cumsum(x, dtype=object)  # here

    counted(X)


@wrong("W112", TypeError)
def argument_is_an_object() -> None:
    class Model:
        scale = 2.0

    f = weft.compile(lambda model, x: x * model.scale)
    f(Model(), X)  # here


@wrong("W112", TypeError)
def argument_is_a_set() -> None:
    f = weft.compile(lambda batch: batch["x"])
    f({"x": X, "modes": {"train"}})  # here


@wrong("W112", TypeError)
def argument_holds_text() -> None:
    f = weft.compile(lambda batch: batch["x"])
    f({"x": np.array(["a", "b"])})  # here


@wrong("W112", TypeError)
def static_argument_is_a_list() -> None:
    f = weft.compile(static_argnames="axes")(lambda x, axes: x.sum(axis=tuple(axes)))
    f(X, [0, 1])  # here


@wrong("W203", TypeError)
def argument_dict_is_changed() -> None:
    @weft.compile(inout="error")
    def step(params: dict[str, Any], g: Any) -> Any:
        params["w"] = params["w"] - g  # here
        return np.sum(params["w"])

    step({"w": X}, X)


@wrong("W112", TypeError)
def static_name_is_no_argument() -> None:
    weft.compile(static_argnames="axis")(lambda x, axes: x)  # here


@wrong("W112", TypeError)
def result_is_no_array() -> None:
    @weft.compile  # here
    def shape(x: Any) -> Any:
        return {"shape": lambda: x.shape}

    shape(X)


@wrong("W113", TypeError)
def unsupported_function() -> None:
    weft.compile(lambda x: np.is_busday(x))(X)  # here


@wrong("W113", TypeError)
def host_cannot_tell_the_type() -> None:
    weft.compile(on_unsupported="host")(lambda x: x.getfield(np.float16))(X)  # here


@wrong("W113", TypeError)
def gradient_of_host_call() -> None:
    def loss(x: Any) -> Any:
        return np.sum(weft.host_call(np.sort, "f32[3,4]", x))  # here

    weft.compile(weft.grad(loss))(X)


@wrong("W111", TypeError)
def host_call_gives_another_dtype() -> None:
    weft.compile(lambda x: weft.host_call(np.float64, "f32[3,4]", x))(X)  # here


@wrong("W102", ValueError)
def no_inverse_of_what_is_not_square() -> None:
    weft.compile(lambda x: np.linalg.inv(x))(X)  # here


@wrong("W113", TypeError)
def exporting_host_functions() -> None:
    with tempfile.TemporaryDirectory() as folder:
        solve = weft.compile(lambda x: np.linalg.pinv(x))  # here
        weft.export(solve, "f32[3,4]", path=Path(folder) / "missing")


@wrong("W113", TypeError)
def unsupported_option() -> None:
    weft.compile(lambda x: np.einsum("ij->i", x, casting="no"))(X)  # here


@wrong("W113", TypeError)
def unsupported_method() -> None:
    weft.compile(lambda x: x.byteswap(2))(X)  # here


@wrong("W114", TypeError)
def gradient_of_a_vector() -> None:
    loss = weft.grad(lambda w: (X @ w).sum(axis=0))
    loss(W)  # here


# -- axes and indices ---------------------------------------------------------------------------


@wrong("W121", IndexError)
def axis_out_of_range() -> None:
    weft.compile(lambda x: x.sum(axis=2))(X)  # here


@wrong("W121", IndexError)
def axis_of_a_layer_out_of_range() -> None:
    weft.compile(lambda x: weft.nn.softmax(x, axis=2))(X)  # here


@wrong("W112", TypeError)
def axis_is_a_truth_value() -> None:
    weft.compile(lambda x: x.sum(axis=True))(X)  # here


@wrong("W122", IndexError)
def index_out_of_range() -> None:
    weft.compile(lambda x: x[3])(X)  # here


@wrong("W122", IndexError)
def too_many_indices() -> None:
    weft.compile(lambda x: x[0, 0, 0])(X)  # here


@wrong("W113")
def a_size_for_each_example() -> None:
    weft.vmap(lambda x: np.sort(x[x > 0]))(W)  # here


@wrong("W103", ValueError)
def an_array_of_negative_size() -> None:
    weft.compile(lambda n: np.zeros(n))(np.int64(-2))  # here


@wrong("W123")
def a_computed_size_for_c() -> None:
    weft.export(lambda x: np.bincount(x), "i64[6]", path="m")  # here


@wrong("W124", IndexError)
def fewer_elements_than_the_mask_takes() -> None:
    @weft.compile
    def move(x: Any, n: Any) -> Any:
        y = x.copy()
        y[x < n] = x[x >= n]  # here
        return y

    move(np.arange(5.0), 2)


@wrong("W201")
def a_list_of_chosen_elements() -> None:
    weft.compile(lambda x: tuple(x[x > 0]))(X)  # here


@wrong("W123")
def chosen_elements_for_c() -> None:
    weft.export(lambda x: x[x > 0], "f64[6]", path="m")  # here


@wrong("W124", IndexError)
def row_out_of_range_at_run_time() -> None:
    @weft.compile
    def lookup(table: Any, ids: Any) -> Any:
        rows = table[ids]  # here
        return rows.sum(axis=0)

    lookup(X, np.array([0, 2, 3]))


@wrong("W124", IndexError)
def scatter_out_of_range_at_run_time() -> None:
    @weft.compile
    def count(x: Any, ids: Any) -> Any:
        return x.at[ids].add(1.0)  # here

    count(X, np.array([1, -4]))


@wrong("W131", OverflowError)
def integer_constant_out_of_bounds() -> None:
    ids = np.arange(3, dtype=np.uint32)
    weft.compile(lambda x: x - 1 + 2**40)(ids)  # here


@wrong("W131", OverflowError)
def integer_argument_out_of_bounds_at_run_time() -> None:
    @weft.compile
    def shifted(x: Any, n: Any) -> Any:
        return x + n  # here

    shifted(np.arange(3, dtype=np.uint32), -1)


# -- tracing ------------------------------------------------------------------------------------


@wrong("W201", TypeError)
def a_value_on_one_way_only() -> None:
    @weft.compile
    def sign(x: Any) -> Any:
        if x.sum() > 0:
            y = "above"
        return len(y) * x  # here

    sign(X)


@wrong("W124", IndexError)
def a_value_in_a_loop_only() -> None:
    @weft.compile
    def last(x: Any, n: Any) -> Any:
        for i in range(n):  # here
            y = x * i
        return y

    last(X, np.array(0))


@wrong("W102", ValueError)
def other_shapes_on_two_ways() -> None:
    @weft.compile
    def half(x: Any) -> Any:
        if x.sum() > 0:  # noqa: SIM108
            y = x
        else:
            y = x[:1]  # here
        return y

    half(X)


@wrong("W102", ValueError)
def a_loop_that_makes_an_array_longer() -> None:
    @weft.compile
    def grow(x: Any) -> Any:
        while x.sum() < 100:
            x = np.concatenate([x, x])  # here
        return x

    grow(X)


@wrong("W102", ValueError)
def texts_on_two_ways() -> None:
    @weft.compile
    def label(x: Any) -> Any:
        name = "more" if x.sum() > 0 else "less"  # here
        return {name: x}

    label(X)


@wrong("W102", ValueError)
def nothing_returned_on_one_way() -> None:
    @weft.compile
    def positive(x: Any) -> Any:
        if x.sum() > 0:  # here
            return {"positive": x}
        return None

    positive(X)


@wrong("W201", TypeError)
def an_exception_on_one_way() -> None:
    @weft.compile
    def root(x: Any) -> Any:
        try:
            if x.sum() < 0:
                raise ValueError("negative")  # here
        except ValueError:
            x = -x
        return np.sqrt(x)

    root(X)


@wrong("W102", ValueError)
def the_truth_of_many_elements() -> None:
    @weft.compile
    def relu(x: Any) -> Any:
        if x > 0:  # here
            return x
        return x * 0

    relu(X)


@wrong("W102", ValueError)
def conditions_joined_by_python() -> None:
    weft.compile(lambda x: np.where(x > 0 and x < 1, x, 0))(X)  # here


@wrong("W201", TypeError)
def number_of_turns_from_a_tracer() -> None:
    weft.compile(lambda n: np.rot90(X * n, n))(np.array(3))  # here


@wrong("W203", TypeError)
def store_into_a_plain_array() -> None:
    out = np.zeros(3)

    @weft.compile(inout="error")
    def fill(x: Any) -> Any:
        out[0] = x.sum()  # here
        return out

    fill(X)


@wrong("W202", TypeError)
def leaked_tracer() -> None:
    kept: list[Any] = []

    @weft.compile
    def leak(x: Any) -> Any:
        h = np.tanh(x)
        kept.append(h)
        return h

    leak(X)
    kept[0] + 1  # here


@wrong("W203", TypeError)
def argument_changed_in_place() -> None:
    @weft.compile(inout="error")
    def clear(x: Any) -> Any:
        x[0] = 0  # here
        return x

    clear(X)


@wrong("W203", TypeError)
def view_of_an_argument_changed_in_place() -> None:
    @weft.compile(inout="error")
    def clear(x: Any) -> Any:
        row = x[0]
        row[:] = 0  # here
        return x

    clear(X)


@wrong("W203", TypeError)
def repeated_array_changed_in_place() -> None:
    @weft.compile
    def fill(x: Any) -> Any:
        y = np.broadcast_to(x, (2, 3, 4))
        y[0] = 0  # here
        return y

    fill(X)


@wrong("W203", TypeError)
def reshaped_array_changed_in_place() -> None:
    @weft.compile
    def count(x: Any) -> Any:
        y = x * 2
        flat = y.reshape(-1)
        flat += 1  # here
        return y

    count(X)


@wrong("W203", TypeError)
def array_changed_while_tracing() -> None:
    table = np.arange(4.0)
    memory = memoryview(table)

    @weft.compile
    def lookup(x: Any) -> Any:
        y = x * table  # here
        memory[0] = 7.0
        return y

    lookup(X)


@wrong("W204", TypeError)
def values_of_two_graphs() -> None:
    one, two = weft.Graph("one"), weft.Graph("two")
    with one.as_default():
        x = weft.placeholder("f32", (3,), name="x")
    with two.as_default():
        y = weft.placeholder("f32", (3,), name="y")
        x + y  # here


@wrong("W204", TypeError)
def placeholder_without_a_graph() -> None:
    weft.placeholder("f32", (3,))  # here


# -- sessions -----------------------------------------------------------------------------------


def session() -> tuple[weft.Session, Any, Any]:
    g = weft.Graph("mlp")
    with g.as_default():
        x = weft.placeholder("f32", (3, 4), name="x")
        with weft.name_scope("layer1"):
            relu = weft.nn.relu(x @ W)
    return weft.Session(g), x, relu


@wrong("W301", KeyError)
def fetch_of_an_unknown_name() -> None:
    s, x, _ = session()
    s.run("layer1/rely:0", {x: X})  # here


@wrong("W301", KeyError)
def feed_of_an_unknown_name() -> None:
    s, _, relu = session()
    s.run(relu, {"y:0": X})  # here


@wrong("W301", KeyError)
def fetch_of_an_array() -> None:
    s, x, _ = session()
    s.run(X, {x: X})  # here


@wrong("W302", KeyError)
def missing_feed() -> None:
    g = weft.Graph("mlp")
    with g.as_default():
        x = weft.placeholder("f32", (3, 4), name="x")
        logits = x @ W  # here
    weft.Session(g).run(logits)


@wrong("W303", KeyError)
def feed_of_another_shape() -> None:
    s, x, relu = session()
    s.run(relu, {x: X.T})  # here


@wrong("W303", KeyError)
def feed_of_another_dtype() -> None:
    s, x, relu = session()
    s.run(relu, {x: X * 1j})  # here


@wrong("W303", KeyError)
def lowered_for_other_arguments() -> None:
    dense = weft.compile(lambda x, w: x @ w).lower("f32[b,4]", W).compile()
    dense(X.astype(np.float64), W)  # here


@wrong("W304", KeyError)
def variable_of_another_shape() -> None:
    w = weft.Variable(W, name="weights")

    @weft.compile
    def step(g: Any) -> None:
        w.assign(w - g.sum())
        w.assign(g)  # here

    step(X)


@wrong("W304", KeyError)
def variable_assigned_outside() -> None:
    w = weft.Variable(W, name="weights_2")
    w.assign(X)  # here


@wrong("W305", KeyError)
def batch_of_rows_of_several_shapes() -> None:
    rows = weft.data.from_generator(lambda: [X[0], X[0, :2]])
    next(iter(rows.batch(2)))  # here


# -- devices, targets, artifacts, options -------------------------------------------------------


@wrong("W401")
def unknown_device() -> None:
    weft.compile(device="tpu:0")(lambda x: x)  # here


@wrong("W401")
def text_that_is_no_device() -> None:
    with weft.device("graphics card"):  # here
        pass


@wrong("W401")
def no_such_device() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (3,), name="x")
        with weft.device("cpu:3"):
            y = np.tanh(x)  # here
    weft.Session(g).run(y, {x: np.ones(3, np.float32)})


@wrong("W401")
def variable_on_no_such_device() -> None:
    with weft.device("cpu:3"):
        v = weft.Variable(np.ones(3), name="on_cpu_3")
    weft.compile(lambda x: x * v)(np.ones(3))  # here


@wrong("W401")
def assignments_on_two_devices() -> None:
    g = weft.Graph()
    v = weft.Variable(np.ones(3), name="assigned_twice")
    with g.as_default():
        with weft.device("cpu:0"):
            one = v.assign_add(np.ones(3))
        with weft.device("cpu:1"):
            two = v.assign_add(np.ones(3))  # here
    weft.Session(g, devices=("cpu:0", "cpu:1")).run([one, two])


@wrong("W403")
def file_of_no_costs() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "costs.json"
        path.write_text("{}")
        weft.Session(weft.Graph(), devices=("cpu:0", "cpu:1"), costs=path)  # here


@wrong("W402")
def unknown_target() -> None:
    weft.compile(target="pentium3")(lambda x: x)  # here


@wrong("W403")
def no_artifact() -> None:
    with tempfile.TemporaryDirectory() as folder:
        weft.load(Path(folder) / "missing")  # here


@wrong("W405")
def recompilation_forbidden() -> None:
    f = weft.compile(on_recompile="error")(lambda x, k: x * k)
    f(X, 2.0)
    f(X[:2], 2.0)  # here


@wrong("W113", TypeError)
def unknown_policy() -> None:
    weft.compile(on_recompile="never")(lambda x: x)  # type: ignore[call-overload]  # here


@wrong("W501", ValueError)
def text_that_is_no_type() -> None:
    from weft.ir.text.parser import parse

    parse("graph @f(%x: f32[3) -> () {}")


@wrong("W102", ValueError)
def images_with_channels_last() -> None:
    weft.compile(lambda x, w: weft.nn.conv2d(x, w, padding="SAME"))(  # here
        np.zeros((8, 32, 32, 3), "f4"), np.zeros((16, 3, 3, 3), "f4"))


@wrong("W113", TypeError)
def padding_by_another_name() -> None:
    def layer(x: Any, w: Any) -> Any:
        return weft.nn.conv2d(x, w, padding="half")  # here

    weft.compile(layer)(np.zeros((1, 3, 8, 8)), np.zeros((4, 3, 3, 3)))


@wrong("W102", ValueError)
def a_window_larger_than_the_image() -> None:
    weft.compile(lambda x: weft.nn.max_pool2d(x, 3))(np.zeros((1, 3, 2, 8)))  # here


@wrong("W102", ValueError)
def heads_that_do_not_divide_the_width() -> None:
    def layer(x: Any, w: Any) -> Any:
        return weft.nn.multi_head_attention(x, x, x, w, w, w, w, num_heads=3)  # here

    weft.compile(layer)(np.zeros((2, 5, 8)), np.zeros((8, 8)))


@wrong("W102", ValueError)
def labels_as_a_column() -> None:
    weft.compile(weft.nn.cross_entropy)(np.zeros((4, 3)), np.zeros((4, 1), int))  # here


@wrong("W102", ValueError)
def gradients_of_other_parameters() -> None:
    weft.optim.SGD(0.1).update({"w": X}, {}, {"w": X, "b": X})  # here


@wrong("W131", OverflowError)
def integers_beyond_64_bits() -> None:
    @weft.compile
    def factorial(n: Any) -> Any:
        total = 1
        for i in range(1, n + 1):
            total = total * i  # here
        return total

    factorial(25)


@wrong("W133", ZeroDivisionError)
def division_by_a_number_that_is_zero() -> None:
    @weft.compile
    def rate(done: Any, seconds: Any) -> Any:
        return done / seconds  # here

    rate(5, 0.0)


@wrong("W132", ValueError)
def a_root_of_a_negative_number() -> None:
    @weft.compile
    def deviation(mean: Any, square: Any) -> Any:
        return math.sqrt(square - mean * mean)  # here

    deviation(2.0, 3.0)


@wrong("W131", OverflowError)
def an_exponential_beyond_floats() -> None:
    weft.compile(lambda x: math.exp(x))(1000.0)  # here


@wrong("W131", OverflowError)
def a_power_beyond_floats() -> None:
    weft.compile(lambda x: x ** 2)(1e200)  # here


@wrong("W132", ValueError)
def a_power_that_is_complex() -> None:
    weft.compile(lambda x: x ** 0.5)(-4.0)  # here


@wrong("W132", ValueError)
def a_shift_by_less_than_nothing() -> None:
    weft.compile(lambda n: 64 << n)(-2)  # here


@wrong("W131", OverflowError)
def an_integer_that_no_dtype_holds() -> None:
    weft.compile(lambda x: x + 2**70)(np.arange(3))  # here


@wrong("W112", TypeError)
def argument_with_a_mask() -> None:
    f = weft.compile(lambda x: x * 2)
    f(np.ma.array([1.0, 2.0], mask=[False, True]))  # here


@wrong("W112", TypeError)
def argument_is_a_matrix() -> None:
    f = weft.compile(lambda x: x * x)
    f(np.ones((2, 2)).view(np.matrix))  # here


@wrong("W123", IndexError)
def index_by_complex_numbers() -> None:
    weft.compile(lambda x, i: x[i])(X, np.array([1j]))  # here


@wrong("W112", TypeError)
def an_export_of_nothing() -> None:
    weft.export(None, path="m")  # here


@wrong("W405")
def recompilation_for_another_nest() -> None:
    f = weft.compile(on_recompile="error")(lambda batch: batch["x"] * 2)
    f({"x": X})
    f({"x": X, "y": X})  # here


@wrong("W405")
def recompilation_for_another_dtype() -> None:
    f = weft.compile(on_recompile="error")(lambda x: x * 2)
    f(X)
    f(X.astype(np.float64))  # here


@wrong("W105", ValueError)
def a_size_that_nothing_fed_tells() -> None:
    g = weft.Graph("mlp")
    with g.as_default():
        x = weft.placeholder("f32[b,4]", name="x")
        zeros = weft.numpy.zeros(x.shape[0])  # here
    weft.Session(g).run(zeros)


@wrong("W301", KeyError)
def fetch_of_nothing() -> None:
    s, x, relu = session()
    s.run([relu, None], {x: X})  # here


@wrong("W303", KeyError)
def feed_of_numbers_too_large() -> None:
    s, x, relu = session()
    s.run(relu, {x: np.full((3, 4), 1e300)})  # here


@wrong("W303", KeyError)
def feed_of_text() -> None:
    s, x, relu = session()
    s.run(relu, {x: "four"})  # here


@wrong("W112", TypeError)
def a_name_of_a_value() -> None:
    weft.Variable(W, name="weights:0")  # here


@wrong("W403")
def a_checkpoint_of_no_step() -> None:
    from safetensors.numpy import save_file

    w = weft.Variable(X, name="w")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "missing"
        save_file({"w": X * 2}, path, {"step": "last"})
        weft.restore(path, [w])  # here


@wrong("W112", TypeError)
def names_of_static_arguments_by_number() -> None:
    weft.compile(static_argnames=1)(lambda x, n: x * n)  # type: ignore[call-overload]  # here


@wrong("W112", TypeError)
def an_option_that_is_text() -> None:
    weft.compile(disable="no")(lambda x: x)  # type: ignore[call-overload]  # here


@wrong("W112", TypeError)
def argument_of_more_than_64_bits() -> None:
    f = weft.compile(lambda x, n: x * n)
    f(np.arange(3), 2**70)  # here


@wrong("W112", TypeError)
def a_shift_by_a_half() -> None:
    weft.compile(lambda x, shift: np.roll(x, shift))(np.arange(4), np.array(1.5))  # here


@wrong("W203", TypeError)
def an_array_of_the_function_around() -> None:
    @weft.compile
    def outer(x: Any) -> Any:
        y = np.zeros(3)
        g = weft.Graph()
        with g.as_default():
            v = weft.placeholder("f64", (), name="v")
            y[0] = v  # here
        return x

    outer(X)


@wrong("W111", TypeError)
def complex_numbers_rounded_down() -> None:
    weft.compile(lambda x: np.floor(x))(X * 1j)  # here


@wrong("W405")
def recompilation_for_another_number() -> None:
    f = weft.compile(on_recompile="error")(lambda x, k: x * k)
    f(X, 2.0)
    f(X, 2)  # here
