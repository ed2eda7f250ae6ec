"""Rows of the REDUCE and CONTRACT families, and the composites made of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...diagnose import error
from ...indices.index import Dim, product
from ...indices.proof import nonnegative
from ...types import BOOL, DTYPES, I32, I64, NUMBERS, TensorType
from ..op import Kind, OpDef, Sample
from .scan import before, turned

_SHAPES = (((7,), (0,)), ((3, 5), (1,)), ((3, 5), (0,)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (1, 2)),
           ((1, 1), (0, 1)), ((3, 0), (0,)), ((70, 33), (0,)), ((33, 70), (1,)), ((5, 1000), (1,)),
           ((4, 5), ()), ((3000,), (0,)))
# The sum of no elements is 0; the maximum of none does not exist.
_EMPTY = (((0,), (0,)), ((3, 0), (1,)))


def _kept(rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for axis in range(rank) if axis not in axes)


def _reduce_infer(kinds: str, name: str) -> Any:
    def infer(x: TensorType, *, axes: tuple[int, ...]) -> tuple[TensorType, ...]:
        if x.dtype.kind not in kinds:
            raise error("W111", f"{name} does not take {x.dtype} operands")
        if any(not 0 <= axis < x.rank for axis in axes) or len(set(axes)) != len(axes):
            raise error("W121", f"axes {axes} are out of range for rank {x.rank}",
                        hint=f"axes run from 0 to {x.rank - 1}")
        if name in ("max", "min") and any(x.shape[axis] == 0 for axis in axes):
            raise error("W102", f"{name} of an empty axis has no value")
        return (x.with_shape(tuple(x.shape[axis] for axis in _kept(x.rank, axes))),)

    return infer


def _spread(b: Any, g: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """A reduced value repeated along the axes that were reduced."""
    return b.broadcast(g, shape=x.shape, axes=_kept(len(x.shape), axes))


def _extreme_grad(b: Any, g: Any, x: Any, y: Any, *, axes: tuple[int, ...]) -> Any:
    # Equal extremes share the gradient evenly, so that it does not depend on their order.
    hit = b.cast(b.eq(x, _spread(b, y, x, axes)), dtype=x.dtype)
    share = b.div(g, b.sum(hit, axes=axes))
    return (b.mul(_spread(b, share, x, axes), hit),)


def _product_grad(b: Any, g: Any, x: Any, y: Any, *, axes: tuple[int, ...]) -> Any:
    """The product of all others, one axis after the other: of those before each and those after.
    Nothing is divided, so derivatives of any order are right where elements are 0."""
    if not axes:
        return (g,)
    axis = axes[-1]
    kept = _kept(len(x.shape), (axis,))
    if len(axes) > 1:
        rest = tuple(kept.index(other) for other in axes[:-1])
        inner = b.prod(x, axes=(axis,))
        (g,) = _product_grad(b, g, inner, y, axes=rest)
    others = b.mul(before(b, b.cumprod(x, axis=axis), axis, 1.0),
                   turned(b, before(b, b.cumprod(turned(b, x, axis), axis=axis), axis, 1.0), axis))
    return (b.mul(_spread(b, g, x, (axis,)), others),)


def _extreme_requires(name: str) -> Any:
    def requires(x: TensorType, *, axes: tuple[int, ...]) -> Any:
        for axis in axes:
            yield x.shape[axis], ">=", 1, "W102", f"the {name} of no elements has no value"

    return requires


def _reduce(name: str, combine: str, ref: Any, grad: Any, doc: str, kinds: str,
            *, empty: bool = False) -> OpDef:
    shapes = _SHAPES + (_EMPTY if empty else ())
    return OpDef(name, Kind.REDUCE, _reduce_infer(kinds, name), 1, doc, {"axes": tuple},
                 ref=lambda x, *, axes: ref(np.asarray(x), axis=axes), combine=combine, grad=grad,
                 requires=None if empty else _extreme_requires(name),
                 differentiable=grad is not None,
                 dtypes=tuple(d for d in NUMBERS if d.kind in kinds),
                 samples=tuple(Sample((shape,), {"axes": axes}) for shape, axes in shapes))


def _plain(ref: Callable[..., Any]) -> Callable[..., Any]:
    """With 0.0 for -0.0: the sign of a zero would show in which order elements came."""
    def found(x: Any, axis: tuple[int, ...]) -> Any:
        extreme = ref(x, axis=axis)
        return extreme if x.dtype.kind in "iub" else extreme + extreme.dtype.type(0)

    return found


def _sum_ref(x: Any, axis: tuple[int, ...]) -> Any:
    return np.sum(x, axis=axis, dtype=x.dtype)


def _product_ref(x: Any, axis: tuple[int, ...]) -> Any:
    return np.prod(x, axis=axis, dtype=x.dtype)


@cache
def contract_letters(dims: str) -> tuple[str, str, str]:
    """The letters of lhs, rhs and result of ``"mk,kn->mn"``."""
    left, _, out = dims.partition("->")
    lhs, _, rhs = left.partition(",")
    return lhs, rhs, out


@cache
def contract_order(dims: str) -> str:
    """The letters of a contraction in the order of its own dims: the result's, the others."""
    lhs, _, out = contract_letters(dims)
    return "".join(dict.fromkeys(out + lhs))


