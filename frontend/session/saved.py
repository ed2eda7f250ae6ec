"""A graph in two files: its text, and beside it the tensors that it holds.

    model.ir             graph @model(%x: f32[b,4], %captured: f32[4,2]) -> () { ... }
    model.safetensors    the variables by their names in the text, and the arrays of parameters
                         that nobody feeds; what the text does not say is in the metadata

Each file is written whole or not at all; neither takes the place of an old one before both are on
disk. Of a name with another ending than .ir all is kept: model.ckpt-100.safetensors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...ir.diagnose import error
from ...ir.graph import Graph
from ...ir.record import field, record
from ...ir.text.printer import print_graph
from ...ir.verify.verifier import read
from ...runtime.state import cut
from ...runtime.storage.files import new_file, written
from ...runtime.storage.shards import read_tensors, write_tensors
from ..tracing.context.captures import Capture

_FORMAT = "weft-graph-1"


@record
class Saved:
    """A graph and its state: variables and arrays of parameters by name, the variables that are
    not trainable, and the nodes of each group."""

    graph: Graph
    variables: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    groups: dict[str, list[str]] = field(default_factory=dict)


def tensors_of(path: str | os.PathLike[str]) -> Path:
    """The file beside a graph's text that has its tensors."""
    place = Path(path)
    # What names no file is told of by who writes or reads the text.
    if place.name and place.suffix not in ("", ".ir"):
        return place.with_name(f"{place.name}.safetensors")
    return place.with_suffix(".safetensors") if place.name else place


def write_state(
    path: str | os.PathLike[str], graph: Graph, variables: Mapping[str, Any],
    captures: Sequence[Capture], groups: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write both files. Raises FeedError (W304) for a dtype that safetensors lack, UnwritableError
    (W408) where there can be no such file. Functions of ``weft.host_call`` are there by their
    names, and found in a program that imports them."""
    names = [name for name in graph.variables if name in variables]
    values = cut([variables[name].cell for name in names])
    held = {capture.param.name.removesuffix(":0"): capture.array for capture in captures}
    metadata = {"format": _FORMAT, "variables": json.dumps(names),
                "fixed": json.dumps([name for name in names if not variables[name].trainable]),
                "groups": json.dumps({name: list(nodes) for name, nodes in (groups or {}).items()})}
    if Path(path).suffix == ".safetensors":
        raise error("W408", f"no graph can be written to {os.fspath(path)!r}: so are the files "
                            "called that have the tensors of a graph",
                    hint="call it model.ir: the tensors are beside it, in model.safetensors")
    with written(path, "graph"), new_file(Path(path)) as file:
        Path(file).write_text(print_graph(graph) + "\n", encoding="utf-8")
        write_tensors(tensors_of(path), {**dict(zip(names, values, strict=True)), **held}, metadata)


def read_state(path: str | os.PathLike[str]) -> Saved:
    """Read both files; see ``Graph.load``."""
    items = read(Path(path).read_text(encoding="utf-8"))
    if len(items) != 1 or not isinstance(items[0], Graph):
        raise error("W501", f"{path} does not hold one graph",
                    hint="save it with g.save(path), or weft dump --output")
    return with_tensors(items[0], path)


def with_tensors(graph: Graph, path: str | os.PathLike[str]) -> Saved:
    """A graph that was read from ``path``, with the tensors beside it, if there are any."""
    if not tensors_of(path).is_file():
        return Saved(graph)
    found, metadata = read_tensors(tensors_of(path))
    if metadata.get("format") != _FORMAT:
        return Saved(graph)
    names = set(json.loads(metadata["variables"]))
    for name, array in found.items():
        known = graph.variables.get(name) if name in names else next(
            (value.type for value in graph.params if value.name.removesuffix(":0") == name), None)
        if known is None or known.shape != array.shape or known.dtype.numpy != array.dtype:
            raise error("W403", f"{tensors_of(path)} is not of this graph: {name} is "
                                f"{array.dtype}{list(array.shape)} there, and "
                                f"{known or 'nothing'} in the text",
                        hint="save both files together, with g.save(path)")
    return Saved(graph, {name: found[name] for name in names},
                 {name: array for name, array in found.items() if name not in names},
                 frozenset(json.loads(metadata["fixed"])), json.loads(metadata["groups"]))
