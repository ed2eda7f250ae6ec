"""``weft.numpy.fft``: NumPy's, and the frequencies in the dtype that one asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.arrays.recorded import recording

globals().update({name: getattr(np.fft, name) for name in np.fft.__all__})
__all__ = sorted(np.fft.__all__)


@recording
def fftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """``np.fft.fftfreq`` in a dtype; float64 for None."""
    return np.fft.fftfreq(n, d, device).astype(dtype or float, copy=False)


@recording
def rfftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """``np.fft.rfftfreq`` in a dtype; float64 for None."""
    return np.fft.rfftfreq(n, d, device).astype(dtype or float, copy=False)
