"""The item of ``parser`` that is a kernel.

    kernel  = "kernel" @name "(" {name: ["mut"] type} ")" ["local" "(" {name: type "at" number} ")"]
              ["warps" number "pipeline" number ["chunks" number]]
              "{" [{axis} "{"] {[vectors] {split} stmt} ["}"] "}"
    axis    = ("par" | "seq") name "in" dim "by" number | "lane" name "in" dim
    stmt    = name "[" {dim} "]" ("=" | "+=" ["atomic"]) %id ["if" %id] | "check" %id "site" number
            | ("sort" | "argsort") name "[" {dim} "]" "=" %id "over" axis "in" name [sorted]
            | ("ranked" | "partition" | "argpartition") name "[" {dim} "]" "=" %id "over" axis
              "at" %id "over" axis "in" name [sorted]
            | "compress" name "[" axis "]" "=" %id "over" axis "where" %id "over" axis
            | %id ":" dtype "=" ("const" number | "index" dim | name "[" {dim} "]" ["if" %id]
            | "reduce" combiner %id "over" axis [order] | "carry" %id "next" %id "over" axis
            | "search" ("max" | "min") %id "over" axis | "last" %id "over" axis
            | "contract" %id "," %id "over" axes [blocks]
            | primitive {%id})
    order   = "{" ("lanes" number ["," "chunk" number] ["," way] | "across" number) "}"
    way     = "unrolled"
            | ("by" "lanes" number | "in" "strips" number | "across" number) ["," "few" number]
    blocks  = "{" ["chunk" number] ["," "dot" precision] ["," tiling] "}"
    sorted  = "{" ("columns" number | "quick" | "radix") ["," "runs" number] "}"
    vectors = "vectorize" axis "by" number ["keep" {%id}] ["turn" {%id}]
    split   = "split" axis "at" {dim}

The first line of a kernel and a check may end in ``// from model.py:12 in dense``. Vectors that
make no sense, or ways, are errors of the text, with their line; the rest is ``verify``'s.
"""

from __future__ import annotations

import re
from typing import cast

from ..kernels.intrinsics import INTRINSICS
from ..kernels.kernel import (
    Apply,
    Axis,
    AxisKind,
    Carry,
    Check,
    Const,
    Index,
    Kernel,
    Last,
    Load,
    Local,
    Param,
    Stmt,
    Store,
)
from ..kernels.schedule import Program, Split, Vectors
from ..types import BOOL, DTYPES, DType
from ..verify.schedule import schedule_problems
from .intrinsics import FieldReader
from .scanner import Scanner

_AXIS = re.compile(r"(par|seq|lane)\s+(\w+)\s+in\b")
_STORING = "|".join(row.word for row in INTRINSICS.values() if row.gives)
_ROWS = re.compile(rf"(?:{_STORING})\b(?!\s*\[)")  # one followed by "[" is a parameter's name
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"true\b|false\b|-?(?:inf\b|nan\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_VECTORS = re.compile(r"vectorize\s+(\w+)\s+by\b")
_SPLIT = re.compile(r"split\s+(\w+)\s+at\b")


def kernel_item(scanner: Scanner) -> Kernel:
    """What follows the word ``kernel``."""
    start = scanner.at
    return scanner.mark(_KernelReader(scanner).item(), start)


