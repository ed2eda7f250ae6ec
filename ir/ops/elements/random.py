"""Rows of the MAP family for random numbers; ``ir/scalar/random`` computes them."""

from __future__ import annotations

from typing import Any

from ...scalar.number import expansion
from ...scalar.primitives import PRIMITIVES, computed_by
from ...scalar.random import threefry
from ...types import F64, U64
from ..op import OpDef, Sample, map_op

_SHAPES = ((), (0,), (7,), (300,), (3, 5), (2, 0, 3))


def _gamma_grad(b: Any, g: Any, word: Any, a: Any, x: Any) -> tuple[None, Any]:
    """Implicitly, of the distribution function P: dx/da = -(dP/da) / (dP/dx) (Figurnov et al.,
    NeurIPS 2018)."""
    return None, b.neg(b.mul(g, b.div(b.gammainc_by_shape(a, x), b.gamma_density(a, x))))


def _root_grad(b: Any, g: Any, word: Any, a: Any, x: Any) -> tuple[None, Any]:
    return None, b.neg(b.mul(g, b.div(x, a)))


def _sampler(name: str, doc: str, low: float = 0.0, high: float = 1e18, grad: Any = None,
             refused: str = "") -> OpDef:
    primitive = PRIMITIVES[name]
    params = primitive.arity - 1
    return map_op(
        name, f"w{'d' * params} -> d", lambda s, *xs: s.apply(name, *xs), primitive.numpy, doc=doc,
        dtypes=(F64,) if params else (U64,),
        grad=grad, refused={1: refused} if refused else {},
        samples=tuple(Sample((shape,) * primitive.arity, low=low, high=high) for shape in _SHAPES))


def _threefry_body(s: Any, key: Any, counter: Any) -> Any:
    return expansion(threefry)(s, key, counter)


ROWS: tuple[OpDef, ...] = (
    map_op("threefry", "ww -> w", _threefry_body, computed_by(threefry),
           doc="counter-based random bits: Threefry-2x32, 20 rounds, key and counter u64",
           dtypes=(U64,), low=0, high=1e18),
    _sampler("random_normal", "a standard normal number made of a random word"),
    _sampler("random_exponential", "a standard exponential number made of a random word"),
    _sampler("random_gamma", "a standard gamma number of shape a >= 1 made of a random word",
             1.0, 20.0, _gamma_grad),
    _sampler("random_root", "minus the logarithm of the a-th root of a uniform number made of a "
             "random word, where a < 1", 0.1, 2.0, _root_grad),
    _sampler("random_poisson", "a Poisson number made of a random word and its mean", 0.1, 40.0),
    _sampler("random_binomial", "a binomial number made of a random word, n and p", 0.0, 1.0),
    _sampler("random_vonmises", "an angle made of a random word and its concentration", 0.0, 9.0,
             refused="kappa of von Mises"),
    _sampler("random_zipf", "a number of Zipf's distribution made of a random word and an exponent",
             1.5, 5.0),
    _sampler("random_hypergeometric", "how many good ones are drawn, made of a random word, the "
             "numbers of good and bad ones and of those drawn", 20.0, 30.0),
)
