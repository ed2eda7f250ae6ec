"""Event files for TensorBoard: scalars, histograms and graphs, written by ``tensorboardX``.

Each call writes its event at once, from whichever thread: nothing waits in a queue, so that what
was written before a crash or a fork is in the file.
"""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from ...ir.diagnose import error
from ...ir.forks import held
from ...ir.graph import Graph as IRGraph
from ...ir.types import number_kind
from ...runtime.storage.files import written
from ..engine.stages import Compiled, Lowered
from ..face.boundary import boundary
from ..face.function import Function
from ..face.source import user_loc
from ..session.graph import Graph
from ..session.session import Session
from ..tracing.arrays.variable import Variable
from ..tracing.context.scope import checked_name
from ..tracing.context.traced import Traced
from ..tracing.values.tracer import Tracer
from .graph_def import graph_def


class SummaryWriter:
    """Writes an event file into ``logdir``, which ``tensorboard --logdir`` shows.

    Methods have the names and arguments of PyTorch's and tensorboardX's writers. Values are
    numbers, arrays and variables. Several threads may write; a writer is a context manager.

    Raises Error: W404 where tensorboardX is not installed; W113 for a value that is no number or
    has no elements, W201 for a traced value, W202 for a writer that is closed.

    >>> import tempfile, weft
    >>> folder = tempfile.mkdtemp()
    >>> with weft.SummaryWriter(folder) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (step + 1), step)
    ...     writer.add_graph(weft.compile(lambda x: np.tanh(x) * 2), "f32[8]")
    >>> import os
    >>> len(os.listdir(folder))
    1
    """

    living: ClassVar[WeakSet[SummaryWriter]] = WeakSet()  # whose events a fork finds whole

    @boundary
    def __init__(self, logdir: str | os.PathLike[str], filename_suffix: str = "") -> None:
        try:
            from tensorboardX.event_file_writer import EventsWriter
        except ModuleNotFoundError:
            raise error("W404", "event files for TensorBoard need tensorboardX", locs=user_loc(),
                        hint="pip install 'weft[tensorboard]'") from None
        self.logdir = os.fspath(logdir)
        self._lock = threading.RLock()
        with written(self.logdir, "event file"):
            os.makedirs(self.logdir, exist_ok=True)
            self._events: Any = EventsWriter(os.path.join(self.logdir, "events"), filename_suffix)
        SummaryWriter.living.add(self)

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None,
                 where: TracebackType | None) -> None:
        self.close()

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None,
                   walltime: float | None = None) -> None:
        """One number of a curve: ``add_scalar("loss", loss, step)``."""
        array = _numbers(tag, scalar_value)
        if array.size != 1:
            raise error("W113", f"the scalar '{tag}' has {array.size} elements", locs=user_loc(),
                        hint="write one number, such as its mean, or use add_histogram")
        from tensorboardX.summary import scalar

        self._write({"summary": scalar(tag, array.reshape(()))}, global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None,
                      bins: Any = "tensorflow", walltime: float | None = None) -> None:
        """How the elements of an array are distributed: ``add_histogram("w", w, step)``. Those that
        are NaN or infinite are left out; ``bins`` are TensorFlow's, a tenth wider from each to the
        next, or what np.histogram takes."""
        array = _numbers(tag, values).ravel()
        array = array[np.isfinite(array)]
        if not array.size:
            raise error("W113", f"the histogram '{tag}' has no finite elements", locs=user_loc(),
                        hint="write only arrays that have some")
        from tensorboardX.summary import histogram

        if isinstance(bins, str) and bins == "tensorflow":
            sizes = 1e-12 * 1.1 ** np.arange(774)  # up to about 1e20
            bins = np.concatenate([-sizes[::-1], [0.0], sizes])
            array = np.clip(array, bins[0], bins[-1])
        self._write({"summary": histogram(tag, array, bins)}, global_step, walltime)

    def add_graph(self, model: Any, *args: Any) -> None:
        """The graph of a program: of a compiled function and its arguments as it is traced, of a
        Graph, Traced or Session; of what ``lower`` gives, with the device of each node."""
        self._write({"graph_def": graph_def(_graph(model, args)).SerializeToString()}, None, None)

    def flush(self) -> None:
        """Have all that was written in the file."""
        with self._lock:
            self._open().flush()

    def close(self) -> None:
        """Write what is left and close the file; again is nothing."""
        with self._lock:
            if self._events is not None:
                self._events.close()
                self._events = None

    def _open(self) -> Any:
        if self._events is None:
            raise error("W202", f"the writer of {self.logdir} is closed", locs=user_loc(),
                        hint="write before it is closed, or make another one")
        return self._events

    def _write(self, what: dict[str, Any], step: int | None, walltime: float | None) -> None:
        from tensorboardX.proto.event_pb2 import Event

        try:
            number = 0 if step is None else int(step)
        except (TypeError, ValueError, OverflowError):
            raise error("W113", f"the step {step!r} is no number", locs=user_loc(),
                        hint="count steps: add_scalar(tag, value, step)") from None
        event = Event(wall_time=time.time() if walltime is None else walltime,
                      step=number, **what)
        with self._lock:
            events = self._open()
            events.write_event(event)
            events.flush()


held(lambda: [writer._lock for writer in list(SummaryWriter.living)])


def _numbers(tag: str, value: Any) -> Any:
    """Values as a float64 array. Raises DTypeError (W112) for a tag that is no text."""
    checked_name(tag, "curve")
    if isinstance(value, Tracer):
        raise error("W201", f"'{tag}' is a traced value, which has no number while tracing",
                    locs=user_loc(), hint="return it, and write what the compiled function gives")
    array = value.numpy() if isinstance(value, Variable) else np.asarray(value)
    if number_kind(array.dtype) not in "biuf":
        raise error("W113", f"'{tag}' is no real number but {array.dtype}", locs=user_loc(),
                    hint="write real numbers, such as np.abs of complex ones")
    return array.astype(np.float64)


def _graph(model: Any, args: tuple[Any, ...]) -> IRGraph:
    if isinstance(model, Function):
        return model.trace(*args).graph
    if args:
        raise error("W113", f"a {type(model).__name__} takes no arguments here", locs=user_loc(),
                    hint="give the arguments with the compiled function")
    match model:
        case Session():
            return model.graph.graph
        case Graph() | Traced():
            return model.graph
        case Lowered():
            return model.stages.placement.graph
        case Compiled():
            return model.lowered.stages.placement.graph
        case IRGraph():
            return model
    raise error("W113", f"a {type(model).__name__} has no graph", locs=user_loc(),
                hint="give a compiled function with its arguments, a Graph or a Session")
