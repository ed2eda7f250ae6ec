"""Rows sorted by one Triton program each: a bitonic network over memory, of any length.

All comparators point one way (see ``cpu.sorts.network``), so what is beyond the end of a row takes
no part. The keys of a row stand in the room, but those that are one word with their places in the
row that is stored to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ...ir.indices.index import Dim, symbol
from ...ir.kernels.kernel import Stmt
from ...ir.kernels.rows import RowStmt, Sort
from ...ir.scalar.order import key_of, packed, place_of, value_of
from ...ir.types import DTYPES, I64, DType
from ..schedule.layout import is_tile
from .memory import TileMemory
from .scalars import Tile

PAIRS = 1024  # of one step of a program

_NETWORK = """@triton.jit
def {name}({row}, n):
    run = n * 0 + 1
    while run < n:
        {name}_pass({row}, n, run, True)
        step = run // 2
        while step > 0:
            {name}_pass({row}, n, step, False)
            step = step // 2
        run = run * 2"""
_PASS = """@triton.jit
def {name}_pass({row}, n, step, TURNED: tl.constexpr):
    pairs = (n + 2 * step - 1) // (2 * step) * step
    for start in range(0, pairs, {pairs}):
        pair = start + tl.arange(0, {pairs}).to(tl.int64)
        first, own = pair // step * (2 * step), pair % step
        low, high = first + own, first + step + own
        if TURNED:
            high = first + (2 * step - 1) - own
        ok = (pair < pairs) & (high < n)
{loads}
        turn = {turn}
{stores}
    tl.debug_barrier()"""


Statements = Callable[[Sequence[Stmt]], None]


def emit_sort(f: TileMemory, stmt: Sort, statements: Statements) -> None:
    """The body of a kernel that sorts; ``statements`` writes those before the sort."""
    whole = DTYPES[f"i{stmt.dtype.bits}"]
    pairs = stmt.places and whole == I64
    row = row_of(f, stmt, stmt.param)
    room = row_of(f, stmt, stmt.room)
    with each(f, stmt.axis) as place:
        statements(f.kernel.body[:-1])
        value = f.values[stmt.value]
        key = key_of(f, value, stmt.dtype, places=stmt.places)
        if stmt.places:
            at = Tile(f"({place.text}).to(tl.int64)", "i64", place.axes)
            store(f, row, place, at if pairs else packed(f, key, at))
        if pairs or not stmt.places:
            store(f, room, place, key)
    f.line("tl.debug_barrier()")
    keys = row if stmt.places and not pairs else room
    length = f.index(f.kernel.axis(stmt.axis).extent, ())
    sort_row(f, (keys, row) if pairs else (keys,), length)
    if not pairs:
        with each(f, stmt.axis) as place:
            word = in_row(f, keys, place, I64 if stmt.places else whole)
            store(f, row, place, place_of(f, word) if stmt.places else f.bitcast(
                value_of(f, word, stmt.dtype), stmt.dtype))


def row_of(f: TileMemory, stmt: RowStmt, param: str) -> str:
    """A variable for where the row of a parameter begins."""
    width: Dim = f.kernel.param(param).type.shape[-1]
    name = f.fresh(f"{f.pointers[param]}_row")
    f.line(f"{name} = {f.pointers[param]} + {f.index(stmt.indices[0] * width, ())}"
           if len(stmt.indices) > 1 else f"{name} = {f.pointers[param]}")
    return name


@contextmanager
def each(f: TileMemory, axis_name: str) -> Iterator[Tile]:
    """Tiles of an axis, one after the other if there are several; gives the places in them."""
    axis = f.kernel.axis(axis_name)
    name = f.axes[axis.name]
    with f.scope():
        if axis.kind == "seq":
            assert is_tile(axis)
            start = f.fresh(f"{name}_start")
            f.line(f"for {start} in range(0, {f.index(axis.extent, ())}, {axis.block}):")
            f.indent += 1
            f.tile_axis(axis, f"{start} + ")
        yield Tile(f.index(symbol(axis.name), (axis.name,)), "i64", (axis.name,))


def in_row(f: TileMemory, row: str, place: Tile, dtype: DType) -> Tile:
    """What a row has at places."""
    parts = f.in_range(place.axes)
    mask = f", mask={parts[0]}, other=0" if parts else ""
    return f.define(f"tl.load({row} + {place.text}{mask})", dtype, place.axes, pure=False)


def store(f: TileMemory, row: str, place: Tile, value: Tile) -> None:
    """Put values to places of a row."""
    parts = f.in_range(place.axes)
    mask = f", mask={parts[0]}" if parts else ""
    f.line(f"tl.store({row} + {place.text}, {f.typed(value)}{mask})")


def sort_row(f: TileMemory, parts: Sequence[str], length: str) -> None:
    """Sort a row of keys, with their places if these are apart. One of one element is in order:
    Triton 3.6 cannot compile loops without a round."""
    if length != "1":
        f.line(f"{_network(f, pairs=len(parts) > 1)}({', '.join(parts)}, {length})")


def _network(f: TileMemory, *, pairs: bool) -> str:
    """The name of the function that sorts a row of keys, with their places if these are apart."""
    name, parts = ("sort_pairs", ("keys", "places")) if pairs else ("sort_keys", ("keys",))
    loads, stores = [], []
    for part in parts:
        for side, at, other in (("a", "low", "b"), ("b", "high", "a")):
            loads.append(f"{part}_{side} = tl.load({part} + {at}, mask=ok, other=0)")
            stores.append(f"tl.store({part} + {at}, tl.where(turn, {part}_{other}, "
                          f"{part}_{side}), mask=ok)")
    turn = "keys_b < keys_a"
    if pairs:
        turn = f"({turn}) | ((keys_b == keys_a) & (places_b < places_a))"
    words = {"name": name, "row": ", ".join(parts), "pairs": PAIRS, "turn": turn,
             "loads": "\n".join(" " * 8 + line for line in loads),
             "stores": "\n".join(" " * 8 + line for line in stores)}
    f.functions[f"{name}_pass"] = _PASS.format(**words)
    f.functions[name] = _NETWORK.format(**words)
    return name
