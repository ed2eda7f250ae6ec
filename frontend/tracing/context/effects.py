"""What a trace does beside computing: it reads and writes variables, and checks what must hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast

from ....ir.graph import Builder, Graph, Node, Value
from ....ir.ops.table import OPS
from ....ir.types import I64, Device, TensorType
from ..values.operation import Operation
from ..values.tracer import Tracer
from .scope import Recording


class Resource(Protocol):
    """A variable, as far as a trace is concerned."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> TensorType: ...
    @property
    def home(self) -> Device | None: ...


class Effects(ABC):
    """A trace, as far as it has effects; ``recorder.TraceContext`` is one."""

    graph: Graph
    builder: Builder
    parent: Any  # the trace around, if there is one

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.asserted: str | None = None  # the name of what assertions have an effect on
        self.failures: dict[str, Any] = {}  # of the function's own, by what their checks say
        self.generators: list[Any] = []  # of NumPy's, that the function makes itself
        self._var_names: dict[int, str] = {}
        self._reads: dict[str, Tracer] = {}
        self._substituted: set[str] = set()  # of the reads, what is not the variable's own value
        self._assigned: set[str] = set()

    @property
    @abstractmethod
    def root(self) -> Any:
        """The outermost trace."""

    @property
    def _recording(self) -> Recording:
        return cast("Recording", self)  # as which mypy does not know half a trace

    @abstractmethod
    def value_of(self, tracer: Tracer) -> Value:
        """The value of a tracer in the graph of this trace."""

    @abstractmethod
    def _inherit(self, tracer: Tracer) -> Tracer: ...

    def resource(self, variable: Resource) -> dict[str, Any]:
        """The attributes that name a variable in this graph; names are made unique here, for the
        graphs inside of it too."""
        if self.parent is not None:
            found: dict[str, Any] = self.parent.resource(variable)
            return found
        name = self._var_names.get(id(variable))
        if name is None:
            name = self._listed(variable, variable.name)
        return {"var": name, "type": variable.type}

    def _listed(self, variable: Resource, stem: str) -> str:
        name = self.graph.unique_name(stem)
        self._var_names[id(variable)] = name
        self.variables[name] = variable
        self.graph.variables[name] = variable.type
        if variable.home is not None:
            self.graph.homes[name] = variable.home
        return name

    def bind(self, name: str, variable: Resource) -> None:
        """Let a variable have this name in the graph, which knows its type."""
        self.graph.unique_name(name)
        self._var_names[id(variable)] = name
        self.variables[name] = variable

    def adopt(self, variable: Resource, stem: str) -> str | None:
        """The name in this graph of a variable that is made while the trace is active; None as it
        is none of its business."""
        return None

    def variable(self, name: str) -> Any:
        """The variable that has this name in the graph."""
        return self.variables[name] if self.parent is None else self.parent.variable(name)

    def read(self, variable: Resource) -> Tracer:
        """The value of a variable at this point of the program."""
        attrs = self.resource(variable)
        known = self._reads.get(attrs["var"])
        if known is None and self.parent is not None:
            known = self._substitute(attrs["var"])
        if known is None:
            node = self._effect("read_var", (), attrs, variable.home)
            known = Tracer(self._recording, node.results[0], argument=True)
            # With control dependencies a read may be later than others: it is not shared.
            if not self.builder.after:
                self._reads[attrs["var"]] = known
        return known

    def _substitute(self, name: str) -> Tracer | None:
        """What a trace around lets a variable read as, instead of its value."""
        here: Effects | None = self
        while here is not None and name not in here._assigned:
            if here is not self and name in here._substituted:
                return self._inherit(here._reads[name])
            here = here.parent
        return None

    def forget_reads(self, names: Iterable[str]) -> None:
        """Read these variables anew from here on: a body has assigned them."""
        for name in names:
            self._reads.pop(name, None)
            self._substituted.discard(name)
            self._assigned.add(name)

    def write(self, op: str, variable: Resource, value: Tracer) -> Operation:
        """Assign to (``assign_var``) or add to (``update_var``, ``take_var``) a variable."""
        attrs = self.resource(variable)
        node = self._effect(op, (self.value_of(value),), attrs,
                            variable.home or self.builder.device)
        self.forget_reads((attrs["var"],))
        return Operation((node,), node.name, self._recording)

    def _effect(
        self, op: str, inputs: tuple[Value, ...], attrs: dict[str, Any], device: Device | None
    ) -> Node:
        """A node that reads or writes a variable: on a device that the scope has no say in."""
        builder = self.builder
        saved, builder.device = builder.device, device
        try:
            return builder.emit(OPS[op], inputs, attrs,
                                name=f"{attrs['var']}/{op.removesuffix('_var')}")
        finally:
            builder.device = saved

    def assertion(self, condition: Tracer, message: str) -> None:
        """Let the step fail unless a bool is true."""
        root = self.root
        if root.asserted is None:
            root.asserted = root.graph.unique_name("assertions")
            root.graph.variables[root.asserted] = TensorType(I64, ())
        self.builder.emit(OPS["assert_true"], (self.value_of(condition),), {
            "var": root.asserted, "type": TensorType(I64, ()), "message": message})

    def failing(self, condition: Tracer, failure: Any) -> None:
        """Let the step fail, as ``tracing.failing`` says how, unless a bool is true."""
        failures, text, count = self.root.failures, failure.text, 1
        while text in failures and not failures[text].says(failure):
            count += 1
            text = f"{failure.text} [{count}]"
        failures.setdefault(text, failure).locs = self.builder.locs
        self.assertion(condition, text)

    @contextmanager
    def reading(self, substitutes: Mapping[Any, Tracer]) -> Iterator[None]:
        """Let reads of these variables give these tracers, until the variables are written."""
        names = {self.resource(variable)["var"]: tracer
                 for variable, tracer in substitutes.items()}
        saved = {name: self._reads.get(name) for name in names}
        self._reads.update(names)
        outer = self._substituted
        self._substituted = outer | names.keys()
        try:
            yield
        finally:
            self._substituted = outer
            for name, before in saved.items():
                if self._reads.get(name) is names[name]:  # it was not written
                    del self._reads[name]
                    if before is not None:
                        self._reads[name] = before

    def forget_variables(self) -> None:
        """Let go of the values that variables were read as."""
        self._reads.clear()
