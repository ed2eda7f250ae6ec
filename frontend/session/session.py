"""weft.Session: run parts of a graph, as TensorFlow has it.

Any value can be fed or fetched, by object or by name. Each set of (feeds, fetches) is one compiled
program that holds just what these fetches need; it is made on first use and kept.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from ...ir.diagnose import FailedAssertionError, error
from ...ir.forks import freed
from ...ir.graph import Builder, Node, Value
from ...ir.graph import Graph as IRGraph
from ...ir.ops.table import OPS
from ...ir.record import replace
from ...passes.prune import parameters_of, prune
from ...runtime.flow.helpers import Helpers
from ...runtime.program import Source
from ...runtime.watch import Watch, seconds_of
from ..engine.building.devices import device_names
from ..engine.building.flow import FlowStages, make_step, step_stages
from ..engine.building.gpu import described
from ..engine.building.pipeline import BUILDING, STEPS, Stages
from ..engine.building.progress import compiling, taken
from ..engine.stages import Lowered
from ..face import tree
from ..face.boundary import boundary, leave
from ..face.collector import paused_collector
from ..face.options import Hook, Options, checked_hook
from ..face.source import user_loc
from ..stays import Stays
from ..tracing.arrays.variable import Variable
from ..tracing.context.active import active
from ..tracing.context.traced import Traced
from ..tracing.failing import exception
from ..tracing.values.operation import Operation
from ..tracing.values.tracer import Tracer
from .costs import load_costs, measured_costs, save_costs, warn_ignored
from .feeds import Fed, convert, flat, listed, names_of
from .graph import Element, Graph
from .lowering import lowered
from .report import StepReport
from .stepping import Compiled, Step, Stepping

# Steps that a session remembers; who makes new traced values all the time begins anew.
_MOST_STEPS = 1024


class Session(Stays):
    """Runs parts of ``graph`` (default: the graph that is being built), which may be that of a
    traced function, too: ``f.trace(x).graph``.

    Sessions may be used from several threads; steps that write a variable take turns, and only
    who needs a program that is being compiled waits for it. Each step reads variables as they are
    at one moment, and its writes are seen all or not at all.

    With ``updates="async"`` steps do not wait for their turn: they compute from the values that
    variables have when they start, and what they change a variable by (an optimizer's move,
    ``assign_add``) is added to the value that it has when they end. So nothing that is added gets
    lost, though it may be computed from values that are a little old; what does not depend on the
    old value replaces the one of that moment. Elements that a step leaves alone stay; of two steps
    that change one by another rule than a sum (``v.assign(np.minimum(v, x))``) both differences are
    added, so let such steps take turns. Raises Error (W113) for another word.

    ``devices`` are ``cpu:k``, which share the machine's threads, and ``gpu:k``, each of which is
    Triton's interpreter in a process of its own. Raises Error (W401) for other names, W404 for a
    GPU where Triton is not installed. A GPU that fails is W421: the next step starts it anew.

    ``soft_placement``: what ``weft.device`` asks for goes to another device where there is no such
    one, with a PlacementWarning (W406). ``costs`` decide what goes where otherwise: a file of
    ``measure_costs``; by default they are estimates. ``progress`` is called while steps are
    compiled, as that of ``weft.compile``; ``total`` grows where a step is cut for devices.
    """

    instead = "make a session in each process; weft.save and Graph.save keep what it has"

    def __init__(self, graph: Graph | IRGraph | Traced | None = None, *,
                 devices: Sequence[str] = ("cpu:0",), threads: int | None = None,
                 target: str | None = None, opt: int = 2, transfer: str | None = None,
                 updates: str = "sync", soft_placement: bool = False,
                 costs: str | PathLike[str] | None = None,
                 progress: Hook | None = None) -> None:
        found = graph if graph is not None else active()
        if isinstance(found, (IRGraph, Traced)):
            found = Graph.of(found)
        if not isinstance(found, Graph):
            raise error("W301", "a session needs a graph", locs=user_loc(),
                        hint="g = weft.Graph(); weft.Session(g)")
        if not isinstance(updates, str) or updates not in ("sync", "async"):
            raise error("W113", f"updates={updates!r} is not known", locs=user_loc(),
                        hint="use 'sync', or 'async' for steps that do not wait for each other")
        self.graph, self.updates, self._progress = found, updates, checked_hook(progress)
        self._options = Options(opt, target, threads, devices=device_names(devices),
                                transfer=_transfer(transfer), soft_placement=soft_placement,
                                costs=None if costs is None else load_costs(costs))
        self._helpers = Helpers(len(self._options.devices) - 1)
        weakref.finalize(self, self._helpers.stop)
        self._compiled: dict[Any, Compiled] = {}
        self._steps: dict[Any, Step] = {}
        # The same by identities alone, with the objects, which so are those of no others.
        self._seen: dict[Any, tuple[Step, Any]] = {}
        self._making: dict[Any, threading.RLock] = {}  # whose turn it is to make a program

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the compiled programs; their code is unmapped when no call is running it."""
        self._compiled = {}
        self._steps, self._seen = {}, {}
        self._helpers.stop()

    @property
    def launches(self) -> int:
        """How many kernels have been launched through this object."""
        return sum(made.program.launches for made in list(self._compiled.values()))

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, *,
            timeout: float | None = None, trace: StepReport | None = None) -> Any:
        """Values of ``fetches``: a nest of traced values, variables, operations and names.

        The result has the nest's structure. An operation gives None. A variable gives the value
        that it has when the step ends, with all that the step assigns. Feeds are converted to the
        dtype of what they feed where that is safe; a tuple of keys takes a nest of values. A
        variable that is fed has that value when the step starts, for this step alone.

        ``timeout`` is the seconds that the step may take, compiling included; one that takes
        longer changes no variable. It is looked at between the parts of a step, of which a
        compilation and a native program are one each. ``trace`` is filled with where the time went.

        Raises W301 for an unknown name, W302 for a placeholder that is needed and not fed, W303 for
        a value that does not fit, W305 for a timeout that is no number, W413 for a step that takes
        too long.

        >>> import weft
        >>> g = weft.Graph()
        >>> with g.as_default():
        ...     x = weft.placeholder("f32", (2,), name="x")
        ...     y = x * 2 + 1
        >>> weft.Session(g).run("y:0", {x: [1, 2]})
        array([3., 5.], dtype=float32)
        """
        try:
            feeds = {} if feed_dict is None else feed_dict
            if timeout is None and trace is None and type(feeds) is dict:
                found = self._seen.get(_at_sight(fetches, feeds))
                if found is not None:
                    return found[0](*feeds.values())
            return self._run(fetches, feeds, timeout, trace)
        except FailedAssertionError as problem:
            raise self._failed(problem) from None
        except BaseException as problem:
            leave(problem)
            raise

    def _failed(self, problem: FailedAssertionError) -> BaseException:
        """What the user is to see of a check that has failed: an exception of the graph's own."""
        leave(problem)
        own = exception(problem, [self.graph.failures])
        own.__cause__ = None if own is problem else problem
        return own

    def _run(self, fetches: Any, feeds: Mapping[Any, Any], timeout: float | None,
             trace: StepReport | None) -> Any:
        if not isinstance(feeds, Mapping):
            raise error("W303", f"feed_dict is a dict, not {type(feeds).__name__}",
                        locs=user_loc(), hint="write s.run(y, {x: value})")
        if trace is not None and not isinstance(trace, StepReport):
            raise error("W305", f"trace is a weft.StepReport, not {type(trace).__name__}",
                        locs=user_loc(), hint="report = weft.StepReport(); s.run(y, trace=report)")
        watch = None if timeout is None and trace is None else Watch(seconds_of(timeout))
        key = _key(fetches), tuple(map(_name, feeds))
        step = self._steps.get(key)
        if step is None:
            feeds = flat(feeds)
            step = self._found(fetches, feeds)
        if watch is None:
            self._note(fetches, feeds, step)
            return step(*feeds.values())
        watch.reached("compiling")
        result = step.watched(list(feeds.values()), watch)
        if trace is not None:
            trace.fill(step.made.program, watch)
        return result

    def _note(self, fetches: Any, feeds: Mapping[Any, Any], step: Step) -> None:
        """Have the step found at once when these very objects come again."""
        asked = *(fetches if type(fetches) in (list, tuple) else (fetches,)), *feeds
        if all(isinstance(each, str | Tracer | Variable | Operation) for each in asked):
            if len(self._seen) >= _MOST_STEPS:
                self._seen = {}
            self._seen[_at_sight(fetches, feeds)] = step, asked

    @boundary
    def make_callable(self, fetches: Any, feeds: Sequence[Any] = ()) -> Callable[..., Any]:
        """``run`` for one set of fetches and feeds, compiled now: a function of the fed values in
        order, which costs what a compiled function costs. Raises W302 for another number of them.

        >>> import weft
        >>> g = weft.Graph()
        >>> with g.as_default():
        ...     x = weft.placeholder("f32", (2,), name="x")
        ...     y = x * 2 + 1
        >>> double = weft.Session(g).make_callable(y, [x])
        >>> double([1, 2])
        array([3., 5.], dtype=float32)
        """
        feeds = listed(feeds)
        step = self._step(fetches, feeds)
        call = Stepping(step, self._failed, [self._fed(key).name for key in feeds])
        step.offer_to(call)
        return call

    @boundary
    def program(self, fetches: Any, feeds: Sequence[Any] | None = None) -> Stages | FlowStages:
        """The stages of the program for a set of fetches and feeds (None: the placeholders that
        are needed): ``.text("plan")``."""
        elements, _ = self._fetched(fetches)
        return self._compile(elements, [
            self._fed(key) for key in self._or_needed(elements, feeds)]).stages

    @boundary
    def explain(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """A table of where each part of a step runs, how long it takes and why it is there.

        Without ``feeds`` it is that of a step in which the placeholders are fed that it needs.
        """
        stages = self.program(fetches, feeds)
        return "\n".join((stages.placement.report(), *described(self._options.devices)))

    @boundary
    def measure_costs(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None,
                      path: str | PathLike[str] | None = None) -> None:
        """Measure what the parts of a step cost on this machine, and what crossing devices costs.

        The step's parts run by themselves, on what is fed; no variable changes. Steps are placed by
        what was measured from now on, in other sessions if they are given the file ``path``.
        """
        given = {self._fed(key): array for key, array in flat(feed_dict or {}).items()}
        elements, _ = self._fetched(fetches)
        made = self._compile(elements, list(given))
        fed = {feed: convert(feed, array) for feed, array in given.items()}
        arrays = [array for feed, array in fed.items() if isinstance(feed, Value)]
        values = {name: fed.get(variable, variable.cell.value)
                  for name, variable in self.graph.variables.items()}
        costs = measured_costs(
            made.stages.whole if isinstance(made.stages, FlowStages) else made.stages,
            [*arrays, *made.program.held], values)
        if path is not None:
            save_costs(costs, path)
        self.close()
        self._options = replace(self._options, costs=costs)

    @boundary
    def lower(self, fetches: Any, feeds: Sequence[Any] | None = None) -> Lowered:
        """The program for a set of fetches and feeds as ``f.lower`` gives it: its text at every
        stage, its costs, and ``.compile()`` for a function of the fed values in order. Without
        ``feeds`` these are the placeholders that the fetches need, in the order they were made in.

        >>> import weft
        >>> g = weft.Graph()
        >>> with g.as_default():
        ...     x = weft.placeholder("f32", (2,), name="x")
        ...     y = x * 2 + 1
        >>> weft.Session(g).lower(y, [x]).cost_analysis()["flops"]
        4
        """
        feeds = self._or_needed(self._fetched(fetches)[0], feeds)
        return lowered(self.program(fetches, feeds),
                       lambda: self.make_callable(fetches, feeds))

    def _or_needed(self, elements: list[Element], feeds: Sequence[Any] | None) -> Sequence[Any]:
        """The feeds, or if there are none the names of the placeholders that are needed."""
        if feeds is not None:
            return listed(feeds)
        captured = {capture.param for capture in self.graph.captures}
        needed = parameters_of(self.graph.graph, _parts(elements))
        return [value.name for value in needed if value not in captured]

    def _found(self, fetches: Any, feeds: Mapping[Any, Any]) -> Step:
        """The step for fetches and feeds, made now if need be."""
        key = _key(fetches), tuple(map(_name, feeds))
        step = self._steps.get(key)
        if step is None:
            if len(self._steps) >= _MOST_STEPS:
                self._steps = {}
            step = self._steps[key] = self._step(fetches, list(feeds))
        return step

    def _step(self, fetches: Any, feeds: Sequence[Any]) -> Step:
        elements, structure = self._fetched(fetches)
        values = [self._fed(key) for key in feeds]
        made = self._compile(elements, values)
        return Step(made, elements, structure, values, (tree.leaves(fetches), list(feeds)))

    def _fed(self, key: Any) -> Fed:
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
        made = self._compiled.get(key)
        if made is not None:
            return made
        with self._making.setdefault(key, freed(threading.RLock())):
            made = self._compiled.get(key)
            if made is None:
                with compiling(self.graph.graph.name, self._progress,
                               1 + len(STEPS) + len(BUILDING)):
                    made = self._make(elements, feeds)
                self._compiled[key] = made
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
        stages = step_stages(Stages(pruned.graph, self._options,
                                    single=len(pruned.graph.results) == 1, scalars=True))
        given = names_of(self.graph, feeds)
        read = [slot.var for slot in stages.params if slot.var in given] if given else []
        fed = {name: len(values) + at for at, name in enumerate(read)}
        warn_ignored(stages.placement.ignored)
        if len(self._options.devices) > 1:
            for name, device in stages.placement.graph.homes.items():
                variables[name].placed = device
        with paused_collector():
            program = make_step(stages, sources, variables, self._helpers,
                                self.graph.resources, fed, self.updates)
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


def _transfer(name: str | None) -> str:
    if name is not None and not (isinstance(name, str) and name == "bf16"):
        raise error("W113", f"transfer={name!r} is not supported", locs=user_loc(),
                    hint="use 'bf16', or None to send values as they are")
    return name or ""


def _at_sight(fetches: Any, feeds: Iterable[Any]) -> Any:
    """What tells fetches and feeds apart that are in no deep nests."""
    if type(fetches) is list or type(fetches) is tuple:
        return type(fetches), *map(id, fetches), None, *map(id, feeds)
    return id(fetches), *map(id, feeds)


def _key(fetches: Any) -> Any:
    """What tells nests of fetches apart: their structure, names, and identities of all else."""
    if isinstance(fetches, str | Tracer):
        return _name(fetches)
    leaves, structure = tree.flatten(fetches)
    return structure, tuple(map(_name, leaves))


def _name(asked: Any) -> Any:
    return asked if isinstance(asked, str) else id(asked)


def _identity(element: Element | Fed) -> Any:
    """What tells elements apart; all of it lives as long as a program of theirs."""
    if isinstance(element, tuple):
        return tuple(map(id, element))
    return id(element.cell) if isinstance(element, Variable) else id(element)
