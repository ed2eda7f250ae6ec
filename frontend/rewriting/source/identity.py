"""Whether code is to be rewritten at once: it asks what Python alone answers, with no word to the
object that is asked about, or has effects of which no trace is told."""

from __future__ import annotations

import collections.abc
import dis
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

# Names of what logs, and of what is written to. What else has such a name is rewritten for nothing.
_TELLING = frozenset({"debug", "info", "warning", "error", "critical", "exception", "stdout",
                      "stderr"})


def asks_identity(function: Any) -> bool:
    """Whether the code of a function asks what Python alone answers, with no word to the object:
    ``x is True`` (as ``match`` does, too), ``type(x)``, or ``isinstance(x, Iterable)``, which looks
    at the methods of its class; or whether it may log, which it is to do when the program runs."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return False
    codes = list(_codes(code))
    names = {name for each in codes for name in each.co_names}
    return any(map(_asks, codes)) or ("isinstance" in names and _has_abstract(
        names, function.__globals__))


def _has_abstract(names: Iterable[str], globals_: Mapping[str, Any]) -> bool:
    """Whether one of the names is that of a class, or of several, that ask for methods."""
    for name in names:
        found = globals_.get(name)
        if hasattr(collections.abc, name) or any(
                getattr(kind, "__module__", "") == "collections.abc"
                for kind in (found if isinstance(found, tuple) else (found,))):
            return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _asks(code: CodeType) -> bool:
    if not _TELLING.isdisjoint(code.co_names):
        return True
    truths = any(constant is True or constant is False for constant in code.co_consts)
    if not truths and "type" not in code.co_names:
        return False
    steps = list(dis.get_instructions(code))
    return any((step.opname.startswith("LOAD_GLOBAL") and step.argval == "type")
               or (step.opname == "IS_OP" and isinstance(steps[at - 1].argval, bool))
               for at, step in enumerate(steps))
