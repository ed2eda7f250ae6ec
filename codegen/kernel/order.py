"""The order of the terms of a float sum: a function of its extent and dtype, and of nothing else.

So the same sum has the same bits beside other work, over a view, in any loop and on any target.
1024 bits of lanes are what keeps any vector unit busy; a chunk gives each lane 32 terms (of
float32) and is as long as a row that is likely to be summed often, and the pairwise sum of chunks
lets the error grow as log n: it is within twice that of NumPy's sums of 128.
"""

from __future__ import annotations

from ...ir.indices.index import Dim
from ...ir.kernels.kernel import Order
from ...ir.types import DType

LANE_BITS = 1024  # of all lanes together
CHUNK = 1024      # terms


def order_of(extent: Dim, dtype: DType) -> Order:
    """The order of a sum of ``extent`` terms, without lanes and chunks that would be empty.

    Empty ones change no bit, so a sum of unknown extent has the bits of those of known ones.
    """
    lanes = LANE_BITS // dtype.bits
    if not isinstance(extent, int):
        return Order(lanes, CHUNK)
    needed = 1 << max(0, extent - 1).bit_length()
    return Order(min(lanes, needed), CHUNK if extent > CHUNK else 0)
