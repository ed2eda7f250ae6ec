"""The op table: every row by name, frozen on import."""

from __future__ import annotations

from types import MappingProxyType

from .axes.reduce import ROWS as REDUCE_ROWS
from .axes.scan import ROWS as SCAN_ROWS
from .axes.sort import ROWS as SORT_ROWS
from .control.effect import ROWS as EFFECT_ROWS
from .control.extent import ROWS as EXTENT_ROWS
from .control.queue import ROWS as QUEUE_ROWS
from .control.region import ROWS as REGION_ROWS
from .elements.complex import ROWS as COMPLEX_ROWS
from .elements.logarithm import ROWS as LOGARITHM_ROWS
from .elements.map import ROWS as MAP_ROWS
from .elements.random import ROWS as RANDOM_ROWS
from .elements.special import ROWS as SPECIAL_ROWS
from .elements.whole import ROWS as WHOLE_ROWS
from .hosted.fourier import ROWS as FOURIER_ROWS
from .hosted.host import ROWS as HOST_ROWS
from .op import OpDef
from .places.compress import ROWS as COMPRESS_ROWS
from .places.index import ROWS as INDEX_ROWS
from .places.view import ROWS as VIEW_ROWS
from .places.window import ROWS as WINDOW_ROWS

ALL_ROWS: tuple[OpDef, ...] = (
    *MAP_ROWS, *LOGARITHM_ROWS, *REDUCE_ROWS, *VIEW_ROWS, *WINDOW_ROWS, *INDEX_ROWS, *SCAN_ROWS,
    *SORT_ROWS, *COMPRESS_ROWS, *SPECIAL_ROWS, *RANDOM_ROWS, *COMPLEX_ROWS, *HOST_ROWS,
    *FOURIER_ROWS, *EFFECT_ROWS, *QUEUE_ROWS, *EXTENT_ROWS, *REGION_ROWS, *WHOLE_ROWS)

OPS: MappingProxyType[str, OpDef] = MappingProxyType({row.name: row for row in ALL_ROWS})