@cache
def contract_places(dims: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Which own dims the axes of lhs, rhs and result are, by number."""
    lhs, rhs, out = (tuple(map(contract_order(dims).index, letters))
                     for letters in contract_letters(dims))
    return lhs, rhs, out


def contract_sizes(dims: str, lhs: tuple[Dim, ...], rhs: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The own dims of a contraction of these shapes."""
    left, right, _ = contract_places(dims)
    sizes = dict(zip(left + right, lhs + rhs, strict=True))
    return tuple(sizes[at] for at in range(len(sizes)))


def is_matrix_product(dims: str, lhs: tuple[Dim, ...], rhs: tuple[Dim, ...]) -> bool:
    """True if each operand has rows (or columns) of its own, several of them, and there are terms.

    Such a contraction is chains of fused multiply-adds for each element; all else (one row, no
    terms) is a sum of products. Which it is follows from the sizes of the letters alone; a symbolic
    one that is never more than 1 (``x[:1]``) counts as 1.
    """
    left, right, out = contract_places(dims)
    sizes = contract_sizes(dims, lhs, rhs)
    rows = product(sizes[at] for at in out if at not in right)
    columns = product(sizes[at] for at in out if at not in left)
    terms = product(sizes[at] for at in left if at not in out)
    return not any(nonnegative(1 - dim) for dim in (rows, columns, terms)) and terms != 0


def _contract_infer(x: TensorType, y: TensorType, *, dims: str) -> tuple[TensorType, ...]:
    lhs, rhs, out = contract_letters(dims)
    if len(lhs) != x.rank or len(rhs) != y.rank:
        raise error("W102", f"'{dims}' needs operands of rank {len(lhs)} and {len(rhs)}")
    if x.dtype != y.dtype or x.dtype == BOOL:
        raise error("W111", "contract needs two numeric operands of one dtype")
    sizes: dict[str, Dim] = {}
    for letter, dim in zip(lhs + rhs, x.shape + y.shape, strict=True):
        if sizes.setdefault(letter, dim) != dim:
            raise error("W104", f"contracted dims differ: {sizes[letter]} and {dim} "
                                f"for '{letter}' of '{dims}'")
    repeated = any(len(set(part)) != len(part) for part in (lhs, rhs, out))
    if repeated or set(out) - set(sizes) or any(c not in out and not (c in lhs and c in rhs)
                                                for c in sizes):
        raise error("W104", f"'{dims}' is not a contraction: each letter stands once in an operand "
                            "and is shared or kept")
    return (TensorType(x.dtype, tuple(sizes[letter] for letter in out)),)


def _contract_grad(b: Any, g: Any, x: Any, y: Any, out: Any, *, dims: str) -> Any:
    lhs, rhs, result = contract_letters(dims)
    return (b.contract(g, y, dims=f"{result},{rhs}->{lhs}"),
            b.contract(x, g, dims=f"{lhs},{result}->{rhs}"))


def _mean_expand(b: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    total = b.sum(x, axes=axes)
    count: Dim = 1
    for axis in axes:
        count = count * x.shape[axis]
    if isinstance(count, int):
        return b.div(total, float(count) if count else float("nan"))
    size = b.cast(b.dim(size=count), dtype=x.dtype)
    return b.div(total, b.broadcast(size, shape=total.shape, axes=()))


def _mean_infer(x: TensorType, *, axes: tuple[int, ...]) -> tuple[TensorType, ...]:
    return _reduce_infer("fc", "mean")(x, axes=axes)  # type: ignore[no-any-return]


def _arg_infer(x: TensorType, *, axis: int) -> tuple[TensorType, ...]:
    if not 0 <= axis < x.rank:
        raise error("W121", f"axis {axis} is out of range for rank {x.rank}")
    if x.shape[axis] == 0:
        raise error("W102", "argmax of an empty axis has no value")
    return (TensorType(I64, x.shape[:axis] + x.shape[axis + 1:]),)


LONG = 1 << 15  # elements of a row that is searched by parts
PART = 1 << 11


def _arg_expand(extreme: str) -> Any:
    """The first index whose element is the extreme, or the first NaN, as NumPy has it."""
    def first(b: Any, x: Any, axis: int) -> Any:
        best = _spread(b, getattr(b, extreme)(x, axes=(axis,)), x, (axis,))
        hit = b.eq(x, best)
        if x.dtype.is_float:
            hit = b.or_(hit, b.isnan(x))
        # 32-bit places where they suffice: twice as many fit into a vector.
        extent = x.shape[axis]
        narrow = isinstance(extent, int) and extent < 1 << 31
        dtype = I32 if narrow else I64
        place = b.iota(axis=axis, dtype=dtype, shape=x.shape)
        found = b.min(b.select(hit, place, (1 << (dtype.bits - 1)) - 1), axes=(axis,))
        return b.cast(found, dtype=I64) if narrow else found

    def by_parts(b: Any, x: Any) -> Any:
        """The part with the extreme first, then the place in it: memory is read once. The last part
        begins where it ends with the row, as what it shares with the one before it was first."""
        (extent,) = x.shape
        count, last = extent // PART, extent - PART
        parts = b.reshape(b.slice(x, start=(0,), step=(1,), shape=(count * PART,)),
                          shape=(count, PART))
        rest = b.slice(x, start=(last,), step=(1,), shape=(PART,))
        best = getattr(b, extreme)
        ends = b.concatenate(best(parts, axes=(1,)),
                             b.reshape(best(rest, axes=(0,)), shape=(1,)), axis=0)
        start = b.minimum(b.mul(first(b, ends, 0), b.full(PART, TensorType(I64, ()))),
                          b.full(last, TensorType(I64, ())))
        places = b.add(b.broadcast(start, shape=(PART,), axes=()),
                       b.iota(axis=0, dtype=I64, shape=(PART,)))
        return b.add(start, first(b, b.gather(x, places, axes=(0,)), 0))

    def expand(b: Any, x: Any, *, axis: int) -> Any:
        if x.dtype == BOOL:
            x = b.cast(x, dtype=DTYPES["i8"])
        if len(x.shape) == 1 and isinstance(x.shape[0], int) and x.shape[0] >= LONG:
            return by_parts(b, x)
        return first(b, x, axis)

    return expand


def _composite(name: str, infer: Any, ref: Any, expand: Any, doc: str, attrs: Any,
               samples: tuple[Sample, ...], kinds: str, *, differentiable: bool) -> OpDef:
    return OpDef(name, Kind.REDUCE, infer, 1, doc, attrs, ref=ref, expand=expand,
                 differentiable=differentiable, samples=samples,
                 dtypes=tuple(d for d in NUMBERS if d.kind in kinds))


_ARG_SAMPLES = tuple(Sample((shape,), {"axis": axis}) for shape, axis in (
    ((7,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((1,), 0), ((33, 70), 1), ((2000,), 0)))
_CONTRACTIONS = (
    ("mk,kn->mn", (3, 5), (5, 7)), ("mk,kn->mn", (1, 1), (1, 1)), ("mk,kn->mn", (0, 5), (5, 7)),
    ("mk,kn->mn", (3, 0), (0, 7)), ("mk,kn->mn", (33, 65), (65, 47)),
    ("mk,nk->mn", (17, 20), (9, 20)),
    ("km,kn->mn", (20, 17), (20, 9)), ("km,nk->mn", (20, 17), (9, 20)),
    ("bmk,bkn->bmn", (3, 4, 5), (3, 5, 6)), ("k,k->", (19,), (19,)), ("mk,k->m", (18, 31), (31,)),
    ("k,kn->n", (31,), (31, 18)), ("m,n->mn", (5,), (6,)), ("abk,kc->abc", (2, 3, 4), (4, 5)),
    ("bthd,bshd->bhts", (2, 5, 3, 4), (2, 6, 3, 4)), ("mk,kn->nm", (5, 6), (6, 7)),
    ("mjk,kjn->mn", (4, 3, 5), (5, 3, 6)), ("bm,bm->bm", (3, 4), (3, 4)))

ROWS: tuple[OpDef, ...] = (
    _reduce("sum", "add", _sum_ref, lambda b, g, x, y, *, axes: (_spread(b, g, x, axes),),
            "sum over axes", "iufc", empty=True),
    _reduce("prod", "mul", _product_ref, _product_grad, "product over axes", "iufc", empty=True),
    _reduce("max", "max", _plain(np.max), _extreme_grad,
            "largest over axes, NaN if there is one; no -0.0", "iufb"),
    _reduce("min", "min", _plain(np.min), _extreme_grad,
            "smallest over axes, NaN if there is one; no -0.0", "iufb"),
    _reduce("any", "or_", np.any, None, "true if any is, over axes", "b", empty=True),
    _reduce("all", "and_", np.all, None, "true if all are, over axes", "b", empty=True),
    OpDef("contract", Kind.CONTRACT, _contract_infer, 2,
          "sum of products over the letters that the result lacks, in index order",
          {"dims": str}, ref=lambda x, y, *, dims: np.einsum(dims, x, y),
          grad=_contract_grad, dtypes=tuple(d for d in NUMBERS if d != BOOL),
          samples=tuple(Sample((a, z), {"dims": dims}) for dims, a, z in _CONTRACTIONS)),
    _composite("mean", _mean_infer, lambda x, *, axes: np.mean(x, axis=axes), _mean_expand,
               "mean over axes", {"axes": tuple},
               tuple(Sample((shape,), {"axes": axes}) for shape, axes in _SHAPES
                     if 0 not in shape), "fc", differentiable=True),
    _composite("argmax", _arg_infer, lambda x, *, axis: np.argmax(x, axis=axis), _arg_expand("max"),
               "index of the first largest along an axis", {"axis": int}, _ARG_SAMPLES, "iufb",
               differentiable=False),
    _composite("argmin", _arg_infer, lambda x, *, axis: np.argmin(x, axis=axis), _arg_expand("min"),
               "index of the first smallest along an axis", {"axis": int}, _ARG_SAMPLES, "iufb",
               differentiable=False),
)
