"""What NumPy is told to do about floating-point errors: a compiled program has infinities and NaN,
and neither warns nor raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....ir.diagnose import error
from ....ir.types import Loc
from ..source import user_loc
from .lost import warn

_HEARD = frozenset({"raise", "call", "print", "log"})
_FIX = "check results: assert np.all(np.isfinite(y))"


def heard() -> dict[str, str]:
    """The kinds of errors of which the program would hear, and how."""
    return {kind: how for kind, how in np.geterr().items() if how in _HEARD}


def check_unheard(before: Mapping[str, str]) -> None:
    """Raises UnsupportedError (W113) where traced code has asked to hear of errors, as
    ``np.errstate(divide="raise")`` does; ``before`` is what its caller had asked for."""
    new = [f"{kind}={how!r}" for kind, how in heard().items() if before.get(kind) != how]
    if new:
        raise error("W113", f"np.errstate({', '.join(new)}) has no effect in a compiled program, "
                            "in which 1 / 0.0 is inf", locs=user_loc(), hint=_FIX)


def warn_unheard(before: Mapping[str, str], locs: Sequence[Loc]) -> None:
    """A TracingWarning of what the caller has asked for, which calls of the program ignore."""
    if before:
        asked = ", ".join(f"{kind}={how!r}" for kind, how in before.items())
        warn(f"np.seterr({asked}), or np.errstate, has no effect on calls of compiled code, in "
             f"which 1 / 0.0 is inf: {_FIX}", locs)
