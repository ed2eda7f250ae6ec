"""What users see of placement: nested names, homes of variables, soft constraints, costs."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.session.costs import load_costs

BOTH = ("cpu:0", "cpu:1")
W = (np.random.default_rng(0).standard_normal((256, 256)) / 16).astype(np.float32)
X = np.random.default_rng(1).standard_normal((16, 256)).astype(np.float32)


def devices_of(graph: weft.Graph, fetches: Any, feeds: Any = (), **options: Any) -> dict[str, str]:
    stages = weft.Session(graph, devices=BOTH, **options).program(fetches, feeds)
    return {node.name: str(node.device) for node in stages.placement.graph.nodes}


def test_devices_nest() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f32", (3,), name="x")
        with weft.device("/job:worker/task:1"), weft.device("cpu:1"):
            a = np.tanh(x)
            with weft.device("/task:2"):
                b = np.tanh(a)
            with weft.device(None):
                c = np.tanh(b)
    assert [str(each.value.node.device) for each in (a, b)] == [
        "/job:worker/task:1/cpu:1", "/job:worker/task:2/cpu:1"]
    assert c.value.node.device is None


def loops(rounds: int = 50) -> tuple[weft.Graph, Any, list[Any]]:
    """Two loops that no thread shares out, and their sum."""
    graph = weft.Graph()
    with graph.as_default():
        feeds = [weft.placeholder("f32", (16, 256), name=name) for name in "xy"]
        a, b = (weft.fori_loop(0, rounds, lambda i, h: np.tanh(h @ W), x) for x in feeds)
        result = a + b
    return graph, result, feeds


def test_two_loops_are_placed_apart_and_give_the_same_bits() -> None:
    graph, result, feeds = loops()
    session = weft.Session(graph, devices=BOTH, threads=2)
    np.testing.assert_array_equal(
        session.run(result, dict.fromkeys(feeds, X)),
        weft.Session(graph).run(result, dict.fromkeys(feeds, X)))
    assert set(devices_of(graph, result, feeds, threads=2).values()) == set(BOTH)
    text = session.explain(result, feeds)
    assert text.startswith("a step of ") and " on 2 devices, " in text
    assert "finished first there: " in text
    assert weft.Session(graph).explain(result, feeds) == "all on cpu:0"


def test_a_variable_is_assigned_where_it_was_made() -> None:
    graph = weft.Graph()
    with weft.device("cpu:1"):
        v = weft.Variable(np.ones(3), name="made_on_1")
    assert str(v.home) == "cpu:1"
    with graph.as_default(), weft.device("cpu:0"):
        x = weft.placeholder("f64", (3,), name="x")
        read = np.tanh(v * x)
        add = v.assign_add(x)
    placed = devices_of(graph, [read, add], [x])
    assert placed.pop("made_on_1/update") == "cpu:1"
    assert set(placed.values()) == {"cpu:0"}
    session = weft.Session(graph, devices=BOTH)
    session.run([read, add], {x: np.ones(3)})
    np.testing.assert_array_equal(v.numpy(), np.full(3, 2.0))
    assert "cpu:1" in session.explain([read, add], [x]).splitlines()[-1]


def test_soft_placement_warns_at_the_line() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f32", (3,), name="x")
        with weft.device("gpu:0"):
            y = np.tanh(x)
    with pytest.raises(weft.Error, match="W401"):
        weft.Session(graph).run(y, {x: np.ones(3)})
    for devices in (BOTH, BOTH[:1]):
        session = weft.Session(graph, devices=devices, soft_placement=True)
        with pytest.warns(weft.PlacementWarning, match="W406: 'y' should be on gpu:0") as caught:
            session.run(y, {x: np.ones(3)})
        assert [warning.filename for warning in caught] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            session.run(y, {x: np.ones(3)})  # told once


def test_costs_are_measured_kept_and_used(tmp_path: Path) -> None:
    graph, result, feeds = loops(8)
    v = weft.Variable(np.zeros((16, 256), np.float32), name="measured")
    with graph.as_default():
        update = v.assign_add(result)
    file = tmp_path / "costs.json"
    session = weft.Session(graph, devices=BOTH, threads=2)
    session.measure_costs([result, update], dict.fromkeys(feeds, X), file)
    assert not v.numpy().any()
    costs = load_costs(file)
    assert {key.partition(" ")[0] for key in costs.measured} == {"cpu*1", "cpu*2"}
    assert all(0 < seconds < 1 for seconds in costs.measured.values())
    assert 1e-7 <= costs.links["memory"].latency < 1e-3
    again = weft.Session(graph, devices=BOTH, threads=2, costs=file)
    assert again.explain([result, update], feeds) == session.explain([result, update], feeds)
    slow = costs.measuring({key: 10.0 for key in costs.measured if "*1 " in key})
    file.write_text(slow.to_json())
    alone = weft.Session(graph, devices=BOTH, threads=2, costs=file)
    assert " on 1 device, " in alone.explain([result, update], feeds)


def test_no_import_of_networkx_before_something_is_placed() -> None:
    code = "import sys, weft, numpy as np; weft.compile(np.tanh)(np.ones(3)); " \
           "print('networkx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_an_embedding_sharded_over_three_devices() -> None:
    """Rows live on three devices, by index mod 3; reads are where the rows are, and a step of
    gradient descent changes only the rows that were read."""
    devices = ("cpu:0", "cpu:1", "cpu:2")
    table = np.random.default_rng(2).standard_normal((12, 4))
    shards = []
    for at, device in enumerate(devices):
        with weft.device(device):
            shards.append(weft.Variable(table[at::3], name=f"shard_{at}"))
    graph = weft.Graph()
    with graph.as_default():
        ids = weft.placeholder("i64", (5,), name="ids")
        target = weft.placeholder("f64", (5, 4), name="target")
        rows, updates = 0.0, []
        for at, shard in enumerate(shards):
            with weft.device(devices[at]):
                rows = rows + np.where((ids % 3 == at)[:, None], shard[ids // 3], 0.0)
        error = rows - target
        for at, shard in enumerate(shards):
            with weft.device(devices[at]):
                step = np.where((ids % 3 == at)[:, None], -0.1 * error, 0.0)
                updates.append(shard.assign(shard.at[ids // 3].add(step)))
        loss = np.sum(error * error)
    session = weft.Session(graph, devices=devices)
    asked, wanted = np.array([0, 4, 4, 8, 11]), table.copy()
    feeds = {ids: asked, target: np.zeros((5, 4))}
    found = session.run([loss, *updates], feeds)[0]
    np.testing.assert_allclose(found, np.sum(wanted[asked] ** 2))
    np.add.at(wanted, asked, -0.1 * wanted[asked])
    for at, shard in enumerate(shards):
        np.testing.assert_allclose(shard.numpy(), wanted[at::3])
        assert str(shard.home) == devices[at]
    placed = session.program([loss, *updates], [ids, target]).placement
    assert {node.device for node in placed.graph.nodes} >= {shard.home for shard in shards}
    assert {str(home) for home in placed.graph.homes.values()} == set(devices)


def test_a_step_of_several_devices_is_lowered_as_its_segments() -> None:
    with weft.Graph().as_default() as graph:
        x = weft.placeholder("f32", (8, 16), name="x")
        w = weft.placeholder("f32", (16, 16), name="w")
        with weft.device("cpu:1"):
            far = np.tanh(x @ w)
        with weft.device("cpu:0"):
            y = np.sum(far + x)
    lowered = weft.Session(graph, devices=("cpu:0", "cpu:1")).lower([y], [x, w])
    assert "send" in lowered.as_text("placed") and "launch" in lowered.as_text("plan")
    flops = 2 * 8 * 16 * 16 + 8 * 16  # the product, the tanh
    assert flops < lowered.cost_analysis()["flops"] <= flops + 3 * 8 * 16
    compiled = lowered.compile()
    memory = compiled.memory_analysis()
    assert (memory.argument_bytes, memory.result_bytes) == ((8 + 16) * 16 * 4, 4)
    assert {"place", "memory", "emit", "link"} <= compiled.report().keys()
    ones, halves = np.ones((8, 16), np.float32), np.full((16, 16), 0.5, np.float32)
    assert compiled(ones, halves)[0] == np.float32(8 * 16 * (np.tanh(np.float32(8)) + 1))
