"""Whether code is to be rewritten at once: it asks what Python alone answers, with no word to the
object that is asked about, or has effects of which no trace is told."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Any

# Names of what logs, and of what is written to. What else has such a name is rewritten for nothing.
_TELLING = frozenset({"debug", "info", "warning", "error", "critical", "exception", "stdout",
                      "stderr"})
_COMPARING = frozenset({"IS_OP", "COMPARE_OP", "CONTAINS_OP"})


def asks_identity(function: Any) -> bool:
    """Whether the code of a function asks what Python alone answers, with no word to the object:
    ``x is True`` (as ``match`` does, too), or ``type(x)`` compared with a class; or whether it may
    log, which it is to do when the program runs."""
    code = getattr(function, "__code__", None)
    return isinstance(code, CodeType) and any(map(_asks, _codes(code)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _asks(code: CodeType) -> bool:
    if not _TELLING.isdisjoint(code.co_names):
        return True
    truths = any(constant is True or constant is False for constant in code.co_consts)
    kinds = "type" in code.co_names  # of a global name, or of an attribute
    if not truths and not kinds:
        return False
    steps = list(dis.get_instructions(code))
    kinds = kinds and any(step.opname.startswith("LOAD_GLOBAL") and step.argval == "type"
                          for step in steps)
    return any(step.opname in _COMPARING and (kinds or (
        step.opname == "IS_OP" and isinstance(steps[at - 1].argval, bool)))
        for at, step in enumerate(steps))
