"""``weft.save``, ``weft.restore``, ``weft.Saver`` and ``weft.QueueRunner``: those of the runtime,
whose errors have the user's line."""

from __future__ import annotations

from ..runtime import checkpoint, runner, saver
from .tracing.boundary import boundary

save = boundary(checkpoint.save)
restore = boundary(checkpoint.restore)


class Saver(saver.Saver):
    __doc__ = saver.Saver.__doc__
    __init__ = boundary(saver.Saver.__init__)
    __enter__ = boundary(saver.Saver.__enter__)
    __exit__ = boundary(saver.Saver.__exit__)
    save = boundary(saver.Saver.save)


class QueueRunner(runner.QueueRunner):
    __doc__ = runner.QueueRunner.__doc__
    __init__ = boundary(runner.QueueRunner.__init__)
