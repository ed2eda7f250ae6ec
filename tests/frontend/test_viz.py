"""Pages that show a program: what is drawn, in which rows, what the data say; no browser needed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.frontend.cli.main import main
from weft.frontend.engine.stages import kernel_flops
from weft.frontend.viz.items import Drawing, Edge, Item
from weft.frontend.viz.layers import WIDE, layers
from weft.frontend.viz.memory import Timeline
from weft.frontend.viz.nest import MOST, insides, nest
from weft.frontend.viz.page import embedded, frame, page
from weft.frontend.viz.program import stages_document
from weft.passes.placement.costs import Costs

SHAPES = {"w1": "f32[4,16]", "b1": "f32[16]", "w2": "f32[16,2]"}


def dense(params: Any, x: Any) -> Any:
    h = np.maximum(x @ params["w1"] + params["b1"], 0)
    return np.exp(h @ params["w2"]).sum()


def training(params: Any, x: Any) -> Any:
    value, grads = weft.value_and_grad(dense)(params, x)
    return value, weft.tree.map(lambda p, g: p - g, params, grads)


def recurrent(xs: Any, h: Any, w: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = np.tanh(x + h @ w)
        return h, h.sum()
    return weft.scan(cell, h, xs)


def branching(x: Any) -> Any:
    y = weft.while_loop(lambda y: y.sum() < 10, lambda y: y * 2 + x, x)
    return weft.cond(y[0] > 1, lambda y: np.sort(y)[::-1], lambda y: y - x.mean(), y)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "dense": (dense, (SHAPES, "f32[b,4]")),
    "training": (training, (SHAPES, "f32[8,4]")),
    "recurrent": (recurrent, ("f32[9,4,2]", "f32[4,2]", "f32[2,2]")),
    "branching": (branching, ("f64[5]",)),
    "same": (lambda x: x, ("f32[3]",)),
    "nothing": (lambda: (), ()),
    "host": (lambda a: np.linalg.solve(a, a @ a) + 1, ("f64[3,3]",)),
}


def lowered_of(name: str) -> weft.Lowered:
    function, args = PROGRAMS[name]
    return weft.compile(function).lower(*args)


def data_of(lowered: weft.Lowered) -> dict[str, Any]:
    """The data as the page's script reads them."""
    text = lowered.as_html()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    assert data == json.loads(json.dumps(stages_document(lowered.stages, kernel_flops)))
    return data


def replicas() -> weft.Lowered:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (8, 4), name="x")
        w = weft.Variable(np.ones((4, 4), np.float32), name="w")
        with weft.device("cpu:1"), weft.name_scope("far"):
            far = np.tanh(x @ w)
        with weft.device("cpu:0"):
            near = np.sum(far * 2, axis=1)
            done = w.assign_sub(near[:4] * np.float32(0.1))
    return weft.Session(g, devices=("cpu:0", "cpu:1")).lower([near, done], [x])


# -- rows -----------------------------------------------------------------------------------------


@st.composite
def drawn(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 24))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = {(min(pair), max(pair)) for pair in draw(st.lists(pairs, max_size=50))}
    return count, sorted((a, b) for a, b in edges if a != b)


@settings(max_examples=40, deadline=None)
@given(drawn(), st.data())
def test_edges_go_down_row_by_row(graph: tuple[int, list[tuple[int, int]]],
                                  data: st.DataObject) -> None:
    count, edges = graph
    lanes = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    rows = layers(count, edges, lanes=lanes)
    assert rows == layers(count, edges, lanes=lanes)
    row_of = {at: row for row, each in enumerate(rows) for at in each if at >= 0}
    assert sorted(row_of) == list(range(count))
    for number, (source, target) in enumerate(edges):
        passed = [row for row, each in enumerate(rows) if -1 - number in each]
        assert passed == list(range(row_of[source] + 1, row_of[target]))
        assert row_of[source] < row_of[target]
    for each in rows:
        assert 0 < len([at for at in each if at >= 0]) <= WIDE
        boxes = [lanes[at] if at >= 0 else lanes[edges[-1 - at][1]] for at in each]
        assert boxes == sorted(boxes)


def test_ports_are_first_and_last() -> None:
    rows = layers(4, [(2, 0), (0, 1), (1, 3)], tops=[2], bottoms=[3])
    assert rows == [[2], [0], [1], [3]]
    assert layers(3, [(1, 2)], tops=[1], bottoms=[2]) == [[1], [0, -1], [2]]


