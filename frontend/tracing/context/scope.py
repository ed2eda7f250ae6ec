"""What is active while user code runs: the trace that records it, and its name scope and device.

Both are context variables, so every thread (and every asyncio task) has its own.

A trace makes tracers, and they know their trace. ``Recording`` is what they know of it, so that
imports go one way: scope <- array <- views <- tracer <- recorder, which has the trace itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar
from weakref import ref

import numpy as np

from ....ir.diagnose import Error, error
from ....ir.graph import Builder, Graph, Node, Value
from ....ir.indices.index import Dim
from ....ir.loc import Loc
from ....ir.record import record, replace
from ....ir.types import Device, DType
from ...face import recording
from ...face.source import user_loc
from .request import Asked, Request

A = TypeVar("A")


class Api(Protocol[A]):
    """What the operations of a traced array, an A, mean; in fact
    ``numpy_api.dispatch.NumpyApi``."""

    def stem(self, ufunc: np.ufunc) -> str: ...
    def operator(self, ufunc: np.ufunc, operands: tuple[Any, ...]) -> Any: ...
    def ufunc(self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...],
              options: dict[str, Any]) -> Any: ...
    def has_row(self, function: Callable[..., Any]) -> bool: ...
    def function(self, function: Callable[..., Any], args: tuple[Any, ...],
                 options: dict[str, Any]) -> Any: ...
    def special(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any: ...
    def method(self, x: A, name: str, problem: Error) -> Any: ...
    def aligned(self, x: Any, mask: Any) -> Any: ...
    def realised(self, x: Any) -> A: ...
    def masked(self, mask: Any, x: Any, y: Any) -> A: ...
    def selected(self, function: Callable[..., Any], x: Any, args: tuple[Any, ...],
                 options: dict[str, Any]) -> Any: ...
    def gridded(self, function: Callable[..., Any], args: tuple[Any, ...],
                options: dict[str, Any]) -> Any: ...
    def getitem(self, x: A, index: Any) -> Any: ...
    def update(self, x: Any, index: Any, value: Any, mode: str) -> A: ...
    def astype(self, x: Any, dtype: Any, casting: str = "unsafe") -> A: ...
    def flat(self, x: A) -> A: ...
    def view(self, x: Any, dtype: Any) -> A: ...
    def assign(self, variable: Any, value: Any, op: str, change: np.ufunc) -> Any: ...


class Writes:
    """How often memory was written to in a trace, and in those around it."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Recording(Protocol):
    """A trace as its tracers know it; ``recorder.TraceContext`` in fact."""

    graph: Graph
    builder: Builder
    api: Api[Any]
    alive: bool
    endless: bool
    rewritten: Any
    made: list[ref[Any]] | None
    buffers: list[ref[Any]] | None
    given: list[Any]
    writes: Writes
    refused: Error | None
    classed: Error | None
    used_up: list[tuple[str, tuple[Loc, ...]]]
    traced_memory: bool
    lock: Any
    request: Request
    asked: Asked

    @property
    def parent(self) -> Recording | None: ...
    @property
    def root(self) -> Recording: ...
    @property
    def nested(self) -> bool: ...
    def activate(self) -> AbstractContextManager[Any]: ...
    def outside(self, param: Value) -> Any: ...
    def descends_from(self, other: Recording) -> bool: ...
    def own_copy(self, tracer: Any) -> Any: ...
    def apply(self, function: Callable[..., Any], args: tuple[Any, ...], *,
              stem: str = "") -> Any: ...
    def emit(self, op: str, *operands: Any, **attrs: Any) -> Any: ...
    def tracer(self, value: Value) -> Any: ...
    def full(self, number: bool | int | float, dtype: np.dtype[Any] | DType,
             shape: tuple[Dim, ...] = ()) -> Any: ...
    def constant(self, array: np.ndarray[Any, Any]) -> Any: ...
    def numbers_of(self, constant: Value) -> np.ndarray[Any, Any] | None: ...
    def dim(self, dim: Dim) -> Value: ...
    def value_of(self, tracer: Any) -> Value: ...
    def in_function(self, hint: str) -> str: ...
    def by_source(self, hint: str) -> str: ...
    def by_numpy(self, hint: str) -> str: ...


@record(frozen=True)
class Scope:
    """What ``name_scope``, ``device`` and ``control_dependencies`` give to new nodes."""

    prefix: str = ""
    device: Device | None = None
    after: tuple[tuple[Recording, Node], ...] = ()


RECORDING: ContextVar[Recording | None] = recording.RECORDING
_NOTHING = Scope()
SCOPE: ContextVar[Scope] = ContextVar("weft_scope", default=_NOTHING)


def checked_name(name: Any, what: str) -> str:
    """The name that the user gives to a variable, queue or scope. Raises DTypeError (W112) unless
    it is text that a file can hold."""
    if not isinstance(name, str):
        raise error("W112", f"the name of a {what} is text, not {name!r}", locs=user_loc(),
                    hint=f'write such as name="{what}"')
    if any("\ud800" <= sign <= "\udfff" for sign in name):
        whole = name.encode("utf-8", "replace").decode("utf-8")
        raise error("W112", f"the name of a {what}, {name!r}, has half of a character, which no "
                            "file can hold", locs=user_loc(), hint=f"write name={whole!r}")
    return name


def checked_label(name: Any, what: str) -> str:
    """``checked_name`` of what feeds and fetches find by its name: ``x:0`` is a value of ``x``."""
    found = re.search(r":[0-9]+\Z", checked_name(name, what))
    if found is not None:
        raise error("W112", f"the name of a {what}, {name!r}, ends like that of a value of "
                            f"{name[:found.start()]!r}", locs=user_loc(),
                    hint=f"write name={re.sub(':([0-9]+)', '_' + chr(92) + '1', name)!r}")
    return str(name)


@contextmanager
def name_scope(name: str | None) -> Iterator[str]:
    """Prefix the names of nodes and variables made in the body: ``with weft.name_scope("layer1")``.

    A name that a graph has already gets a number, as in TensorFlow: the second ``layer1`` is
    ``layer1_1``. The prefix is what the body gets (``as scope``); with its slash at the end it
    opens the same scope again. None leaves all scopes.
    """
    scope, trace = SCOPE.get(), RECORDING.get()
    prefix = "" if name is None else checked_name(name, "scope")
    if prefix and not prefix.endswith("/"):
        prefix = scope.prefix + prefix
        if trace is not None:
            with trace.lock:
                prefix = trace.graph.unique_name(prefix)
        prefix += "/"
    token = SCOPE.set(replace(scope, prefix=prefix))
    try:
        yield prefix
    finally:
        SCOPE.reset(token)


@contextmanager
def device(spec: str | Device | None) -> Iterator[None]:
    """Ask for the nodes made in the body to run on a device, named fully or in part (``"gpu:0"``).

    What a name leaves open is as around it: ``cpu:1`` inside of ``/job:worker`` is
    ``/job:worker/cpu:1``. None asks for nothing. A variable lives, and is assigned, where it was
    made. Raises Error (W401) for text that is no device.
    """
    scope = SCOPE.get()
    try:
        wanted = spec if spec is None or isinstance(spec, Device) else Device.parse(spec)
    except ValueError as problem:
        raise error("W401", str(problem), locs=user_loc(),
                    hint="a device is named cpu:0, gpu:1 or /job:worker/task:1/gpu:0") from None
    token = SCOPE.set(replace(scope, device=None if wanted is None else
                              wanted.inside(scope.device)))
    try:
        yield
    finally:
        SCOPE.reset(token)