class _KernelReader(FieldReader):
    def item(self) -> Kernel:
        scanner = self.scanner
        scanner.expect("@")
        name = scanner.name("a kernel name")
        params = tuple(self.scanner.listed(self._param))
        locals_ = tuple(self.scanner.listed(self._local)) if scanner.accept("local") else ()
        program = self._program()
        scanner.expect("{")
        locs = scanner.origin()
        axes = self._axes()
        body, vectors, splits = self._body(bool(locals_))
        if axes:
            scanner.expect("}")
        kernel = Kernel(name, params, axes, body, locs, locals_, vectors, program,
                        splits)
        for item, message in schedule_problems(kernel):
            raise scanner.problem(message, scanner.place(item))
        return kernel

    def _body(
        self, staged: bool
    ) -> tuple[tuple[Stmt, ...], tuple[Vectors, ...], tuple[Split, ...]]:
        """The statements, the vectors of the stages that begin with the next one, and splits."""
        scanner = self.scanner
        body: list[Stmt] = []
        vectors: list[Vectors] = []
        splits: list[Split] = []
        stages = 0
        while not scanner.accept("}"):
            start = scanner.position()
            found = scanner.match(_VECTORS)
            if found is not None:
                vectors.append(scanner.mark(self._vectors(found[1], stages), start))
                continue
            found = scanner.match(_SPLIT)
            if found is not None:
                if body:
                    raise scanner.problem("splits stand above the first statement", start)
                splits.append(scanner.mark(self._split(found[1]), start))
                continue
            stmt = self._stmt()
            if not body or (staged and stmt.name and not body[-1].name):
                stages += 1
            elif vectors and vectors[-1].stage == stages:
                raise scanner.problem("vectors stand above the first statement of a stage",
                                      scanner.place(vectors[-1]))
            body.append(scanner.mark(stmt, start))
        return tuple(body), tuple(vectors), tuple(splits)

    def _vectors(self, axis: str, stage: int) -> Vectors:
        lanes = self.scanner.number()
        return Vectors(stage, axis, lanes, self._values("keep"), self._values("turn"))

    def _split(self, axis: str) -> Split:
        points = [self.dim(self.scanner.dim())]
        while self.scanner.accept(","):
            points.append(self.dim(self.scanner.dim()))
        return Split(axis, tuple(points))

    def _values(self, word: str) -> tuple[str, ...]:
        """The values that are listed after a word, if it stands here."""
        found = list[str]()
        while self.scanner.accept("," if found else word):
            found.append(self.value())
        return tuple(found)

    def _program(self) -> Program | None:
        start = self.scanner.position()
        if not self.scanner.accept("warps"):
            return None
        warps = self.scanner.number()
        self.scanner.expect("pipeline")
        pipeline = self.scanner.number()
        chunks = self.scanner.number() if self.scanner.accept("chunks") else 1
        return self.scanner.mark(Program(warps, pipeline, chunks), start)

    def _local(self) -> Local:
        scanner = self.scanner
        name = scanner.name("a local")
        scanner.expect(":")
        type_ = scanner.type()
        scanner.expect("at")
        return Local(name, type_, offset=scanner.number())

    def _param(self) -> Param:
        scanner = self.scanner
        name = scanner.name("a parameter")
        scanner.expect(":")
        mutable = scanner.accept("mut")
        return Param(name, scanner.type(), mutable)

    def _axes(self) -> tuple[Axis, ...]:
        scanner = self.scanner
        axes: list[Axis] = []
        while (found := scanner.match(_AXIS)) is not None:
            kind, name = found[1], found[2]
            extent = scanner.dim()
            block = 0
            if kind != "lane":
                scanner.expect("by")
                block = scanner.number()
            low, high = (self.value() if scanner.accept(word) else "" for word in ("from", "to"))
            axes.append(Axis(name, extent, cast(AxisKind, kind), block, low, high))
            self.sizes[name] = extent
            if scanner.accept("{"):
                return tuple(axes)
            scanner.expect(",")
        if axes:
            raise scanner.problem("expected an axis")
        return ()

    def _guard(self) -> str:
        return self.value() if self.scanner.accept("if") else ""

    def _stmt(self) -> Stmt:
        scanner = self.scanner
        if scanner.peek("%"):
            name = self.value()
            scanner.expect(":")
            word = scanner.take(_IDENTIFIER, "a dtype")
            if word not in DTYPES:
                raise scanner.problem(f"no dtype named '{word}'", scanner.at - len(word))
            scanner.expect("=")
            self.dtypes[name] = DTYPES[word]
            return self._meaning(name, DTYPES[word])
        found = scanner.match(_ROWS)
        if found is not None:
            return self.intrinsic(INTRINSICS[found[0]])
        access = self.access()
        if access is not None:
            accumulate = scanner.accept("+=")
            if not accumulate:
                scanner.expect("=")
            atomic = accumulate and scanner.accept("atomic")
            value = self.known()
            return Store("", self.dtypes[value], *access, value, accumulate, self._guard(),
                         atomic)
        if scanner.accept("check"):
            value = self.value()
            scanner.expect("site")
            return Check("", BOOL, value, scanner.number())
        raise scanner.problem("expected a statement")

    def _meaning(self, name: str, dtype: DType) -> Stmt:
        scanner = self.scanner
        access = self.access()
        if access is not None:
            return Load(name, dtype, *access, self._guard())
        word = scanner.take(_IDENTIFIER, "a load or an operation")
        if word == "const":
            return Const(name, dtype, _number(scanner.take(_NUMBER, "a number")))
        if word == "index":
            return Index(name, dtype, self.dim(scanner.dim()))
        if word in INTRINSICS and not INTRINSICS[word].gives:
            return self.intrinsic(INTRINSICS[word], name, dtype)
        if word == "carry":
            init = self.value()
            if not scanner.accept("next"):
                raise scanner.problem("a carry needs its next value: carry %0 next %3 over j")
            return Carry(name, dtype, init, self.value(), self.over())
        if word == "last":
            return Last(name, dtype, self.value(), self.over())
        args = [self.value()]
        while scanner.accept(","):
            args.append(self.value())
        return Apply(name, dtype, word, tuple(args))

def _number(text: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else float(text)
