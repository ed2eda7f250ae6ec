"""``WEFT_VERIFY=passes``: run the interpreter after each pass and name the guilty one.

Every graph between trace and lowering is valid and executable, so a pass that changes a result is
found by running the graph before and after it on the same (seeded, random) arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.graph import Graph
from ...ir.index import substitute
from ...ir.interp.graph import run_graph
from ...ir.types import TensorType
from ...ir.verify.verifier import verify_graph
from ...passes.manager import Pass

Array = np.ndarray[Any, Any]


def example_array(type_: TensorType, sizes: dict[str, int], rng: np.random.Generator) -> Array:
    """A random array of a type; ``sizes`` gives symbolic dims, which are 4 by default.

    Floats are normal, integers small and not negative, so that they serve as indices.
    """
    shape = []
    for dim in type_.shape:
        size = substitute(dim, dict(sizes))
        shape.append(size if isinstance(size, int) else 4)
    dtype = type_.dtype
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    high = 2 if dtype.name == "bool" else 4
    return rng.integers(0, high, shape).astype(dtype.numpy)


class PassOracle:
    """Called after each pass (as ``PassManager`` does); raises W601 for the one that differs."""

    def __init__(self, traced: Graph) -> None:
        rng = np.random.default_rng(0)
        verify_graph(traced)
        self._args = [example_array(param.type, {}, rng) for param in traced.params]
        self._state = {name: example_array(type_, {}, rng)
                       for name, type_ in traced.variables.items()}
        self._last = "trace"
        self._wanted: list[Array] | None
        try:
            self._wanted = self._run(traced)
        except Error:
            # The arguments are random: an index may be out of range. Then there is no oracle.
            self._wanted = None

    def _run(self, graph: Graph) -> list[Array]:
        state: dict[str, Any] = dict(self._state)
        results = run_graph(graph, self._args, state)
        return [*results, *(state[name] for name in sorted(state))]

    def __call__(self, step: Pass, graph: Graph, milliseconds: float) -> None:
        verify_graph(graph)
        if self._wanted is None:
            return
        for at, (got, want) in enumerate(zip(self._run(graph), self._wanted, strict=True)):
            tolerance = 1e-5 if want.dtype.itemsize == 4 else 1e-11
            if not np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
                value = graph.results[at] if at < len(graph.results) else None
                node = value.node if value is not None else None
                raise error("W601", f"pass {step} changes result {at} of {graph.name}, which was "
                                    f"right after {self._last}",
                            locs=node.locs if node is not None else ())
        self._last = str(step)
