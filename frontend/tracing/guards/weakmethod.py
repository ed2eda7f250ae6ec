"""WeakMethod: a method of an object that it does not keep alive.

It is what is traced for a compiled method: what is kept of the object's specialisations must not
keep the object.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any


class WeakMethod:
    """A function and its first argument, which this does not keep alive if that can be helped."""

    def __init__(self, function: Callable[..., Any], instance: Any,
                 gone: Callable[[Any], object]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        try:
            self.instance: Callable[[], Any] = weakref.ref(instance, gone)
        except TypeError:  # of a class with __slots__ and no place for references
            self.instance = lambda: instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.instance(), *args, **kwargs)
