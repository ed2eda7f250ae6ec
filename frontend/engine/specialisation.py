"""What a compiled function keeps for one kind of arguments: graph, program, and ways to call it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.graph import apart
from ...ir.indices.index import Dim
from ...ir.interp.graph import run_graph
from ...ir.record import record, replace
from ...ir.types import TensorType
from ...runtime.entry.walk import Walk
from ...runtime.program import Program, Source
from ...runtime.state import Writer
from ...runtime.tree import TreeDef
from ..face.options import Options
from ..face.signature import Signature
from ..tracing.context.request import Need
from ..tracing.context.traced import Traced
from ..tracing.guards.draws import Draws
from ..tracing.guards.guard import Guard, Guards, Kind
from ..tracing.guards.search import guards_of
from .building.flow import FlowStages, step_stages
from .building.link import holding
from .building.outline import walker_of
from .building.pipeline import Stages
from .recent import Arrays, may_stay
from .recompiling.changes import NUMBERS, typed


@record(eq=False)
class Specialisation:
    """A function compiled for one kind of arguments."""

    traced: Traced
    stages: Stages | FlowStages
    program: Program
    names: tuple[str, ...]
    types: tuple[tuple[str, TensorType], ...]
    milliseconds: float
    walker: Callable[[], Walk | None] = lambda: None  # by which native code takes calls
    owner: Callable[[], Any] | None = None  # the object that is changed, if it is a method of one
    _walk: tuple[Any, Walk | None] = (None, None)
    used: float = 0.0  # when Python has last looked it up

    @property
    def walk(self) -> Walk | None:
        """The walk of this program, with the objects that its guards expect now, and the attributes
        that its object has."""
        version = self.traced.guards.version, self.owner and tuple([
            (name, type(value)) for name, value in vars(self.owner()).items()])
        if self._walk[0] != version:
            self._walk = version, self.walker()
        return self._walk[1]

    def signature(self) -> dict[str, str]:
        """The types of the arguments by name."""
        return typed(self.names, self.types)

    @property
    def in_tree(self) -> TreeDef:
        """The structure of the arguments."""
        return self.traced.in_tree

    @property
    def guards(self) -> Sequence[Guard]:
        """What it takes for granted of the world around."""
        return self.traced.guards.all

    @property
    def launches(self) -> int:
        """What one call launches."""
        return self.program.each

    @property
    def arena(self) -> Dim:
        """The bytes of its temporaries."""
        return self.stages.arena


def without_arrays(made: Specialisation | Need, arrays: Arrays) -> Specialisation | None:
    """A specialisation with the number of the array in the place of each that it closes over; None
    if it holds anything else of the user's, or is none yet."""
    if isinstance(made, Need):
        return None
    numbers = [next((at for at, array in enumerate(arrays) if array is capture.array), None)
               for capture in made.traced.captures]
    known = any(guard.kind is Kind.CONTENT for guard in made.traced.guards)
    if None in numbers or known or not may_stay(made.traced) or type(made.program) is not Program:
        return None
    captures = tuple(each._replace(array=np.array(number)) for each, number in zip(
        made.traced.captures, numbers, strict=True))
    return replace(made, program=holding(made.program, [], made.stages.options),
                   walker=lambda: None, _walk=(None, None),
                   traced=replace(made.traced, captures=captures, guards=Guards(())))


def with_arrays(function: Any, kept: Specialisation, arrays: Arrays) -> Specialisation:
    """What ``without_arrays`` has given, for a function that closes over these arrays."""
    own = [arrays[int(capture.array)] for capture in kept.traced.captures]
    program = holding(kept.program, own, kept.stages.options)
    traced = kept.traced.closing_over(
        own, Guards(guards_of(function, Draws(function).functions, own)))
    return replace(kept, program=program, traced=traced, walker=walker_of(
        traced, program, Signature(function), {}, kept.stages.options.donate))


def stages_of(
    traced: Traced, options: Options
) -> tuple[Stages | FlowStages, list[Source]]:
    """The pipeline for a traced function, and where the parameters of its graph come from."""
    captured = {capture.param: capture.array for capture in traced.captures}
    positions = {entry.param: at for at, entry in enumerate(
        entry for entry in traced.leaves if entry.param is not None)}
    kinds = {entry.param: NUMBERS[entry.type.dtype.name] if entry.kind == "number" else entry.kind
             for entry in traced.leaves}
    params = traced.graph.params
    sources: list[Source] = [captured[param] if param in captured else positions[param]
                             for param in params]
    single = traced.out_tree.kind is None
    stages = Stages(traced.graph, options, tuple(kinds.get(param, "array") for param in params),
                    single, scalars=True)
    parted = any(map(apart, traced.graph.nodes))  # it may be; else nothing is placed yet
    return step_stages(stages) if parted else stages, sources


def verified(
    made: Specialisation, given: Sequence[Any], leaves: Sequence[Any],
    arguments: Callable[[], Any],
) -> Any:
    """Run the interpreter on the same graph first; raise W601 where native code differs."""
    traced = made.traced
    arrays = [np.asarray(leaf) for leaf in given] + [c.array for c in traced.captures]

    def both() -> tuple[Sequence[Any], Sequence[Any]]:
        state = {name: variable.cell.value for name, variable in traced.variables.items()}
        return run_graph(traced.graph, arrays, state), made.program.run(given)

    # As a writer of all its variables, so that both runs see the same values.
    wanted, raw = Writer(variable.cell for variable in traced.variables.values()).run(both)
    for at, (got, want) in enumerate(zip(raw, wanted, strict=True)):
        tolerance = 1e-4 if got.real.dtype.itemsize == 4 else 1e-9
        if not np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True):
            value = traced.graph.results[at]
            locs = value.node.locs if value.node is not None else ()
            with np.errstate(invalid="ignore"):
                worst = np.unravel_index(np.nanargmax(np.abs(got - want)), got.shape)
            raise error("W601", f"native code gives {got[worst]} for {value.name}{list(worst)}, "
                                f"the interpreter {want[worst]}", locs=locs)
    return traced.results(raw, leaves, arguments)
