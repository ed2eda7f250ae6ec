"""weft.Session: run parts of a graph, as TensorFlow has it.

Any value can be fed or fetched, by object or by name. Each set of (feeds, fetches) is one compiled
program that holds just what these fetches need; it is made on first use and kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

from ...ir.diagnose import error
from ...ir.graph import Graph as IRGraph
from ...ir.graph import Value
from ...ir.record import replace
from ...runtime.flow.helpers import Helpers
from ..engine.building.devices import device_names
from ..engine.building.flow import FlowStages
from ..engine.building.gpu import described
from ..engine.building.pipeline import Stages
from ..engine.stages import Lowered
from ..face.boundary import boundary
from ..face.options import Hook, Options, checked_hook
from ..face.source import user_loc
from ..stays import Stays
from ..tracing.context.active import active
from ..tracing.context.traced import Traced
from .costs import load_costs, measured_costs, save_costs
from .feeds import convert, flat, listed
from .graph import Graph
from .lowering import lowered
from .report import StepReport
from .running import Running
from .stepping import Stepping
from .steps import Steps


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
        self.graph, self.updates = found, updates
        options = Options(opt, target, threads, devices=device_names(devices),
                          transfer=_transfer(transfer), soft_placement=soft_placement,
                          costs=None if costs is None else load_costs(costs))
        self._helpers = Helpers(len(options.devices) - 1)
        weakref.finalize(self, self._helpers.stop)
        self._steps = Steps(found, options, updates, self._helpers, checked_hook(progress))
        self._running = Running(self._steps)
        if type(self).run is Session.run:  # whose calls so are no Python's
            vars(self)["run"] = self._running

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the compiled programs; their code is unmapped when no call is running it."""
        self._running.withdraw()
        self._steps.forget()
        self._helpers.stop()

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
        return self._running(fetches, feed_dict, timeout=timeout, trace=trace)

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
        return Stepping(self._steps.step(fetches, feeds), self.graph.failures,
                        [self._steps.fed(key).name for key in feeds])

    @boundary
    def program(self, fetches: Any, feeds: Sequence[Any] | None = None) -> Stages | FlowStages:
        """The stages of the program for a set of fetches and feeds (None: the placeholders that
        are needed): ``.text("plan")``."""
        steps = self._steps
        return steps.program(fetches, steps.or_needed(fetches, feeds)).stages

    @boundary
    def explain(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """A table of where each part of a step runs, how long it takes and why it is there.

        Without ``feeds`` it is that of a step in which the placeholders are fed that it needs.
        """
        stages = self.program(fetches, feeds)
        return "\n".join((stages.placement.report(), *described(self._steps.options.devices)))

    @boundary
    def measure_costs(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None,
                      path: str | PathLike[str] | None = None) -> None:
        """Measure what the parts of a step cost on this machine, and what crossing devices costs.

        The step's parts run by themselves, on what is fed; no variable changes. Steps are placed by
        what was measured from now on, in other sessions if they are given the file ``path``.
        """
        given = {self._steps.fed(key): array for key, array in flat(feed_dict or {}).items()}
        made = self._steps.program(fetches, list(given))
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
        self._steps.options = replace(self._steps.options, costs=costs)

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
        feeds = self._steps.or_needed(fetches, feeds)
        return lowered(self.program(fetches, feeds),
                       lambda: self.make_callable(fetches, feeds))


def _transfer(name: str | None) -> str:
    if name is not None and not (isinstance(name, str) and name == "bf16"):
        raise error("W113", f"transfer={name!r} is not supported", locs=user_loc(),
                    hint="use 'bf16', or None to send values as they are")
    return name or ""
