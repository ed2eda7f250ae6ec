"""Loc: where the user's code made a value, or did what an error is about."""

from __future__ import annotations

import linecache
from types import CodeType
from typing import Any

from .record import field, record


@record(frozen=True, slots=True)
class Loc:
    """A place in the user's code. Columns are found only when an error is rendered."""

    file: str
    line: int
    function: str = ""
    code: CodeType | None = field(default=None, compare=False, repr=False)
    instruction: int = field(default=-1, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Code does not leave its process: elsewhere a place has no columns."""
        return Loc, (self.file, self.line, self.function)

    @property
    def source(self) -> str:
        """The source line, without its newline; empty when the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    @property
    def columns(self) -> tuple[int, int] | None:
        """The 0-based, half-open column range of the expression, in bytes, if known."""
        if self.code is None or self.instruction < 0:
            return None
        for at, (line, last, first_column, last_column) in enumerate(self.code.co_positions()):
            if at * 2 == self.instruction and first_column is not None:
                if line == last and last_column is not None:
                    return first_column, last_column
                return first_column, first_column + 1
        return None

    def __str__(self) -> str:
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line}"
