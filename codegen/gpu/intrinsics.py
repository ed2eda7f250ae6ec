"""Who writes the instructions of ``ir.kernels.intrinsics`` that make rows in Triton, by the class
of a statement. Those that take an axis away are parts of loops: ``source.SUMS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ...ir.kernels.rows import Compress, Ranked, RowStmt, Sort
from .compress import emit_compress
from .memory import TileMemory
from .ranked import emit_ranked
from .sorts import Statements, emit_sort

ROWS: Mapping[type[RowStmt], Callable[[TileMemory, Any, Statements], None]] = MappingProxyType({
    Sort: emit_sort, Ranked: emit_ranked, Compress: emit_compress})
