"""What a compiled function keeps for one kind of arguments: graph, program, and ways to call it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...ir.convert import spelling
from ...ir.diagnose import error
from ...ir.graph import all_nodes, apart
from ...ir.interp.graph import run_graph
from ...ir.plans.entry import SCALARS
from ...ir.record import record, replace
from ...ir.types import TensorType
from ...runtime.entry.walk import Walk
from ...runtime.program import Program, Source
from ...runtime.state import Writer
from ..face.options import Options
from ..face.signature import Signature
from ..tracing.context.request import Need
from ..tracing.guards.draws import Draws
from ..tracing.guards.guard import Guards
from ..tracing.guards.search import guards_of
from ..tracing.trace import Traced
from .flow import FlowStages
from .link import holding
from .outline import walker_of
from .pipeline import Stages
from .recent import Arrays, may_stay

# What Python calls the numbers among the arguments.
_NUMBERS = MappingProxyType({dtype: kind for kind, (_, dtype) in SCALARS.items()})


_AN = MappingProxyType({"array": "an array", "scalar": "a NumPy scalar", "number": "a number",
                        "variable": "a variable"})


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
    _walk: tuple[int, Walk | None] = (-1, None)

    @property
    def walk(self) -> Walk | None:
        """The walk of this program, with the objects that its guards expect now."""
        version = self.traced.guards.version
        if self._walk[0] != version:
            self._walk = version, self.walker()
        return self._walk[1]

    def signature(self) -> dict[str, str]:
        """The types of the arguments by name."""
        return {name: f"{type_}" if kind != "number" else _NUMBERS[type_.dtype.name]
                for name, (kind, type_) in zip(self.names, self.types, strict=True)}


def without_arrays(made: Specialisation | Need, arrays: Arrays) -> Specialisation | None:
    """A specialisation with the number of the array in the place of each that it closes over; None
    if it holds anything else of the user's, or is none yet."""
    if isinstance(made, Need):
        return None
    numbers = [next((at for at, array in enumerate(arrays) if array is capture.array), None)
               for capture in made.traced.captures]
    if None in numbers or not may_stay(made.traced) or type(made.program) is not Program:
        return None
    captures = tuple(each._replace(array=np.array(number)) for each, number in zip(
        made.traced.captures, numbers, strict=True))
    return replace(made, program=holding(made.program, [], made.stages.options),
                   walker=lambda: None, _walk=(-1, None),
                   traced=replace(made.traced, captures=captures, guards=Guards(())))


def with_arrays(function: Any, kept: Specialisation, arrays: Arrays) -> Specialisation:
    """What ``without_arrays`` has given, for a function that closes over these arrays."""
    own = [arrays[int(capture.array)] for capture in kept.traced.captures]
    program = holding(kept.program, own, kept.stages.options)
    traced = kept.traced.closing_over(
        own, Guards(guards_of(function, Draws(function).functions, own)))
    return replace(kept, program=program, traced=traced, walker=walker_of(
        traced, program, Signature(function), {}))


def stages_of(
    traced: Traced, options: Options
) -> tuple[Stages | FlowStages, list[Source]]:
    """The pipeline for a traced function, and where the parameters of its graph come from."""
    captured = {capture.param: capture.array for capture in traced.captures}
    positions = {entry.param: at for at, entry in enumerate(
        entry for entry in traced.leaves if entry.param is not None)}
    kinds = {entry.param: _NUMBERS[entry.type.dtype.name] if entry.kind == "number" else entry.kind
             for entry in traced.leaves}
    params = traced.graph.params
    sources: list[Source] = [captured[param] if param in captured else positions[param]
                             for param in params]
    single = traced.out_tree.kind is None
    stages = Stages(traced.graph, options, tuple(kinds.get(param, "array") for param in params),
                    single, scalars=True)
    parted = any(map(apart, all_nodes(traced.graph)))
    return FlowStages(stages) if parted else stages, sources


ANOTHER_STATIC = "a static argument or variable is another"


# The numbers of Python that are traced, by the kinds of their dtypes.
_PYTHONS = MappingProxyType({"b": "bool", "i": "int", "f": "float", "c": "complex"})


class Change(NamedTuple):
    """What of the arguments is another than before, and what to write so that it need not be
    compiled for."""

    text: str
    advice: str


def difference(
    made: Iterable[Specialisation], names: Sequence[str], types: Sequence[tuple[str, TensorType]]
) -> Change:
    """What tells arguments from those of the most similar specialisation."""
    best: tuple[Specialisation, list[str]] | None = None
    others = list(made)
    for other in others:
        if list(other.names) != list(names):
            continue
        parts = [part for name, (kind, type_), (old_kind, old)
                 in zip(names, types, other.types, strict=True)
                 for part in _changes(name, kind, type_, old_kind, old)]
        if best is None or len(parts) < len(best[1]):
            best = other, parts
    if best is None:
        return _other_names(others, names)
    if not best[1]:
        return Change(ANOTHER_STATIC, "leave it out of static_argnames to have it traced")
    return Change("; ".join(best[1][:3]), _advice(names, types, best[0].types))


def _other_names(made: Sequence[Specialisation], names: Sequence[str]) -> Change:
    apart = min((set(other.names) ^ set(names) for other in made), key=len, default=set[str]())
    said = [f"{name} is {'new' if name in names else 'gone'}" for name in sorted(apart)]
    return Change("; ".join(["the arguments have another structure", *said[:3]]),
                  "pass the same nest of arguments at each call")


def _advice(names: Sequence[str], types: Sequence[tuple[str, TensorType]],
            old_types: Sequence[tuple[str, TensorType]]) -> str:
    """What to write for arguments of other types: the first of them that no dim explains, or all
    dims at once, where those that change alike have one symbol."""
    symbols: dict[Any, str] = {}
    dynamic: dict[str, dict[int, str]] = {}
    for name, (kind, new), (old_kind, old) in zip(names, types, old_types, strict=True):
        if (kind, new.rank, new.dtype) != (old_kind, old.rank, old.dtype) and old_kind == "number":
            return f"pass Python's own number: {_PYTHONS[old.dtype.kind]}({name})" if (
                new.rank == 0) else f"pass {name} in one way, as a number or as an array"
        if kind != old_kind or new.rank != old.rank:
            dims = f" of {old.rank} dims" if old_kind == "array" else ""
            return f"pass {name} in one way: {_AN[old_kind]}{dims}"
        if new.dtype != old.dtype:
            return f"convert it: {name}.astype({spelling(old.dtype)})"
        for axis, pair in enumerate(zip(old.shape, new.shape, strict=True)):
            if pair[0] != pair[1]:
                symbol = symbols.setdefault(pair, f"n{len(symbols) or ''}")
                dynamic.setdefault(name, {})[axis] = symbol
    return f"see weft.compile(dynamic={dynamic})"


def _changes(name: str, kind: str, new: TensorType, old_kind: str, old: TensorType) -> list[str]:
    if (kind, new) == (old_kind, old):
        return []
    if kind != old_kind:
        return [f"{name} was {_AN[old_kind]}, is {_AN[kind]}"]
    if new.dtype != old.dtype:
        return [f"{name}.dtype {old.dtype} -> {new.dtype}"]
    if new.rank != old.rank:
        return [f"{name}.ndim {old.rank} -> {new.rank}"]
    return [f"{name}.shape[{axis}] {a} -> {z}"
            for axis, (a, z) in enumerate(zip(old.shape, new.shape, strict=True)) if a != z]


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
