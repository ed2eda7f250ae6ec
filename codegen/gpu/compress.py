"""Elements that a mask chooses, stored one after the other by one Triton program."""

from __future__ import annotations

from ...ir.kernels.rows import Compress
from .memory import TileMemory
from .sorts import Statements, each, row_of


def emit_compress(f: TileMemory, stmt: Compress, statements: Statements) -> None:
    """The body of a kernel that compresses; ``statements`` writes those before."""
    row, size = row_of(f, stmt, stmt.param), f.index(f.kernel.axis(stmt.chosen).extent, ())
    count = f.fresh("count")
    f.line(f"{count} = tl.full((), 0, tl.int64)")
    with each(f, stmt.axis) as place:
        statements(f.kernel.body[:-1])
        value, mask = f.values[stmt.value], f.values[stmt.mask]
        parts = [f"({place.text} >= 0)", f"({f.typed(mask)}).to(tl.int1)", *f.in_range(place.axes)]
        chosen, at = f.fresh("chosen"), f.fresh("at")
        f.line(f"{chosen} = ({' & '.join(parts)}).to(tl.int64)")
        f.line(f"{at} = {count} + tl.cumsum({chosen}, 0) - 1")
        f.line(f"tl.store({row} + {at}, {f.typed(value)}, "
               f"mask=({chosen} != 0) & ({at} < {size}))")
        f.line(f"{count} += tl.sum({chosen}, 0)")
    with each(f, stmt.chosen) as place:
        parts = [f"({place.text} >= {count})", *f.in_range(place.axes)]
        f.line(f"tl.store({row} + {place.text}, 0, mask={' & '.join(parts)})")
