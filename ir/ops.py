"""The op table: every row by name, frozen on import."""

from __future__ import annotations

from types import MappingProxyType

from . import ops_effect, ops_index, ops_logarithm, ops_map, ops_reduce, ops_region, ops_view
from .op import OpDef

ALL_ROWS: tuple[OpDef, ...] = (*ops_map.ROWS, *ops_logarithm.ROWS, *ops_reduce.ROWS, *ops_view.ROWS,
                               *ops_index.ROWS, *ops_effect.ROWS, *ops_region.ROWS)

OPS: MappingProxyType[str, OpDef] = MappingProxyType({row.name: row for row in ALL_ROWS})
