"""Walks in this process: words with the addresses of objects (``ir/plans/walk``), and the door by
which calls of compiled functions come to them.

    words = Words()
    words.op(MATCH, "dict", 2, "w"); ...        numbers, and objects that the words keep
    walk = Walk(words.section..., function)
    function.walks = together([walk, older])    what the door tries in turn
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...ir.plans.walk import HEADER, MATCH
from ...ir.record import record, replace
from ..state import Cell


class Words:
    """Words, and the objects that they are the addresses of."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.held: list[object] = []

    def __len__(self) -> int:
        return len(self.words)

    def number(self, *numbers: int) -> None:
        self.words += numbers

    def object(self, *objects: object) -> None:
        self.held += objects
        self.words += map(id, objects)

    def op(self, kinds: Mapping[str, int], name: str) -> None:
        """The number of an instruction."""
        self.words.append(kinds[name])


@record(frozen=True)
class Parts:
    """The parts of a walk; see ``ir.plans.walk``. A slot has a name or None; ``locks`` are cells,
    oldest first."""

    slots: Sequence[str | None]
    positional: int
    match: Words
    leaves: int
    attributes: int  # of objects that are taken apart
    guards: Words
    guard_count: int
    registers: int
    sources: Words
    params: int
    cells_read: int
    results: int
    single: bool
    cells: Sequence[Cell]
    locks: Sequence[Cell]
    build: Words
    inout: Sequence[tuple[int, int, int]]  # a parameter, its result, and how
    owners: int
    fills: Words
    fill_count: int
    bytes: Sequence[int]  # of an element of each parameter, 0 of what is no array


class Walk:
    """One walk; ``address`` is where its words are as long as it is held. ``function`` is the
    address of the program's entry, ``keep`` what that lives in."""

    def __init__(self, parts: Parts, function: int, keep: object) -> None:
        names = [name for name in parts.slots if name is not None]
        head = {
            "slots": len(parts.slots), "positional": parts.positional, "leaves": parts.leaves,
            "owned": parts.attributes + parts.guard_count + parts.cells_read,
            "registers": parts.registers, "params": parts.params, "results": parts.results,
            "written": len(parts.cells), "owners": parts.owners, "single": int(parts.single),
            "function": function,
        }
        slots = Words()
        for name in parts.slots:
            slots.number(0) if name is None else slots.object(name)
        guards = Words()
        guards.number(parts.guard_count, *parts.guards.words)
        cells, locks = Words(), Words()
        cells.object(*parts.cells)
        locks.number(len(parts.locks))
        locks.object(*parts.locks)
        inout = Words()
        inout.number(len(parts.inout), *[word for each in parts.inout for word in each],
                     *parts.bytes)
        fills = Words()
        fills.number(parts.fill_count, *parts.fills.words)
        words: list[int] = []
        for name, part in (("names", slots), ("match", parts.match), ("guards", guards),
                           ("sources", parts.sources), ("cells", cells), ("locks", locks),
                           ("build", parts.build), ("inout", inout), ("fills", fills)):
            head[name] = len(HEADER) + len(words)
            words += part.words
        self._words = _packed([head[name] for name in HEADER] + words)
        self._of = parts, function, keep
        self._held = (keep, names, parts.match.held, parts.guards.held, parts.sources.held,
                      parts.build.held, parts.fills.held,
                       tuple(parts.cells), tuple(parts.locks))

    def of_method(self, reference: Any) -> Walk:
        """The walk of the same call with an object before all arguments: that which the reference
        is to, whose method this is."""
        parts, function, keep = self._of
        match = Words()
        match.op(MATCH, "referent")
        match.object(reference)
        match.op(MATCH, "kind")
        match.object(type(reference()))
        match.words += parts.match.words
        match.held += parts.match.held
        return Walk(replace(parts, slots=[None, *parts.slots], positional=parts.positional + 1,
                            match=match, attributes=parts.attributes + 1), function, keep)

    @property
    def address(self) -> int:
        """Where the words are."""
        return ctypes.cast(ctypes.c_char_p(self._words), ctypes.c_void_p).value or 0


def together(walks: Sequence[Walk]) -> tuple[Any, ...] | None:
    """What the door finds at a function that has these walks, None where it has none."""
    if not walks:
        return None
    return _packed([len(walks), *[walk.address for walk in walks]]), *walks


def _packed(words: Sequence[int]) -> bytes:
    return struct.pack(f"{len(words)}Q", *words)


@record(frozen=True)
class Door:
    """Where calls come in: the class of functions, whose slot ``walks`` has what ``together``
    gives; the variable that is None where nothing is traced; what Python does with calls that no
    walk is for, and with what is raised."""

    kind: type
    slot: str
    recording: ContextVar[Any]
    slowly: Callable[..., Any]
    told: Callable[[Any, BaseException], BaseException | None]

    def values(self) -> dict[str, int]:
        """What the code of the door asks for."""
        return {"function.walks": offset_of(self.kind, self.slot), "recording": id(self.recording),
                "slowly": id(self.slowly), "told": id(self.told)}


def offset_of(kind: type, slot: str) -> int:
    """Where in objects of a class a slot is. Raises RuntimeError where that cannot be told."""
    member = vars(kind)[slot]
    definition = _word(id(member) + 40)  # PyMemberDescrObject.d_member
    offset = _word(definition + 16)      # PyMemberDef.offset
    if not 16 <= offset < 1 << 12:
        raise RuntimeError(f"the slot {slot} is not where it was looked for")
    return offset


def _word(address: int) -> int:
    return int.from_bytes(ctypes.string_at(address, 8), "little")


def cell_offsets() -> dict[str, int]:
    """Where a cell has its value, or what it has lent, and its lock; looked at in one. Raises
    RuntimeError where that is not so."""
    cell = Cell(np.zeros(1))
    cell.lent = np.zeros(1)
    found = {name: offset_of(Cell, name) for name in ("held", "lent", "lock")}
    for name, offset in found.items():
        if _word(id(cell) + offset) != id(getattr(cell, name)):
            raise RuntimeError(f"a cell's {name} is not where it was looked for")
    return {f"cell.{name}": offset for name, offset in found.items()}
