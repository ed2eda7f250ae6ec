"""The transforms as users meet them: compiled when called on plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..face.boundary import boundary
from ..face.compile import compile
from ..face.function import Function
from . import batch
from . import reverse as transforms
from .bodies import check_function


def _compiled(function: Callable[..., Any]) -> Function[..., Any]:
    made: Function[..., Any] = compile(on_recompile="silent")(function)
    made.shares = True  # as ``grad(f)(w)`` is often written where it is called
    return made


@boundary
def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function[..., Any]:
    """The gradient of a scalar function with respect to the argument(s) ``argnums``.

    In traced code its nodes join the graph; called on arrays it is one native program. The
    gradient has the nest structure of the argument; with ``has_aux`` the function returns
    ``(value, aux)`` and the result is ``(gradient, aux)``. It may be written where it is called,
    ``grad(loss)(w)`` in a loop: the program is found again by the code of the function and of
    those that it calls, and by the values of the names in it: numbers, texts, arrays and nests of
    them. Give it what changes from call to call as an argument. A function that reads anything
    else, such as an object's attributes, is compiled for each returned function; keep that then.
    State stops gradients: what a ``weft.Variable`` reads as is a
    constant, also where the function has assigned it before.

    Raises W114 when called unless the value is one floating-point number.

    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**2))(np.arange(3.0))
    array([0., 2., 4.])
    """
    check_function(function, "grad: what is differentiated")
    return _compiled(transforms.grad(function, argnums, has_aux))


@boundary
def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function[..., Any]:
    """``(value, gradient)`` in one program; with ``has_aux``, ``((value, aux), gradient)``.

    >>> import numpy as np
    >>> value_and_grad(lambda x: np.sum(x**2))(np.arange(3.0))
    (np.float64(5.0), array([0., 2., 4.]))
    """
    check_function(function, "value_and_grad: what is differentiated")
    return _compiled(transforms.value_and_grad(function, argnums, has_aux))


@boundary
def vmap(
    function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0
) -> Function[..., Any]:
    """A function of batches, from one of single examples: each operation is done for all of them.

    ``in_axes`` says which axis of the arguments is that of the batch: a number for all, None for
    what all examples share, or a tuple with an entry (or a nest of entries) for each positional
    argument; keyword arguments have it first. ``out_axes`` says where the results have it; None is
    for what does not depend on the batch. In a loop whose condition differs from example to
    example, those that are done keep their state; of branches, both are computed.

    Each example draws random numbers of its own. What does not depend on the batch is computed, and
    assigned to variables, once.

    Raises when called: ShapeError (W102) where sizes or nests do not fit, W121 for an axis that an
    argument has not, W113 where a variable is assigned a value that depends on the batch.

    >>> import numpy as np
    >>> dot = vmap(lambda a, b: a @ b, in_axes=(0, None))
    >>> dot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    check_function(function, "vmap: what is mapped")
    return _compiled(batch.vmap(function, in_axes, out_axes))
