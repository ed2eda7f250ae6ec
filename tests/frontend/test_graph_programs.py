"""Small programs as users of TensorFlow 1 write them: build a graph, run parts of it.

Each is checked against what the same program gives in ``tf.compat.v1`` or, where Weft departs from
that on purpose, against what the docstring says.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import weft
from weft import Graph, Session, Variable

Point = namedtuple("Point", "x y")
V = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def g() -> Any:
    """The graph that is being built; sessions are made inside of it, as TensorFlow's users do."""
    graph = Graph()
    with graph.as_default():
        yield graph


def x3(name: str = "x") -> Any:
    return weft.placeholder("f64", (3,), name=name)


# -- fetches --------------------------------------------------------------------------------------


def test_01_a_constant(g: Graph) -> None:
    x = weft.placeholder("i64", name="x")
    assert Session().run(x * 0 + 42, {x: 1}) == 42


def test_02_one_fetch_is_one_value(g: Graph) -> None:
    x = x3()
    got = Session().run(x + 1, {x: V})
    assert isinstance(got, np.ndarray) and got.tolist() == [2, 3, 4]


def test_03_lists_tuples_dicts_and_what_is_in_them(g: Graph) -> None:
    x = x3()
    y, z = x * 2, np.sum(x)
    got = Session().run({"a": [y, (z, z)], "b": Point(z, [y])}, {x: V})
    assert got["a"][1] == (6, 6) and got["b"].x == 6 and isinstance(got["b"], Point)
    assert got["b"].y[0].tolist() == [2, 4, 6]


def test_04_ordered_dicts_keep_their_kind(g: Graph) -> None:
    x = x3()
    got = Session().run(OrderedDict(b=x + 1, a=x), {x: V})
    assert type(got) is OrderedDict and list(got) == ["b", "a"]


def test_05_the_same_fetch_twice(g: Graph) -> None:
    x = x3()
    a, b = Session().run([x + 1] * 2, {x: V})
    assert a.tolist() == b.tolist() == [2, 3, 4]


def test_06_an_empty_list(g: Graph) -> None:
    assert Session().run([]) == []


def test_07_operations_give_none(g: Graph) -> None:
    v = Variable(0.0)
    assert Session().run([v.assign_add(1.0), v]) == [None, 1]


def test_08_results_are_scalars_or_arrays(g: Graph) -> None:
    x = weft.placeholder("f32", (2, 2), name="x")
    got = Session().run([np.sum(x), np.sum(x, axis=0)], {x: [[1, 2], [3, 4]]})
    assert got[0] == 10 and isinstance(got[0], np.float32) and got[1].tolist() == [4, 6]


def test_09_what_is_got_is_the_callers_own(g: Graph) -> None:
    v = Variable(np.zeros(2), name="own")
    s = Session()
    s.run(v)[0] = 5
    assert s.run(v).tolist() == [0, 0]


def test_10_names_with_and_without_ports(g: Graph) -> None:
    x = x3()
    with weft.name_scope("scope"):
        relu = weft.nn.relu(x - 2)
    s = Session()
    for fetch in (relu, relu.name, "scope/relu", "scope/relu:0"):
        assert s.run(fetch, {"x": V}).tolist() == [0, 0, 1]


# -- feeds ----------------------------------------------------------------------------------------


def test_11_numbers_and_lists_are_fed(g: Graph) -> None:
    x, rate = x3(), weft.placeholder("f64", name="rate")
    assert Session().run(x * rate, {x: [1, 2, 3], rate: 2}).tolist() == [2, 4, 6]


def test_12_a_value_in_the_middle(g: Graph) -> None:
    x = x3()
    h = x * 10
    y = h + 1
    assert Session().run(y, {h: V}).tolist() == [2, 3, 4]  # x is not needed


def test_13_what_is_fed_is_fetched(g: Graph) -> None:
    x = x3()
    h = x * 10
    assert Session().run([h, h + 1], {h: V})[0].tolist() == V.tolist()


def test_14_feeds_that_do_not_matter(g: Graph) -> None:
    x, other = x3(), x3("other")
    v = Variable(np.zeros(3), name="elsewhere")
    unused = other + v
    got = Session().run(x + 1, {x: V, other: V, unused: V, v: V})
    assert got.tolist() == [2, 3, 4]


