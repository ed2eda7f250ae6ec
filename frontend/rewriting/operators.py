"""What rewritten code asks for, by one name; see the package's docstring.

On plain values each does what Python does.
"""

from __future__ import annotations

import functools
import sys
from collections import defaultdict
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from ..face import tree
from ..tracing.arrays.buffer import own
from ..tracing.arrays.recorded import constructed, recorded
from ..tracing.late import LateText
from ..tracing.values.tracer import Tracer
from .calls import items, lists, protocols
from .calls.builtins import BUILTINS, converting, of_lists
from .calls.foreign import is_foreign, looking
from .calls.functions import called_as, converted, is_function
from .calls.heaps import heapify, heappop, heappush, least
from .calls.items import item_of_row
from .calls.protocols import attribute, binary, in_place, iterated, set_attribute, single
from .calls.reading import method_of, reading
from .calls.texts import formatted, joined, meaning, percent
from .lists.filtered import Filtered, filtered
from .lists.growing import extended, growing, inserted, let_go, own_name, popleft, queue
from .loops.computing import Method
from .loops.loops import for_, while_
from .loops.tables import Fresh
from .regions import comparisons
from .regions.branches import choose, if_
from .regions.expressions import both, chained, either, negated
from .regions.raising import caught, manager, raised
from .regions.state import UNBOUND, context_of, is_traced, own_names, truth, values
from .regions.telling import told
from .source.lasting import Awaited, Lasting
from .source.matching import has_keys, is_one, is_row, middle, part, without

__all__ = ["UNBOUND", "Awaited", "Filtered", "Fresh", "Lasting", "Method", "attribute", "binary",
           "both", "called", "caught", "chained", "check", "choose", "compared", "either",
           "extended", "fields", "filtered", "for_", "formatted", "given", "growing", "has_keys",
           "heapify", "heappop", "heappush", "if_", "in_place", "index", "inserted", "is_one",
           "is_row", "item", "item_of_row", "iterated", "joined", "known", "least", "let_go",
           "manager", "middle", "negated", "own_name", "own_names", "part", "percent", "places",
           "popleft", "queue", "raised", "result", "set_attribute", "single", "sliced", "truth",
           "updated", "values", "while_", "without"]

_CALLING = frozenset({"numpy", "scipy", __name__.partition(".")[0]})


def called(function: Any) -> Any:
    """What rewritten code calls instead of a function, which may call those that it is given."""
    array = getattr(function, "__self__", None)
    if issubclass(type(array), np.ndarray) and hasattr(np.ndarray, function.__name__):
        function = method_of(array, function)
    found = entered(function)
    if _calls_back(function):
        found = _calling(found)
    return reading(function, found)


def entered(function: Any) -> Any:
    """The rewritten copy of a function, or what a builtin means on traced values; itself if it is
    neither."""
    if isinstance(getattr(function, "__self__", function), np.ufunc):
        return of_lists(function)
    if (made := meaning(function) or recorded(function)) is not None:
        return made
    if function is np.ndarray:
        return constructed
    if isinstance(function, type) and issubclass(function, np.generic):
        return converting(function)
    if isinstance(function, (BuiltinFunctionType, type)):
        if (own := protocols.OPERATORS.get(function)) is not None:
            return own
        found = BUILTINS.get(function) or lists.method(function) or _making(function)
        if (name := protocols.ASKED.get(function)) is not None:
            return protocols.asked(found, name)
        if function in protocols.LISTING:
            found = protocols.over(found)
    else:
        found = function
    if found is function:
        found = called_as(function, sys.modules[__name__])
    return looking(function) if found is function and is_foreign(function) else found


def _calls_back(function: Any) -> bool:
    """Whether something may call the functions that it is given, and is not the user's: that calls
    them as everything."""
    if any(function is each for each in (map, filter, sorted, min, max, defaultdict)):
        return True
    root = str(getattr(function, "__module__", None) or "").partition(".")[0]
    if root in ("_functools", "itertools"):
        return function is not functools.partial
    return root in _CALLING and not isinstance(function, type)


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **options: function(
        *map(_as_called, args), **{name: _as_called(x) for name, x in options.items()})


def _as_called(x: Any) -> Any:
    """A function that is given away to be called: a user's as its rewritten copy, ``math.erf`` and
    ``max`` as what they mean on traced values. Classes stay what they are: they may be dtypes."""
    if x is print or isinstance(x, BuiltinFunctionType):
        return _named(x, meaning(x) or recorded(x) or protocols.OPERATORS.get(x) or (
            BUILTINS.get(x, x)))
    if isinstance(x, np.ufunc):
        return _named(x, of_lists(x))
    if (made := recorded(x)) is not None:
        return _named(x, made)
    if type(x) in (list, tuple) and any(map(callable, x)):
        return type(x)(map(_as_called, x))
    return _named(x, converted(x, sys.modules[__name__])) if is_function(x) else x


def _named(x: Any, found: Any) -> Any:
    """A function to be given away, as one that reads and is called what it was."""
    made = reading(x, found)
    return made if made is found else functools.wraps(x)(made)


def _making(function: Any) -> Any:
    """A method of a plain array, whose result can hold traced values if it is a new array."""
    array = getattr(function, "__self__", None)
    if type(array) is not np.ndarray:
        return function
    return lambda *args, **options: own(function(*args, **options), (array,))


def given(x: Any) -> Any:
    """An argument: the last text that was given is told where C code refuses it."""
    if isinstance(x, LateText):
        x.given()
    return x


def item(value: Any, index: Any) -> Any:
    """``value[index]``."""
    return protocols.item(value, index, items.item)


def places(x: Any) -> Any:
    """What is written to in the place of ``x``."""
    return protocols.places(x, items.places)


def compared(sign: str, left: Any, right: Any) -> Any:
    """``left < right`` and its kin, but for ``is`` and ``in``."""
    return protocols.ordered(sign, left, right, comparisons.compared)


sliced, known, index = slice, bool, items.read_index
updated, fields = items.Updated, protocols.Fields


def check(test: Any, message: Any) -> None:
    """``assert test, message()``: of what is traced, when the function runs, by a check that fails
    the step (W125)."""
    flag = truth(test)
    if is_traced(flag):
        ctx = context_of(flag)
        if message is None:
            ctx.apply(ctx.assertion, (flag, "the assertion does not hold"))
        else:
            told(ctx, flag, message)
        return
    if not flag:
        raise AssertionError(*([] if message is None else [message()]))


def result(found: Any) -> Any:
    """The result of a function with a ``return`` in the middle, which waits no more."""
    for leaf in tree.leaves(found):
        if isinstance(leaf, Tracer):
            leaf.waiting = False
    return found
