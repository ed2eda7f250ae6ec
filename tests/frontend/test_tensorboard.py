"""Event files for TensorBoard, read back with the messages of the library that writes them."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.graph_pb2 import GraphDef

import weft


def events(folder: Path) -> list[Any]:
    """The events of the only file, but for the first, which names the version of the format.

    A record is its length, a checksum of that, the bytes, a checksum of them (TFRecord).
    """
    (file,) = folder.iterdir()
    assert file.name.startswith("events.out.tfevents.")

    def records(data: bytes) -> Iterator[bytes]:
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            assert _masked(data[:8]) == struct.unpack("<I", data[8:12])[0]
            record, rest = data[12:12 + length], data[12 + length:]
            assert _masked(record) == struct.unpack("<I", rest[:4])[0]
            yield record
            data = rest[4:]

    found = [Event.FromString(record) for record in records(file.read_bytes())]
    assert found[0].file_version == "brain.Event:2"
    return found[1:]


def _masked(data: bytes) -> int:
    checksum = int(crc32c(data))
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def graph_of(folder: Path, model: Any, *args: Any) -> dict[str, Any]:
    """The nodes of a graph that was written, by name."""
    with weft.SummaryWriter(folder) as writer:
        writer.add_graph(model, *args)
    (event,) = events(folder)
    graph = GraphDef.FromString(event.graph_def)
    nodes = {node.name: node for node in graph.node}
    assert len(nodes) == len(graph.node)
    for node in graph.node:
        for name in node.input:
            assert name.removeprefix("^").partition(":")[0] in nodes, (node.name, name)
    return nodes


def test_scalars(tmp_path: Path) -> None:
    step = weft.Variable(7, name="step")
    with weft.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 3)
        writer.add_scalar("loss", np.float32(0.25), np.int64(4), walltime=12.5)
        writer.add_scalar("step", step)
        writer.add_scalar("half", np.array([1.5], ml_dtypes.bfloat16), 1)
    found = [(value.tag, value.simple_value, event.step)
             for event in events(tmp_path) for value in event.summary.value]
    assert found == [("loss", 0.5, 3), ("loss", 0.25, 4), ("step", 7.0, 0), ("half", 1.5, 1)]
    assert events(tmp_path)[1].wall_time == 12.5


@pytest.mark.parametrize("bins", ["tensorflow", "auto", 7])
def test_histograms(bins: Any, tmp_path: Path) -> None:
    values = np.array([-3.0, 0.0, 1e-20, 2.0, 2.0, np.nan, np.inf, 1e30])
    with weft.SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", values[:5], 2, bins=bins)
        writer.add_histogram("w", values if bins == "tensorflow" else values[:6], 3, bins=bins)
        writer.add_histogram("v", weft.Variable(np.ones((2, 3), np.float32), name="v"), 1)
    first, second, third = (event.summary.value[0].histo for event in events(tmp_path))
    assert (first.num, first.min, first.max, first.sum) == (5, -3.0, 2.0, 1.0)
    assert sum(first.bucket) == 5 and len(first.bucket) == len(first.bucket_limit)
    assert sum(second.bucket) == (6 if bins == "tensorflow" else 5)
    assert (third.num, third.sum, third.sum_squares) == (6, 6.0, 6.0)


def test_what_was_written_is_in_the_file(tmp_path: Path) -> None:
    writer = weft.SummaryWriter(tmp_path)
    writer.add_scalar("a", 1.0, 0)
    assert len(events(tmp_path)) == 1  # without a flush
    writer.flush()
    writer.close()
    writer.close()
    with pytest.raises(weft.Error, match="W202"):
        writer.add_scalar("a", 2.0, 1)
    with pytest.raises(weft.Error, match="W202"):
        writer.flush()


def test_threads_may_write(tmp_path: Path) -> None:
    with weft.SummaryWriter(tmp_path) as writer:
        def work(at: int) -> None:
            for step in range(50):
                writer.add_scalar(f"thread{at}", step, step)

        threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found: dict[str, list[int]] = {}
    for event in events(tmp_path):
        found.setdefault(event.summary.value[0].tag, []).append(event.step)
    assert found == {f"thread{at}": list(range(50)) for at in range(4)}


def test_graph_of_a_function(tmp_path: Path) -> None:
    def model(x: Any, w: Any) -> Any:
        with weft.name_scope("layer"):
            h = np.tanh(x @ w)
        return weft.scan(lambda c, row: (c + row, c), h[0] * 0, h)

    nodes = graph_of(tmp_path, weft.compile(model), "f32[b,4]", "f32[4,3]")
    assert nodes["x"].op == "Placeholder"
    contract = nodes["layer/matmul"]
    assert contract.op == "contract" and list(contract.input) == ["x", "w"]
    (shape,) = contract.attr["_output_shapes"].list.shape
    assert [dim.size for dim in shape.dim] == [-1, 3]
    assert contract.attr["T"].type == 1 and contract.attr["type"].s == b"f32[b,3]"
    assert b"test_tensorboard.py:" in contract.attr["source"].s
    (scan,) = (node for node in nodes.values() if node.op == "scan")
    assert any(name.startswith(f"{scan.name}/body/") for name in scan.input)
    assert nodes["result_1"].input[0] == f"{scan.name}:1"


def test_graph_of_a_session(tmp_path: Path) -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (2, 4), name="x")
        w = weft.Variable(np.ones((4, 2), np.float32), name="w")
        with weft.device("cpu:1"):
            y = np.exp(x @ w)
        with weft.control_dependencies([w.assign_add(1)]):
            z = y * 2
    nodes = graph_of(tmp_path / "whole", weft.Session(g, devices=("cpu:0", "cpu:1")))
    assert nodes["w"].op == "VariableV2"
    assert nodes["matmul"].device == "/device:CPU:1"
    assert any(node.op == "read_var" and "w" in node.input for node in nodes.values())
    assert [nodes[name[1:]].op for name in nodes["z"].input if name[0] == "^"] == ["update_var"]
    assert graph_of(tmp_path / "graph", g).keys() == nodes.keys()
    lowered = weft.Session(g, devices=("cpu:0", "cpu:1")).lower(z, [x])
    placed = graph_of(tmp_path / "placed", lowered)
    assert {node.device for node in placed.values() if node.op == "exp"} == {"/device:CPU:1"}
    assert graph_of(tmp_path / "compiled", lowered.compile()).keys() == placed.keys()


def test_names_that_mean_something_else_in_tensorboard(tmp_path: Path) -> None:
    def model(x: Any) -> Any:
        with weft.name_scope('^a:0 "b" é'):
            return weft.cond(x.sum() > 0, lambda x: np.exp(x), lambda x: x, x)

    nodes = graph_of(tmp_path, weft.compile(model).trace("f64[3]"))
    assert all(name.isascii() and not set(name) & set('^:" ') for name in nodes)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with weft.SummaryWriter(tmp_path) as writer:
        for value in (np.ones(2), "text", 1j, None, np.ones(0)):
            with pytest.raises(weft.Error, match="W113"):
                writer.add_scalar("a", value)
        for value in (np.ones(0), [np.nan]):
            with pytest.raises(weft.Error, match="W113"):
                writer.add_histogram("a", value)
        with pytest.raises(weft.Error, match="W113"):
            writer.add_graph(3)
        with pytest.raises(weft.Error, match="W113"):
            writer.add_graph(weft.Graph(), "f32[3]")

        @weft.compile
        def traced(x: Any) -> Any:
            writer.add_scalar("x", x.sum())
            return x

        with pytest.raises(weft.Error, match="W201") as caught:
            traced(np.ones(3))
    assert "return it" in str(caught.value) and "test_tensorboard.py" in str(caught.value)
    assert events(tmp_path) == []


def test_it_is_said_where_the_library_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorboardX"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.setitem(sys.modules, "tensorboardX.event_file_writer", None)
    with pytest.raises(weft.Error, match=r"W404.*tensorboardX") as caught:
        weft.SummaryWriter(tmp_path / "none")
    assert "pip install 'weft[tensorboard]'" in str(caught.value)
    assert not (tmp_path / "none").exists()


def test_tags_steps_and_folders_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="W408: no event file can be written"):
        weft.SummaryWriter(tmp_path / "file" / "events")
    with weft.SummaryWriter(tmp_path / "events") as writer:
        with pytest.raises(weft.Error, match="W112: the name of a curve is text"):
            writer.add_scalar(3, 1.0, 1)  # type: ignore[arg-type]
        for step in ("one", [1], float("nan")):
            with pytest.raises(weft.Error, match=r"W113: the step .* is no number"):
                writer.add_scalar("loss", 1.0, step)  # type: ignore[arg-type]
