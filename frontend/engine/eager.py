"""Functions of Weft on plain arrays, outside of any trace: they run at once.

``run_eagerly`` is the one way in. It evaluates the traced graph with the reference interpreter;
graphs are kept for functions that are written anew at each call (see ``recent``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import FailedAssertionError
from ...ir.graph import effects_of, writes
from ...ir.interp.graph import run_graph
from ...ir.record import replace
from ...runtime.profile.recording import span
from ...runtime.state import Writer, commit, cut
from ..face import tree
from ..face.signature import Signature
from ..rewriting.retrace import trace_as_written
from ..tracing.arguments import Call
from ..tracing.context.traced import Traced
from ..tracing.failing import exception
from .recent import Arrays, may_stay, recent


def run_eagerly(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
) -> Any:
    """``function(*args, **kwargs)``, which records into a trace, computed now."""
    call = Call.of(Signature(function), args, kwargs or {})
    return interpret(recent(
        "trace", function, call.leaves, call.structure,
        lambda: trace_as_written(function, call, lasting=False),
        _without, lambda traced, _: traced), call.leaves)


def _without(traced: Traced, _: Arrays) -> Traced | None:
    """A trace that keeps none of the arrays that it has closed over alive: equal ones will do, as
    they are looked at before each call."""
    copies = tuple(each._replace(array=each.array.copy()) for each in traced.captures)
    return (replace(traced, captures=copies, in_tree=tree.LEAF)
            if may_stay(traced) else None)


def interpret(traced: Traced, leaves: Sequence[Any]) -> Any:
    """The result of a traced function for the leaves of its arguments; variables it assigns
    change. Raises the error of the step, which then changes none."""
    params = [entry for entry in traced.leaves if entry.param is not None]
    arrays = [np.asarray(leaf, entry.type.dtype.numpy)
              for leaf, entry in zip(traced.given(leaves), params, strict=True)]
    arrays += [capture.array for capture in traced.captures]
    cells = {name: variable.cell for name, variable in traced.variables.items()}
    written = {name: cells[name] for name in dict.fromkeys(
        each.attrs["var"] for node in traced.graph.nodes for each in effects_of(node)
        if writes(each) and each.attrs["var"] in cells)}

    def step() -> list[Any]:
        state: dict[str, Any] = dict(zip(cells, cut(list(cells.values())), strict=True))
        results = run_graph(traced.graph, arrays, state)
        commit(list(written.values()), [np.array(state[name]) for name in written])
        return results

    with span("eager", traced.graph.name):
        try:
            return traced.results(Writer(written.values()).run(step), leaves, tuple)
        except FailedAssertionError as problem:
            raise exception(problem, [traced.failures]) from None
