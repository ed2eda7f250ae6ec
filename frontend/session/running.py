"""``run`` of a session, as an object of its own: native code takes the calls that it has seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...ir.diagnose import error
from ...runtime.watch import Watch, seconds_of
from ..face import tree
from ..face.signature import Signature
from ..face.source import user_loc
from ..face.tree import LEAF, TreeDef
from ..face.walked import Walked
from ..tracing.arrays.variable import Variable
from ..tracing.values.operation import Operation
from ..tracing.values.tracer import Tracer
from .feeds import flat
from .report import StepReport
from .stepping import Step, told
from .steps import Steps


class Running(Walked):
    """See ``Session.run``. Native calls are told apart by the very objects that are fetched and
    fed, and by names."""

    __slots__ = ("__weakref__", "_steps")
    most: ClassVar[int] = 32

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def __call__(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, *,
                 timeout: float | None = None, trace: StepReport | None = None) -> Any:
        try:
            feeds = {} if feed_dict is None else feed_dict
            if not isinstance(feeds, Mapping):
                raise error("W303", f"feed_dict is a dict, not {type(feeds).__name__}",
                            locs=user_loc(), hint="write s.run(y, {x: value})")
            if timeout is not None or trace is not None:
                return self._watched(fetches, feeds, timeout, trace)
            given = flat(feeds)
            step = self._steps.found(fetches, given)
            result = step(*given.values())
            self._offer(step, fetches, feed_dict)
            return result
        except BaseException as problem:
            told = self.told(problem)
            if told is problem:
                raise
            raise told from None

    def _watched(self, fetches: Any, feeds: Mapping[Any, Any], timeout: float | None,
                 trace: StepReport | None) -> Any:
        if trace is not None and not isinstance(trace, StepReport):
            raise error("W305", f"trace is a weft.StepReport, not {type(trace).__name__}",
                        locs=user_loc(), hint="report = weft.StepReport(); s.run(y, trace=report)")
        watch = Watch(seconds_of(timeout))
        feeds = flat(feeds)
        step = self._steps.found(fetches, feeds)
        watch.reached("compiling")
        result = step.watched(list(feeds.values()), watch)
        if trace is not None:
            trace.fill(step.made.program, watch)
        return result

    def _offer(self, step: Step, fetches: Any, feeds: Mapping[Any, Any] | None) -> None:
        """Have native code take calls with these very objects, if it can."""
        if any(program is step for program in self.offered):
            return
        leaves, structure = tree.flatten(fetches)
        arguments, keys = [_of_names(structure, iter(leaves))], tuple(feeds or ())
        if type(feeds) is dict:
            arguments.append(TreeDef(dict, keys, (LEAF,) * len(keys)))
        elif feeds is not None:
            return
        if not all(map(_is_asked, (*leaves, *keys))):
            return
        objects = [leaf for leaf in leaves if not isinstance(leaf, str)]
        step.offer_to(self, Signature(self), arguments, objects)

    def told(self, problem: BaseException) -> BaseException:
        """See ``Walked``."""
        return told(problem, self._steps.graph.failures)


def _is_asked(thing: Any) -> bool:
    """Whether a fetch or the key of a feed is told by its identity, or is a name."""
    return isinstance(thing, str | Tracer | Variable | Operation)


def _of_names(structure: TreeDef, leaves: Any) -> TreeDef:
    """A structure with the names among its leaves in their places."""
    if structure.kind is None:
        leaf = next(leaves)
        return TreeDef(tree.Static, leaf) if isinstance(leaf, str) else structure
    return TreeDef(structure.kind, structure.meta, tuple(
        [_of_names(child, leaves) for child in structure.children]), structure.key)
