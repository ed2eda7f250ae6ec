"""Numbers that the user asks NumPy for where there is a traced value among the arguments.

    np.random.normal(x, size=2)        rng.choice(x, 3)        np.random.shuffle(x)

NumPy's generators are C code that dispatches nothing: it takes a value for an array, or asks an
array for its memory, so that an error of ours is about something that the user has not written.
"""

from __future__ import annotations

import ast
import re
from types import MappingProxyType

import numpy as np

from ....ir.diagnose import Error, error
from ...face.source import user_loc

_OTHERS = MappingProxyType({  # of RandomState
    "rand": "random", "random_sample": "random", "ranf": "random", "randn": "standard_normal",
    "randint": "integers"})


def refused_draw(made_here: bool = False) -> Error | None:
    """The error of such a line, if the user's is one. A generator that the line makes itself, by
    ``np.random.default_rng(0).normal(s)``, draws the same at each call, so that ``s`` may be a
    number that is known; ``made_here``: not here."""
    for loc in user_loc():
        columns = loc.columns
        call = loc.source.encode()[columns[0]:columns[1]].decode() if columns else loc.source
        generator, name = _called(call)
        if not (made_here or re.fullmatch(r"[\w.]+", generator)):
            return None
        ours = _OTHERS.get(name, name)
        if name not in _OTHERS and not callable(getattr(np.random.Generator, name, None)):
            return None
        return error("W201", f"{generator}.{name} of NumPy draws while the function is traced, "
                             "when traced values are not known", locs=(loc,),
                     hint=f"rng = weft.random.default_rng(seed) outside of the function, and "
                          f"rng.{ours} in it")
    return None


def _called(text: str) -> tuple[str, str]:
    """The object and the name of the method that a line calls, if it is such a call."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return "", ""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return "", ""
    return ast.unparse(call.func.value), call.func.attr
