"""The distributions whose samples are made element by element, each a row: the parameters with what
is asked of them, how many words a sample takes, and the sample as a function of these words.

Of the table ``sample`` makes nodes in a trace. Outside of one it runs a program, compiled once for
all sizes, so that the numbers are those of traced code to the bit.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim
from ...face.compile import compile as compile_function
from ...face.function import Function
from ...face.source import user_loc
from ...tracing.context.active import current
from ...tracing.operand import common_shape, is_number, spread, strong, to_tracer, type_of
from ...tracing.values.tracer import Tracer
from .stream import U64, Stream, placed, words_at

F32, F64, I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)

# What may be asked of a parameter, in the words of the error.
_ASKED: Mapping[str, Callable[[Any], Any]] = MappingProxyType({
    "at least 0": lambda x: x >= 0, "above 0": lambda x: x > 0,
    "from 0 to 1": lambda x: (x >= 0) & (x <= 1), "above 0, up to 1": lambda x: (x > 0) & (x <= 1),
    "from 0, below 1": lambda x: (x >= 0) & (x < 1), "above 1": lambda x: x > 1,
    "from 0 to 9e18": lambda x: (x >= 0) & (x <= 9e18), "any number": lambda x: x == x,
})
_HINT = "bring it into its range, as np.clip, np.abs and np.exp do"


@dataclass(frozen=True)
class Distribution:
    """A row; ``kind`` is the dtype of its parameters, None that of the result."""

    name: str
    body: Callable[..., Any]
    words: int
    params: tuple[tuple[str, str], ...]
    kind: np.dtype[Any] | None

    def message(self, at: int) -> str:
        name, asked = self.params[at]
        for word, sign in (("_plus_", " + "), ("_minus_", " - ")):  # a parameter made of several
            name = name.replace(word, sign)
        return f"rng.{self.name}: {name} is not {asked}"

    def checked(self, at: int, value: Any) -> Any:
        """A parameter that is what is asked of it. Raises ParameterError (W132), as a step does
        where the parameter is traced."""
        asked = self.params[at][1]
        if asked == "":
            return value
        message = self.message(at)
        if is_number(value):
            if not _ASKED[asked](value):
                raise error("W132", f"{message}: {value}", locs=user_loc(), hint=_HINT)
            return value
        x: Any = strong(value)
        return current().emit("checked", x, _ASKED[asked](x), code="W132", message=message)


class Words:
    """The words of the elements of a draw, of which each call takes the next."""

    def __init__(self, key: Any, first: Any, kind: np.dtype[Any]) -> None:
        self._key, self._first, self._taken, self.kind = key, first, 0, kind

    def next(self) -> Any:
        first = self._first + np.uint64(self._taken) if self._taken else self._first
        self._taken += 1
        return words_at(self._key, first)

    def uniform(self) -> Any:
        """In [0, 1): the highest bits, 24 for a float32 and 53 for a float64."""
        bits = 24 if self.kind == F32 else 53
        return (self.next() >> np.uint64(64 - bits)).astype(self.kind) * self.kind.type(2.0**-bits)

    def _sample(self, op: str, *params: Any) -> Any:
        word = self.next()
        wide = (spread(param, F64, word.type.shape) for param in params)
        return current().emit(op, word, *wide).astype(self.kind)

    def normal(self) -> Any:
        return self._sample("random_normal")

    def exponential(self) -> Any:
        return self._sample("random_exponential")

    def poisson(self, mean: Any) -> Any:
        return self._sample("random_poisson", mean)

    def binomial(self, n: Any, p: Any) -> Any:
        return self._sample("random_binomial", n, p)

    def _gamma(self, a: Any) -> tuple[Any, Any]:
        """A gamma number of shape a, or a + 1 where a < 1, and what is to be taken off its
        logarithm (Marsaglia and Tsang, section 6)."""
        made = self._sample("random_gamma", np.where(a < 1, a + 1, a))
        return made, self._sample("random_root", a)

    def gamma(self, a: Any) -> Any:
        made, less = self._gamma(a)
        return made * np.exp(-less)

    def log_gamma(self, a: Any) -> Any:
        made, less = self._gamma(a)
        return np.log(made) - less


def _row(
    words: int = 1, kind: np.dtype[Any] | None = None, **asked: str
) -> Callable[[Callable[..., Any]], Distribution]:
    def row(body: Callable[..., Any]) -> Distribution:
        _, *names = inspect.signature(body).parameters
        return Distribution(body.__name__, body, words,
                            tuple((name, asked.get(name, "")) for name in names), kind)

    return row


@_row()
def random(w: Words) -> Any:
    return w.uniform()


@_row()
def uniform(w: Words, low: Any, high: Any) -> Any:
    return w.uniform() * (high - low) + low


@_row()
def standard_normal(w: Words) -> Any:
    return w.normal()


@_row(scale="at least 0")
def normal(w: Words, loc: Any, scale: Any) -> Any:
    return w.normal() * scale + loc


@_row(sigma="at least 0")
def lognormal(w: Words, mean: Any, sigma: Any) -> Any:
    return np.exp(w.normal() * sigma + mean)


@_row()
def standard_exponential(w: Words) -> Any:
    return w.exponential()


@_row(scale="at least 0")
def exponential(w: Words, scale: Any) -> Any:
    return w.exponential() * scale


@_row(2, scale="at least 0")
def laplace(w: Words, loc: Any, scale: Any) -> Any:
    return (w.exponential() - w.exponential()) * scale + loc


@_row(2, scale="at least 0")
def logistic(w: Words, loc: Any, scale: Any) -> Any:
    # The difference of two numbers of Gumbel's distribution.
    return np.log(w.exponential() / w.exponential()) * scale + loc


@_row(scale="at least 0")
def gumbel(w: Words, loc: Any, scale: Any) -> Any:
    return loc - np.log(w.exponential()) * scale


@_row(scale="at least 0")
def rayleigh(w: Words, scale: Any) -> Any:
    return np.sqrt(w.exponential() * 2) * scale


@_row(a="at least 0")
def weibull(w: Words, a: Any) -> Any:
    return np.where(a == 0, 0, w.exponential() ** (1 / np.where(a == 0, 1, a)))


@_row(a="above 0")
def pareto(w: Words, a: Any) -> Any:
    return np.expm1(w.exponential() / a)


@_row(a="above 0")
def power(w: Words, a: Any) -> Any:
    return np.exp(-w.exponential() / a)


@_row(2)
def standard_cauchy(w: Words) -> Any:
    return w.normal() / w.normal()


@_row(2, shape="at least 0")
def standard_gamma(w: Words, shape: Any) -> Any:
    return w.gamma(shape)


@_row(2, shape="at least 0")
def log_gamma(w: Words, shape: Any) -> Any:
    return w.log_gamma(shape)


@_row(2, shape="at least 0", scale="at least 0")
def gamma(w: Words, shape: Any, scale: Any) -> Any:
    return w.gamma(shape) * scale


@_row(2, df="above 0")
def chisquare(w: Words, df: Any) -> Any:
    return w.gamma(df / 2) * 2


@_row(3, df="above 0")
def standard_t(w: Words, df: Any) -> Any:
    half = df / 2
    return w.normal() * np.sqrt(half / w.gamma(half))


@_row(4, dfnum="above 0", dfden="above 0")
def f(w: Words, dfnum: Any, dfden: Any) -> Any:
    return np.exp(w.log_gamma(dfnum / 2) - w.log_gamma(dfden / 2)) * (dfden / dfnum)


@_row(4, a="above 0", b="above 0")
def beta(w: Words, a: Any, b: Any) -> Any:
    # Of logarithms, since for small a and b both gamma numbers may vanish.
    return 1 / (1 + np.exp(w.log_gamma(b) - w.log_gamma(a)))


@_row(2, mean="above 0", scale="above 0")
def wald(w: Words, mean: Any, scale: Any) -> Any:
    """Michael, Schucany and Haas, The American Statistician 30, 1976."""
    y = mean * w.normal() ** 2 / (2 * scale)
    # mean * (1 + y - sqrt(2y + y^2)), without cancellation
    x = mean / (1 + y + np.sqrt(y * (2 + y)))
    return np.where(w.uniform() * (mean + x) <= mean, x, mean * mean / x)


@_row(mode_minus_left="at least 0", right_minus_mode="at least 0")
def triangular(w: Words, left: Any, mode_minus_left: Any, right_minus_mode: Any) -> Any:
    """The inverse of the distribution function."""
    wide, u = mode_minus_left + right_minus_mode, w.uniform()
    rising = u * wide < mode_minus_left
    area = np.where(rising, u * mode_minus_left, (1 - u) * right_minus_mode) * wide
    root = np.sqrt(np.where(area > 0, area, 1)) * (area > 0)
    return left + np.where(rising, root, wide - root)


@_row(kappa="at least 0")
def vonmises(w: Words, mu: Any, kappa: Any) -> Any:
    turned = w._sample("random_vonmises", kappa) + mu
    return turned - np.floor((turned + np.pi) / (2 * np.pi)) * turned.dtype.type(2 * np.pi)


@_row(4, df="above 0", nonc="at least 0")
def noncentral_chisquare(w: Words, df: Any, nonc: Any) -> Any:
    return _noncentral(w, df, nonc)


@_row(6, dfnum="above 0", dfden="above 0", nonc="at least 0")
def noncentral_f(w: Words, dfnum: Any, dfden: Any, nonc: Any) -> Any:
    return _noncentral(w, dfnum, nonc) / (w.gamma(dfden / 2) * 2) * (dfden / dfnum)


def _noncentral(w: Words, df: Any, nonc: Any) -> Any:
    """A square of one normal number off the origin and the others' about it; below one degree of
    freedom, as many degrees more as a Poisson number says (Johnson, Kotz and Balakrishnan, 29)."""
    whole = df > 1
    more = w.poisson(np.where(whole, 0, nonc / 2)).astype(w.kind)
    square = (w.normal() + np.sqrt(np.where(nonc > 0, nonc, 1)) * (nonc > 0)) ** 2
    return w.gamma(np.where(whole, df - 1, df) / 2 + more) * 2 + np.where(whole, square, 0)


@_row(kind=F64, a="above 1")
def zipf(w: Words, a: Any) -> Any:
    return w._sample("random_zipf", a).astype(I64)


@_row(2, kind=F64, p="from 0, below 1")
def logseries(w: Words, p: Any) -> Any:
    """Kemp, Applied Statistics 30, 1981."""
    chance = -np.expm1(w.uniform() * np.log1p(-p))
    rounds = w.exponential() / -np.log(np.where(chance > 0, chance, 1))
    return np.where(chance > 0, 1 + np.floor(np.minimum(rounds, 2.0**62)), 1).astype(I64)


@_row(kind=F64, ngood="at least 0", nbad="at least 0", nsample="at least 0",
      ngood_plus_nbad_minus_nsample="at least 0")
def hypergeometric(w: Words, ngood: Any, nbad: Any, nsample: Any,
                   ngood_plus_nbad_minus_nsample: Any) -> Any:
    there = np.where(ngood_plus_nbad_minus_nsample >= 0, nsample, np.nan)  # so that it is checked
    return w._sample("random_hypergeometric", ngood, nbad, there).astype(I64)


@_row(kind=F64, p="from 0 to 1")
def bernoulli(w: Words, p: Any) -> Any:
    return w.uniform() < p


@_row(kind=F64, lam="from 0 to 9e18")
def poisson(w: Words, lam: Any) -> Any:
    return w.poisson(lam).astype(I64)


@_row(kind=F64, n="at least 0", p="from 0 to 1")
def binomial(w: Words, n: Any, p: Any) -> Any:
    return w.binomial(n, p).astype(I64)


@_row(3, kind=F64, n="above 0", p="above 0, up to 1")
def negative_binomial(w: Words, n: Any, p: Any) -> Any:
    return w.poisson(w.gamma(n) * ((1 - p) / p)).astype(I64)


@_row(kind=F64, p="above 0, up to 1")
def geometric(w: Words, p: Any) -> Any:
    trials = np.ceil(w.exponential() / -np.log1p(-p))
    return np.clip(trials, 1, 2.0**63 - 1024).astype(I64)


@_row(kind=U64)
def words(w: Words) -> Any:
    return w.next()


@_row(kind=U64)
def integers(w: Words, count: Any, low: Any) -> Any:
    return _high(w.next(), count) + low


@_row(2, kind=U64)
def wide_integers(w: Words, count: Any, low: Any) -> Any:
    """Of 128 bits; a count of 0 stands for 2**64."""
    word = w.next()
    below = word * count
    carry = below + _high(w.next(), count) < below
    return np.where(count == 0, word, _high(word, count) + carry.astype(U64)) + low


def _high(word: Any, count: Any) -> Any:
    """The high half of the product: a number below ``count`` (Lemire, ACM TOMACS 29, 2019)."""
    a, b, x, y = word >> _HALF, word & _LOW, count >> _HALF, count & _LOW
    middle = a * y + (b * y >> _HALF)
    return a * x + (middle >> _HALF) + (b * x + (middle & _LOW) >> _HALF)


DISTRIBUTIONS: Mapping[str, Distribution] = MappingProxyType({
    row.name: row for row in tuple(globals().values()) if isinstance(row, Distribution)})


def recorded(
    row: Distribution, key: Any, first: Any, shape: tuple[Dim, ...], params: tuple[Any, ...],
    kind: np.dtype[Any],
) -> Tracer:
    """The nodes of a draw."""
    wanted = row.kind or kind
    given = [spread(param, wanted, shape) for param in params]
    made: Tracer = row.body(Words(key, first, wanted), *given)
    return made


def sample(
    stream: Stream, row: Distribution, params: tuple[Any, ...], shape: tuple[Dim, ...] | None,
    kind: np.dtype[Any],
) -> Tracer:
    """A draw of a trace: its shape is that of the parameters, if none is given."""
    found = common_shape(params) if shape is None else shape
    checked = tuple(row.checked(at, param) for at, param in enumerate(params))
    return recorded(row, *stream.traced(found, row.words), found, checked, kind)


def sample_now(
    stream: Stream, row: Distribution, params: tuple[Any, ...], shape: tuple[int, ...] | None,
    kind: np.dtype[Any],
) -> Any:
    """A draw outside of any trace."""
    given = [np.asarray(param, row.kind or kind) for param in params]
    for at, param in enumerate(given):
        _check_now(row, at, param)
    found = np.broadcast_shapes(*(x.shape for x in given)) if shape is None else shape
    try:
        flat = [x if x.ndim == 0 else np.broadcast_to(x, found).ravel() for x in given]
    except ValueError:
        raise error("W101", f"parameters of shapes {', '.join(str(x.shape) for x in given)} do not "
                            f"broadcast to size={found}", locs=user_loc(),
                    hint="give a size that ends with their common shape, or none") from None
    room = np.empty(int(np.prod(found, dtype=np.int64)), bool)
    program = _program(row.name, kind, tuple(x.ndim for x in flat))
    made = program(stream.key, stream.reserved(room.size * row.words), room, *flat)
    return made.reshape(found)[()]


def _check_now(row: Distribution, at: int, param: Any) -> None:
    asked = row.params[at][1]
    if asked and not np.all(_ASKED[asked](param)):
        value = "" if param.ndim else f": {param}"
        raise error("W132", f"{row.message(at)}{value}", locs=user_loc(),
                    types=[type_of(param)] * min(param.ndim, 1), hint=_HINT)


@functools.cache
def _program(name: str, kind: np.dtype[Any], ranks: tuple[int, ...]) -> Function[..., Any]:
    """A flat draw of any size."""
    row = DISTRIBUTIONS[name]

    def draw(key: Any, first: Any, room: Any, w: Any = None, x: Any = None, y: Any = None,
             z: Any = None) -> Any:
        shape = room.type.shape

        def record() -> Tracer:
            params = (w, x, y, z)[:len(ranks)]
            return recorded(row, key, placed(to_tracer(first), shape, row.words), shape, params,
                            kind)

        return current().apply(record, (), stem=name)

    sized = ["room", *(param for param, rank in zip("wxyz", ranks, strict=False) if rank)]
    compiled: Function[..., Any] = compile_function(
        dynamic={param: {0: "n"} for param in sized})(draw)
    return compiled
