"""``weft.numpy.linalg``: NumPy's, which dispatches all of its functions."""

import numpy as np

globals().update({name: getattr(np.linalg, name) for name in np.linalg.__all__})
__all__ = sorted(np.linalg.__all__)