def test_15_feeds_that_do_not_matter_must_fit_all_the_same(g: Graph) -> None:
    x, other = x3(), x3("other")
    v = Variable(np.zeros(3), name="elsewhere")
    s, unused = Session(), other + v
    for feed in (other, v, unused):
        with pytest.raises(weft.Error, match="W303"):
            s.run(x + 1, {x: V, feed: np.zeros(4)})


def test_16_a_variable_is_fed(g: Graph) -> None:
    """For this step, wherever it is read; it keeps its value."""
    w, x = Variable(np.ones(3), name="w16"), x3()
    y, twice = x * w, w * 2
    s = Session()
    for key in (w, "w16", "w16:0"):
        got = s.run([y, twice, w], {x: V, key: [5, 5, 5]})
        assert [part.tolist() for part in got] == [[5, 10, 15], [10] * 3, [5] * 3]
    assert s.run([y, w], {x: V})[0].tolist() == V.tolist() and s.run(w).tolist() == [1] * 3


def test_17_a_read_of_a_variable_is_fed(g: Graph) -> None:
    w = Variable(np.ones(3), name="w17")
    y = w * 2
    assert Session().run([y, w], {"w17/read:0": V})[0].tolist() == [2, 4, 6]


def test_18_a_variable_is_fed_to_loops_and_branches(g: Graph) -> None:
    w, x = Variable(2.0), weft.placeholder("f64", name="x")
    loop = weft.fori_loop(0, 3, lambda i, h: h * w, x)
    branch = weft.cond(x > 0, lambda: w * x, lambda: w - x)
    s = Session()
    assert s.run([loop, branch], {x: 1.0, w: 3.0}) == [27, 3]
    assert s.run([loop, branch], {x: -1.0}) == [-8, 3]


def test_19_a_step_that_assigns_what_is_fed(g: Graph) -> None:
    """It starts from what is fed; what it assigns is kept."""
    w = Variable(1.0)
    add = w.assign_add(1.0)
    s = Session()
    assert s.run([add, w], {w: 10.0}) == [None, 11] and s.run(w) == 11
    assert s.run([add, w]) == [None, 12]


def test_20_results_of_control_flow_are_fed(g: Graph) -> None:
    x = weft.placeholder("f64", name="x")
    total, steps = weft.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (x, 0))
    picked = weft.cond(x > 0, lambda: x + 1, lambda: x - 1)
    s = Session()
    assert s.run([total * 2, steps + 1], {x: 30.0}) == [240, 3]
    assert s.run([total * 2, steps + 1], {x: 30.0, total: 1.0}) == [2, 3]
    assert s.run([total * 2, steps], {total: 1.0, steps: 7}) == [2, 7]
    assert s.run(picked * 10, {picked: 3.0}) == 30


def test_21_tuples_of_feeds(g: Graph) -> None:
    a, b, c = (weft.placeholder("f64", name=name) for name in "abc")
    s = Session()
    for _ in range(2):
        assert s.run(a - b + c, {(a, (b, c)): (1.0, [2.0, 4.0])}) == 3
    with pytest.raises(weft.Error, match="W303: a tuple of 2"):
        s.run(a - b, {(a, b): (1.0,)})
    with pytest.raises(weft.Error, match="W301"):
        s.run(a - b, {(a, b): (1.0, 2.0), a: 1.0})


def test_22_a_default_is_fed_over(g: Graph) -> None:
    """As TensorFlow's placeholder_with_default: any value is one."""
    keep = np.float64(0.5) + np.zeros(()) + x3()[0] * 0
    x = x3("data")
    y = x * keep
    assert Session().run(y, {x: V, keep: 1.0}).tolist() == V.tolist()


def test_23_the_shape_that_is_fed_is_asked_for(g: Graph) -> None:
    x = weft.placeholder("f64", (None, 3), name="x")
    s, y = Session(), x * 2
    assert s.run(y, {x: np.ones((5, 3))}).shape == (5, 3)
    for bad in (np.ones((5, 4)), np.ones(3)):
        with pytest.raises(weft.Error, match="W303"):
            s.run(y, {x: bad})


def test_24_what_is_fed_may_change_afterwards(g: Graph) -> None:
    x, v = x3(), Variable(np.zeros(3))
    keep, fed = v.assign(x), V.copy()
    s = Session()
    s.run(keep, {x: fed})
    fed[:] = -1
    assert s.run(v).tolist() == V.tolist()


# -- state ----------------------------------------------------------------------------------------


