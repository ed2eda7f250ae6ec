"""Names that users give: what a text prints for any of them reads back as the same name."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import weft
from weft.ir.graph import Graph
from weft.ir.indices.index import symbol
from weft.ir.kernels.kernel import Axis, Kernel, Load, Param, Store
from weft.ir.plans.partition import Partition, Segment, Send
from weft.ir.plans.plan import Copy, Plan, Slot, Window
from weft.ir.text.parser import parse_graph, parse_kernel, parse_plan
from weft.ir.text.partition import parse_partition, print_partition
from weft.ir.text.printer import print_graph, print_kernel, print_plan
from weft.ir.text.same import same_kernel, same_plan
from weft.ir.text.scanner import quoted
from weft.ir.types import CPU0, F32, Device, TensorType

ODD = ("2d_input", "a b", 'say "hi"', "it's", "é", "日本", "x\ny", "x\ty", "x\r", "\\", "//",
       '// "y"', "from", "return", "graph", "var", "0", "%x", "x.y", "a/b", "/", "a//b", ":",
       "x\u2028y", "x\x85y", "\x00", "²", "٣", "x)", "x,y", "a-b", "max", "mod")
names = st.one_of(st.sampled_from(ODD), st.text(min_size=1, max_size=8)).filter(
    lambda name: not name.rpartition(":")[2].isdigit())
VECTOR = TensorType(F32, (2,))


@given(names, names, names)
def test_names_survive_in_texts(first: str, second: str, third: str) -> None:
    graph = Graph(first)
    graph.results = [graph.add_param(VECTOR, second), graph.add_param(VECTOR, third)]
    graph.variables[first] = VECTOR
    read = parse_graph(print_graph(graph))
    assert (read.name, [value.name for value in read.params], list(read.variables)) == (
        first, [value.name for value in graph.params], [first])
    if second != third:
        kernel = Kernel(first, (Param(second, VECTOR), Param(third, VECTOR, mutable=True)),
                        (Axis("i", 2, "par"),),
                        (Load("%0", F32, second, (symbol("i"),)),
                         Store("", F32, third, (symbol("i"),), "%0")))
        assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
        plan = Plan(first, (Slot(second, VECTOR, first),), (Slot(third, VECTOR, second),),
                    (Copy(Window(second), Window(third)),), 0, {})
        assert same_plan(parse_plan(print_plan(plan)), plan)
    device = Device.parse("cpu:1")
    partition = Partition(first, (Slot(second, VECTOR),), (Slot(third, VECTOR, first),),
                          (Segment(device, Graph(third), (second,), (third,)),),
                          (Send((third,), device, CPU0, 0),), ((second, device),))
    text = print_partition(partition)
    assert print_partition(parse_partition(text)[0]) == text


@given(st.text(st.characters(), max_size=8))
@example("\ud800")
def test_a_quoted_text_is_what_a_file_can_hold(text: str) -> None:
    quoted(text).encode("utf-8")


def saved(graph_name: str, name: str, variable: str, scope: str) -> tuple[Any, Any]:
    """A result of a graph, and that of the graph when it has been saved and loaded."""
    g = weft.Graph(graph_name)
    with g.as_default():
        x = weft.placeholder("f32", (None, 3), name=name)
        v = weft.Variable(np.full(3, 2, np.float32), name=variable)
        with weft.name_scope(scope):
            y = x * v
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    with tempfile.TemporaryDirectory() as folder:
        g.save(Path(folder) / "m.ir")
        again = weft.Session(weft.Graph.load(Path(folder) / "m.ir"))
        return given * 2, again.run([y.name, x.name, v.name], {x.name: given})


@settings(max_examples=25, deadline=None)
@given(names, names, names, names)
@example("2d_input", "2d_input", "2d_input", "2d_input")
@example("a:b", "a:b", "c:d", "e:f")
def test_saved_graphs_keep_their_names(graph: str, name: str, variable: str, scope: str) -> None:
    want, (product, fed, value) = saved(graph, name, variable, scope)
    assert product.tolist() == want.tolist() and fed.tolist() == (want / 2).tolist()
    assert value.tolist() == [2, 2, 2]


@pytest.mark.parametrize(("name", "instead"), [
    ("x:0", "x_0"), ("x:0:1", "x_0_1"), ("a b:12", "a b_12")])
def test_names_of_values_are_refused(name: str, instead: str) -> None:
    with weft.Graph().as_default():
        for make in (lambda name: weft.placeholder("f32", (), name=name),
                     lambda name: weft.Variable(1.0, name=name)):
            with pytest.raises(weft.Error, match="W112") as caught:
                make(name)
            assert f"name={instead!r}" in str(caught.value)
            assert caught.value.locs[0].file == __file__
            make(instead)


def test_half_characters_are_refused() -> None:
    for make in (weft.Graph, lambda name: weft.Variable(1.0, name=name),
                 lambda name: weft.FIFOQueue(2, "f32[]", name=name)):
        with pytest.raises(weft.Error, match="half of a character"):
            make("x\ud800")


def test_names_that_differ_in_their_signs_have_sizes_of_their_own() -> None:
    g = weft.Graph()
    with g.as_default():
        a, b, c = (weft.placeholder("f32", (None,), name=name) for name in ("a b", "a_b", "a-b"))
        total = a.sum() + 10 * b.sum() + 100 * c.sum()
    assert weft.Session(g).run(total, {a: [1, 1], b: [1, 1, 1], c: [1]}) == 132

    @weft.compile(dynamic={"p['a b']": {0: None}, "p['a_b']": {0: None}})
    def both(p: Any) -> Any:
        return p["a b"].sum() + p["a_b"].sum()

    assert both({"a b": np.ones(2), "a_b": np.ones(3)}) == 5
