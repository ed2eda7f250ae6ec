"""Attributes of nodes and of host steps, as ``printer`` writes them.

    attrs   = "{" {name "=" attr} "}"
    attr    = string | number | true | false | dtype | type | dim | "(" {attr ","} ")" | graph
              | @function
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..graph import Graph
from ..host import HostFunction
from ..record import record
from ..types import DTYPES, split_dims
from .scanner import STRING, Scanner

_ATTR = re.compile(r"[^\W\d]\w*")
_NESTED = re.compile(r"graph\s+@")
_TYPE = re.compile(r"\w+\[")
_STRING = re.compile(STRING)
_INT = re.compile(r"-?\d+(?=\s*[,)}])")
_FLOAT = re.compile(r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)")
_COMPLEX = re.compile(rf"({_FLOAT.pattern})([+-]{_FLOAT.pattern.removeprefix('-?')})j")
_LITERALS: Mapping[str, Any] = {"true": True, "false": False, **DTYPES}


@record(frozen=True)
class AttrReader:
    """Reads attributes; ``graph`` reads one that is a graph, behind that word."""

    scanner: Scanner
    graph: Callable[[], Graph]

    def attrs(self) -> dict[str, Any]:
        """What follows the brace, up to the one that closes it."""
        scanner = self.scanner
        attrs: dict[str, Any] = {}
        while not scanner.accept("}"):
            if attrs:
                scanner.expect(",")
            name = scanner.take(_ATTR, "the name of an attribute")
            scanner.expect("=")
            attrs[name] = self._attr()
        return attrs

    def _attr(self) -> Any:
        scanner = self.scanner
        if found := scanner.match(_INT):
            return int(found[0])
        if found := scanner.match(_STRING):
            return scanner.unquote(found[0])
        if scanner.match(_NESTED):
            scanner.at -= 1
            return self.graph()
        if scanner.accept("@"):
            return HostFunction.named(scanner.name("the name of a function"))
        if found := scanner.match(_TYPE):
            scanner.at = found.start()
            return scanner.type()
        text = self._balanced()
        if text in _LITERALS:
            return _LITERALS[text]
        if _FLOAT.fullmatch(text):
            return float(text)
        if found := _COMPLEX.fullmatch(text):
            return complex(float(found[1]), float(found[2]))
        if text.startswith("(") and self._is_tuple(text):
            scanner.at -= len(text)
            return self._tuple()
        return scanner.dim_of(text)

    def _balanced(self) -> str:
        """The text up to the comma or bracket that ends an attribute, without blanks around."""
        scanner = self.scanner
        scanner.peek("")
        depth, start = 0, scanner.at
        text = scanner.text
        while scanner.at < len(text):
            sign = text[scanner.at]
            if depth == 0 and sign in ",)}":
                break
            if sign == '"':
                scanner.string("a string")
                continue
            depth += (sign in "([{") - (sign in ")]}")
            scanner.at += 1
        while scanner.at > start and text[scanner.at - 1].isspace():
            scanner.at -= 1
        if scanner.at == start:
            raise scanner.problem("expected the value of an attribute")
        return text[start:scanner.at]

    def _is_tuple(self, text: str) -> bool:
        # A dim may start with a bracket too, but it ends later or holds no comma of its own.
        depth = 0
        for at, sign in enumerate(text):
            depth += (sign == "(") - (sign == ")")
            if depth == 0:
                inside = text[1:at]
                return at == len(text) - 1 and (not inside or len(split_dims(inside)) > 1)
        return False

    def _tuple(self) -> tuple[Any, ...]:
        scanner = self.scanner
        scanner.expect("(")
        items: list[Any] = []
        while not scanner.accept(")"):
            items.append(self._attr())
            if not scanner.peek(")"):
                scanner.expect(",")
        return tuple(items)