def test_25_a_counter(g: Graph) -> None:
    count = Variable(0, name="counter")
    step = count.assign_add(1)
    s = Session()
    for _ in range(3):
        s.run(step)
    assert s.run(count) == 3


def test_26_the_initializer_takes_the_model_back(g: Graph) -> None:
    v, w = Variable(V), Variable(1, trainable=False)
    init = g.initializer()
    s = Session()
    s.run([v.assign(v * 2), w.assign_add(5)])
    assert s.run([v, w])[1] == 6
    s.run(init)
    assert s.run(v).tolist() == V.tolist() and s.run(w) == 1
    s.run("init")


def test_27_collections_of_variables(g: Graph) -> None:
    with weft.name_scope("layer"):
        w = Variable(V, name="w27")
    b = Variable(0.0, name="b27", trainable=False)
    assert list(g.variables.values()) == [w, b] and w.name == "layer/w27"
    assert g.trainable_variables == {"layer/w27": w}
    assert Session().run("layer/w27").tolist() == V.tolist()
    assert Graph().variables == {}


def test_28_two_sessions_see_one_variable(g: Graph) -> None:
    v = Variable(1.0)
    double = v.assign(v * 2)
    Session().run(double)
    assert Session().run(v) == 2


def test_29_a_variable_in_two_graphs(g: Graph) -> None:
    v = Variable(1.0, name="both")
    up = v.assign_add(1.0)
    other = Graph()
    with other.as_default():
        read = v * 10
    Session(g).run(up)
    assert Session(other).run(read) == 20


def test_30_reads_are_where_they_are_written(g: Graph) -> None:
    """In the order of the program; TensorFlow leaves it open."""
    v = Variable(1.0)
    before = v * 1
    up = v.assign_add(1.0)
    after = v * 1
    assert Session().run([before, up, after]) == [1, None, 2]


def test_31_control_dependencies(g: Graph) -> None:
    v, x = Variable(0.0), x3()
    up = v.assign_add(1.0)
    with weft.control_dependencies([up]):
        y = x + 1
        z = v * 1
    s = Session()
    assert s.run(y, {x: V}).tolist() == [2, 3, 4] and s.run(v) == 1
    assert s.run(z) == 2
    with weft.control_dependencies([up]), weft.control_dependencies(None):
        free = x * 3
    s.run(free, {x: V})
    assert s.run(v) == 2


def test_32_groups(g: Graph) -> None:
    a, b = Variable(0.0), Variable(0.0)
    both = weft.group(a.assign_add(1.0), b.assign_add(2.0), name="both")
    nothing = weft.group(name="nothing")
    s = Session()
    assert s.run([both, "both", nothing]) == [None] * 3
    assert s.run([a, b]) == [1, 2]


def test_33_a_group_after_others(g: Graph) -> None:
    v = Variable(1.0)
    double = v.assign(v * 2)
    with weft.control_dependencies([double]):
        done = v.assign_add(1.0)
    s = Session()
    s.run(weft.group(double, done))
    assert s.run(v) == 3


def test_34_a_moving_average(g: Graph) -> None:
    x, mean = weft.placeholder("f64", name="x"), Variable(0.0)
    update = mean.assign(0.9 * mean + 0.1 * x)
    s, want = Session(), 0.0
    for value in (1.0, 2.0, 3.0):
        s.run(update, {x: value})
        want = 0.9 * want + 0.1 * value
    assert s.run(mean) == want


def test_35_assignments_of_parts(g: Graph) -> None:
    """As scatter_update: a new value with some rows changed."""
    table, at = Variable(np.zeros((4, 2))), weft.placeholder("i64", (None,), name="at")
    put = table.assign(table[...].at[at].add(1.0))
    s = Session()
    s.run(put, {at: [0, 3, 3]})
    assert s.run(table)[:, 0].tolist() == [1, 0, 0, 2]


# -- names ----------------------------------------------------------------------------------------


def test_36_scopes_are_numbered(g: Graph) -> None:
    names = []
    for _ in range(3):
        with weft.name_scope("layer") as scope:
            names.append((scope, (x3("p") + 1).name.partition(":")[0]))
    assert [scope for scope, _ in names] == ["layer/", "layer_1/", "layer_2/"]
    assert [name.partition("/")[0] for _, name in names] == ["layer", "layer_1", "layer_2"]


