"""``Generator``: NumPy's names for what ``distributions`` and ``arrangement`` draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ...face import tree
from ...face.source import user_loc
from ...tracing.context.active import context_for
from ...tracing.context.distance import is_computed
from ...tracing.foreign import asks
from ...tracing.operand import as_int, as_shape, contains_tracer
from ...tracing.values.tracer import Tracer
from . import arrangement
from .distributions import DISTRIBUTIONS, F32, F64, sample, sample_now
from .stream import Stream, counter_of, is_traced_function, word_at


class Generator:
    """A stream of random numbers; see the module's docstring. ``counter`` is its state, a Variable
    to be saved with the others.

    Methods have NumPy's names, parameters and dtypes, and take ``dtype=np.float32`` wherever
    samples are floats. Parameters may be traced, and float samples are differentiable by all of
    them, counts by none. A parameter out of its range is a ParameterError (W132), a ValueError; if
    it is traced, the step fails.
    """

    def __init__(self, seed: Any = None) -> None:
        if contains_tracer(seed):
            raise asks("weft.random.default_rng", [leaf for leaf in tree.leaves(seed)
                                                   if isinstance(leaf, Tracer)])
        try:
            key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        except (TypeError, ValueError):
            raise error("W112", f"a generator's seed is {seed!r}, not an integer of 0 or more",
                        locs=user_loc(), hint="give an int, a list of ints, or None") from None
        self._stream = Stream(key, counter_of(seed is not None))

    @classmethod
    def of_key(cls, key: Any) -> Generator:
        """See ``from_key``."""
        made = cls.__new__(cls)
        made._stream = Stream(key, counter_of(True))
        return made

    @property
    def counter(self) -> Any:
        """The Variable that holds how many words are used."""
        return self._stream.counter

    # -- streams ------------------------------------------------------------------------------

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators of streams of their own, other ones at each call: a word of this stream is the
        key of each.

        >>> first, second = Generator(0).spawn(2)
        >>> bool(first.random() == second.random())
        False
        """
        count = as_int(n_children, "number of children")
        if not 0 <= count <= 1 << 32:
            raise error("W132", f"rng.spawn: {count} children", locs=user_loc(),
                        hint="give a number from 0 on, below 2**32")
        if is_traced_function():  # others at each call of the program, too
            keys = self.split(count)
        else:  # of a graph, too: the same ones in all its steps
            keys = word_at(self._stream.key, self._stream.reserved(count) + np.arange(
                count, dtype=np.uint64))
        return [Generator.of_key(keys[at]) for at in range(count)]

    def split(self, size: Any = 2) -> Any:
        """Fresh keys, uint64 of shape ``size``: ``from_key`` makes a generator of each, under vmap
        too.

        >>> Generator(0).split(3).shape
        (3,)
        """
        return self._draw("words", (), size)

    # -- floats -------------------------------------------------------------------------------

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Uniform in [0, 1): multiples of 2**-53 (float64) or 2**-24 (float32).

        >>> x = Generator(0).random((2, 3))
        >>> x.shape, bool((x < 1).all())
        ((2, 3), True)
        """
        return self._draw("random", (), size, dtype, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, *,
                dtype: Any = np.float64) -> Any:
        """Uniform in [low, high), where rounding may give ``high``."""
        return self._draw("uniform", (low, high), size, dtype)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Normal of mean 0 and variance 1, by the inverse of its distribution function."""
        return self._draw("standard_normal", (), size, dtype, out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, *,
               dtype: Any = np.float64) -> Any:
        """Normal of mean ``loc`` and standard deviation ``scale``.

        >>> Generator(0).normal([0.0, 10.0], 0.01).round()
        array([-0., 10.])
        """
        return self._draw("normal", (loc, scale), size, dtype)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, *,
                  dtype: Any = np.float64) -> Any:
        """exp of a normal number of that mean and standard deviation."""
        return self._draw("lognormal", (mean, sigma), size, dtype)

    def standard_exponential(self, size: Any = None, dtype: Any = np.float64, method: str = "inv",
                             out: Any = None) -> Any:
        """Exponential of mean 1, always by the inverse of its distribution function."""
        return self._draw("standard_exponential", (), size, dtype, out)

    def exponential(self, scale: Any = 1.0, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """Exponential of mean ``scale``."""
        return self._draw("exponential", (scale,), size, dtype)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, *,
                dtype: Any = np.float64) -> Any:
        """Of density exp(-|x - loc| / scale) / (2 scale)."""
        return self._draw("laplace", (loc, scale), size, dtype)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, *,
                 dtype: Any = np.float64) -> Any:
        """With the distribution function 1 / (1 + exp(-(x - loc) / scale))."""
        return self._draw("logistic", (loc, scale), size, dtype)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, *,
               dtype: Any = np.float64) -> Any:
        """With the distribution function exp(-exp(-(x - loc) / scale))."""
        return self._draw("gumbel", (loc, scale), size, dtype)

    def rayleigh(self, scale: Any = 1.0, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """The length of a vector of two normal numbers of standard deviation ``scale``."""
        return self._draw("rayleigh", (scale,), size, dtype)

    def weibull(self, a: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """The a-th root of an exponential number."""
        return self._draw("weibull", (a,), size, dtype)

    def pareto(self, a: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """Pareto's second distribution: of density a / (1 + x)**(a + 1)."""
        return self._draw("pareto", (a,), size, dtype)

    def power(self, a: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """In (0, 1], of density a x**(a - 1)."""
        return self._draw("power", (a,), size, dtype)

    def standard_cauchy(self, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """The quotient of two normal numbers."""
        return self._draw("standard_cauchy", (), size, dtype)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = np.float64,
                       out: Any = None) -> Any:
        """Gamma of that shape and scale 1 (Marsaglia and Tsang, 2000)."""
        return self._draw("standard_gamma", (shape,), size, dtype, out)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None, *,
              dtype: Any = np.float64) -> Any:
        """Gamma of that shape, times ``scale``."""
        return self._draw("gamma", (shape, scale), size, dtype)

    def log_gamma(self, shape: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """The logarithm of a gamma number, finite also where the number itself would vanish."""
        return self._draw("log_gamma", (shape,), size, dtype)

    def chisquare(self, df: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """The sum of the squares of ``df`` normal numbers."""
        return self._draw("chisquare", (df,), size, dtype)

    def standard_t(self, df: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """Student's t with ``df`` degrees of freedom."""
        return self._draw("standard_t", (df,), size, dtype)

    def f(self, dfnum: Any, dfden: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """The quotient of two chi-square numbers, each divided by its degrees of freedom."""
        return self._draw("f", (dfnum, dfden), size, dtype)

    def beta(self, a: Any, b: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """In [0, 1], of density proportional to x**(a - 1) (1 - x)**(b - 1)."""
        return self._draw("beta", (a, b), size, dtype)

    def wald(self, mean: Any, scale: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """The inverse Gaussian distribution."""
        return self._draw("wald", (mean, scale), size, dtype)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None, *,
                             dtype: Any = np.float64) -> Any:
        """The sum of the squares of ``df`` normal numbers of variance 1, whose means have squares
        that sum to ``nonc``."""
        return self._draw("noncentral_chisquare", (df, nonc), size, dtype)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None, *,
                     dtype: Any = np.float64) -> Any:
        """As ``f``, of a ``noncentral_chisquare`` number above."""
        return self._draw("noncentral_f", (dfnum, dfden, nonc), size, dtype)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None, *,
                   dtype: Any = np.float64) -> Any:
        """From ``left`` to ``right``, most often near ``mode``, with a density of straight lines.

        >>> x = Generator(0).triangular(-1, 0, 3, 100)
        >>> bool(x.min() >= -1), bool(x.max() <= 3)
        (True, True)
        """
        return self._draw("triangular", (left, np.subtract(mode, left), np.subtract(right, mode)),
                          size, dtype)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """Angles from -pi to pi, of density proportional to exp(kappa cos(x - mu)) (Best and
        Fisher, 1979). They have no derivative by ``kappa``."""
        return self._draw("vonmises", (mu, kappa), size, dtype)

    # -- counts ---------------------------------------------------------------------------------

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64,
                 endpoint: bool = False) -> Any:
        """Integers from ``low`` to before ``high`` (up to it with ``endpoint``), from 0 if only one
        is given. No number is more probable than another by a factor of 1 + 2**-32 (Lemire, 2019,
        without rejection; of 128 bits for ranges beyond 2**32).

        >>> x = Generator(0).integers(1, 6, size=100, endpoint=True)
        >>> int(x.min()), int(x.max())
        (1, 6)
        """
        return arrangement.integers(self, low, high, size, np.dtype(dtype), bool(endpoint))

    def bernoulli(self, p: Any = 0.5, size: Any = None) -> Any:
        """True with probability ``p``."""
        return self._draw("bernoulli", (p,), size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """How many of ``n`` trials succeed, each with probability ``p`` (Hoermann, 1993)."""
        return self._draw("binomial", (n, p), size)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """How many trials fail before ``n`` of them succeed."""
        return self._draw("negative_binomial", (n, p), size)

    def geometric(self, p: Any, size: Any = None) -> Any:
        """The number of the first trial that succeeds, from 1 on."""
        return self._draw("geometric", (p,), size)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Poisson of mean ``lam`` (Hoermann, 1993)."""
        return self._draw("poisson", (lam,), size)

    def zipf(self, a: Any, size: Any = None) -> Any:
        """Whole numbers k above 0, of probability proportional to k**-a (Devroye, 1986)."""
        return self._draw("zipf", (a,), size)

    def logseries(self, p: Any, size: Any = None) -> Any:
        """Whole numbers k above 0, of probability proportional to p**k / k (Kemp, 1981)."""
        return self._draw("logseries", (p,), size)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        """How many of ``nsample`` that are drawn without replacement are good ones (Stadlober,
        1990).

        >>> Generator(0).hypergeometric(5, 0, 3, 2)
        array([3, 3])
        """
        left = np.subtract(np.add(ngood, nbad), nsample)
        return self._draw("hypergeometric", (ngood, nbad, nsample, left), size)

    def multivariate_hypergeometric(self, colors: Any, nsample: Any, size: Any = None,
                                    method: str = "marginals") -> Any:
        """How many of each kind are among ``nsample`` drawn without replacement from as many as
        ``colors`` (k,) says: (..., k), whatever ``method`` is."""
        return arrangement.multivariate_hypergeometric(self, colors, nsample, size)

    def bytes(self, length: int) -> bytes:
        """So many random bytes, at once; a traced function has no bytes.

        >>> len(Generator(0).bytes(5))
        5
        """
        return np.asarray(self.integers(0, 256, length, np.uint8)).tobytes()

    def categorical(self, logits: Any, size: Any = None, axis: int = -1) -> Any:
        """Places along ``axis`` with probabilities softmax(logits), int64; ``size`` is the shape of
        the result, to which the other axes broadcast (the Gumbel-max trick).

        >>> Generator(0).categorical([-np.inf, 0.0, -np.inf], size=4)
        array([1, 1, 1, 1])
        """
        return arrangement.categorical(self, logits, size, axis)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """How often each outcome of the last axis of ``pvals`` occurs in ``n`` trials."""
        return arrangement.multinomial(self, n, pvals, size)

    # -- vectors, order -------------------------------------------------------------------------

    def dirichlet(self, alpha: Any, size: Any = None, *, dtype: Any = np.float64) -> Any:
        """Numbers that sum to 1 along a new last axis, of a vector ``alpha``."""
        return arrangement.dirichlet(self, alpha, size, dtype)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8,
        *, method: str = "svd",
    ) -> Any:
        """Normal vectors of mean (d,) and covariance (d, d) along a new last axis.

        ``method`` is "svd", "eigh" or "cholesky", of which the last one has gradients everywhere
        and needs a positive definite matrix. Whether ``cov`` is one is not checked if it is traced.
        """
        return arrangement.multivariate_normal(self, mean, cov, size, check_valid, tol, method)

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,
               shuffle: bool = True) -> Any:
        """Entries of ``a`` along ``axis``, or of range(a), with probabilities ``p``. Without
        replacement they come in random order, whatever ``shuffle`` says.

        >>> sorted(Generator(0).choice(4, 4, replace=False).tolist())
        [0, 1, 2, 3]
        """
        return arrangement.choice(self, a, size, bool(replace), p, axis)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """``x``, or range(x), in random order along ``axis``: that of random words of 64 bits, of
        which n are all different but for a probability of n**2 / 2**65.

        >>> sorted(Generator(0).permutation(5).tolist())
        [0, 1, 2, 3, 4]
        """
        return arrangement.permutation(self, x, axis)

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """Each row of ``x`` along ``axis`` in an order of its own, all elements without one."""
        return _stored(arrangement.permuted(self, x, axis), out)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put ``x``, an array that may be written or a list, into random order along ``axis``.

        >>> x = np.arange(4)
        >>> Generator(0).shuffle(x)
        >>> sorted(x.tolist())
        [0, 1, 2, 3]
        """
        arrangement.shuffle(self, x, axis)

    # -- how ------------------------------------------------------------------------------------

    def _draw(self, name: str, params: tuple[Any, ...], size: Any = None, dtype: Any = F64,
              out: Any = None) -> Any:
        row, kind = DISTRIBUTIONS[name], np.dtype(dtype)
        if kind not in (F32, F64):
            raise error("W111", f"random floats are float32 or float64, not {kind}",
                        locs=user_loc(), hint="convert the result with .astype")
        if size is None and out is not None:
            size = out.shape
        ctx = context_for((*params, self._stream.key))
        if ctx is not None:
            made = ctx.apply(lambda: sample(self._stream, row, params, _shape(size), kind), (),
                             stem=name)
        else:
            made = sample_now(self._stream, row, params, _shape(size), kind)
        return _stored(made, out)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            raise AttributeError(f"'Generator' object has no attribute {name!r}")
        raise error("W113", f"rng.{name} is not supported yet", locs=user_loc(),
                    hint="draw with a NumPy generator outside of the function, and pass the "
                         "numbers in")


def _shape(size: Any) -> Any:
    """The size of a draw. Raises TracerError (W201) for one that is computed."""
    for dim in size if isinstance(size, (tuple, list)) else (size,):
        if is_computed(dim):
            raise error("W201", "how many numbers are drawn is not known before the function runs",
                        locs=user_loc(), types=[dim.type],
                        hint="draw as many as there may be, and choose with np.where; or name the "
                             "argument in static_argnames")
    return None if size is None else as_shape(size)


def _stored(made: Any, out: Any) -> Any:
    """The numbers, or the array that they are written into."""
    if out is None:
        return made
    out[...] = made
    return out
