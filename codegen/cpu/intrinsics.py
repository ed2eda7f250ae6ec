"""Who writes the instructions of ``ir.kernels.intrinsics`` for a CPU, by the class of a statement.

Those that make rows are all that a task does; those that take an axis away are parts of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ...ir.kernels.rows import Compress, Ranked, RowStmt, Sort
from .loops.scope import Scope
from .loops.statements import ACCUMULATORS, StmtEmitter
from .sorts.compress import emit_compress
from .sorts.long_row import emit_sort
from .sorts.ranked import emit_ranked

__all__ = ["ACCUMULATORS", "ROWS"]

# One task; the last operand is the prefix of what runs tasks and tells whether the run is over.
ROWS: Mapping[type[RowStmt], Callable[[StmtEmitter, Scope, Any, str], None]] = MappingProxyType({
    Sort: emit_sort, Ranked: emit_ranked, Compress: emit_compress})
