"""The operators and methods of an array, for tracers and variables: NumPy functions all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...face.loading import load
from ...face.source import user_loc
from .shown import Member


def _binary(ufunc: np.ufunc) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Any, other: Any) -> Any:
        return NotImplemented if _foreign(other) else self._operate(ufunc, self, other)

    def reflected(self: Any, other: Any) -> Any:
        return NotImplemented if _foreign(other) else self._operate(ufunc, other, self)

    return forward, reflected


def _comparison(ufunc: np.ufunc) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        # Equality with None or a text is a question that Python answers: no.
        plain = other is None or isinstance(other, str) or _foreign(other)
        return NotImplemented if plain else self._operate(ufunc, self, other)

    return method


def _foreign(other: Any) -> bool:
    """True for objects of classes that opt out of NumPy's operators."""
    return getattr(type(other), "__array_ufunc__", True) is None


def _unary(ufunc: np.ufunc) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        return self._operate(ufunc, self)

    return method


def _function(function: Any) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return function(self, *args, **options)

    method.__name__ = function.__name__
    method.__doc__ = f"``np.{function.__name__}`` of this array."
    return method


def _dims(args: tuple[Any, ...]) -> Any:
    """``x.reshape(2, 3)`` and ``x.reshape((2, 3))`` are the same."""
    one = len(args) == 1 and (isinstance(args[0], (tuple, list)) or np.ndim(args[0]))
    return args[0] if one else args


class ArrayMethods:
    """The operators and methods of an array, for tracers and variables."""

    __slots__ = ()
    __array_priority__ = 1000

    def _operate(self, ufunc: np.ufunc, *operands: Any) -> Any:
        return ufunc(*operands)

    __add__, __radd__ = _binary(np.add)
    __sub__, __rsub__ = _binary(np.subtract)
    __mul__, __rmul__ = _binary(np.multiply)
    __truediv__, __rtruediv__ = _binary(np.true_divide)
    __floordiv__, __rfloordiv__ = _binary(np.floor_divide)
    __mod__, __rmod__ = _binary(np.remainder)
    _power, __rpow__ = _binary(np.power)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise error("W113", "pow of a traced number with a modulus is not supported",
                        locs=user_loc(), hint="multiply in a loop: y = y * x % modulus")
        return self._power(other)

    __matmul__, __rmatmul__ = _binary(np.matmul)
    __and__, __rand__ = _binary(np.bitwise_and)
    __or__, __ror__ = _binary(np.bitwise_or)
    __xor__, __rxor__ = _binary(np.bitwise_xor)
    __lshift__, __rlshift__ = _binary(np.left_shift)
    __rshift__, __rrshift__ = _binary(np.right_shift)
    __lt__, __gt__ = _comparison(np.less), _comparison(np.greater)
    __le__, __ge__ = _comparison(np.less_equal), _comparison(np.greater_equal)
    __eq__, __ne__ = _comparison(np.equal), _comparison(np.not_equal)
    # Compared element by element, hashed by identity: a placeholder is a key of feed_dict.
    __hash__ = object.__hash__
    __neg__, __pos__ = _unary(np.negative), _unary(np.positive)
    __abs__, __invert__ = _unary(np.absolute), _unary(np.invert)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __array_namespace__(self, /, *, api_version: Any = None) -> Any:
        """``weft.numpy``, for libraries that compute on arrays of any kind. Raises ValueError for
        a version of the standard that there is not."""
        np.empty(0).__array_namespace__(api_version=api_version)
        return load("frontend.numpy_api.namespace")

    @property
    def device(self) -> str:
        """As of NumPy's arrays; where a value is computed is for ``weft.device`` to say."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The array itself: to NumPy there is one device."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"arrays are on the device 'cpu', not on {device!r}")
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host's memory."""
        return 1, 0

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """The elements kept between ``min`` and ``max``."""
        return np.clip(self, min, max, out)  # type: ignore[call-overload]

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """The elements along an axis where the condition, which is no traced one, holds."""
        return np.compress(condition, self, axis, out)  # type: ignore[call-overload]

    def copy(self, order: Any = "C") -> Any:
        """Another array of the same elements, row by row in memory unless ``order`` says else."""
        return np.copy(self, order)  # type: ignore[call-overload]

    def flatten(self, order: Any = "C") -> Any:
        """A one-dimensional copy."""
        return np.copy(np.ravel(self, order))  # type: ignore[call-overload]

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """The same elements in another shape; one dim may be -1."""
        return np.reshape(self, _dims(shape), **options)  # type: ignore[call-overload]

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Refused (W113): a traced array has one size."""
        raise error("W113", "an array cannot be given another size in place in traced code",
                    locs=user_loc(), hint="make another one: y = np.zeros(shape) and what is "
                                          "written into it, or np.resize(x, shape), which repeats "
                                          "the elements")

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order; reversed without arguments."""
        return np.transpose(self, None if axes == (None,) else _dims(axes) or None)  # type: ignore[call-overload]

    @property
    def T(self) -> Any:  # noqa: N802
        return np.transpose(self)  # type: ignore[call-overload]

    @property
    def mT(self) -> Any:  # noqa: N802
        return np.swapaxes(self, -1, -2)  # type: ignore[call-overload]


def add_method(function: Callable[..., Any]) -> None:
    """Let arrays have a function of NumPy as a method, which ``np.ndarray`` has too."""
    assert hasattr(np.ndarray, function.__name__), f"ndarray has no method {function.__name__}"
    name = function.__name__
    setattr(ArrayMethods, name, Member(name, _function(function)))