def test_37_scopes_nest_and_open_again(g: Graph) -> None:
    with weft.name_scope("a") as a, weft.name_scope("b") as b:
        assert (a, b) == ("a/", "a/b/")
        with weft.name_scope(None) as root, weft.name_scope("c") as c:
            assert (root, c) == ("", "c/")
    with weft.name_scope(a), weft.name_scope("b") as again:
        assert again == "a/b_1/"
    with weft.name_scope(b) as same:
        assert same == "a/b/"


def test_38_a_node_has_the_name_of_a_scope(g: Graph) -> None:
    x = x3("layer")
    with weft.name_scope("layer") as scope:
        assert scope == "layer_1/"
    assert x.name == "layer:0"


def test_39_names_are_found(g: Graph) -> None:
    x = x3("data")
    with weft.name_scope("s"):
        y = x + 1
    assert g.find("data") is x.value
    assert g.find("s/y:0") is y.value
    with pytest.raises(weft.Error, match="W301"):
        g.find("s/z:0")


# -- gradients and training -----------------------------------------------------------------------


def test_40_gradients(g: Graph) -> None:
    x, w = weft.placeholder("f64", name="x"), Variable(3.0)
    y = w * x * x
    by_w, by_x = weft.gradients(y, [w, x])
    assert Session().run([by_w, by_x], {x: 2.0}) == [4, 12]


def test_41_gradients_of_several_values_add_up(g: Graph) -> None:
    x = x3()
    (both,) = weft.gradients([x * x, np.sum(3 * x)], x)
    assert Session().run(both, {x: V}).tolist() == [5, 7, 9]


def test_42_weights_of_the_values(g: Graph) -> None:
    x, weight = x3(), x3("weight")
    (found,) = weft.gradients([x * x, x], [x], grad_ys=[weight, None])
    assert Session().run(found, {x: V, weight: [1.0, 0, 2]}).tolist() == [3, 1, 13]


def test_43_total_and_partial_derivatives(g: Graph) -> None:
    """The example of TensorFlow's documentation of stop_gradients."""
    a = weft.placeholder("f64", name="a")
    b = 2 * a
    s = Session()
    assert s.run(weft.gradients(a + b, [a, b]), {a: 0.0}) == [3, 1]
    assert s.run(weft.gradients(a + b, [a, b], stop_gradients=[a, b]), {a: 0.0}) == [1, 1]


def test_44_unconnected_values_give_none(g: Graph) -> None:
    x, y, v = x3(), x3("y"), Variable(V)
    assert weft.gradients(x * 2, [y, v]) == [None, None]
    assert weft.gradients(weft.stop_gradient(x) * 2, x) == [None]


def test_45_gradients_through_control_flow(g: Graph) -> None:
    x, w = weft.placeholder("f64", name="x"), Variable(3.0)
    powers, _ = weft.scan(lambda h, _: (h * w, None), x, length=3)
    picked = weft.cond(x > 0, lambda: x * w, lambda: x - w)
    loop = weft.while_loop(lambda h: h < 50, lambda h: h * w, x, max_iterations=10)
    s = Session()
    assert s.run(weft.gradients(powers, [w, x]), {x: 2.0}) == [54, 27]
    assert s.run(weft.gradients(picked, [w, x]), {x: 2.0}) == [2, 3]
    assert s.run(weft.gradients(picked, [w, x]), {x: -2.0}) == [-1, 1]
    assert s.run(weft.gradients(loop, [w, x]), {x: 2.0}) == [54, 27]


def test_46_gradients_of_gradients(g: Graph) -> None:
    x = weft.placeholder("f64", name="x")
    (first,) = weft.gradients(x**3, x)
    (second,) = weft.gradients(first, x)
    assert Session().run([first, second], {x: 2.0}) == [12, 12]


def test_47_minimize_gives_an_operation(g: Graph) -> None:
    w, fixed = Variable(np.zeros(2)), Variable(1.0, trainable=False)
    x = weft.placeholder("f64", (None, 2), name="x")
    loss = np.mean((x @ w - fixed) ** 2)
    train = weft.optim.SGD(0.5).minimize(loss)
    s, at = Session(), np.eye(2)
    assert s.run([train, loss], {x: at}) == [None, 1]
    assert s.run(loss, {x: at}) == 0.25
    assert s.run("minimize", {x: at}) is None and s.run(loss, {x: at}) == 0.0625
    assert s.run(fixed) == 1
    with pytest.raises(weft.Error, match="W114: x:0 does not depend on any"):
        weft.optim.SGD(0.5).minimize(x, [fixed])


