"""What a text holds, for ``weft run``: run on random arguments, or one step of a graph; and for
``weft viz``: as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.graph import Graph, all_nodes, talks
from ...ir.interp.graph import run_graph
from ...ir.interp.kernel import run_kernel
from ...ir.interp.plan import run_plan
from ...ir.kernels.kernel import Kernel
from ...ir.plans.plan import Plan
from ...ir.types import TensorType
from ...passes.control.inline import inline_regions
from ..engine.building.flow import FlowStages, make_step, step_stages
from ..engine.building.oracle import DEFAULT_SIZE, example_array
from ..engine.building.pipeline import Stages
from ..engine.stages import kernel_flops
from ..face.options import Options
from ..session import graph as session_graph
from ..session.saved import Saved
from ..session.session import Session
from ..tracing.arrays.variable import Variable
from ..viz.document import graph_document
from ..viz.page import page
from ..viz.program import stages_document

Results = Iterable[tuple[str, TensorType, Any]]


def types_of(item: Graph | Kernel | Plan) -> list[TensorType]:
    """The types of what a graph, a kernel or a plan is run on."""
    slots = [param.type for param in item.params]
    if not isinstance(item, Graph):
        return slots
    read = [value.type for node in item.nodes if not node.inputs for value in node.results]
    return [*slots, *item.variables.values(), *read]


def show_run(
    item: Graph | Kernel | Plan, sizes: Mapping[str, int], rng: np.random.Generator,
    interpret: bool, saved: Saved | None = None,
) -> None:
    """Run a graph, a kernel or a plan, and print its results.

    ``sizes`` gives symbolic dims, which are 4 by default; ``saved`` has the values of variables and
    closed-over arrays, where they are known. Raises Error where a check of the program
    fails.
    """
    match item:
        case Graph():
            results = _of_graph(inline_regions(item), sizes, rng, interpret, saved)
        case Kernel():
            results = _of_kernel(item, sizes, rng)
        case Plan():
            results = _of_plan(item, sizes, rng)
    print(f"{type(item).__name__.lower()} @{item.name}")
    for name, type_, array in results:
        print(f"{name}: {type_} =\n{array}")


def _of_graph(
    graph: Graph, sizes: Mapping[str, int], rng: np.random.Generator, interpret: bool,
    saved: Saved | None,
) -> Results:
    bound = set(graph.var_params.values())  # of variables, where the state is resolved
    known = saved or Saved(graph)
    drawn = [(param, example_array(param.type, sizes, rng)) for param in graph.params
             if param not in bound]
    arrays = [known.arrays.get(param.name.removesuffix(":0"), array) for param, array in drawn]
    state = {name: known.variables.get(name, example_array(type_, sizes, rng))
             for name, type_ in graph.variables.items()}
    if interpret:
        results: Sequence[Any] = run_graph(graph, arrays, state)
    else:
        variables = {name: Variable(value, name) for name, value in state.items()}
        if any(map(talks, all_nodes(graph))):
            raise error("W113", f"graph @{graph.name} asks queues, and cannot run by itself",
                        hint="run it in a weft.Session")
        stages = step_stages(Stages(graph, Options()))
        results = make_step(stages, range(len(arrays)), variables).run(arrays)
    shown = [value for at, value in enumerate(graph.results)
             if at not in graph.var_results.values()]
    return [(value.name, value.type, array)
            for value, array in zip(shown, results, strict=True)]


def run_step(
    file: str, feeds: Sequence[tuple[str, Any]], fetches: Sequence[str], save: bool
) -> None:
    """Run one step of a saved graph and print what is fetched; with ``save`` its variables are
    written back. Raises Error as ``Session.run`` does."""
    graph = session_graph.Graph.load(file)
    results = Session(graph).run(list(fetches), dict(feeds))
    for name, value in zip(fetches, results, strict=True):
        print(f"{name} is done" if value is None else f"{name} =\n{value}")
    if save:
        graph.save(file)


def graph_page(
    graph: Graph, file: str, fetches: Sequence[str], sizes: Mapping[str, int],
    placed: Callable[[Stages | FlowStages], Stages | FlowStages],
) -> str:
    """The page of a graph that a file holds, or of the step of it that computes the fetches; what
    has no results is shown as it is. Raises FeedError (W301) for a fetch that it has not."""
    if fetches:
        whole = session_graph.Graph.load(file)
        stages = Session(whole).program(list(fetches), whole.placeholders)
    elif graph.results:
        stages = Stages(inline_regions(graph), Options())
    else:
        return page(graph_document(graph, sizes))
    return page(stages_document(placed(stages), kernel_flops, sizes))


def _of_kernel(kernel: Kernel, sizes: Mapping[str, int], rng: np.random.Generator) -> Results:
    """What it leaves in parameters that it writes to, which hold zeros before."""
    arrays = {param.name: example_array(param.type, sizes, rng) for param in kernel.params}
    made = [param for param in kernel.params if param.mutable]
    for param in made:
        arrays[param.name][...] = 0
    run_kernel(kernel, arrays, {dim: sizes.get(dim, DEFAULT_SIZE) for dim in kernel.dims})
    return [(param.name, param.type, arrays[param.name]) for param in made]


def _of_plan(plan: Plan, sizes: Mapping[str, int], rng: np.random.Generator) -> Results:
    state = {slot.var: example_array(slot.type, sizes, rng) for slot in plan.params if slot.var}
    arrays = [example_array(slot.type, sizes, rng) for slot in plan.params if not slot.var]
    shown = [slot for slot in plan.results if not slot.var]
    results = run_plan(plan, arrays, state)
    return [(slot.name, slot.type, array)
            for slot, array in zip(shown, results, strict=True)]
