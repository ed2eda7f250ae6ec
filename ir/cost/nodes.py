"""How much work the nodes of a graph are, and how many seconds of one worker.

A node is work of its own kind: additions, multiply-adds, elements that are moved. A speed says how
many of these are a second. Alone, as a kernel, it also has the steps of its loop:

    y = exp(x)      12 additions of an element as a part of a kernel, 13 as a kernel
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from ..graph import Node
from ..indices.index import Dim
from ..indices.space import own_dims
from ..ops.op import Kind
from .speed import Speed
from .statements import LOAD

SizeOf = Callable[[Dim], int]
"""The number that a size is, or is taken to be where it is known at run time only."""


def kernel_work_of(node: Node) -> Dim:
    """The work of a map or view as a kernel by itself, in additions."""
    return (LOAD + node.op.cost) * node.results[0].type.size


def node_seconds(node: Node, speed: Speed, size_of: SizeOf) -> float:
    """What a node computes, in seconds; without its launch, and what it reads and writes."""
    rate = speed.operations.get(node.op.kind.value)
    return 0.0 if rate is None else OPERATIONS[node.op.kind](node, size_of) / rate


def elements(shape: Iterable[Dim], size_of: SizeOf) -> float:
    """How many elements a shape has."""
    return float(math.prod(map(size_of, shape)))


def _logarithm(size: float) -> float:
    return max(1.0, math.log2(max(size, 1.0)))


def _of_results(node: Node, size_of: SizeOf) -> float:
    return elements(node.results[0].shape, size_of)


def _of_operand(node: Node, size_of: SizeOf) -> float:
    return elements(node.inputs[0].shape, size_of)


def _sorted(node: Node, size_of: SizeOf) -> float:
    shape = node.inputs[0].shape
    return elements(shape, size_of) * _logarithm(size_of(shape[-1]) if shape else 1)


def _on_the_host(node: Node, size_of: SizeOf) -> float:
    """Of matrices the cube of their sides, as they are mostly square; of others as if sorted."""
    return sum(elements(value.shape, size_of) * (
        size_of(value.shape[-1]) if node.op.room == "linalg" and value.shape else
        _logarithm(elements(value.shape, size_of))) for value in node.inputs)


# How many operations a node is, by its kind; of kinds that are not here, none.
OPERATIONS: Mapping[Kind, Callable[[Node, SizeOf], float]] = MappingProxyType({
    Kind.MAP: lambda node, size_of: node.op.cost * _of_results(node, size_of),
    Kind.REDUCE: _of_operand,
    Kind.CONTRACT: lambda node, size_of: 2 * elements(own_dims(node), size_of),
    Kind.GATHER: _of_results,
    Kind.SCATTER: lambda node, size_of: elements(node.inputs[-1].shape, size_of),
    Kind.SCAN: _of_results,
    Kind.SORT: _sorted,
    Kind.COMPRESS: _of_operand,
    Kind.SEARCH: lambda node, size_of: _of_results(node, size_of) * _logarithm(
        _of_operand(node, size_of)),
    Kind.HOST: _on_the_host,
})
