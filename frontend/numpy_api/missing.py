"""NumPy's functions that cannot be traced, with what to write instead."""

from __future__ import annotations

import numpy as np

from .registry import missing

_OUTSIDE = "it outside of the traced function, and pass its result in"

# Files, dates, and questions about memory: not what is computed on.
missing(np.save, np.savetxt, np.savez, np.savez_compressed, np.busday_count, np.busday_offset,
        np.is_busday, np.datetime_as_string, np.may_share_memory, np.shares_memory, np.einsum_path,
        np.min_scalar_type, instead=_OUTSIDE)
