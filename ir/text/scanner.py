"""A cursor over IR text: tokens by regular expression, errors with line, column and caret (W501),
and where each item of the IR stands.

The grammar needs no token list: at every place only a few things can follow, so the parser asks
for them by pattern. ``//`` starts a comment up to the end of the line, except for the notes that
hold names and source locations (``// "name" ...`` and ``// from ...``), which the parser reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeVar

from ..diagnose import Error, error
from ..indices.index import Dim
from ..loc import Loc
from ..types import Device, TensorType, parse_dim, parse_type

T = TypeVar("T")

STRING = r'"(?:[^"\\\n]|\\.)*"'
WORD = r"[^\W\d][\w./]*"       # names, paths and functions that need no quotes
PATH = r"[\w./<>+~@-]+"
FUNCTION = r"[\w.<>]+"
_BLANK = re.compile(r'(?:\s++|//(?! "| from )[^\n]*+)*+')
_NAME = re.compile(f"{STRING}|{WORD}")
_STRING = re.compile(STRING)
_LABEL = re.compile(rf"%(?:{STRING}|[\w./]+)")
_TYPE = re.compile(r"\w+\[[^\]\n]*\]")
_DEVICE = re.compile(r"[\w/.:-]+")
_INT = re.compile(r"\d+")
# What a dim is made of between its brackets and the commas inside of them.
_ENDS = r"\bby\b|\b(?:from|to|times)\s+%|\bscratch\s*=|\bfused\s*{"
_DIM = re.compile(rf"(?:(?!{_ENDS})[\w.%+*/ -])*")
_LOC = re.compile(rf"({STRING}|{PATH}):(\d+)(?: in ({STRING}|{FUNCTION}))?")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def quoted(text: str) -> str:
    """A string literal. Half of a surrogate pair, which no file in UTF-8 can hold, is escaped."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}",
                          json.dumps(text, ensure_ascii=False))


def word(name: str, plain: str = WORD) -> str:
    """A name as it stands if it is a plain word, else in quotes."""
    return name if re.fullmatch(plain, name) else quoted(name)


class Scanner:
    """Text and a position in it; everything that reads skips blanks and comments first."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._places: dict[int, tuple[object, int]] = {}  # by identity of what stands there
        self._types: dict[str, TensorType] = {}

    def mark(self, item: T, at: int) -> T:
        """Note that an item of the IR begins at a position."""
        self._places[id(item)] = item, at
        return item

    def place(self, item: object) -> int:
        """Where an item begins; the beginning of the text if that is not known."""
        return self._places.get(id(item), (item, 0))[1]

    def problem(self, message: str, at: int | None = None) -> Error:
        """W501 with the line of position ``at`` (else of the next token) and a caret."""
        return error("W501", message + self.shown(self.position() if at is None else at))

    def shown(self, at: int) -> str:
        """The line of a position, with a caret under it."""
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line = self.text[start:end if end >= 0 else None]
        margin = len(line) - len(line.lstrip())
        number = self.text.count("\n", 0, at) + 1
        return (f"\n  --> line {number}, column {at - start + 1}\n   |   {line.strip()}\n"
                f"   |   {' ' * max(at - start - margin, 0)}^")

    def _skip(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        if blank:
            self.at = blank.end()

    def position(self) -> int:
        """Where the next token begins."""
        self._skip()
        return self.at

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what the pattern describes, if it comes next."""
        self._skip()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        """Read what the pattern describes, or fail with ``expected <what>``."""
        found = self.match(pattern)
        if found is None:
            raise self.problem(f"expected {what}")
        return found[0]

    def peek(self, text: str) -> bool:
        """True if ``text`` comes next."""
        self._skip()
        return self.text.startswith(text, self.at)

    def accept(self, text: str) -> bool:
        """Read ``text`` if it comes next; a word must not go on after it."""
        self._skip()
        end = self.at + len(text)
        if not self.text.startswith(text, self.at):
            return False
        if text[-1].isalnum() and self.text[end:end + 1].replace("_", "a").isalnum():
            return False
        self.at = end
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.problem(f"expected '{text}'")

    @property
    def finished(self) -> bool:
        """True if only blanks and comments are left."""
        self._skip()
        return self.at == len(self.text)

    def unquote(self, text: str) -> str:
        """The name that a word or a string literal stands for."""
        if not text.startswith('"'):
            return text
        try:
            return str(json.loads(text))
        except ValueError:
            raise self.problem("not a string literal", self.at - len(text)) from None

    def name(self, what: str) -> str:
        return self.unquote(self.take(_NAME, what))

    def string(self, what: str) -> str:
        return self.unquote(self.take(_STRING, what))

    def label(self) -> str:
        """``%name``, ``%3`` or ``%"odd name"``, as it stands."""
        return self.take(_LABEL, "a value such as %0")

    def listed(self, one: Callable[[], T]) -> list[T]:
        """What ``one`` reads, between brackets, with commas."""
        self.expect("(")
        found: list[T] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            found.append(one())
        return found

    def number(self) -> int:
        return int(self.take(_INT, "a number"))

    def type(self) -> TensorType:
        text = self.take(_TYPE, "a type such as f32[b,784]")
        known = self._types.get(text)
        if known is None:
            try:
                known = self._types[text] = parse_type(text)
            except ValueError as problem:
                raise self.problem(str(problem), self.at - len(text)) from None
        return known

    def dim(self) -> Dim:
        """An index expression that no bracket encloses: up to a comma outside of brackets, a brace,
        a comparison, the words "by", "from %", "to %", "scratch =", "times %" and "fused {" or the
        end of the line."""
        self._skip()
        start, depth = self.at, 0
        while found := _DIM.match(self.text, self.at):
            self.at = found.end()
            sign = self.text[self.at:self.at + 1]
            if sign != "(" and not (depth and sign in (",", ")")):
                break
            depth += (sign == "(") - (sign == ")")
            self.at += 1
        if self.at == start:
            raise self.problem("expected a dim")
        return self.dim_of(self.text[start:self.at])

    def dim_of(self, text: str) -> Dim:
        """The dim of text that has just been read."""
        try:
            return parse_dim(text.strip())
        except ValueError as problem:
            raise self.problem(str(problem), self.at - len(text)) from None

    def device(self) -> Device:
        text = self.take(_DEVICE, "a device")
        try:
            return Device.parse(text)
        except ValueError as problem:
            raise self.problem(str(problem), self.at - len(text)) from None

    def locs(self) -> tuple[Loc, ...]:
        """``model.py:12 in dense, lib/util.py:3`` up to the end of the line."""
        found: list[Loc] = []
        while match := self.match(_LOC):
            found.append(Loc(self.unquote(match[1]), int(match[2]), self.unquote(match[3] or "")))
            if not self.accept(","):
                return tuple(found)
        raise self.problem("expected a place such as model.py:12")

    def origin(self) -> tuple[Loc, ...]:
        """The note ``// from model.py:12``, if there is one."""
        return self.locs() if self.accept("// from ") else ()
