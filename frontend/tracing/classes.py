"""The class of what a value of traced code stands for, as rewritten code asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays.buffer import Buffer
from .arrays.grid import Grid
from .arrays.selection import Selection
from .late import LateText
from .values.shown import shown_class
from .values.tracer import Tracer


def class_of(x: Any) -> type:
    """``type(x)``."""
    if isinstance(x, LateText):
        return str
    if isinstance(x, (Selection, Grid, Buffer)):
        return np.ndarray
    return shown_class(x) if isinstance(x, Tracer) else type(x)


def is_instance(x: Any, kinds: Any) -> bool:
    """``isinstance(x, kinds)``: classes of methods, such as ``Iterable``, look at the class that is
    shown, and not at that of ours."""
    shown = class_of(x)
    return isinstance(x, kinds) if shown is type(x) else issubclass(shown, kinds)
