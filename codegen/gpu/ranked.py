"""Elements of a row by their ranks, from a sorted row of keys; places by parts from a second sort.

    keys 7 1 9 4 4 8, ranks 2 4     sorted 1 4 4 7 8 9: edges 4 8     parts 2 0 4 1 1 3
    words part << 32 | place, sorted: places 1 | 3 4 | 0 | 5 | 2
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.kernels.kernel import Stmt
from ...ir.kernels.rows import Ranked
from ...ir.scalar.order import key_of, packed, place_of, value_of
from ...ir.types import DTYPES, I64
from .memory import TileMemory
from .scalars import Tile
from .sorts import Statements, each, in_row, row_of, sort_row, store


def emit_ranked(f: TileMemory, stmt: Ranked, statements: Statements) -> None:
    """The body of a kernel that finds ranks; ``statements`` writes those before."""
    body = f.kernel.body[:-1]
    of_rank = [one for one in body if stmt.axis not in _axes(f, one)]
    of_value = [one for one in body if stmt.ranks not in _axes(f, one)]
    word = I64 if stmt.whole else DTYPES[f"i{stmt.dtype.bits}"]
    row, room = row_of(f, stmt, stmt.param), row_of(f, stmt, stmt.room)
    length = f.index(f.kernel.axis(stmt.axis).extent, ())

    def key() -> Tile:
        statements(of_value)
        return f.cast(key_of(f, f.values[stmt.value], stmt.dtype, places=stmt.places), word)

    with each(f, stmt.axis) as place:
        store(f, room, place, key())
    f.line("tl.debug_barrier()")
    sort_row(f, (room,), length)
    with each(f, stmt.ranks) as at:
        statements(of_rank)
        rank = f.values[stmt.rank]
        text = f.define(f"tl.where({rank.text} < 0, {rank.text} + {length}, {rank.text})", I64,
                        rank.axes).text
        text = f"tl.maximum(tl.minimum({text}, {length} - 1), 0)"
        found = f.define(f"tl.load({room} + {text})", word, rank.axes, pure=False)
        if stmt.whole:
            edges = f"{room} + {length}"
            store(f, edges, at, found)
        else:
            store(f, row, at, f.bitcast(value_of(f, found, stmt.dtype), stmt.dtype))
    if stmt.whole:
        _by_parts(f, stmt, key, row, room)


def _by_parts(f: TileMemory, stmt: Ranked, key: Callable[[], Tile], row: str, room: str) -> None:
    """The elements or places of a row by parts, whose edges stand behind the keys in the room."""
    length, count = (f.index(f.kernel.axis(name).extent, ()) for name in (stmt.axis, stmt.ranks))
    words = row if stmt.places else room
    f.line("tl.debug_barrier()")
    with each(f, stmt.axis) as place:
        known = key()
        part = _part(f, known, f"{room} + {length}", count)
        store(f, words, place, packed(f, part, Tile(f"({place.text}).to(tl.int64)", "i64",
                                                    place.axes)))
        if not stmt.places:
            value = value_of(f, f.cast(known, DTYPES[f"i{stmt.dtype.bits}"]), stmt.dtype)
            store(f, row, place, f.bitcast(value, stmt.dtype))
    f.line("tl.debug_barrier()")
    if not stmt.places:  # they go along with their words
        sort_row(f, (room, row), length)
        return
    sort_row(f, (row,), length)
    with each(f, stmt.axis) as place:
        store(f, row, place, place_of(f, in_row(f, row, place, I64)))


def _axes(f: TileMemory, stmt: Stmt) -> frozenset[str]:
    return f.depends[stmt.name] if stmt.name else f.effects[id(stmt)]


def _part(f: TileMemory, key: Tile, edges: str, count: str) -> Tile:
    """How many edges the keys have reached, and how many they have passed."""
    key = f.define(f"{f.typed(key)} + 0", I64, key.axes)
    part, at, edge = f.fresh("part"), f.fresh("at"), f.fresh("edge")
    f.line(f"{part} = {key.text} * 0")
    f.line(f"for {at} in range(0, {count}):")
    f.line(f"    {edge} = tl.load({edges} + {at})")
    for sign in (">=", ">"):
        f.line(f"    {part} += ({key.text} {sign} {edge}).to(tl.int64)")
    return Tile(part, "i64", key.axes)
