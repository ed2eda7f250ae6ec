"""What a traced function returns: the values of it, how they are put together, and what of it is no
value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import CoroutineType, FunctionType, GeneratorType, MappingProxyType
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.graph import Value
from ..face import tree
from ..face.source import definition
from .arrays.filtered import FilteredList, Listed
from .arrays.grid import Grid
from .arrays.maybe import is_optional
from .arrays.selection import Selection
from .arrays.variable import Variable
from .context.recorder import TraceContext
from .operand import is_number, to_tracer
from .values.operation import Operation
from .values.tracer import Tracer


class Checked:
    """A result of which nothing is computed beside one number, which is there when all assertions
    hold."""

    __slots__ = ("result",)

    def __init__(self, result: Any) -> None:
        self.result = result


tree.register(Checked, lambda checked: ((False, checked.result), None),
              lambda _, children: children[1])


def _is_said(leaf: Any) -> bool:
    """True for what is returned beside arrays, and known while a function is traced. A function
    that holds traced values is none, nor is an object that may."""
    if tree.holds(leaf) and not isinstance(leaf, (FunctionType, partial)):
        return False
    cells = getattr(leaf, "__closure__", None) or ()
    return tree.constant(leaf) != "" and not any(map(_holds_traced, cells))


def _holds_traced(cell: Any) -> bool:
    try:
        return isinstance(cell.cell_contents, Tracer)
    except ValueError:  # its name is not bound
        return False


def _instead_of(result: Any) -> str:
    """What to return in the place of a result that is no array."""
    if isinstance(result, GeneratorType):
        return "return a list of the items, in a function that does not yield"
    if isinstance(result, CoroutineType):
        result.close()  # nobody is to await it
        return "write a plain function, def, of what computes, and call that from the async one"
    return "return arrays, numbers and nests of them"


def results_of(
    ctx: TraceContext, function: Callable[..., Any], result: Any,
    chosen: Callable[[Any], Any] = lambda selection: selection, checked: bool = False,
    given: Mapping[int, int] = MappingProxyType({}),
) -> tuple[list[Value], tree.TreeDef, tuple[str | int, ...]]:
    """The values of a function's result, its structure, and the kind of each (see ``Traced``).

    ``chosen`` says what is returned of elements of which it is not known how many there are,
    ``checked`` that there is to be a value, even of a result without one. ``given`` are the
    numbers of arguments that a result may be itself."""
    def returned(leaf: Any) -> Any:
        if type(leaf) is Tracer:  # which would be asked for its class
            return leaf
        if isinstance(leaf, Operation):  # an assignment happens; there is nothing to return
            return None
        if _is_said(leaf):
            return tree.Static(leaf)
        if is_optional(leaf):
            return chosen(leaf)
        unknown = isinstance(leaf, Selection) and leaf.known is None
        return chosen(leaf) if unknown or isinstance(leaf, (Grid, FilteredList)) else leaf

    result = tree.map(returned, result)
    if checked and all(id(leaf) in given for leaf in tree.leaves(result)):
        result = Checked(result)
    leaves, structure = tree.flatten(result)
    values: list[Value] = []
    kinds: list[str | int] = []
    for leaf, path in zip(leaves, tree.paths(structure), strict=True):
        if id(leaf) in given:
            kinds.append(given[id(leaf)])
            continue
        listed = leaf.kind if isinstance(leaf, Listed) else ""
        if isinstance(leaf, Listed):
            leaf = leaf.array
        if isinstance(leaf, Grid):
            raise leaf.refused("returned")
        if isinstance(leaf, Selection):
            if leaf.known is None:
                raise leaf.refused("returned", leaf.locs)
            leaf = leaf.settled()
        if not (isinstance(leaf, (Tracer, Variable, np.ndarray)) or is_number(leaf)):
            raise error("W112", f"the function returns {type(leaf).__name__}"
                                f"{f' at {path}' if path else ''}, which is no array",
                        locs=definition(function), hint=_instead_of(leaf))
        tracer = ctx.apply(to_tracer, (leaf,))
        values.append(ctx.value_of(tracer))
        whole = not tracer.ndim and not tracer.is_scalar  # as NumPy has np.asarray(3.0)
        kinds.append(listed or ("number" if tracer.weak else "0-d" if whole else "array"))
    return values, structure, tuple(kinds)
