"""The order of the terms of a float sum: a function of its extent and dtype, and of nothing else.

A product of matrices has a chain for each chunk, so that a tile of sums stays in registers; its
chunks are about as long as BLAS libraries read at a time, and so errors are like theirs.

So the same sum has the same bits beside other work, over a view, in any loop and on any target.
1024 bits of lanes are what keeps any vector unit busy; a chunk gives each lane 32 terms (of
float32) and is as long as a row that is likely to be summed often, and the pairwise sum of chunks
lets the error grow as log n: it is within twice that of NumPy's sums of 128.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.indices.index import Dim, product
from ...ir.kernels.combine import Order
from ...ir.types import DType

LANE_BITS = 1024  # of all lanes together
CHUNK = 1024      # terms
CHAIN = 512       # of a sum of products: its chunk, all in one chain


def order_of(extent: Dim, dtype: DType) -> Order:
    """The order of a sum of ``extent`` terms, without lanes and chunks that would be empty.

    Empty ones change no bit, so a sum of unknown extent has the bits of those of known ones.
    """
    lanes = LANE_BITS // dtype.bits
    if not isinstance(extent, int):
        return Order(lanes, CHUNK)
    needed = 1 << max(0, extent - 1).bit_length()
    return Order(min(lanes, needed), CHUNK if extent > CHUNK else 0)


def chunk_of(extents: Iterable[Dim], dtype: DType) -> int:
    """The chunk of a sum of products over axes of these extents; 0: there is no second one."""
    terms = product(extents)
    return CHAIN if dtype.is_float and not (isinstance(terms, int) and terms <= CHAIN) else 0