def test_48_gradients_are_clipped_and_applied(g: Graph) -> None:
    w, x = Variable(np.zeros(2)), weft.placeholder("f64", (2,), name="x")
    found = weft.gradients(np.sum(w * x), [w])
    train = weft.optim.SGD(1.0).apply_gradients([(np.clip(found[0], -1, 1), w)])
    s = Session()
    s.run(train, {x: [5.0, -0.5]})
    assert s.run(w).tolist() == [-1, 0.5]
    s.run(train, {found[0]: [0.0, 1.0]})  # gradients can be fed, as any value can
    assert s.run(w).tolist() == [-1, -0.5]


# -- the rest -------------------------------------------------------------------------------------


def test_49_callables(g: Graph) -> None:
    x, w = x3(), Variable(np.ones(3), name="w49")
    s = Session()
    call = s.make_callable({"y": x * w, "op": w.assign_add(x)}, [x, w])
    got = call(V, [2, 2, 2])
    assert got["y"].tolist() == [2, 4, 6] and got["op"] is None
    assert s.run(w).tolist() == [3, 4, 5]


def test_50_a_graph_that_grows_after_its_session_ran() -> None:
    g = Graph()
    with g.as_default():
        x, w = x3(), Variable(V, name="w50")
        loss = np.sum((w - x) ** 2)
    s = Session(g)
    assert s.run(loss, {x: [1, 2, 3]}) == 0
    train = weft.optim.SGD(0.5).minimize(loss)  # outside of the body: the loss knows its graph
    s.run(train, {x: [0, 0, 0]})
    assert s.run(w).tolist() == [0, 0, 0]
    assert s.run("minimize", {x: V}) is None


def test_51_graphs_are_apart() -> None:
    one, two = Graph("one"), Graph("two")
    with one.as_default():
        a = x3()
        with two.as_default():
            b = x3()
            d = b * 3
        c = a * 2
    assert Session(one).run(c, {a: V}).tolist() == [2, 4, 6]
    assert Session(two).run(d, {"x": V}).tolist() == [3, 6, 9]
    with pytest.raises(weft.Error, match="W301"):
        Session(one).run(d, {a: V})


def test_52_sessions_are_contexts(g: Graph) -> None:
    x = x3()
    with Session() as s:
        assert s.graph is g
        assert s.run(x, {x: V}).tolist() == V.tolist()


def test_53_lowered_programs(g: Graph) -> None:
    x, w = x3(), Variable(2.0)
    lowered = Session().lower([x * w, np.sum(x)], [x])
    assert "launch" in lowered.as_text("plan") and lowered.cost_analysis()["flops"] == 6
    compiled = lowered.compile()
    assert compiled(V)[1] == 6 and compiled.memory_analysis().result_bytes == 32
    assert "emit" in compiled.report()


@pytest.mark.parametrize("optimizer", [
    weft.optim.SGD(0.1), weft.optim.SGD(0.1, momentum=0.9), weft.optim.Adam(0.1)])
def test_gradients_are_applied_outside_of_the_block(optimizer: Any) -> None:
    """As inside: what is read of variables is read in each step."""
    found = []
    for inside in (True, False):
        opt = copy.deepcopy(optimizer)
        g = weft.Graph()
        with g.as_default():
            a = weft.Variable(np.ones(2))
            (grad,) = weft.gradients(np.sum(a ** 2), [a])
            step = opt.apply_gradients([(grad, a)]) if inside else None
        step = step or opt.apply_gradients(zip([grad], [a], strict=True))
        session = weft.Session(g)
        for _ in range(3):
            session.run(step)
        found.append(a.numpy())
    np.testing.assert_array_equal(*found)
    assert found[0][0] < 0.75


def test_minimize_takes_one_variable_and_refuses_numbers() -> None:
    g = weft.Graph()
    with g.as_default():
        a = weft.Variable(np.ones(3))
        loss = np.sum(a * a)
    weft.Session(g).run(weft.optim.SGD(0.1).minimize(loss, a))
    np.testing.assert_allclose(a.numpy(), 0.8)
    with pytest.raises(weft.Error, match="W114: nothing leads back from ndarray"):
        weft.optim.SGD(0.1).minimize(a * 2.0, [a])
