"""What the table in the docs says of a function: found out by tracing the samples of its row."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
from numpy_samples import Sample, kinds

import weft
from weft.frontend.engine.eager import run_eagerly
from weft.ir.diagnose import Error
from weft.ir.graph import Graph, all_nodes
from weft.ir.ops.op import Kind

DTYPES: Mapping[str, tuple[Any, ...]] = MappingProxyType({
    "b": (np.bool_,), "i": (np.int8, np.int16, np.int32, np.int64),
    "u": (np.uint8, np.uint16, np.uint32, np.uint64), "h": (np.float16, ml_dtypes.bfloat16),
    "f": (np.float32, np.float64), "c": (np.complex64, np.complex128)})
"""The letters of the table, and the dtypes that each stands for."""


@dataclass(frozen=True)
class Facts:
    """Which dtypes of those that NumPy takes are traced; by how many of the arguments there is a
    gradient that is not zero; how many of the calls are kernels, and call NumPy on the host. How
    many is "yes", "some" or nothing."""

    dtypes: str
    gradient: str
    native: str
    hosted: str


def facts(samples: list[Sample]) -> Facts:
    """What holds of a function that has these samples."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        tried = {letter: [graph for dtype in dtypes for sample in _ends(samples)
                          for graph in _traced(sample, dtype)]
                 for letter, dtypes in DTYPES.items()}
        plain = {sample: graph for sample in samples for graph in _traced(sample, np.float64)}
        graphs = [graph for found in (*tried.values(), plain.values()) for graph in found
                  if graph is not None]
        hosted = [any(node.op.kind is Kind.HOST for node in all_nodes(graph)) for graph in graphs]
        return Facts(" ".join(map(_letter, tried, tried.values())).strip(),
                     _gradient([found for sample in plain for found in gradients(sample)]),
                     _how_many([not found for found in hosted]), _how_many(hosted))


def _how_many(found: list[bool]) -> str:
    return "" if not any(found) else "yes" if all(found) else "some"


def _gradient(found: list[bool | None]) -> str:
    """From whether the gradients are not zero; None for one that is refused."""
    return "" if True not in found else "some" if None in found else "yes"


def _letter(letter: str, found: list[Graph | None]) -> str:
    """The letter if NumPy takes such dtypes and so does Weft, in brackets if in some calls only."""
    taken = [graph is not None for graph in found]
    return "" if not any(taken) else letter if all(taken) else f"({letter})"


def _ends(samples: list[Sample]) -> list[Sample]:
    return list(dict.fromkeys((samples[0], samples[-1]))) if samples else []


def _traced(sample: Sample, dtype: Any) -> Iterator[Graph | None]:
    """The graph of a sample on arrays of a dtype, None where it is refused; nothing where NumPy
    itself does not take them."""
    marks = kinds(sample.text)
    varied = next((some for some in ("xpz", "i", "m") if set(some) & set(marks)), "")
    arrays = [array.astype(dtype) if mark in varied else array
              for mark, array in zip(marks, sample.arrays(np.float64), strict=True)]
    try:
        sample.call(*[array.copy() for array in arrays])
    except Exception:  # whatever it is by which NumPy refuses them
        return
    try:
        graph = weft.compile(sample.call).trace(*arrays).graph
    except Error:
        yield None
        return
    yield graph


def floats(result: Any) -> list[Any]:
    """The arrays of floats among results."""
    found = result if isinstance(result, (tuple, list)) else [result]
    return [x for x in found if hasattr(x, "dtype") and x.dtype.kind in "fc"]


def gradients(sample: Sample) -> Iterator[bool | None]:
    """For each float argument, whether a float result depends on it by a gradient that is not 0;
    None if the gradient is refused."""
    arrays = sample.arrays(np.float64)
    if not floats(sample.call(*arrays)):
        return

    def loss(*arrays: Any) -> Any:
        return sum(np.sum(np.real(x) * np.cos(np.arange(x.size).reshape(x.shape) + 1.0))
                   for x in floats(sample.call(*arrays)))

    for at, array in enumerate(arrays):
        if array.dtype.kind in "fc":
            try:
                found = run_eagerly(weft.grad(loss, argnums=at), tuple(arrays))
            except Error:
                yield None
            else:
                yield bool(np.any(np.nan_to_num(found)))
