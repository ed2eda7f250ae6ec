"""What ``f.lower(...)`` gives: one specialisation of a function, at any stage, and its costs.

The names are JAX's: ``f.trace(...)`` -> Traced, ``f.lower(...)`` -> Lowered, ``.compile()`` ->
Compiled, each with ``as_text``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...ir.indices.index import Dim, product
from ...ir.kernels.kernel import Apply, Contract, Kernel, Reduce
from ...ir.plans.calls import Call, GroupCall, LoopCall, bodies_of
from ...ir.plans.plan import KernelCall
from ...ir.plans.walk import COPIED
from ...ir.record import record
from ..face.boundary import boundary
from ..face.loading import load
from ..stays import Stays
from ..tracing.context.traced import Traced
from .building.flow import FlowStages
from .building.handing import handed, lent
from .building.pipeline import Stages


@record(frozen=True)
class MemoryAnalysis:
    """Bytes that a call needs: ``peak_bytes`` is exactly the arena that holds temporaries.

    Of ``result_bytes``, which have the new elements of arguments that are written, ``alias_bytes``
    are the memory of arguments, written or donated, where these are dense: nothing is allocated."""

    peak_bytes: Dim
    argument_bytes: Dim
    result_bytes: Dim
    alias_bytes: Dim = 0


@record(frozen=True, eq=False)
class Lowered(Stays):
    """A traced function on its way through the compiler; nothing is compiled yet."""

    instead = "lower the function again; weft.export writes what it compiles to"

    traced: Traced
    stages: Stages | FlowStages
    _compile: Callable[[], Any]

    def __repr__(self) -> str:
        """What the program takes and gives; arguments that it writes to are ``mut``."""
        traced = self.traced
        found = [f"{'mut ' if at in traced.written else ''}{leaf.name}: {leaf.type}"
                 for at, leaf in enumerate(traced.leaves)]
        results = traced.graph.results
        given = [f"{value.type}" for value in results[:len(results) - len(traced.written)
                                                      - len(traced.graph.var_results)]]
        return f"<lowered {traced.graph.name}({', '.join(found)}) -> ({', '.join(given)})>"

    def as_text(self, stage: str = "opt") -> str:
        """The text of a stage: trace, opt, placed, fused, kernel, plan, llvm, asm or triton."""
        return self.stages.text(stage)

    def cost_analysis(self) -> dict[str, Dim]:
        """``flops`` and ``bytes accessed`` of one call, expressions where dims are symbolic.

        A transcendental function counts as one operation, a contraction as two per product;
        bytes are those that kernels read and write, each buffer once for each launch. A loop whose
        number of rounds is not known counts as one round, of two branches both count. What the host
        does is not known.
        """
        flops: Dim = 0
        moved: Dim = 0
        for call, times in _runs(self.stages.lowered):
            flops = flops + kernel_flops(call.kernel) * times
            for param in call.kernel.params:
                moved = moved + param.type.nbytes * times
        return {"flops": flops, "bytes accessed": moved}

    def as_html(self, sizes: Mapping[str, int] | None = None) -> str:
        """A page that shows the program: its graph as traced, optimised and fused, what is sent
        between devices, memory over time, kernels with their costs. It needs no network.

        ``sizes`` has the symbolic dims that it is drawn for, 128 by default.

        >>> import numpy as np
        >>> import weft
        >>> lowered = weft.compile(lambda x: np.tanh(x) * 2).lower("f32[b,3]")
        >>> lowered.as_html({"b": 64})[:15]
        '<!doctype html>'
        """
        document = load("frontend.viz.program").stages_document(self.stages, kernel_flops, sizes)
        return str(load("frontend.viz.page").page(document))

    def _repr_html_(self) -> str:
        document = load("frontend.viz.program").stages_document(self.stages, kernel_flops)
        return str(load("frontend.viz.page").frame(document))

    @boundary
    def compile(self) -> Compiled:
        """The native program."""
        return Compiled(self, self._compile())


def _runs(calls: Iterable[Call], times: Dim = 1) -> Iterator[tuple[KernelCall, Dim]]:
    """Kernel calls, and how often each of them is made."""
    for call in calls:
        match call:
            case KernelCall():
                yield call, times
            case GroupCall():
                yield from ((each, times) for each in call.calls)
            case LoopCall():
                counted = call.count if call.test is None else None
                rounds = times if counted is None else times * counted
                for body in bodies_of(call):
                    yield from _runs(body.calls, rounds)
            case _:
                for body in bodies_of(call):
                    yield from _runs(body.calls, times)


def kernel_flops(kernel: Kernel) -> Dim:
    """Arithmetic operations of one launch: each statement over the axes it depends on."""
    values = kernel.value_axes
    extents = {axis.name: axis.extent for axis in kernel.axes}
    total: Dim = 0
    for stmt in kernel.body:
        if not isinstance(stmt, (Apply, Reduce, Contract)):
            continue
        names = values[stmt.name] | set(stmt.summed)
        times = 2 if isinstance(stmt, Contract) else 1
        counted = not (isinstance(stmt, Apply) and stmt.prim in ("cast", "bitcast", "select"))
        if counted:
            total = total + product(extents[name] for name in sorted(names)) * times
    return total


@record(frozen=True, eq=False)
class Compiled(Stays):
    """Native code of one specialisation; call it with arguments of the same types."""

    instead = "pickle the function of weft.compile by its name; weft.export writes its code"

    lowered: Lowered
    _call: Callable[..., Any]

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def as_text(self, stage: str = "plan") -> str:
        """The text of a stage, as for ``Lowered``."""
        return self.lowered.as_text(stage)

    def cost_analysis(self) -> dict[str, Dim]:
        """``flops`` and ``bytes accessed`` of one call, as for ``Lowered``."""
        return self.lowered.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Bytes of temporaries, arguments and results; expressions where dims are symbolic."""
        stages = self.lowered.stages
        arguments: Dim = 0
        for slot in stages.params:
            arguments = arguments + slot.type.nbytes
        results: Dim = 0
        for slot in stages.results:
            results = results + slot.type.nbytes
        return MemoryAnalysis(stages.arena, arguments, results, self._alias_bytes())

    def _alias_bytes(self) -> Dim:
        stages = self.lowered.stages
        if not isinstance(stages, Stages):
            return 0
        plan, found = stages.plan, list[Dim]()
        traced = self.lowered.traced
        for param, _, how in (*handed(traced, plan, stages.options.donate),
                              *lent(plan, traced.out_tree)):
            if how != COPIED:
                found.append(plan.params[param].type.nbytes)
        return sum(found, start=0)

    def report(self) -> dict[str, float]:
        """Milliseconds that each stage of the compilation took."""
        return dict(self.lowered.stages.times)
