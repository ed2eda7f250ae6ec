"""The gradient functions as users meet them: compiled when called on plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compile.function import Function, compile
from . import reverse as transforms


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function[..., Any]:
    """The gradient of a scalar function with respect to the argument(s) ``argnums``.

    In traced code its nodes join the graph; called on arrays it is one native program. The
    gradient has the nest structure of the argument; with ``has_aux`` the function returns
    ``(value, aux)`` and the result is ``(gradient, aux)``. Keep the returned function: each one
    has its own compiled programs.

    Raises W114 when called unless the value is one floating-point number.

    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**2))(np.arange(3.0))
    array([0., 2., 4.])
    """
    return compile(on_recompile="silent")(transforms.grad(function, argnums, has_aux))


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function[..., Any]:
    """``(value, gradient)`` in one program; with ``has_aux``, ``((value, aux), gradient)``.

    >>> import numpy as np
    >>> value_and_grad(lambda x: np.sum(x**2))(np.arange(3.0))
    (np.float64(5.0), array([0., 2., 4.]))
    """
    return compile(on_recompile="silent")(transforms.value_and_grad(function, argnums, has_aux))
