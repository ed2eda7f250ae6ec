"""Special functions under scipy's names, for traced values, variables and plain arrays.

scipy.special's own ufuncs trace as well; these need no scipy. On plain arrays they run at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compile.eager import run_eagerly
from ..numpy_api.elements import elementwise as ufuncs
from ..tracing.operand import result_dtype, spread_all
from ..tracing.recorder import composite, context_for, current
from ..tracing.tracer import Tracer
from ..transforms.reverse import stop_gradient


def _special(name: str, doc: str) -> Callable[..., Any]:
    body = ufuncs.SPECIAL[name]

    def record(*operands: Any) -> Tracer:
        dtype = result_dtype(*operands)
        floats = dtype if dtype.kind not in "iub" else np.dtype(np.float64)
        tracers = [x.astype(floats) for x in spread_all(*operands)]
        made: Tracer = (current().emit(body, *tracers) if isinstance(body, str)
                        else body(*tracers))
        return made

    def call(*operands: Any) -> Any:
        ctx = context_for(operands)
        if ctx is None:
            return run_eagerly(call, operands)
        return ctx.apply(record, operands, stem=name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


erf = _special("erf", "The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.")
expit = _special("expit", "The logistic sigmoid 1 / (1 + exp(-x)), without overflow.")
logit = _special("logit", "log(x / (1 - x)), the inverse of expit.")
xlogy = _special("xlogy", "x * log(y), and 0 where x is 0 and y is not NaN.")
xlog1py = _special("xlog1py", "x * log(1 + y), and 0 where x is 0 and y is not NaN.")
entr = _special("entr", "-x * log(x), 0 at 0 and -inf below.")
sigmoid = expit


@composite
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) over ``axis`` without overflow; -inf for no mass."""
    largest = np.max(x, axis=axis, keepdims=True)
    # The shift cancels, so no gradient need flow through it.
    shift = stop_gradient(np.where(np.isfinite(largest), largest, 0))
    with np.errstate(divide="ignore"):  # the logarithm of no mass is meant
        total = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, axis=axis)


__all__ = ["entr", "erf", "expit", "logit", "logsumexp", "sigmoid", "xlog1py", "xlogy"]
