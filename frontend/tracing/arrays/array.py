"""TracedArray: what is kept of a traced array, and the links by which arrays share memory.

It is a value in the graph of a trace. With a link it is a view, of the array whose memory it has in
NumPy. ``views`` makes the links and follows them; ``tracer.Tracer`` derives from this class, and is
what behaves like a NumPy array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any
from weakref import ref

from ....ir.diagnose import Error, error
from ....ir.graph import Value
from ....ir.types import TensorType
from ...face.source import user_loc
from ..context.scope import RECORDING, Recording


class TracedArray:
    """A value of a graph that stands for an array. ``weak`` marks what stands for a Python number,
    which promotes as one."""

    __slots__ = ("__weakref__", "_ctx", "_value", "anew", "argument", "asked", "changed", "dense",
                 "link", "made", "ordered", "plain", "rivals", "seen", "taken", "version",
                 "waiting", "weak")

    def __init__(
        self, ctx: Recording, value: Value | None, *, weak: bool = False,
        argument: bool | str = False,
    ) -> None:
        self._ctx, self.weak, self.argument = ctx, weak, argument
        self._value: Any = value
        self.made = False  # as an array, which one without dims is then, and not a scalar
        # The array of plain numbers around the body that is traced, which this has the numbers of.
        self.plain: Any = None
        # As what a function returns once it has come to its end: where it has a value, nothing is
        # written after that.
        self.waiting = False
        self.link: Link | None = None  # to the array that this one is a view of, if any,
        self.taken: tuple[TracedArray, Any] | None = None  # which was indexed with this
        # How NumPy would lay it out: its axes surely in memory as they are counted, its elements
        # surely one row-major block (None: as its link says).
        self.ordered = False
        self.dense: bool | None = None
        self.changed: TracedArray | None = None  # what in-place code made of the memory instead
        self.rivals: dict[int, ref[TracedArray]] | None = None  # which may have the same memory
        self.version: object = None  # the last write to memory that is the array's own, and
        self.seen: object = None     # the one that the value is of, as was clear after so many
        self.asked = 0               # writes to any memory
        # How it is computed where it is used, in a region that is in its trace: it may fail.
        self.anew: Any = None
        if ctx.made is not None:
            ctx.made.append(ref(self))

    @property
    def value(self) -> Value:
        """The value in the graph."""
        value: Value = self._value
        return value

    @property
    def ctx(self) -> Recording:
        """The trace that this belongs to."""
        return self._ctx

    @property
    def type(self) -> TensorType:
        type_: TensorType = self._value.type
        return type_

    @property
    def name(self) -> str:
        """The name to feed or fetch it by: ``layer1/relu:0``."""
        return self.value.name

    @property
    def ndim(self) -> int:
        return len(self._value.type.shape)

    @property
    def is_scalar(self) -> bool:
        """True where NumPy has a number, which does not change, and no array without dims."""
        return self.ndim == 0 and self.link is None and not self.made

    def context(self) -> Recording:
        """The trace that an operation on this tracer is recorded in.

        Raises TracerError: W202 when its trace has ended, W204 when another one is active.
        """
        ctx = RECORDING.get()
        if not self._ctx.alive:
            raise self._leaked()
        if ctx is None or ctx is self._ctx:
            return self._ctx
        if ctx.descends_from(self._ctx):
            return ctx
        raise error("W204", f"{self.name} belongs to graph '{self._ctx.graph.name}', but "
                            f"'{ctx.graph.name}' is being built", locs=user_loc(),
                    hint="use values of one graph together, or compute and feed the value")

    def _leaked(self) -> Error:
        made = self._value.node.locs if self._value.node is not None else ()
        return error("W202", f"{self.name} ({self.type}) is a traced value of "
                             f"'{self._ctx.graph.name}', whose trace has ended",
                     locs=(*user_loc(), *made[:1]),
                     hint="return the value from the traced function instead of storing it")

    def renew(self, source: TracedArray, version: object) -> None:
        """Take the value that a write to the memory has left here."""
        self._value, self.seen = source._value, version


class Link(ABC):
    """How a view comes from ``base``: ``follow`` computes the view, ``undo`` puts its elements back
    into the base, ``again`` is the same view of another array. ``certain`` is False where NumPy
    might have copied."""

    __slots__ = ("base",)

    def __init__(self, base: TracedArray) -> None:
        self.base = base

    @property
    def certain(self) -> bool:
        return True

    @property
    def frozen(self) -> bool:
        return False

    @property
    def dense(self) -> bool:
        return False

    @abstractmethod
    def follow(self, base: TracedArray) -> TracedArray: ...

    @abstractmethod
    def undo(self, base: TracedArray, new: TracedArray) -> TracedArray: ...

    @abstractmethod
    def again(self, base: TracedArray) -> TracedArray: ...
