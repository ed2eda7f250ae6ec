"""Methods: a compiled function together with the object (or class) it was taken from.

An object that is no nest of arrays is static: its attributes are read while tracing, as a closure's
variables are. Each such object has specialisations of its own, which live as long as it does: what
is kept of them refers to the object weakly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ...face import tree
from ...face.boundary import boundary, leave
from ...tracing.context.traced import Traced
from ...tracing.values.methods import ArrayMethods
from ..stages import Lowered


class Compiling(Protocol):
    """A compiled function, as far as its methods are concerned; ``function.Function`` in fact."""

    __name__: str
    __qualname__: str
    py_func: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...
    def lower_with(self, first: tuple[Any, ...], args: tuple[Any, ...],
                   kwargs: Mapping[str, Any]) -> Lowered: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...


F = TypeVar("F", bound=Compiling)


def is_argument(instance: Any) -> bool:
    """True for an object that is traced when its method is called: an array, a dataclass."""
    return isinstance(instance, (np.ndarray, np.generic, ArrayMethods)) or tree.is_nest(instance)


class Bound(Generic[F]):
    """``obj.method`` of a compiled method: to be called, and all else that a Function can do.

    ``function`` is the Function that is called, ``given`` its first arguments: the object itself
    where it is traced, none where the function is that of this very object.
    """

    def __init__(self, function: F, instance: Any, given: tuple[Any, ...]) -> None:
        self.function, self.__self__, self.given = function, instance, given
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.function(*self.given, *args, **kwargs)
        except BaseException as problem:
            leave(problem)
            raise

    def __getattr__(self, name: str) -> Any:
        """All that does not depend on the object: names, ``signatures``, ``clear_cache()``."""
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return f"<weft.compile of {self.function.__qualname__}, bound to {self.__self__!r}>"

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Bound) and self.function is other.function
                and self.__self__ is other.__self__)

    def __reduce__(self) -> tuple[Any, ...]:
        """As Python's methods: the method of that name of a copy of the object."""
        return getattr, (self.__self__, self.function.__name__)

    def __hash__(self) -> int:
        return hash((id(self.function), id(self.__self__)))

    @property
    def py_func(self) -> Callable[..., Any]:
        """The Python method."""
        method: Callable[..., Any] = functools.partial(self.function.py_func, *self.given)
        return method if self.given else self.function.py_func

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """See ``Function.trace``."""
        return self.function.trace(*self.given, *args, **kwargs)

    @boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """See ``Function.lower``; the program takes the arguments that the method takes."""
        return self.function.lower_with(self.given, args, kwargs)

    @boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """See ``Function.eval_shape``."""
        return self.function.eval_shape(*self.given, *args, **kwargs)
