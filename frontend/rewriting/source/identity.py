"""Whether code asks what Python alone answers, with no word to the object that is asked about."""

from __future__ import annotations

import collections.abc
import dis
from collections.abc import Iterator
from types import CodeType
from typing import Any


def asks_identity(function: Any) -> bool:
    """Whether the code of a function asks what Python alone answers, with no word to the object:
    ``x is True`` (as ``match`` does, too), ``type(x)``, or ``isinstance(x, Iterable)``, which looks
    at the methods of its class."""
    code = getattr(function, "__code__", None)
    return isinstance(code, CodeType) and any(map(_asks, _codes(code)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _asks(code: CodeType) -> bool:
    if "isinstance" in code.co_names and any(hasattr(collections.abc, name)
                                             for name in code.co_names):
        return True
    truths = any(constant is True or constant is False for constant in code.co_consts)
    if not truths and "type" not in code.co_names:
        return False
    steps = list(dis.get_instructions(code))
    return any((step.opname.startswith("LOAD_GLOBAL") and step.argval == "type")
               or (step.opname == "IS_OP" and isinstance(steps[at - 1].argval, bool))
               for at, step in enumerate(steps))
