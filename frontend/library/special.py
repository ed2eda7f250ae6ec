"""Special functions under scipy's names, for traced values, variables and plain arrays.

scipy.special's own functions trace as well; these need no scipy. On plain arrays they run at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.ops.table import OPS
from ..engine.eager import run_eagerly
from ..numpy_api.elements import special as bodies
from ..tracing.context.active import composite, context_for
from ..tracing.operand import result_dtype, spread_all

# The words for what is no row by its own name.
_DOCS = MappingProxyType({
    "expit": "The logistic sigmoid 1 / (1 + exp(-x)), without overflow.",
    "log_expit": "log(expit(x)), exact where expit is 0 or 1.",
    "entr": "-x * log(x), 0 at 0 and -inf below.",
    "sici": "The sine and the cosine integral.",
    "logsumexp": "log(sum(b * exp(a))) over ``axis`` without overflow; -inf for no mass.",
    "softmax": "exp(x) / sum(exp(x)) over ``axis``, of all elements without one.",
    "log_softmax": "log(softmax(x)), exact also where softmax is tiny.",
    "polygamma": "The n-th derivative of digamma.",
})


def _special(name: str) -> Callable[..., Any]:
    """A function element by element."""
    body: Any = bodies.UFUNCS.get(name) or bodies.PAIRS.get(name) or bodies.UFUNCS[
        {"digamma": "psi"}.get(name, f"_{name}")]

    def record(*operands: Any) -> Any:
        dtype = result_dtype(*operands)
        floats = dtype if dtype.kind not in "iub" else np.dtype(np.float64)
        return body(*(x.astype(floats) for x in spread_all(*operands)))

    def call(*operands: Any) -> Any:
        ctx = context_for(operands)
        if ctx is None:
            return run_eagerly(call, operands)
        return ctx.apply(record, operands, stem=name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = _DOCS.get(name) or OPS[name].doc
    return call


def _function(name: str) -> Callable[..., Any]:
    """A function with options; ``a``, ``b`` and ``x`` are arrays."""
    traced = composite(bodies.FUNCTIONS[name])
    signature = inspect.signature(bodies.FUNCTIONS[name])

    def call(*args: Any, **options: Any) -> Any:
        given = signature.bind(*args, **options).arguments
        if context_for(given.values()) is not None:
            return traced(*args, **options)
        arrays = {key: x for key, x in given.items() if key in ("a", "b", "x")}
        rest = {key: x for key, x in given.items() if key not in arrays}
        return run_eagerly(lambda arrays: traced(**arrays, **rest), (arrays,))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = _DOCS[name]
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


erf = _special("erf")
erfc = _special("erfc")
erfcx = _special("erfcx")
erfinv = _special("erfinv")
erfcinv = _special("erfcinv")
gamma = _special("gamma")
gammaln = _special("gammaln")
loggamma = _special("loggamma")
digamma = _special("digamma")
beta = _special("beta")
betaln = _special("betaln")
betainc = _special("betainc")
gammainc = _special("gammainc")
gammaincc = _special("gammaincc")
i0 = _special("i0")
i0e = _special("i0e")
i1 = _special("i1")
i1e = _special("i1e")
j0 = _special("j0")
j1 = _special("j1")
ndtr = _special("ndtr")
ndtri = _special("ndtri")
log_ndtr = _special("log_ndtr")
expit = _special("expit")
logit = _special("logit")
log_expit = _special("log_expit")
xlogy = _special("xlogy")
xlog1py = _special("xlog1py")
rel_entr = _special("rel_entr")
kl_div = _special("kl_div")
entr = _special("entr")
huber = _special("huber")
pseudo_huber = _special("pseudo_huber")
exp2 = _special("exp2")
exp10 = _special("exp10")
log1p = _special("log1p")
expm1 = _special("expm1")
cbrt = _special("cbrt")
expi = _special("expi")
expn = _special("expn")
exp1 = _special("exp1")
spence = _special("spence")
sici = _special("sici")
psi, sigmoid = digamma, expit
logsumexp = _function("logsumexp")
softmax = _function("softmax")
log_softmax = _function("log_softmax")
polygamma = _function("polygamma")
_riemann, _hurwitz = _special("riemann_zeta"), _special("zeta")


def zeta(x: Any, q: Any = None) -> Any:
    """The sum of (k + q) ** -x over k >= 0, or Riemann's zeta function without q."""
    return _riemann(x) if q is None else _hurwitz(x, q)


def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), as np.sinc."""
    return np.sinc(x)


__all__ = [
    "beta",
    "betainc",
    "betaln",
    "cbrt",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "exp2",
    "exp10",
    "expi",
    "expit",
    "expm1",
    "expn",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "huber",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "j0",
    "j1",
    "kl_div",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "polygamma",
    "pseudo_huber",
    "psi",
    "rel_entr",
    "sici",
    "sigmoid",
    "sinc",
    "softmax",
    "spence",
    "xlog1py",
    "xlogy",
    "zeta",
]
