"""The item of ``parser`` that is a kernel.

    kernel  = "kernel" @name "(" {name: ["mut"] type} ")" "{" [{axis} "{"] {stmt} ["}"] "}"
    axis    = ("par" | "seq") name "in" dim "by" number | "lane" name "in" dim
    stmt    = name "[" {dim} "]" ("=" | "+=") %id ["if" %id] | "check" %id "site" number
            | %id ":" dtype "=" ("const" number | "index" dim | name "[" {dim} "]" ["if" %id]
            | "reduce" combiner %id "over" axis | "contract" %id "," %id "over" axis
            | primitive {%id})

The first line of a kernel and a check may end in ``// from model.py:12 in dense``.
"""

from __future__ import annotations

import re

from ..index import Dim, with_sizes
from ..kernel import (
    Apply,
    Axis,
    Check,
    Const,
    Contract,
    Index,
    Kernel,
    Load,
    Param,
    Reduce,
    Stmt,
    Store,
)
from ..types import BOOL, DTYPES, DType, split_dims
from .scanner import STRING, WORD, Scanner

_AXIS = re.compile(r"(par|seq|lane)\s+(\w+)\s+in\b")
_ACCESS = re.compile(rf"({STRING}|{WORD})\s*\[([^\]\n]*)\]")
_VALUE = re.compile(r"%\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"true\b|false\b|-?(?:inf\b|nan\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


def kernel_item(scanner: Scanner) -> Kernel:
    """What follows the word ``kernel``."""
    return _KernelReader(scanner).item()


class _KernelReader:
    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.sizes: dict[str, Dim] = {}
        self.dtypes: dict[str, DType] = {}

    def item(self) -> Kernel:
        scanner = self.scanner
        scanner.expect("@")
        name = scanner.name("a kernel name")
        params = self._params()
        scanner.expect("{")
        locs = scanner.origin()
        axes = self._axes()
        body: list[Stmt] = []
        while not scanner.accept("}"):
            body.append(self._stmt())
        if axes:
            scanner.expect("}")
        return Kernel(name, params, axes, tuple(body), locs)

    def _params(self) -> tuple[Param, ...]:
        scanner = self.scanner
        scanner.expect("(")
        params: list[Param] = []
        while not scanner.accept(")"):
            if params:
                scanner.expect(",")
            name = scanner.name("a parameter")
            scanner.expect(":")
            mutable = scanner.accept("mut")
            params.append(Param(name, scanner.type(), mutable))
        return tuple(params)

    def _axes(self) -> tuple[Axis, ...]:
        scanner = self.scanner
        axes: list[Axis] = []
        while (found := scanner.match(_AXIS)) is not None:
            kind, name = found[1], found[2]
            extent = scanner.dim()
            if kind == "lane":
                axes.append(Axis(name, extent, "lane", 0))
            else:
                scanner.expect("by")
                axes.append(Axis(name, extent, "par" if kind == "par" else "seq", scanner.number()))
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
        access = self._access()
        if access is not None:
            accumulate = scanner.accept("+=")
            if not accumulate:
                scanner.expect("=")
            value = self._value()
            if value not in self.dtypes:
                raise scanner.problem(f"{value} is not defined above", scanner.at - len(value))
            return Store("", self.dtypes[value], *access, value, accumulate, self._guard())
        if scanner.accept("check"):
            value = self._value()
            scanner.expect("site")
            return Check("", BOOL, value, scanner.number())
        raise scanner.problem("expected a statement")

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
            return Reduce(name, dtype, combine, value, self._over())
        args = [self._value()]
        while scanner.accept(","):
            args.append(self._value())
        if word == "contract":
            if len(args) != 2:
                raise scanner.problem("expected two operands")
            return Contract(name, dtype, args[0], args[1], self._over())
        return Apply(name, dtype, word, tuple(args))

    def _over(self) -> str:
        self.scanner.expect("over")
        return self.scanner.take(_IDENTIFIER, "an axis")


def _number(text: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else float(text)