def test_an_order_without_crossings_is_found() -> None:
    assert layers(6, [(0, 5), (1, 4), (2, 3)]) == [[0, 1, 2], [5, 4, 3]]
    assert layers(6, [(0, 3), (0, 5), (1, 4), (2, 4), (2, 5)]) in (
        [[1, 2, 0], [4, 5, 3]], [[0, 2, 1], [3, 5, 4]])


# -- boxes in boxes -------------------------------------------------------------------------------


def boxes(item: Item) -> Iterator[Item]:
    yield item
    for child in item.children:
        assert child.parent is item
        yield from boxes(child)


@settings(max_examples=40, deadline=None)
@given(drawn(), st.data())
def test_boxes_of_scopes_depend_on_each_other_in_no_circle(
    graph: tuple[int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    count, edges = graph
    drawing = Drawing(Costs())
    names = st.lists(st.sampled_from("abc"), max_size=2).map(tuple)
    items = [drawing.root.add(Item("op", str(at), scope=data.draw(names)))
             for at in range(count)]
    drawing.edges = [Edge(items[a], items[b]) for a, b in edges]
    nest(drawing)
    assert sorted(int(box.label) for box in boxes(drawing.root) if box.kind == "op") == list(
        range(count))
    for inside in insides(drawing).values():
        assert inside.rows()  # asserts that there is no circle
    for box in boxes(drawing.root):
        if box.kind == "scope":
            assert len(box.children) > 1


def test_a_scope_that_is_left_and_entered_again_is_two_boxes() -> None:
    drawing = Drawing(Costs())
    a, b, c = (drawing.root.add(Item("op", label, scope=scope))
               for label, scope in (("a", ("s",)), ("b", ()), ("c", ("s",))))
    d = drawing.root.add(Item("op", "d", scope=("s",)))
    drawing.edges = [Edge(a, b), Edge(b, c), Edge(c, d)]
    nest(drawing)
    assert [(box.label, [child.label for child in box.children])
            for box in drawing.root.children] == [("a", []), ("b", []), ("s", ["c", "d"])]


@pytest.mark.parametrize("shape", ["chain", "wide"])
def test_many_operations_are_seen_a_few_at_a_time(shape: str) -> None:
    def some(x: Any, first: int) -> tuple[Any, list[Any]]:
        found = []
        for at in range(first, first + 150):
            x = np.sin(x) if shape == "chain" else x
            found.append(x + at)
        return x, found

    def program(x: Any) -> Any:  # no loop: long ones are loops of the program
        parts = [some(x, 0), some(x, 150), some(x, 300), some(x, 450), some(x, 600)]
        x = parts[-1][0]
        parts += [some(x, 750), some(x, 900), some(x, 1050), some(x, 1200), some(x, 1350)]
        return parts[-1][0] if shape == "chain" else [y for _, found in parts for y in found][:700]

    drawing = Drawing(Costs())
    drawing.whole(weft.compile(program).trace("f64[3]").graph)
    nest(drawing)
    found = list(boxes(drawing.root))
    assert sum(box.kind == "op" for box in found) > 1400
    # Parameters and results of its boxes stand with them.
    assert max(len(box.children) for box in found) <= 2 * MOST
    assert len(drawing.root.children) <= MOST + 1
    for inside in insides(drawing).values():
        assert inside.rows()


# -- the data of a page ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_view_has_every_node_and_consistent_edges(name: str) -> None:
    lowered = lowered_of(name)
    data = data_of(lowered)
    assert [view["id"] for view in data["views"]] == ["trace", "opt", "fused"]
    drawn = {item["x"] for item in data["views"][0]["items"] if "x" in item}
    graph = lowered.traced.graph
    assert drawn >= {node.name for node in graph.nodes if not node.op.constant}
    for view in data["views"]:
        items = view["items"]
        for at, item in enumerate(items):
            assert all(items[child]["p"] == at for child in item.get("i", ()))
            if "r" not in item:
                continue
            many = len(item["i"]) + len(item["o"])
            row_of = {entry: row for row, each in enumerate(item["r"]) for entry in each}
            assert sorted(entry for entry in row_of if entry >= 0) == list(range(many))
            for source, target, text, count, kind in item["e"]:
                assert row_of[source] < row_of[target]
                assert count > 0 and text < len(data["texts"]) and kind in (0, 1, 2)
            for _, other in item["o"]:  # a port leads to a box that is beside one of those around
                assert 0 <= other < len(items)
        for item in items:
            assert all(0 <= loc < len(data["locs"]) for loc in item.get("s", ()))


def test_hints_have_type_cost_and_source() -> None:
    data = data_of(lowered_of("dense"))
    view = data["views"][0]
    matmul = next(item for item in view["items"] if item.get("x") == "matmul")
    assert data["texts"][matmul["t"]] == "f32[b,16]"
    assert matmul["ops"] == 2 * 128 * 4 * 16
    file, line, inside, source = data["locs"][matmul["s"][0]]
    assert inside == "dense" and "np.maximum(x @ params" in source
    assert data["files"][file].endswith("test_viz.py") and line > 0
    maximum = next(item for item in view["items"] if item.get("x") == "h")
    assert maximum["w"] == ["0"]  # a constant stands in its reader


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_and_memory_are_those_of_the_program(name: str) -> None:
    lowered = lowered_of(name)
    data = data_of(lowered)
    if name == "dense":
        sized = Costs()
        costs = {key: sized.size(dim) for key, dim in lowered.cost_analysis().items()}
        assert sum(kernel["ops"] for kernel in data["kernels"]) == costs["flops"]
        assert sum(kernel["bytes"] for kernel in data["kernels"]) == costs["bytes accessed"]
    elif name == "training":
        costs = lowered.cost_analysis()
        assert sum(kernel["ops"] for kernel in data["kernels"]) == costs["flops"]
    assert data["peak"] == str(lowered.compile().memory_analysis().peak_bytes)
    regions = [item["kernel"] for item in data["views"][-1]["items"] if "kernel" in item]
    assert sorted(regions) == [  # those of parts write nothing that the graph knows
        at for at, kernel in enumerate(data["kernels"]) if not kernel["name"].endswith("_parts")]
    for kernel in data["kernels"]:
        assert data["texts"][kernel["text"]].startswith(f"kernel @{kernel['name']}(")
    check_memory(data)


def check_memory(data: dict[str, Any]) -> None:
    """No two temporaries need the same bytes at a time, and all are in the arena."""
    for part in data["memory"]:
        blocks = part["blocks"]
        for at, (_, _, offset, size, first, last) in enumerate(blocks):
            assert offset >= 0 and offset + size <= part["arena"] - part["scratch"]
            assert 0 <= first <= last < len(part["live"])
            for _, _, other, length, start, end in blocks[at + 1:]:
                assert (offset + size <= other or other + length <= offset
                        or last < start or end < first)
        assert all(0 <= live <= part["arena"] for live in part["live"])


@pytest.mark.parametrize("fetched", [False, True])
def test_memory_of_a_model(fetched: bool) -> None:
    def loss(w: Any, xs: Any) -> Any:
        h = weft.scan(lambda h, x: (np.tanh(x @ w + h), 0), xs[0] * 0, xs)[0]
        return np.sum(weft.nn.softmax(h @ w.T) ** 2)

    grad = weft.value_and_grad(loss) if fetched else loss
    data = data_of(weft.compile(grad).lower("f32[8,8]", "f32[5,3,8]"))
    check_memory(data)
    assert max(data["memory"][0]["live"]) <= int(data["peak"])


def test_what_a_loop_reads_is_needed_to_its_end() -> None:
    plan = lowered_of("recurrent").stages.plan  # type: ignore[union-attr]
    line = Timeline(plan)
    loop = next(moment for moment in line.moments if moment.kind == "loop")
    assert all(each.last >= loop.last for each in line.needed if each.name == "h_1")


def test_values_are_found_again_in_other_stages() -> None:
    views = data_of(lowered_of("recurrent"))["views"]
    keys = [{item["x"] for item in view["items"] if "x" in item} for view in views]
    assert "recurrent/body/h_1" in keys[0] & keys[1] & keys[2]


def test_constants_that_a_kernel_writes_are_no_constants() -> None:
    data = data_of(weft.compile(lambda x: (np.zeros(4) + 0 * x[0], np.linalg.inv(x))).lower(
        "f64[4,4]"))
    assert data["views"][-1]["items"]


def test_devices_are_lanes_and_sends_are_edges() -> None:
    lowered = replicas()
    data = data_of(lowered)
    assert [view["id"] for view in data["views"]] == ["trace", "opt", "placed", "fused"]
    assert data["devices"] == ["cpu:0", "cpu:1"]
    partition = lowered.stages.partition  # type: ignore[union-attr]
    for view in data["views"][2:]:
        root, items = view["items"][0], view["items"]
        segments = [item for item in items if item["k"] == "segment"]
        assert [data["texts"][item["d"]] for item in segments] == [
            str(segment.device) for segment in partition.segments]
        assert [item["lane"] for item in segments] == [
            int(str(segment.device)[-1]) for segment in partition.segments]
        sends = [edge for item in items for edge in item.get("e", ()) if edge[4] == 2]
        assert len(sends) >= 1
        assert [edge for edge in root["e"] if edge[4] == 2] == sends
    assert len(data["memory"]) == len(lowered.stages.parts)  # type: ignore[union-attr]
    assert "cpu:1" in data["placement"]
    check_memory(data)


# -- the page -------------------------------------------------------------------------------------

ODD = '</script><b>"quoted" & \'single\' é \u2028 {{data}}'


def test_any_name_can_stand_in_a_page() -> None:
    def program(x: Any) -> Any:
        with weft.name_scope(ODD):
            return np.exp(x) + 1

    lowered = weft.compile(program).lower("f32[3]")
    data = data_of(lowered)
    assert any(ODD in item.get("n", "") for item in data["views"][0]["items"])
    assert lowered.as_html().count("</script>") == 2  # the data's, and the script's
    graph = weft.Graph(ODD)
    assert "<b>" not in graph._repr_html_()
    json.loads(embedded({"half": "\ud800"}))


def test_a_page_needs_nothing_else() -> None:
    text = lowered_of("dense").as_html()
    assert "default-src 'none'" in text
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert "@import" not in text and "url(http" not in text
    assert not re.search(r"\{\{\w+\}\}", text)
    assert text == lowered_of("dense").as_html()  # nothing of it changes from time to time


def test_notebooks_show_graphs() -> None:
    traced = weft.compile(dense).trace(SHAPES, "f32[b,4]")
    g = weft.Graph()
    with g.as_default():
        weft.placeholder("f32", (2,), name="x")
    for shown in (traced, g, lowered_of("dense")):
        assert shown._repr_html_().startswith("<iframe srcdoc=\"&lt;!doctype html&gt;")
    assert "<script" not in frame({"title": "t", "views": []})
    assert page({"title": "<t>"}).count("<t>") == 0


FILE = '''
import numpy as np

def double(x):
    return np.tanh(x) * 2
'''


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(FILE)
    assert main(["viz", "model.py:double", "--args", "f32[b,4]", "--dim", "b=32", "-o",
                 "double.html"]) == 0
    assert capsys.readouterr().out == "wrote double.html\n"
    assert '"sizes":{"b":32}' in Path("double.html").read_text()
    assert main(["dump", "model.py:double", "--args", "f32[4]", "-o", "double.ir"]) == 0
    assert main(["viz", "double.ir"]) == 0
    assert '"id":"fused"' in Path("weft.html").read_text()
    assert main(["viz", "double.ir", "--fetch", "tanh"]) == 0
    assert '"title":"double"' in Path("weft.html").read_text()
    g = weft.Graph("bare")
    with g.as_default():
        weft.placeholder("f32", (2,), name="x") * 2
    g.save("bare.ir")
    assert main(["viz", "bare.ir", "-o", "bare.html"]) == 0
    assert '"id":"fused"' not in Path("bare.html").read_text()
    capsys.readouterr()
    for wrong, said in ((["nix.ir"], "cannot read nix.ir"),
                        (["double.ir", "--fetch", "no"], "W301"),
                        (["model.py:double", "--fetch", "x"], "--fetch is for graphs"),
                        (["model.py:double"], "does not take 0 arguments"),
                        (["double.ir", "-o", "no/page.html"], "no/page.html: No such file")):
        assert main(["viz", *wrong]) in (1, 2)
        assert said in capsys.readouterr().err
    Path("kernel.ir").write_text(weft.compile(np.tanh).lower("f32[4]").as_text("kernel"))
    assert main(["viz", "kernel.ir"]) == 2
    assert "holds no graph" in capsys.readouterr().err


def test_costs_of_a_sum_over_two_axes_are_counted() -> None:
    """A contraction over several axes counts one product for each index of each of them."""
    lowered = weft.compile(lambda a, b: np.einsum("ijk,ljk->il", a, b)).lower(
        "f32[4,5,6]", "f32[7,5,6]")
    assert lowered.cost_analysis()["flops"] == 2 * 4 * 7 * 5 * 6
