"""How the polynomials of ``tables`` are evaluated, and float64 for float32."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ..number import Number, called, loop, select
from ..polynomial import horner, polynomial
from ..trigonometry import sine_of
from .tables import PIECES, Piece

INVERSE_SQRT_PI = 0.5641895835477563
EPSILON = 2.0**-54


def wide(function: Callable[..., Number]) -> Callable[..., Number]:
    """The function computed in float64, whatever it is given."""
    @functools.wraps(function)
    def call(*args: Number) -> Number:
        if args[0].dtype == "f64":
            return function(*args)
        wide_args = (x.cast("f64") for x in args)
        return called(function.__name__, *wide_args).cast(args[0].dtype)

    return call


def piece(name: str, v: Number) -> Number:
    """The polynomial of a function that has one piece."""
    ((scale, shift, coefficients),) = PIECES[name]
    return horner(v.fma(scale, shift), coefficients)


def pieces(name: str, v: Number, later: Sequence[Number]) -> Number:
    """That of several pieces: the k-th of ``later`` says where piece k + 1 or one after it is."""
    return pieces_of(PIECES[name], v, later)


def pieces_of(table: Sequence[Piece], v: Number, later: Sequence[Number]) -> Number:
    """``pieces`` of these."""
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


def fraction(
    numerator: Callable[[Number], Number], b: Number, step: float, there: Number
) -> Number:
    """1 / (b + a_1 / (b + step + a_2 / (b + 2 step + ...))), a_k being negative (Steed's method: a
    sum of corrections, whose errors vanish with them)."""
    def more(k: Number, b: Number, d: Number, change: Number, total: Number) -> tuple[Number, ...]:
        a, b = numerator(k), b + step
        new = 1.0 / a.fma(d, b)
        change = change * (-a * d * new)
        return k + 1.0, b, new, change, total + change

    d = 1.0 / b
    found = loop(600, lambda k, b, d, change, total: there & (abs(change) > abs(total) * EPSILON),
                 more, (b.like(1.0), b, d, d, d))
    return found[4]


def erf_near(x: Number) -> Number:
    """erf for |x| <= 1.1."""
    return x.fma(polynomial("erf", x * x), x)
