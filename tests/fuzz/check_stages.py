"""The stages of a program, each run by the interpreter: a pass that changes a result is named."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
from weft.frontend.pipeline import Options, Stages
from weft.ir.interp import run_graph, run_plan
from weft.ir.verify import verify_graph, verify_kernel, verify_plan

from .oracle import Oracle, differs
from .partition import check_partition
from .prelude import laid
from .program import Program, Settings, build, flat, paths


def _arrays(program: Program, traced: Any, at: int) -> list[Any]:
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
    oracle = Oracle(program, casts=False)
    for at, argset in enumerate(program.argsets):
        expect = oracle.expect(program.arguments(argset, laid))
        try:
            results = run_graph(traced.graph, _arrays(program, traced, at))
        except (weft.Error, ValueError):
            if expect.base.error is None:
                raise
            continue
        if expect.base.error is not None:
            raise mismatch(f"interpreter: no error, NumPy raises {expect.base.error}", argset)
        want = weft.tree.unflatten(traced.out_tree, results)
        for got, base, name, place in zip(flat(want)[0], expect.base.results, program.outputs(),
                                          range(99), strict=False):
            shaken = [answer.results[place] for answer in expect.shaken if answer.error is None]
            problem = differs(np.asarray(got), np.asarray(base), shaken,
                              program.tags.get(name, "close") != "exact")
            if problem:
                raise mismatch(f"interpreter: {name} is {problem}", argset)


def check_stages(program: Program, traced: Any, settings: Settings,
                 mismatch: type[Exception]) -> None:
    """Every stage is valid, and gives the results of the traced graph."""
    options = Options(settings.opt, settings.target, settings.threads)
    stages = Stages(traced.graph, options)
    for graph in (stages.optimised, stages.fused):
        verify_graph(graph)
    for call in stages.lowered[0]:
        verify_kernel(call.kernel)
    verify_plan(stages.plan)
    check_partition(stages.placed)
    oracle = Oracle(program, casts=False)
    for at, argset in enumerate(program.argsets[:4]):
        expect = oracle.expect(program.arguments(argset, laid))
        arrays = _arrays(program, traced, at)
        names = program.outputs()
        for stage, run, thing in (("opt", run_graph, stages.optimised),
                                  ("fused", run_graph, stages.fused),
                                  ("plan", run_plan, stages.plan)):
            try:
                results = run(thing, arrays)
            except (weft.Error, ValueError):
                if expect.base.error is None:
                    raise
                continue
            if expect.base.error is not None:
                raise mismatch(f"stage {stage}: no error, NumPy raises {expect.base.error}", argset)
            made = flat(weft.tree.unflatten(traced.out_tree, results))[0]
            for place, (got, base) in enumerate(zip(made, expect.base.results, strict=True)):
                shaken = [a.results[place] for a in expect.shaken if a.error is None]
                problem = differs(np.asarray(got), np.asarray(base), shaken,
                                  program.tags.get(names[place], "close") != "exact")
                if problem:
                    raise mismatch(f"stage {stage}: {names[place]} is {problem}", argset)
