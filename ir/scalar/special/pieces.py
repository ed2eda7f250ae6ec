"""How the polynomials of ``tables`` are evaluated, and float64 for float32."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ..number import Number, select
from ..polynomial import horner, polynomial
from ..trigonometry import sine_of
from .tables import PIECES

INVERSE_SQRT_PI = 0.5641895835477563


def wide(function: Callable[..., Number]) -> Callable[..., Number]:
    """The function computed in float64, whatever it is given."""
    @functools.wraps(function)
    def call(*args: Number) -> Number:
        if args[0].dtype == "f64":
            return function(*args)
        return function(*(x.cast("f64") for x in args)).cast(args[0].dtype)

    return call


def piece(name: str, v: Number) -> Number:
    """The polynomial of a function that has one piece."""
    ((scale, shift, coefficients),) = PIECES[name]
    return horner(v.fma(scale, shift), coefficients)


def pieces(name: str, v: Number, later: Sequence[Number]) -> Number:
    """That of several pieces: the k-th of ``later`` says where piece k + 1 or one after it is."""
    table = PIECES[name]
    most = max(len(coefficients) for _, _, coefficients in table)

    def chosen(numbers: Sequence[float]) -> Number:
        found = v.like(numbers[0])
        for cond, number in zip(later, numbers[1:], strict=True):
            found = select(cond, v.like(number), found)
        return found

    u = v.fma(chosen([scale for scale, _, _ in table]), chosen([shift for _, shift, _ in table]))
    columns = [[c[at] if at < len(c) else 0.0 for _, _, c in table] for at in range(most)]
    result = chosen(columns[-1])
    for column in reversed(columns[:-1]):
        result = result.fma(u, chosen(column))
    return result


def half_turns(x: Number) -> tuple[Number, Number, Number]:
    """sin(pi r) and cos(pi r) for r = x - rint(x), and whether rint(x) is odd."""
    n = x.rint()
    r = x - n
    half = n * 0.5
    zero = r.bits().like(0)
    return (sine_of(r * 3.141592653589793, zero),
            sine_of((0.5 - abs(r)) * 3.141592653589793, zero), half.rint().differs(half))


def erf_near(x: Number) -> Number:
    """erf for |x| <= 1.1."""
    return x.fma(polynomial("erf", x * x), x)
