"""The special functions of scipy.special over scalar primitives, as ``transcendental`` says.

    one piece of a polynomial, or a few that are chosen lane by lane  x  what is known beyond it

All of them compute in float64; for float32 the result is rounded once more. What has no short form
(incomplete integrals, the zeta function) is a ``loop``, which a lane leaves when it has converged.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from ..number import Number
from .bessel import i0, i0e, i1, i1e, j0, j1
from .entropy import exp10, huber, kl_div, pseudo_huber, rel_entr
from .gammas import beta, betaln, digamma, gamma, gammaln, loggamma
from .incomplete import gammainc, gammaincc
from .incomplete_beta import betainc
from .integrals import ci, exp1, expi, expn, si, spence
from .normal import erfc, erfcinv, erfcx, erfinv, log_ndtr, ndtr, ndtri
from .slopes import (
    beta_density,
    betainc_by_first,
    betainc_by_second,
    gamma_density,
    gammainc_by_shape,
)
from .zeta import riemann_zeta, zeta

_ONE = (erfc, erfcinv, erfcx, erfinv, log_ndtr, ndtr, ndtri, gamma, gammaln, loggamma, digamma,
        riemann_zeta, i0, i0e, i1, i1e, j0, j1, exp1, expi, si, ci, spence, exp10)
_TWO = (beta, betaln, zeta, gammainc, gammaincc, expn, rel_entr, kl_div, huber, pseudo_huber,
        gamma_density, gammainc_by_shape)
_THREE = (betainc, beta_density, betainc_by_first, betainc_by_second)

# The functions by name, and how many operands each has.
FUNCTIONS: MappingProxyType[str, tuple[Callable[..., Number], int]] = MappingProxyType({
    function.__name__: (function, arity)
    for arity, functions in enumerate((_ONE, _TWO, _THREE), 1) for function in functions})
