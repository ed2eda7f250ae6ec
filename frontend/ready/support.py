"""The code that all calls go through, bound to this process: once there is some, calls of compiled
functions find the native door."""

from __future__ import annotations

import threading
from functools import cache

from ...codegen.shared import SHARED, SUPPORT
from ...ir.forks import freed
from ...runtime.entry.support import Support
from ...runtime.entry.walk import Door
from ..face.recording import RECORDING
from ..face.walked import Walked, slowly, told

_LOCK = freed(threading.RLock())


def support() -> Support | None:
    """None where nobody has compiled it yet, or it does not fit this interpreter."""
    if SHARED.found(SUPPORT) is None:
        return None
    with _LOCK:
        return _bound()


@cache
def _bound() -> Support | None:
    addresses = SHARED.found(SUPPORT)
    assert addresses is not None
    door = Door(Walked, "walks", RECORDING, slowly, told)
    try:
        made = Support(addresses.__getitem__, keep=SHARED, door=door)
    except RuntimeError:
        return None
    Walked.open(made.door)
    return made
