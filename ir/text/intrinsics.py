"""Instructions of kernels in the text: what stands behind their words, as the forms of
``kernels.intrinsics`` have it. What prints a kind of field is beside what reads it.

    sort y[i, j] = %0 over j in y1          {target} = {value} over {axis} in {room:param}
    %2: f32 = contract %0, %1 over k        {lhs:value}, {rhs:value} over {axes}{blocking}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from string import Formatter
from types import MappingProxyType
from typing import Any, ClassVar, cast

from ..indices.index import Dim
from ..indices.walk import with_sizes
from ..kernels.combine import Order
from ..kernels.intrinsics import Intrinsic
from ..kernels.kernel import Stmt
from ..kernels.rows import Algorithm, AlgorithmKind
from ..kernels.schedule import IN_TURN, UNROLLED, Way, WayKind
from ..kernels.tiling import Tiling
from ..types import DType, split_dims
from .scanner import STRING, WORD, Scanner, word

_ACCESS = re.compile(rf"({STRING}|{WORD})\s*\[([^\]\n]*)\]")
_VALUE = re.compile(r"%\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_PART = re.compile(r"[^,{}]+")
_ALGORITHM = re.compile(r"(?:columns|quick|radix)\b")
_WAY = re.compile(r"by\s+lanes\b|in\s+strips\b|across\b")


@cache
def parts_of(form: str) -> tuple[tuple[str, str, str], ...]:
    """A form as text, and the field and kind behind it, which may be empty at its end."""
    return tuple((text, field or "", kind or field or "")
                 for text, field, kind, _ in Formatter().parse(form))


def print_intrinsic(row: Intrinsic, stmt: Stmt) -> str:
    """The word of an instruction and what stands behind it."""
    return f"{row.word} " + "".join(text + (_PRINT[kind](stmt, field) if kind else "")
                                    for text, field, kind in parts_of(row.form))


def access_text(param: str, indices: Iterable[Dim]) -> str:
    """``y[i, j + 1]``"""
    return f"{word(param)}[{', '.join(map(str, indices))}]"


def _axes_text(stmt: Any, field: str) -> str:
    return stmt.axes[0] if len(stmt.axes) == 1 else f"({', '.join(stmt.axes)})"


def _order_text(stmt: Any, field: str) -> str:
    if stmt.order is None:
        return f" {{{stmt.way}}}" if stmt.way != IN_TURN else ""
    way = f", {stmt.way}" if stmt.way != IN_TURN else ""
    return f" {str(stmt.order)[:-1]}{way}}}"


def _blocking_text(stmt: Any, field: str) -> str:
    parts = [f"chunk {stmt.chunk}"] if stmt.chunk else []
    parts += [f"dot {stmt.dot}"] if stmt.dot else []
    parts += [str(stmt.tiling)] if stmt.tiling is not None else []
    return f" {{{', '.join(parts)}}}" if parts else ""


def _algorithm_text(stmt: Any, field: str) -> str:
    return f" {stmt.algorithm}" if stmt.algorithm else ""


def _plain(stmt: Any, field: str) -> str:
    return str(getattr(stmt, field))


_PRINT: Mapping[str, Callable[[Any, str], str]] = MappingProxyType({
    "name": _plain, "value": _plain, "axis": _plain, "axes": _axes_text,
    "param": lambda stmt, field: word(getattr(stmt, field)),
    "target": lambda stmt, field: access_text(stmt.param, stmt.indices),
    "order": _order_text, "algorithm": _algorithm_text, "blocking": _blocking_text,
})


class FieldReader:
    """Reads the fields of statements; knows the sizes of axes and the types of values above."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.sizes: dict[str, Dim] = {}
        self.dtypes: dict[str, DType] = {}

    def intrinsic(self, row: Intrinsic, name: str = "", dtype: DType | None = None) -> Stmt:
        """What stands behind the word of an instruction. One that defines no value is of the type
        of the first one that it reads, and so all of these have to be known."""
        found = dict[str, Any](row.says, name=name, dtype=dtype)
        for text, field, kind in parts_of(row.form):
            for each in re.findall(r"\w+|\S", text):
                self.scanner.expect(each)
            if kind == "value":
                found[field] = self.value() if name else self.known()
                found["dtype"] = found["dtype"] or self.dtypes[found[field]]
            elif kind in ("name", "axis"):
                what = "an axis" if kind == "axis" else f"a word for '{field}'"
                found[field] = self.scanner.take(_IDENTIFIER, what)
            elif kind == "param":
                found[field] = self.scanner.name("a parameter")
            elif kind:
                found |= self._READ[kind](self, found["dtype"])
        return row.stmt(**found)

    def dim(self, dim: Dim) -> Dim:
        return with_sizes(dim, self.sizes)

    def value(self) -> str:
        return self.scanner.take(_VALUE, "a value such as %0")

    def known(self) -> str:
        """A value that is defined above."""
        value = self.value()
        if value not in self.dtypes:
            raise self.scanner.problem(f"{value} is not defined above",
                                       self.scanner.at - len(value))
        return value

    def access(self) -> tuple[str, tuple[Dim, ...]] | None:
        found = self.scanner.match(_ACCESS)
        if found is None:
            return None
        parts = split_dims(found[2])
        return (self.scanner.unquote(found[1]),
                tuple(self.dim(self.scanner.dim_of(part)) for part in parts))

    def over(self) -> str:
        self.scanner.expect("over")
        return self.scanner.take(_IDENTIFIER, "an axis")

    def _target(self, dtype: DType) -> dict[str, Any]:
        access = self.access()
        if access is None:
            raise self.scanner.problem("expected where it is stored, such as y[i, j]")
        return {"param": access[0], "indices": access[1]}

    def _axis_list(self, dtype: DType) -> dict[str, Any]:
        if not self.scanner.accept("("):
            return {"axes": (self.scanner.take(_IDENTIFIER, "an axis"),)}
        axes = [self.scanner.take(_IDENTIFIER, "an axis")]
        while not self.scanner.accept(")"):
            self.scanner.expect(",")
            axes.append(self.scanner.take(_IDENTIFIER, "an axis"))
        return {"axes": tuple(axes)}

    def _order(self, dtype: DType) -> dict[str, Any]:
        scanner, way = self.scanner, IN_TURN
        if not scanner.accept("{"):
            return {"way": way}
        if scanner.accept("across"):
            way = Way("across", scanner.number())
            scanner.expect("}")
            return {"way": way}
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
        return {"order": Order(lanes, chunk), "way": way}

    def _blocking(self, dtype: DType) -> dict[str, Any]:
        """The chunk of a product, its unit, and its blocking."""
        scanner = self.scanner
        if not scanner.accept("{"):
            return {}
        parts: dict[str, list[str]] = {}
        while not scanner.accept("}"):
            if parts:
                scanner.expect(",")
            key, *rest = scanner.take(_PART, "a part of a tiling such as 'lanes 16'").split()
            parts[key] = rest
        try:
            chunk = int(parts.pop("chunk", ["0"])[0])
            (dot,) = parts.pop("dot", [""])
            known = chunk or dot
            return {"chunk": chunk, "dot": dot,
                    "tiling": _tiling(dtype, parts) if parts or not known else None}
        except (KeyError, ValueError, IndexError):
            raise scanner.problem(f"'{', '.join(parts)}' is no complete tiling") from None

    def _algorithm(self, dtype: DType) -> dict[str, Any]:
        scanner = self.scanner
        if not scanner.accept("{"):
            return {}
        kind = cast(AlgorithmKind, scanner.take(_ALGORITHM, "'columns', 'quick' or 'radix'"))
        columns = scanner.number() if kind == "columns" else 0
        runs = 0
        if scanner.accept(","):
            scanner.expect("runs")
            runs = scanner.number()
        scanner.expect("}")
        return {"algorithm": Algorithm(kind, columns, runs)}

    _READ: ClassVar[Mapping[str, Callable[[FieldReader, DType], dict[str, Any]]]] = (
        MappingProxyType({"target": _target, "axes": _axis_list, "order": _order,
                          "algorithm": _algorithm, "blocking": _blocking}))


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
