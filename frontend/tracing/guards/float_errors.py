"""What traced code tells NumPy to do about floating-point errors: a compiled program has infinities
and NaN, and neither warns nor raises. Its callers are told as it runs (``runtime.entry``)."""

from __future__ import annotations

from collections.abc import Mapping

from ....ir.diagnose import error
from ....runtime.entry.float_errors import FIX, heard
from ...face.source import user_loc


def check_unheard(before: Mapping[str, str]) -> None:
    """Raises UnsupportedError (W113) where traced code has asked to hear of errors, as
    ``np.errstate(divide="raise")`` does; ``before`` is what its caller had asked for."""
    new = [f"{kind}={how!r}" for kind, how in heard().items() if before.get(kind) != how]
    if new:
        raise error("W113", f"np.errstate({', '.join(new)}) has no effect in a compiled program, "
                            "in which 1 / 0.0 is inf", locs=user_loc(), hint=FIX)
