"""``import weft.numpy as np``: NumPy's names, for plain arrays and for traced ones.

    outside of a trace      every function is NumPy's own: arrays and bits are NumPy's
    in a traced function    calls are recorded, as those of NumPy's functions on traced values are

NumPy dispatches most of its functions on their arguments, so they are here as they are. Those that
it does not dispatch (what makes arrays, and what takes lists) record here, called by whom they may
be: in graphs, and in functions whose source is not at hand, too. ``standard`` has what the array
API standard has and NumPy has otherwise, so that this is a namespace of the standard, version
2024.12; traced arrays give it to libraries that ask them for theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.arrays.recorded import OF_WEFT
from . import fft as fft
from . import linalg as linalg
from . import standard
from .inspection import Inspection

__array_api_version__ = "2024.12"
__array_namespace_info__ = Inspection
__all__ = [name for name in np.__all__ if not name.startswith("_")]

globals().update(OF_WEFT)
globals().update({function.__name__: function for function in standard.FUNCTIONS})


def __getattr__(name: str) -> Any:
    """NumPy's own; its modules are imported when they are asked for, as by NumPy."""
    if name not in __all__:
        raise AttributeError(f"module 'weft.numpy' has no attribute {name!r}")
    found = globals()[name] = getattr(np, name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__array_api_version__", "__array_namespace_info__"]
