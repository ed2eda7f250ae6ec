"""The item of ``parser`` that is a kernel.

    kernel  = "kernel" @name "(" {name: ["mut"] type} ")" ["local" "(" {name: type "at" number} ")"]
              ["warps" number "pipeline" number ["chunks" number]]
              "{" [{axis} "{"] {[vectors] {split} stmt} ["}"] "}"
    axis    = ("par" | "seq") name "in" dim "by" number | "lane" name "in" dim
    stmt    = name "[" {dim} "]" ("=" | "+=") %id ["if" %id] | "check" %id "site" number
            | ("sort" | "argsort") name "[" {dim} "]" "=" %id "over" axis "in" name
            | ("ranked" | "partition" | "argpartition") name "[" {dim} "]" "=" %id "over" axis
              "at" %id "over" axis "in" name
            | "compress" name "[" axis "]" "=" %id "over" axis "where" %id "over" axis
            | %id ":" dtype "=" ("const" number | "index" dim | name "[" {dim} "]" ["if" %id]
            | "reduce" combiner %id "over" axis [order] | "carry" %id "next" %id "over" axis
            | "search" ("max" | "min") %id "over" axis | "last" %id "over" axis
            | "contract" %id "," %id "over" axes ["{" ["chunk" number] ["," tiling] "}"]
            | primitive {%id})
    order   = "{" ("lanes" number ["," "chunk" number] ["," way] | "across" number) "}"
    way     = "unrolled"
            | ("by" "lanes" number | "in" "strips" number | "across" number) ["," "few" number]
    vectors = "vectorize" axis "by" number ["keep" {%id}] ["turn" {%id}]
    split   = "split" axis "at" {dim}

The first line of a kernel and a check may end in ``// from model.py:12 in dense``. Vectors that
make no sense, or ways, are errors of the text, with their line; the rest is ``verify``'s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..indices.index import Dim
from ..indices.walk import with_sizes
from ..kernels.combine import Order
from ..kernels.kernel import (
    Apply,
    Axis,
    AxisKind,
    Carry,
    Check,
    Const,
    Contract,
    Index,
    Kernel,
    Last,
    Load,
    Local,
    Param,
    Reduce,
    Search,
    Stmt,
    Store,
)
from ..kernels.rows import Compress, Ranked, RowStmt, Sort
from ..kernels.schedule import IN_TURN, UNROLLED, Program, Split, Vectors, Way, WayKind
from ..kernels.tiling import Tiling
from ..types import BOOL, DTYPES, DType, split_dims
from ..verify.schedule import schedule_problems
from .scanner import STRING, WORD, Scanner

_AXIS = re.compile(r"(par|seq|lane)\s+(\w+)\s+in\b")
_ACCESS = re.compile(rf"({STRING}|{WORD})\s*\[([^\]\n]*)\]")
_SORT = re.compile(r"(?:ranked|compress|(?:arg)?(?:sort|partition))\b(?!\s*\[)")
_VALUE = re.compile(r"%\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"true\b|false\b|-?(?:inf\b|nan\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_PART = re.compile(r"[^,{}]+")
_VECTORS = re.compile(r"vectorize\s+(\w+)\s+by\b")
_SPLIT = re.compile(r"split\s+(\w+)\s+at\b")
_WAY = re.compile(r"by\s+lanes\b|in\s+strips\b|across\b")


def kernel_item(scanner: Scanner) -> Kernel:
    """What follows the word ``kernel``."""
    start = scanner.at
    return scanner.mark(_KernelReader(scanner).item(), start)


class _KernelReader:
    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.sizes: dict[str, Dim] = {}
        self.dtypes: dict[str, DType] = {}

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
        points = [self._dim(self.scanner.dim())]
        while self.scanner.accept(","):
            points.append(self._dim(self.scanner.dim()))
        return Split(axis, tuple(points))

    def _values(self, word: str) -> tuple[str, ...]:
        """The values that are listed after a word, if it stands here."""
        found = list[str]()
        while self.scanner.accept("," if found else word):
            found.append(self._value())
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
            low, high = (self._value() if scanner.accept(word) else "" for word in ("from", "to"))
            axes.append(Axis(name, extent, cast(AxisKind, kind), block, low, high))
            self.sizes[name] = extent
            if scanner.accept("{"):
                return tuple(axes)
            scanner.expect(",")
        if axes:
            raise scanner.problem("expected an axis")
        return ()

    def _dim(self, dim: Dim) -> Dim:
        return with_sizes(dim, self.sizes)

    def _value(self) -> str:
        return self.scanner.take(_VALUE, "a value such as %0")

    def _guard(self) -> str:
        return self._value() if self.scanner.accept("if") else ""

    def _access(self) -> tuple[str, tuple[Dim, ...]] | None:
        found = self.scanner.match(_ACCESS)
        if found is None:
            return None
        parts = split_dims(found[2])
        return (self.scanner.unquote(found[1]),
                tuple(self._dim(self.scanner.dim_of(part)) for part in parts))

    def _stmt(self) -> Stmt:
        scanner = self.scanner
        if scanner.peek("%"):
            name = self._value()
            scanner.expect(":")
            word = scanner.take(_IDENTIFIER, "a dtype")
            if word not in DTYPES:
                raise scanner.problem(f"no dtype named '{word}'", scanner.at - len(word))
            scanner.expect("=")
            self.dtypes[name] = DTYPES[word]
            return self._meaning(name, DTYPES[word])
        found = scanner.match(_SORT)
        if found is not None:
            return self._sort(found[0])
        access = self._access()
        if access is not None:
            accumulate = scanner.accept("+=")
            if not accumulate:
                scanner.expect("=")
            value = self._known()
            return Store("", self.dtypes[value], *access, value, accumulate, self._guard())
        if scanner.accept("check"):
            value = self._value()
            scanner.expect("site")
            return Check("", BOOL, value, scanner.number())
        raise scanner.problem("expected a statement")

    def _sort(self, verb: str) -> RowStmt:
        scanner, access, places = self.scanner, self._access(), verb.startswith("arg")
        if access is None:
            raise scanner.problem("expected where it is sorted to")
        scanner.expect("=")
        value = self._known()
        axis, at = self._over(), None
        if not verb.endswith("sort"):
            scanner.expect("where" if verb == "compress" else "at")
            at = self._known(), self._over()
        if at is not None and verb == "compress":
            return Compress("", self.dtypes[value], *access, value, axis, *at)
        scanner.expect("in")
        room = scanner.name("a parameter")
        parts = ("", self.dtypes[value], *access, value, axis)
        return Sort(*parts, places, room) if at is None else Ranked(
            *parts, *at, verb != "ranked", places, room)

    def _known(self) -> str:
        """A value that is defined above."""
        value = self._value()
        if value not in self.dtypes:
            raise self.scanner.problem(f"{value} is not defined above",
                                       self.scanner.at - len(value))
        return value

    def _meaning(self, name: str, dtype: DType) -> Stmt:
        scanner = self.scanner
        access = self._access()
        if access is not None:
            return Load(name, dtype, *access, self._guard())
        word = scanner.take(_IDENTIFIER, "a load or an operation")
        if word == "const":
            return Const(name, dtype, _number(scanner.take(_NUMBER, "a number")))
        if word == "index":
            return Index(name, dtype, self._dim(scanner.dim()))
        if word == "reduce":
            combine = scanner.take(_IDENTIFIER, "a combiner")
            value = self._value()
            return Reduce(name, dtype, combine, value, self._over(), *self._order())
        if word == "search":
            extreme = scanner.take(_IDENTIFIER, "max or min")
            return Search(name, dtype, extreme, self._value(), self._over())
        if word == "carry":
            init = self._value()
            if not scanner.accept("next"):
                raise scanner.problem("a carry needs its next value: carry %0 next %3 over j")
            return Carry(name, dtype, init, self._value(), self._over())
        if word == "last":
            return Last(name, dtype, self._value(), self._over())
        args = [self._value()]
        while scanner.accept(","):
            args.append(self._value())
        if word == "contract":
            if len(args) != 2:
                raise scanner.problem("expected two operands")
            return Contract(name, dtype, args[0], args[1], self._over_all(), *self._tiling(dtype))
        return Apply(name, dtype, word, tuple(args))

    def _tiling(self, dtype: DType) -> tuple[int, Tiling | None]:
        """The chunk of a product, and its blocking."""
        scanner = self.scanner
        if not scanner.accept("{"):
            return 0, None
        parts: dict[str, list[str]] = {}
        while not scanner.accept("}"):
            if parts:
                scanner.expect(",")
            key, *rest = scanner.take(_PART, "a part of a tiling such as 'lanes 16'").split()
            parts[key] = rest
        try:
            chunk = int(parts.pop("chunk", ["0"])[0])
            return chunk, _tiling(dtype, parts) if parts or not chunk else None
        except (KeyError, ValueError, IndexError):
            raise scanner.problem(f"'{', '.join(parts)}' is no complete tiling") from None

    def _over_all(self) -> tuple[str, ...]:
        self.scanner.expect("over")
        if not self.scanner.accept("("):
            return (self.scanner.take(_IDENTIFIER, "an axis"),)
        axes = [self.scanner.take(_IDENTIFIER, "an axis")]
        while not self.scanner.accept(")"):
            self.scanner.expect(",")
            axes.append(self.scanner.take(_IDENTIFIER, "an axis"))
        return tuple(axes)

    def _order(self) -> tuple[Order | None, Way]:
        scanner, way = self.scanner, IN_TURN
        if not scanner.accept("{"):
            return None, way
        if scanner.accept("across"):
            way = Way("across", scanner.number())
            scanner.expect("}")
            return None, way
        scanner.expect("lanes")
        lanes, chunk = scanner.number(), 0
        while not scanner.accept("}"):
            scanner.expect(",")
            if not chunk and scanner.accept("chunk"):
                chunk = scanner.number()
                continue
            if scanner.accept("unrolled"):
                way = UNROLLED
            else:
                found = scanner.take(
                    _WAY, "a chunk, 'unrolled', 'by lanes', 'in strips' or 'across'")
                kind = cast(WayKind, " ".join(found.split()))
                count = scanner.number()
                few = scanner.accept(",")
                if few:
                    scanner.expect("few")
                way = Way(kind, count, scanner.number() if few else 0)
            scanner.expect("}")
            break
        return Order(lanes, chunk), way

    def _over(self) -> str:
        self.scanner.expect("over")
        return self.scanner.take(_IDENTIFIER, "an axis")


def _tiling(dtype: DType, parts: Mapping[str, Sequence[str]]) -> Tiling:
    mr, nv = map(int, parts["tile"][0].split("x"))
    mb, nb, kb = map(int, parts["block"][0].split("x"))
    (lhs, lhs_line, lhs_along), (rhs, rhs_line, rhs_along) = map(_way, (parts["lhs"], parts["rhs"]))
    return Tiling(dtype, int(parts["lanes"][0]), mr, nv, mb, nb, kb, "cut" in parts,
                  _one_of(lhs, ("in_place", "rows", "panels", "lines")),
                  _one_of(rhs, ("in_place", "panels", "block", "turned", "lines")),
                  lhs_line, rhs_line, "swap" in parts, parts["rows"][0], parts["columns"][0],
                  lhs_along, rhs_along, "outlined" in parts, int(parts.get("waits", ["0"])[0]))


def _way(words: Sequence[str]) -> tuple[str, int, str]:
    """``rows 160 along k``: how an operand is read, elements of a line, the axis of vectors."""
    way, *rest = words
    line = int(rest.pop(0)) if rest and rest[0].isdigit() else 0
    if rest and (len(rest) != 2 or rest[0] != "along"):
        raise ValueError(rest)
    return way, line, rest[1] if rest else ""


def _one_of(text: str, words: tuple[Any, ...]) -> Any:
    if text not in words:
        raise ValueError(text)
    return text


def _number(text: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else float(text)
