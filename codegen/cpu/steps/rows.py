"""What a row of a step table is, and the words that fill the context of a kernel."""

from __future__ import annotations

from enum import IntEnum

from ....ir.record import record

STATUS = 0   # the register that holds the address at which a failed check leaves its number
THREADS = 1  # the one that holds how many threads the program may use


class Word(IntEnum):
    """What the low bits of a word say that the others count."""

    ARGUMENT = 0   # a pointer of ``args``
    OFFSET = 1     # bytes from the start of the arena
    SIZED = 2      # the bytes that a register says, from there
    VALUE = 3      # a register itself


class Kind(IntEnum):
    """What a row does."""

    LAUNCH = 0
    COPY = 1       # ``tasks`` bytes
    CONTROL = 2    # go on if its function says so, else at row ``tasks``
    JUMP = 3       # go on at row ``tasks``
    HOST = 4       # call the host's function number ``tasks``
    CALL = 5       # call a function of the program's own, which gives a status


@record(frozen=True)
class Row:
    """Words ``first`` and so on, ``count`` of them. ``tasks`` and ``shared`` are numbers, or
    negative: ``~n`` is register n. Workers take part where ``shared`` is above 0. ``check`` is the
    first check of a launch. ``clock`` is the number of a row whose time is told; it is no part of
    the text."""

    kind: Kind
    function: str = "null"
    first: int = 0
    count: int = 0
    tasks: int = 0
    shared: int = 0
    check: int = 1
    clock: int = -1

    TYPE = "{ ptr, i64, i64, i64, i64, i64, i64 }"

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.kind, self.first, self.count, self.tasks, self.shared, self.check

    def __str__(self) -> str:
        numbers = ", ".join(f"i64 {int(n)}" for n in self.numbers)
        return f"{self.TYPE} {{ ptr {self.function}, {numbers} }}"
