"""The steps of a session: fetches and feeds that are found again, and their programs, each made on
first use and kept."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.diagnose import error
from ...ir.forks import freed
from ...ir.graph import Builder, Node, Value
from ...ir.graph import Graph as IRGraph
from ...ir.ops.table import OPS
from ...passes.prune import parameters_of, prune
from ...runtime.flow.helpers import Helpers
from ...runtime.program import Source
from ..engine.building.flow import make_step, step_stages
from ..engine.building.pipeline import BUILDING, STEPS, Stages
from ..engine.building.progress import compiling, taken
from ..face import tree
from ..face.collector import paused_collector
from ..face.options import Hook, Options
from ..face.source import user_loc
from ..tracing.arrays.variable import Variable
from ..tracing.values.tracer import Tracer
from .costs import warn_ignored
from .feeds import Fed, listed, names_of
from .graph import Element, Graph
from .stepping import Compiled, Step

# Steps that a session remembers; who makes new traced values all the time begins anew.
_MOST_STEPS = 1024


class Steps:
    """See the module docstring. ``updates`` and ``options`` are those of the session."""

    def __init__(self, graph: Graph, options: Options, updates: str, helpers: Helpers,
                 progress: Hook | None) -> None:
        self.graph, self.options = graph, options
        self.compiled: dict[Any, Compiled] = {}
        self._updates, self._helpers, self._progress = updates, helpers, progress
        self._steps: dict[Any, Step] = {}
        self._making: dict[Any, threading.RLock] = {}  # whose turn it is to make a program

    def forget(self) -> None:
        """Forget the steps and their programs."""
        self.compiled, self._steps = {}, {}

    def found(self, fetches: Any, feeds: Mapping[Any, Any]) -> Step:
        """The step for fetches and feeds, made now if need be."""
        key = _key(fetches), tuple(map(_name, feeds))
        step = self._steps.get(key)
        if step is None:
            if len(self._steps) >= _MOST_STEPS:
                self._steps = {}
            step = self._steps[key] = self.step(fetches, list(feeds))
        return step

    def step(self, fetches: Any, feeds: Sequence[Any]) -> Step:
        """The step for fetches and feeds, which are kept with it."""
        elements, structure = self._fetched(fetches)
        values = [self.fed(key) for key in feeds]
        made = self._compile(elements, values)
        return Step(made, elements, structure, values, (tree.leaves(fetches), list(feeds)))

    def or_needed(self, fetches: Any, feeds: Sequence[Any] | None) -> Sequence[Any]:
        """The feeds, or if there are none the names of the placeholders that are needed."""
        if feeds is not None:
            return listed(feeds)
        captured = {capture.param for capture in self.graph.captures}
        needed = parameters_of(self.graph.graph, _parts(self._fetched(fetches)[0]))
        return [value.name for value in needed if value not in captured]

    def program(self, fetches: Any, feeds: Sequence[Any]) -> Compiled:
        """The program for fetches and feeds."""
        return self._compile(self._fetched(fetches)[0], list(map(self.fed, feeds)))

    def fed(self, key: Any) -> Fed:
        """What a key of feeds stands for. Raises FeedError (W301) for what cannot be fed."""
        element = self.graph.element(key)
        if isinstance(element, Value):
            return element
        if isinstance(element, Variable):
            if not self.graph.knows(element):
                raise error("W301", f"{element.name} is no variable of graph "
                                    f"'{self.graph.graph.name}'", locs=user_loc(),
                            hint="feed variables that the session's graph reads")
            return element
        if len(element) != 1 or len(element[0].results) != 1:
            name = key if isinstance(key, str) else getattr(key, "name", "it")
            raise error("W301", f"{name} is an operation and cannot be fed", locs=user_loc())
        return element[0].results[0]

    def _fetched(self, fetches: Any) -> tuple[list[Element], tree.TreeDef]:
        leaves, structure = tree.flatten(fetches)
        if _has_none(structure):
            raise error("W301", "None is fetched, which is no value of a graph", locs=user_loc(),
                        hint="leave it out: s.run([]) runs nothing")
        elements: list[Element] = []
        for leaf in leaves:
            element = self.graph.element(leaf)
            if isinstance(leaf, str) and isinstance(element, tuple) and len(element) == 1:
                # A node by its bare name is its value, if it has just one.
                results = element[0].results
                element = results[0] if len(results) == 1 else element
            elements.append(element)
        return elements, structure

    def _compile(self, elements: list[Element], feeds: list[Fed]) -> Compiled:
        # With the number of feeds, since one that is given twice is an error.
        key = tuple(map(_identity, elements)), frozenset(map(_identity, feeds)), len(feeds)
        made = self.compiled.get(key)
        if made is not None:
            return made
        with self._making.setdefault(key, freed(threading.RLock())):
            made = self.compiled.get(key)
            if made is None:
                with compiling(self.graph.graph.name, self._progress,
                               1 + len(STEPS) + len(BUILDING)):
                    made = self._make(elements, feeds)
                self.compiled[key] = made
        self._making.pop(key, None)
        return made

    def _make(self, elements: list[Element], feeds: list[Fed]) -> Compiled:
        values = [feed for feed in feeds if isinstance(feed, Value)]
        with taken("prune", self.graph.graph.name), self.graph.lock:  # it may be growing
            captures = {capture.param: capture.array for capture in self.graph.captures}
            hidden = [param for param in captures if param not in values]
            pruned = prune(self.graph.graph, values, _parts(elements), implicit=hidden)
            self._read_last(pruned.graph, elements)
            variables = dict(self.graph.variables)
        sources: list[Source] = list(range(len(values)))
        sources += [captures[param] for param in self.graph.graph.params
                    if param in hidden and param in pruned.values]
        stages = step_stages(Stages(pruned.graph, self.options,
                                    single=len(pruned.graph.results) == 1, scalars=True))
        given = names_of(self.graph, feeds)
        read = [slot.var for slot in stages.params if slot.var in given] if given else []
        fed = {name: len(values) + at for at, name in enumerate(read)}
        warn_ignored(stages.placement.ignored)
        if len(self.options.devices) > 1:
            for name, device in stages.placement.graph.homes.items():
                variables[name].placed = device
        with paused_collector():
            program = make_step(stages, sources, variables, self._helpers,
                                self.graph.resources, fed, self._updates)
        return Compiled(stages, program, (*values, *map(given.__getitem__, read)))

    def _read_last(self, graph: IRGraph, elements: list[Element]) -> None:
        """Put the reads of fetched variables at the end of a pruned graph, and so not into the
        user's: what was built last, and what it waits for, does not matter to them."""
        builder = Builder(graph, OPS, share=False, fold=False)
        others = iter(graph.results)
        results = []
        for element in elements:
            if isinstance(element, Variable):
                attrs = self.graph.resource(element)
                graph.variables[attrs["var"]] = attrs["type"]
                node = builder.emit(OPS["read_var"], (), attrs, name=f"{attrs['var']}/read")
                results.append(node.results[0])
            elif isinstance(element, Value):
                results.append(next(others))
        graph.results = results


def _parts(elements: Sequence[Element]) -> list[Value | Node]:
    """What a graph has of fetched elements; variables are read at the end."""
    found: list[Value | Node] = []
    for element in elements:
        if not isinstance(element, Variable):
            found += [element] if isinstance(element, Value) else list(element)
    return found


def _has_none(structure: tree.TreeDef) -> bool:
    """Whether a nest has None in it, which has no leaves."""
    return structure.kind is type(None) or any(map(_has_none, structure.children))


def _key(fetches: Any) -> Any:
    """What tells nests of fetches apart: their structure, names, and identities of all else."""
    if issubclass(type(fetches), (str, Tracer)):  # a traced value would be asked for its class
        return _name(fetches)
    leaves, structure = tree.flatten(fetches)
    return structure, tuple(map(_name, leaves))


def _name(asked: Any) -> Any:
    return asked if issubclass(type(asked), str) else id(asked)


def _identity(element: Element | Fed) -> Any:
    """What tells elements apart; all of it lives as long as a program of theirs."""
    if isinstance(element, tuple):
        return tuple(map(id, element))
    return id(element.cell) if isinstance(element, Variable) else id(element)
