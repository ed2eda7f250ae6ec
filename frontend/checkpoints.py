"""``weft.save``, ``weft.restore``, ``weft.Saver`` and ``weft.QueueRunner``: those of the runtime,
whose errors have the user's line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..ir.diagnose import error
from ..runtime import runner
from ..runtime.storage import checkpoint, saver
from .face.boundary import boundary
from .face.source import user_loc
from .session.graph import Graph
from .tracing.context.active import active

P = ParamSpec("P")
R = TypeVar("R")


def _between_steps(function: Callable[P, R]) -> Callable[P, R]:
    """A function of the values that variables have now, of which a traced function has none."""
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if active() is not None and not isinstance(active(), Graph):
            raise error("W113", f"{function.__name__} in a traced function would be done once, "
                                "while it is traced", locs=user_loc(),
                        hint="call it between calls of the function")
        return function(*args, **kwargs)

    return boundary(call)


save = _between_steps(checkpoint.save)
restore = _between_steps(checkpoint.restore)


class Saver(saver.Saver):
    __doc__ = saver.Saver.__doc__
    __init__ = boundary(saver.Saver.__init__)
    __enter__ = boundary(saver.Saver.__enter__)
    __exit__ = boundary(saver.Saver.__exit__)
    save = _between_steps(saver.Saver.save)


class QueueRunner(runner.QueueRunner):
    __doc__ = runner.QueueRunner.__doc__
    __init__ = boundary(runner.QueueRunner.__init__)
