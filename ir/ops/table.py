"""The op table: every row by name, frozen on import."""

from __future__ import annotations

from types import MappingProxyType

from . import (
    complex as ops_complex,
)
from . import (
    effect as ops_effect,
)
from . import (
    fourier as ops_fourier,
)
from . import (
    host as ops_host,
)
from . import (
    index as ops_index,
)
from . import (
    logarithm as ops_logarithm,
)
from . import (
    map as ops_map,
)
from . import (
    queue as ops_queue,
)
from . import (
    random as ops_random,
)
from . import (
    reduce as ops_reduce,
)
from . import (
    region as ops_region,
)
from . import (
    scan as ops_scan,
)
from . import (
    sort as ops_sort,
)
from . import (
    special as ops_special,
)
from . import (
    view as ops_view,
)
from . import (
    whole as ops_whole,
)
from .op import OpDef

ALL_ROWS: tuple[OpDef, ...] = (*ops_map.ROWS, *ops_logarithm.ROWS,
                               *ops_reduce.ROWS, *ops_view.ROWS,
                               *ops_index.ROWS, *ops_scan.ROWS, *ops_sort.ROWS,
                               *ops_special.ROWS, *ops_random.ROWS, *ops_complex.ROWS,
                               *ops_host.ROWS, *ops_fourier.ROWS, *ops_effect.ROWS, *ops_queue.ROWS,
                               *ops_region.ROWS, *ops_whole.ROWS)

OPS: MappingProxyType[str, OpDef] = MappingProxyType({row.name: row for row in ALL_ROWS})
