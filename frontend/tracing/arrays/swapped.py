"""Python functions of SciPy and methods of NumPy's classes, which these do not dispatch:
``scipy.special.logsumexp``, ``np.r_[x, 1]``, ``np.vectorize(f)(x)`` and kin.

A file may hold such a function by a name of its own (``from scipy.special import softmax``), so
while a function is traced it is the *code* of the function that is another one, which asks whether
an argument is traced. All other calls, in other threads too, get what they always got. After the
last trace all is as it was. A module that is not imported stays so: nobody can hold its functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MappingProxyType
from typing import Any

from ..context.scope import RECORDING
from .buffer import is_traced

NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "scipy.special": ("logsumexp", "softmax", "log_softmax", "polygamma"),
    "numpy": ("r_.__getitem__", "vectorize.__call__", "ndenumerate.__init__")})


def _asking(*args: Any, **options: Any) -> Any:
    ask: Any = "what asks"  # the constant is replaced: this runs in SciPy's module
    return ask(*args, **options)


def _code_for(plain: Callable[..., Any], name: str) -> CodeType:
    """The code of a function that behaves like ``plain`` unless an argument is traced."""
    def ask(*args: Any, **options: Any) -> Any:
        ctx = RECORDING.get()
        if ctx is None or not is_traced((args, options)):
            return plain(*args, **options)
        return ctx.apply(ctx.api.special, (name, args, options), stem=name.partition(".")[0])

    code = _asking.__code__
    return code.replace(co_name=plain.__name__, co_consts=tuple(
        ask if constant == "what asks" else constant for constant in code.co_consts))


def swap() -> list[tuple[FunctionType, CodeType]]:
    """Let the functions ask; gives what undoes it. The caller holds a lock."""
    done = []
    for module, names in NAMES.items():
        for name in names:
            function: Any = sys.modules.get(module)
            for part in name.split("."):
                function = getattr(function, part, None)
            function = getattr(function, "__func__", function)
            if isinstance(function, FunctionType) and not function.__closure__:
                plain = FunctionType(function.__code__, function.__globals__, function.__name__,
                                     function.__defaults__)
                plain.__kwdefaults__ = function.__kwdefaults__
                done.append((function, function.__code__))
                function.__code__ = _code_for(plain, name)
    return done


def undo(done: list[tuple[FunctionType, CodeType]]) -> None:
    for function, code in done:
        function.__code__ = code
