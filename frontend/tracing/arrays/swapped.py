"""Python functions of SciPy, which SciPy does not dispatch: ``scipy.special.logsumexp`` and kin.

A file may hold such a function by a name of its own (``from scipy.special import softmax``), so
while a function is traced it is the *code* of SciPy's function that is another one, which asks
whether an argument is traced. All other calls, in other threads too, get what SciPy gives. After
the last trace SciPy is as it was. A module that is not imported stays so: nobody can hold its
functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MappingProxyType
from typing import Any

from ..scope import RECORDING
from .buffer import is_traced

NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "scipy.special": ("logsumexp", "softmax", "log_softmax", "polygamma")})


def _asking(*args: Any, **options: Any) -> Any:
    from weft.frontend.tracing.arrays.swapped import PLAIN, called  # this runs in SciPy's module
    return called(PLAIN["name"], args, options)


def _code_for(name: str) -> CodeType:
    code = _asking.__code__
    return code.replace(co_name=name, co_consts=tuple(
        name if constant == "name" else constant for constant in code.co_consts))


# What SciPy's functions are, as other functions, from the first trace after their import on.
_PLAIN: dict[str, Callable[..., Any]] = {}
PLAIN: Mapping[str, Callable[..., Any]] = MappingProxyType(_PLAIN)


def called(plain: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    ctx = RECORDING.get()
    if ctx is None or not is_traced((args, options)):
        return plain(*args, **options)
    return ctx.apply(ctx.api.special, (plain.__name__, args, options), stem=plain.__name__)


def swap() -> list[tuple[FunctionType, CodeType]]:
    """Let the functions ask; gives what undoes it. The caller holds a lock."""
    done = []
    for module, names in NAMES.items():
        for name in names:
            function = getattr(sys.modules.get(module), name, None)
            if isinstance(function, FunctionType) and not function.__closure__:
                plain = FunctionType(function.__code__, function.__globals__, name,
                                     function.__defaults__)
                plain.__kwdefaults__ = function.__kwdefaults__
                _PLAIN[name] = plain
                done.append((function, function.__code__))
                function.__code__ = _code_for(name)
    return done


def undo(done: list[tuple[FunctionType, CodeType]]) -> None:
    for function, code in done:
        function.__code__ = code
