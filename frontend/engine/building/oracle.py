"""``WEFT_VERIFY=passes``: verify what each step of the pipeline makes, and name the guilty one.

Every graph between trace and lowering is valid and executable, and so is the plan: a step that
changes a result is found by running what it made, on the same (seeded, random) arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error, of_host
from ....ir.graph import Graph, all_nodes
from ....ir.indices.index import symbols_of
from ....ir.indices.walk import evaluate
from ....ir.interp.graph import run_graph
from ....ir.interp.plan import run_plan
from ....ir.plans.calls import Call, kernel_calls
from ....ir.plans.plan import Plan
from ....ir.types import TensorType
from ....ir.verify.verifier import verify_graph, verify_kernel, verify_plan

Array = np.ndarray[Any, Any]
DEFAULT_SIZE = 4  # of a symbolic dim
_MOST_BODIES = 10_000  # rounds of loops that are waited for: less than a second


def example_array(
    type_: TensorType, sizes: Mapping[str, int], rng: np.random.Generator
) -> Array:
    """A random array of a type; symbolic dims that ``sizes`` lacks are ``DEFAULT_SIZE``.

    Floats are normal, integers small and not negative, so that they serve as indices.
    """
    shape = [evaluate(dim, {**dict.fromkeys(symbols_of(dim), DEFAULT_SIZE), **sizes})
             for dim in type_.shape]
    dtype = type_.dtype
    if dtype.is_complex:
        return example_array(type_.parts, sizes, rng).view(dtype.numpy).reshape(shape)
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    high = 2 if dtype.name == "bool" else 4
    return rng.integers(0, high, shape).astype(dtype.numpy)


class PassOracle:
    """Told of what each step made; raises W601 for a step that breaks a rule or changes a result.
    """

    def __init__(self, traced: Graph) -> None:
        rng = np.random.default_rng(0)
        verify_graph(traced)
        self._args = [example_array(param.type, {}, rng) for param in traced.params]
        self._state = {name: example_array(type_, {}, rng)
                       for name, type_ in traced.variables.items()}
        self._traced = traced
        self._last = "trace"
        self._wanted: list[Array] | None = None
        if any(node.op.foreign for node in all_nodes(traced)):
            return  # nobody asked for the user's functions to be called with random numbers
        try:
            self._wanted = self._run(
                lambda state: run_graph(traced, self._args, state, most=_MOST_BODIES))
        except Exception as problem:
            # The arguments are random: an index may be out of range, a loop have no end, a matrix
            # be singular. Then there is no oracle.
            if not (isinstance(problem, Error) or of_host(problem)):
                raise

    def graph(self, step: str, graph: Graph) -> None:
        """What a pass over graphs has made."""
        verify_graph(graph)
        self._compare(step, lambda state: run_graph(graph, self._args, state))

    def calls(self, step: str, calls: Sequence[Call]) -> None:
        """What a step over kernels has made."""
        for kernel in {id(call.kernel): call.kernel for call in kernel_calls(calls)}.values():
            verify_kernel(kernel)
        self._last = step

    def plan(self, step: str, plan: Plan) -> None:
        """What has become of all that."""
        verify_plan(plan)
        self._compare(step, lambda state: run_plan(plan, self._args, state))

    def _run(self, run: Callable[[dict[str, Any]], list[Array]]) -> list[Array]:
        state: dict[str, Any] = dict(self._state)
        results = run(state)
        return [*results, *(state[name] for name in sorted(state))]

    def _compare(self, step: str, run: Callable[[dict[str, Any]], list[Array]]) -> None:
        if self._wanted is None:
            return
        for at, (got, want) in enumerate(zip(self._run(run), self._wanted, strict=True)):
            tolerance = 1e-5 if want.real.dtype.itemsize == 4 else 1e-11
            if not np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
                results = self._traced.results
                node = results[at].node if at < len(results) else None
                raise error("W601", f"pass {step} changes result {at} of {self._traced.name}, "
                                    f"which was right after {self._last}",
                            locs=node.locs if node is not None else ())
        self._last = step
