"""The item of ``parser`` that is a plan.

    plan    = "plan" @name "(" {slot} ")" "->" "(" {slot} ")" "arena" "=" dim
              ["scratch" "=" number] ["times" %name] "{" {step} "}"
    slot    = %name: type ["var" string]
    step    = "check" number code string | "require" number ":" dim (">=" | "==") dim
            | "alloc" %name: type "at" dim ["of" size] | "copy" window "to" window | launch
            | "measure" size "=" window "check" number "arena" "=" dim
            | "group" [share] "{" {launch} "}"
            | "branch" window "{" {step} "}" ["else" "{" {step} "}"]
            | "loop" index ("in" dim | "while" window) [carry] ["limit" dim] ["fused"]
              "{" [test] {step} "}"
            | "host" @function "(" {typed} ")" "->" "(" {typed} ")" [attrs]
            | "send" window "to" device "key" string | "recv" window "from" device "key" string
    launch  = "launch" @kernel "(" {window} ")" "on" device ["checks" "from" number] [share]
    share   = "parallel" ["if" dim ">=" dim]
    carry   = "carry" "(" {%name "=" %name} ")"            test = "test" "{" {step} "}"
    window  = %name ["[" {dim} "]"]                        typed = window [":" type]

A check or a host step may end in ``// from model.py:12 in dense``. What a plan is at all is checked
here, with its line: a carry without its next, a window of more indices than its buffer has dims, an
index of no loop around. What makes it sound is ``verify.plan``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from ..graph import Graph
from ..indices.index import Dim, symbols_of
from ..kernels.kernel import Kernel
from ..plans.plan import (
    Alloc,
    Branch,
    Carry,
    CheckSite,
    Copy,
    Group,
    Host,
    Launch,
    Loop,
    Measure,
    Plan,
    Recv,
    Relation,
    Require,
    Send,
    Slot,
    Step,
    Window,
)
from ..types import Device, TensorType, split_dims
from .attrs import AttrReader
from .scanner import Scanner

_CODE = re.compile(r"W\d+")
_WORD = re.compile(r"[^\W\d][\w.]*")
_INDICES = re.compile(r"\[([^\]\n]*)\]")
_COUNT = re.compile(r"(?:(?!\bcarry\b|\bfused\s*{)[^{\n])+")
_OFFSET = re.compile(r"(?:(?!\bof\b)[^{}\n])+")


def plan_item(scanner: Scanner, kernels: Mapping[str, Kernel]) -> Plan:
    """What follows the word ``plan``."""
    start = scanner.at
    scanner.expect("@")
    name = scanner.name("a plan name")
    params = _slots(scanner)
    scanner.expect("->")
    results = _slots(scanner)
    scanner.expect("arena")
    scanner.expect("=")
    arena, scratch = scanner.dim(), 0
    if scanner.accept("scratch"):
        scanner.expect("=")
        scratch = scanner.number()
    times = ""
    if scanner.accept("times"):
        scanner.expect("%")
        times = scanner.name("a buffer")
    scanner.expect("{")
    checks: list[CheckSite] = []
    while scanner.accept("check"):
        if scanner.number() != len(checks) + 1:
            raise scanner.problem("checks are numbered 1, 2, 3, ...")
        code = scanner.take(_CODE, "an error code such as W124")
        message = scanner.string("a message")
        checks.append(CheckSite(code, message, scanner.origin()))
    requires: list[Require] = []
    while scanner.accept("require"):
        requires.append(_require(scanner))
    reader = _StepReader(scanner, params, results)
    steps = reader.steps()
    return scanner.mark(Plan(name, params, results, steps, arena, dict(kernels), tuple(checks),
                             tuple(requires), scratch, times), start)


def _require(scanner: Scanner) -> Require:
    site = scanner.number()
    scanner.expect(":")
    relation = _relation(scanner)
    return Require(relation.left, relation.sign, relation.right, site)


def _relation(scanner: Scanner) -> Relation:
    left = scanner.dim()
    if scanner.accept(">="):
        return Relation(left, ">=", scanner.dim())
    scanner.expect("==")
    return Relation(left, "==", scanner.dim())


def _slots(scanner: Scanner) -> tuple[Slot, ...]:
    def slot() -> Slot:
        scanner.expect("%")
        name = scanner.name("a buffer")
        scanner.expect(":")
        type_ = scanner.type()
        return Slot(name, type_, scanner.string("a variable") if scanner.accept("var") else "")

    return tuple(scanner.listed(slot))


class _StepReader:
    """Reads steps, and knows the ranks of buffers and the indices of the loops around."""

    def __init__(
        self, scanner: Scanner, params: Sequence[Slot], results: Sequence[Slot]
    ) -> None:
        self.scanner = scanner
        self.ranks = {slot.name: slot.type.rank for slot in (*params, *results)}
        self.known = {name for slot in params for dim in slot.type.shape
                      for name in symbols_of(dim)}
        self.indices: list[str] = []

    def steps(self) -> tuple[Step, ...]:
        """Steps up to a brace that closes them; recursion is by nesting only."""
        found: list[Step] = []
        while not self.scanner.accept("}"):
            found.append(self._step())
        return tuple(found)

    def _step(self) -> Step:
        scanner = self.scanner
        start = scanner.position()
        word = scanner.match(_WORD)
        read = self._READERS.get(word[0]) if word is not None else None
        if read is None:
            raise scanner.problem("expected a step", start)
        return scanner.mark(read(self), start)

    def _block(self) -> tuple[Step, ...]:
        self.scanner.expect("{")
        return self.steps()

    def _buffer(self) -> str:
        self.scanner.expect("%")
        return self.scanner.name("a buffer")

    def _window(self) -> Window:
        scanner = self.scanner
        name = self._buffer()
        if not scanner.peek("["):
            return Window(name)
        start = scanner.at
        found = scanner.match(_INDICES)
        if found is None:
            raise scanner.problem("expected indices such as [t]")
        indices = tuple(scanner.dim_of(part) for part in split_dims(found[1]))
        if len(indices) > self.ranks.get(name, len(indices)):
            raise scanner.problem(f"%{name} has {self.ranks[name]} dims, not {len(indices)}", start)
        for index in indices:
            unknown = symbols_of(index) - self.known.union(self.indices)
            if unknown:
                raise scanner.problem(f"'{min(unknown)}' is the index of no loop around", start)
        return Window(name, indices)

    def _windows(self) -> tuple[Window, ...]:
        return tuple(self.scanner.listed(self._window))

    def _alloc(self) -> Alloc:
        scanner = self.scanner
        name = self._buffer()
        scanner.expect(":")
        type_ = scanner.type()
        self.ranks[name] = type_.rank
        scanner.expect("at")
        offset = scanner.dim_of(scanner.take(_OFFSET, "an offset"))
        return Alloc(name, type_, offset, scanner.take(_WORD, "a measured size")
                     if scanner.accept("of") else "")

    def _measure(self) -> Measure:
        scanner = self.scanner
        size = scanner.take(_WORD, "the name of a size")
        if size in self.known or size in self.indices:
            raise scanner.problem(f"the name '{size}' is taken", scanner.at - len(size))
        scanner.expect("=")
        number = self._window()
        scanner.expect("check")
        site = scanner.number()
        scanner.expect("arena")
        scanner.expect("=")
        self.known.add(size)
        return Measure(size, number, site, scanner.dim())

    def _launch(self) -> Launch:
        scanner = self.scanner
        scanner.expect("@")
        kernel = scanner.name("a kernel name")
        args = self._windows()
        scanner.expect("on")
        device, first = scanner.device(), 1
        if scanner.accept("checks"):
            scanner.expect("from")
            first = scanner.number()
        return Launch(kernel, args, device, first, self._parallel())

    def _parallel(self) -> bool | Relation:
        scanner = self.scanner
        if not scanner.accept("parallel"):
            return False
        if not scanner.accept("if"):
            return True
        start, relation = scanner.position(), _relation(scanner)
        unknown = (symbols_of(relation.left) | symbols_of(relation.right)) - self.known
        if unknown:
            raise scanner.problem(f"'{min(unknown)}' is no size of a parameter", start)
        if relation.sign != ">=":
            raise scanner.problem("there is enough work or not: write >=", start)
        return relation

    def _copy(self) -> Copy:
        source = self._window()
        self.scanner.expect("to")
        return Copy(source, self._window())

    def _group(self) -> Group:
        scanner, parallel = self.scanner, self._parallel()
        scanner.expect("{")
        launches: list[Launch] = []
        while not scanner.accept("}"):
            start = scanner.position()
            scanner.expect("launch")
            launches.append(scanner.mark(self._launch(), start))
        return Group(tuple(launches), parallel)

    def _loop(self) -> Loop:
        scanner = self.scanner
        index = scanner.take(_WORD, "the index of a loop")
        if index in self.known or index in self.indices:
            raise scanner.problem(f"the name '{index}' is taken", scanner.at - len(index))
        condition, count = None, None
        if scanner.accept("while"):
            condition = self._window()
        else:
            scanner.expect("in")
            count = self._count()
        carried = tuple(self.scanner.listed(self._carried)) if scanner.accept("carry") else ()
        if condition is not None and scanner.accept("limit"):
            count = scanner.dim()
        fused = scanner.accept("fused")
        self.indices.append(index)
        scanner.expect("{")
        test = self._block() if scanner.accept("test") else ()
        body = self.steps()
        self.indices.pop()
        return Loop(index, count, body, carried, condition, test, fused)

    def _count(self) -> Dim:
        # A dim ends at a brace or a comma; here also at the words "carry" and "fused".
        found = self.scanner.match(_COUNT)
        if found is None:
            raise self.scanner.problem("expected a dim")
        return self.scanner.dim_of(found[0])

    def _carried(self) -> Carry:
        buffers = [self._buffer()]
        while self.scanner.accept("="):
            buffers.append(self._buffer())
        if len(buffers) == 1:
            raise self.scanner.problem(f"%{buffers[0]} is carried without its next: write "
                                       f"%{buffers[0]} = %next")
        return Carry(tuple(buffers))

    def _branch(self) -> Branch:
        condition, then = self._window(), self._block()
        return Branch(condition, then, self._block() if self.scanner.accept("else") else ())

    def _host(self) -> Host:
        scanner = self.scanner
        scanner.expect("@")
        function = scanner.name("a function")
        inputs = scanner.listed(self._typed)
        scanner.expect("->")
        typed = [*inputs, *scanner.listed(self._typed)]
        windows = tuple(window for window, _ in typed)
        types = tuple(type_ for _, type_ in typed if type_ is not None)
        if len(types) not in (0, len(windows)):
            raise scanner.problem("all windows have types, or none has one")
        reader = AttrReader(scanner, self._no_graph)
        attrs = tuple(reader.attrs().items()) if scanner.accept("{") else ()
        count = len(inputs)
        return Host(function, windows[:count], windows[count:], types, attrs, scanner.origin())

    def _typed(self) -> tuple[Window, TensorType | None]:
        window = self._window()
        return window, self.scanner.type() if self.scanner.accept(":") else None

    def _no_graph(self) -> Graph:
        raise self.scanner.problem("a host step has no graphs")

    def _device_and_key(self, word: str) -> tuple[Device, str]:
        self.scanner.expect(word)
        device = self.scanner.device()
        self.scanner.expect("key")
        return device, self.scanner.string("a key")

    def _send(self) -> Send:
        source = self._window()
        return Send(source, *self._device_and_key("to"))

    def _recv(self) -> Recv:
        target = self._window()
        return Recv(target, *self._device_and_key("from"))

    _READERS: ClassVar[Mapping[str, Callable[[_StepReader], Step]]] = MappingProxyType({
        "alloc": _alloc, "launch": _launch, "copy": _copy, "group": _group, "loop": _loop,
        "branch": _branch, "host": _host, "send": _send, "recv": _recv, "measure": _measure,
    })
