"""The stages of a program, each run by the interpreter: a pass that changes a result is named."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.graph import all_nodes, apart
from weft.ir.indices.dims import bind_dims, check_requirement, requirements
from weft.ir.indices.index import symbols_of
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.plans.calls import kernel_calls
from weft.ir.verify.verifier import verify_graph, verify_kernel, verify_plan

from .compiled import ERRORS
from .excused import excused, of_python
from .oracle import Expected, Oracle, differs
from .partition import check_partition
from .prelude import laid
from .program import Program, Settings, build, flat, paths


def arrays_of(program: Program, traced: Any, at: int) -> list[Any]:
    """The arguments of a call in the order of the graph's parameters."""
    found = dict(zip((leaf.name for leaf in program.leaves), program.argsets[at].leaves,
                     strict=True))
    given = [flat(build(param, found))[0] for param in program.params]
    leaves = [leaf for part in given for leaf in part]
    names = {leaf.param: np.asarray(value) for leaf, value in zip(
        _by_path(program, traced), leaves, strict=True)}
    captured = {capture.param: capture.array for capture in traced.captures}
    return [names[param] if param in names else captured[param] for param in traced.graph.params]


def _by_path(program: Program, traced: Any) -> list[Any]:
    """The traced leaves in the program's order: a dict may be flattened in another."""
    by_name = {leaf.name.replace(" ", ""): leaf for leaf in traced.leaves}
    return [by_name[path.replace(" ", "")] for at, param in enumerate(program.params)
            for path, _ in paths(param, f"p{at}")]


def check_interpreter(program: Program, traced: Any, mismatch: type[Exception]) -> None:
    """The graph as it was traced, evaluated by the interpreter, is NumPy's program."""
    _check(program, traced, [("interpreter", run_graph, traced.graph)], mismatch)


def check_stages(program: Program, traced: Any, settings: Settings,
                 mismatch: type[Exception]) -> None:
    """Every stage is valid, and gives NumPy's results."""
    options = Options(settings.opt, settings.runnable, settings.threads)
    stages = Stages(traced.graph, options)
    cut = any(map(apart, all_nodes(traced.graph)))
    for graph in (stages.optimised,) if cut else (stages.optimised, stages.fused):
        verify_graph(graph)
    if cut:  # where a size is looked at: what is between two such places is a program of its own
        _check(program, traced, [("stage opt", run_graph, stages.optimised)], mismatch)
        return
    for call in kernel_calls(stages.lowered):
        verify_kernel(call.kernel)
    verify_plan(stages.plan)
    check_partition(stages.placed)
    def run(graph: Any, arrays: list[Any]) -> list[Any]:
        check_sizes(traced.graph, arrays)  # as each step does: later stages need not ask again
        return run_graph(graph, arrays)

    _check(program, traced, [("stage opt", run, stages.optimised),
                             ("stage fused", run, stages.fused),
                             ("stage plan", run_plan, stages.plan)], mismatch)


def check_sizes(graph: Any, arrays: list[Any]) -> None:
    """Raises the weft.Error of arguments whose sizes are not those that the graph requires."""
    dims = bind_dims([value.type for value in graph.params], arrays,
                     [value.name for value in graph.params])
    for need in requirements(graph):
        if symbols_of(need.left) | symbols_of(need.right) <= dims.keys():  # not of measured sizes
            check_requirement(need, dims)


def _check(program: Program, traced: Any, ways: list[tuple[str, Any, Any]],
           mismatch: type[Exception]) -> None:
    """Run texts of the program in the interpreter, for all arguments."""
    oracle = Oracle(program)
    calls = [program.arguments(argset, laid) for argset in program.argsets]
    for at, (argset, args) in enumerate(zip(program.argsets, calls, strict=True)):
        arrays = arrays_of(program, traced, at)
        expect = oracle.expect(args)
        if of_python(program, expect.base.error):
            continue
        for name, run, thing in ways:
            try:
                results = run(thing, arrays)
            except ERRORS as problem:
                if expect.base.error is None and not excused(program, problem, oracle, args, calls):
                    raise
                continue
            if expect.base.error is not None and expect.unneeded is None:
                raise mismatch(f"{name}: no error, NumPy raises {expect.base.error}", argset)
            made = flat(weft.tree.unflatten(traced.out_tree, results))[0]
            problem = _problem(program, made, expect)
            if problem and expect.shaken:
                problem = _problem(program, made, oracle.expect(args, 32))
            if problem:
                raise mismatch(f"{name}: {problem}", argset)


def _problem(program: Program, made: list[Any], expect: Expected) -> str:
    if expect.trimmed:
        return ""
    want = (expect.unneeded or expect.base).results
    for at, (name, got, base) in enumerate(zip(program.outputs(), made, want, strict=True)):
        shaken = [answer.results[at] for answer in expect.shaken if answer.error is None]
        problem = differs(np.asarray(got), np.asarray(base), [np.asarray(x) for x in shaken],
                          program.tags.get(name, "close") != "exact")
        if problem:
            return f"{name} is {problem}"
    return ""
