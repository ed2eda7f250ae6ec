"""Functions of the host: what they are in texts, and how they are called.

A plan hands the windows of a ``host`` step to a function of Python, under the GIL, and takes arrays
of the promised types from it. All who run such steps (interpreters, the runtime) call it here, so
that wrong results and exceptions look alike: an exception keeps its type and says the user's line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .diagnose import Error, error, note, place_text
from .loc import Loc
from .record import field, record

Array = np.ndarray[Any, Any]
Functions = Callable[..., Any]  # of arrays, to an array or a tuple of them
_DECLARED: set[str] = set()  # names of the functions that the program itself gave to the host


def declare(name: str) -> None:
    """From now on texts mean the function of a module by this name. They find no other: a text may
    be a stranger's, and the program did not ask for its functions."""
    _DECLARED.add(name)


def function_of(name: str) -> Functions | None:
    """The function ``f`` of the loaded module ``model`` for ``model:f``, if there is one."""
    module, _, path = name.partition(":")
    found = reduce(lambda place, part: getattr(place, part, None), path.split("."),
                   sys.modules.get(module))
    return found if callable(found) else None


@record(frozen=True, eq=False)
class HostFunction:
    """A function of the user as an attribute; texts have its name, ``model:smooth``, by which one
    is found again that is in a module and was declared.

    ``call`` takes arrays, and gives an array or a tuple of them. One that only ``keeps`` what an
    error is to tell, and gives false, can be left out: the error then tells less.
    """

    name: str
    call: Functions | None = field(default=None, repr=False)
    keeps: bool = field(default=False, repr=False)

    def __eq__(self, other: object) -> bool:
        """Two functions of one name are two; one that is only named is any of that name."""
        return isinstance(other, HostFunction) and self.name == other.name and (
            self.call is other.call or self.call is None or other.call is None)

    def __hash__(self) -> int:
        return hash(self.name)

    @staticmethod
    def named(name: str) -> HostFunction:
        """What a text says: a declared function where it says one, else just a name."""
        return HostFunction(name, function_of(name) if name in _DECLARED else None)

    def __str__(self) -> str:
        """As errors call it."""
        return self.name.replace(":", ".", 1)

    def __call__(self, *arrays: Array) -> Any:
        if self.call is None:
            raise error("W601", f"there is no function {self} here",
                        hint="a text finds those functions of modules that the running program "
                             "gave to weft.host_call")
        return self.call(*arrays)


def call_host(
    function: Functions, arrays: Sequence[Array], attrs: Mapping[str, Any],
    wanted: Sequence[tuple[np.dtype[Any], tuple[int, ...]]], what: str, locs: Sequence[Loc],
) -> list[Array]:
    """What ``function``, called ``what``, makes of the arrays: of these dtypes and shapes.

    Raises W111 or W102 for results of other types, and what the function raises.
    """
    try:
        made = function(*arrays, **attrs) if attrs else function(*arrays)
        results = made if isinstance(made, tuple) else (made,)
        if len(results) != len(wanted):
            raise error("W102", f"{what} gave {len(results)} results, not {len(wanted)}",
                        hint="return what result_specs names")
        return [_checked(value, dtype, shape, what)
                for value, (dtype, shape) in zip(results, wanted, strict=False)]
    except Error as problem:
        problem.locs = problem.locs or tuple(locs)
        raise
    except BaseException as problem:
        note(problem, "\n".join([f"ran {what}", *place_text(locs)]))
        raise


def _checked(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...], what: str) -> Array:
    array = value if type(value) is np.ndarray else np.asarray(value)
    if array.dtype != dtype or array.shape != shape:
        found, told = (f"{each}{list(dims)}" for each, dims in (
            (array.dtype, array.shape), (dtype, shape)))
        if array.dtype == object:
            found = "None" if value is None else f"a {type(value).__name__}"
        raise error("W111" if array.shape == shape else "W102",
                    f"{what} gave {found} where {told} was promised",
                    hint="return arrays of the dtypes and shapes that result_specs names")
    return array

