"""Sums of products: matmul and its kin, dot, tensordot, einsum; all become ``contract`` nodes.

Each dim of an operand gets a letter. Equal letters run together; a letter that the result lacks is
summed. A batch dim of size 1 that broadcasts loses its letter, so nothing is ever copied:

    (b, 1, m, k) @ (c, k, n)      ->      contract "amk,ckn->acmn"
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.indices.index import Dim, Expr
from ....ir.indices.proof import differ, nonnegative
from ....ir.letters import LETTERS
from ....ir.types import as_dtype
from ...tracing.arrays import views
from ...tracing.context.active import current
from ...tracing.operand import (
    array_dtype,
    as_int,
    as_number,
    axes_of,
    cast,
    masked,
    matched,
    reshape,
    shape_of,
    strong,
    to_tracer,
    type_of,
)
from ...tracing.values.tracer import Tracer
from ..registry import numpy

_BATCH = LETTERS[26:]  # capital first, as letters of cores are small
_FREE = LETTERS.replace("K", "").replace("N", "")
_INT32, _FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
_UNKNOWN = 1024  # what a size that is not known counts as


def contract(x: Tracer, y: Tracer, left: str, right: str, out: str) -> Tracer:
    """The sum of products of two operands of one dtype. Dims of size 1 that stand against a larger
    dim broadcast; a letter that only one operand has and the result lacks is summed first."""
    if x.dtype == np.dtype(bool):
        count = contract(cast(x, _INT32), cast(y, _INT32), left, right, out)
        return cast(count, np.dtype(bool))
    sizes = _sizes(((x, left), (y, right)))
    for letter, dim in zip(left + right, x.type.shape + y.type.shape, strict=True):
        known = sizes[letter]
        if dim != 1 and differ(dim, known):
            raise error("W104", f"dims {known} and {dim} of '{letter}' differ",
                        types=[x.type, y.type], hint="transpose or reshape one operand")
    x, y = (matched(a, tuple(dim if dim == 1 else sizes[letter] for letter, dim in zip(
        letters, a.type.shape, strict=True))) for a, letters in ((x, left), (y, right)))
    x, left = _drop_ones(x, left, sizes)
    y, right = _drop_ones(y, right, sizes)
    x, left = _sum_alone(x, left, right + out)
    y, right = _sum_alone(y, right, left + out)
    return current().emit("contract", x, y, dims=f"{left},{right}->{out}")


def _sizes(operands: Iterable[tuple[Tracer, str]]) -> dict[str, Dim]:
    """The size of each letter: one that is known, if there is one, and 1 only if all are."""
    sizes: dict[str, Dim] = {}
    for x, letters in operands:
        for letter, dim in zip(letters, x.type.shape, strict=True):
            known = sizes.get(letter, 1)
            if known == 1 or (isinstance(dim, int) and isinstance(known, Expr) and dim != 1):
                sizes[letter] = dim
    return sizes


def _drop_ones(x: Tracer, letters: str, sizes: Mapping[str, Dim]) -> tuple[Tracer, str]:
    shape = x.type.shape
    kept = [at for at, letter in enumerate(letters) if shape[at] == sizes[letter]]
    if len(kept) == len(letters):
        return x, letters
    return (reshape(x, tuple(shape[at] for at in kept)),
            "".join(letters[at] for at in kept))


def _sum_alone(x: Tracer, letters: str, others: str) -> tuple[Tracer, str]:
    alone = tuple(at for at, letter in enumerate(letters) if letter not in others)
    if not alone:
        return x, letters
    return (current().emit("any" if x.dtype == np.dtype(bool) else "sum", x, axes=alone),
            "".join(letter for letter in letters if letter in others))


def _gufunc(left_core: str, right_core: str, out_core: str) -> Callable[..., Any]:
    """A generalised ufunc of two operands: core letters small, broadcast batch dims capital."""
    def run(inputs: tuple[Any, ...], wanted: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> Any:
        x, y = (to_tracer(a, dtype) for a, dtype in zip(inputs, wanted, strict=True))
        if x.ndim < len(left_core) or y.ndim < len(right_core):
            raise error("W102", "a product of arrays needs operands with dims, not scalars",
                        types=[type_of(a) for a in inputs], hint="multiply scalars with *")
        y = _matched_core(x, y, left_core, right_core)
        batch = _BATCH[:max(x.ndim - len(left_core), y.ndim - len(right_core))]
        left = batch[len(batch) - x.ndim + len(left_core):] + left_core
        right = batch[len(batch) - y.ndim + len(right_core):] + right_core
        return cast(contract(x, y, left, right, batch + out_core), result)

    def matmul(inputs: tuple[Any, ...], wanted: Any, result: Any) -> Any:
        # matmul takes vectors on either side; the other gufuncs are what it means then.
        left, right = (len(shape_of(x)) == 1 for x in inputs)
        forms = {(True, True): _vecdot, (False, True): _matvec, (True, False): _vecmat}
        found: Callable[..., Any] = forms.get((left, right), run)
        return found(inputs, wanted, result)

    return matmul if left_core == "mk" and right_core == "kn" else run


def _matched_core(x: Tracer, y: Tracer, left_core: str, right_core: str) -> Tracer:
    """y with the core dims of x, which do not broadcast, unlike those of einsum."""
    pairs = [(x.ndim - len(left_core) + at, y.ndim - len(right_core) + right_core.index(letter))
             for at, letter in enumerate(left_core) if letter in right_core]
    return _matched_axes(x, y, pairs, "transpose or reshape one operand")


def _matched_axes(x: Tracer, y: Tracer, pairs: Sequence[tuple[int, int]], hint: str) -> Tracer:
    """y with the dims of x at the axes that are contracted with each other."""
    shape = list(y.type.shape)
    for i, j in pairs:
        if differ(x.type.shape[i], shape[j]):
            raise error("W104", f"contracted dims differ: {x.type.shape[i]} and {shape[j]}",
                        types=[x.type, y.type], hint=hint)
        shape[j] = x.type.shape[i]
    return matched(y, tuple(shape))


_vecdot, _matvec, _vecmat = _gufunc("k", "k", ""), _gufunc("mk", "k", "m"), _gufunc("k", "kn", "n")

def _turned(run: Callable[..., Any]) -> Callable[..., Any]:
    """With the conjugate of the first operand."""
    return lambda inputs, *dtypes: run((np.conjugate(strong(inputs[0])), *inputs[1:]), *dtypes)


GUFUNCS: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    getattr(np, name): function for name, function in (
        ("matmul", _gufunc("mk", "kn", "mn")), ("vecdot", _turned(_vecdot)), ("matvec", _matvec),
        ("vecmat", _turned(_vecmat))) if hasattr(np, name)})


def along(
    ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: Any, axis: Any = None, axes: Any = None,
    keepdims: bool = False,
) -> Any:
    """A generalised ufunc whose core dims are at other axes than the last: ``axis`` is the one of
    every operand of a scalar product, ``axes`` are those of each operand and of the result."""
    if ufunc.signature != "(n),(n)->()" and (axis is not None or keepdims):
        raise error("W113", f"np.{ufunc.__name__} takes neither axis= nor keepdims=",
                    hint="give axes=, or move the axes before")
    if axes is None:
        axes = [*[-1 if axis is None else axis] * len(inputs), ()]
    places = [tuple(part) if isinstance(part, (tuple, list)) else (part,) for part in axes]
    operands: list[Any] = [strong(x) for x in inputs]
    result: Any = ufunc(*(np.moveaxis(x, place, range(-len(place), 0)) for x, place in zip(
        operands, places, strict=False)), dtype=dtype)
    if keepdims:
        return np.expand_dims(result, places[0])
    out = places[-1] if len(places) > len(inputs) else ()
    return np.moveaxis(result, range(-len(out), 0), out)


def _pair(a: Any, b: Any) -> tuple[Tracer, Tracer]:
    dtype = array_dtype(a, b)
    return to_tracer(a, dtype), to_tracer(b, dtype)


@numpy(np.dot, method=True, samples=(
    "z[3,4], z[4,2]", "x[3,4], x[4,5]", "x[4], x[4]", "x[2,3,4], x[4]"))
def dot(a: Any, b: Any) -> Any:
    if not shape_of(a) or not shape_of(b):
        return np.multiply(strong(a), strong(b))
    x, y = _pair(a, b)
    y = _matched_core(x, y, "K", "K" if y.ndim == 1 else "KN")
    left = _FREE[:x.ndim - 1] + "K"
    right = _FREE[x.ndim:x.ndim + y.ndim - 2] + ("KN" if y.ndim > 1 else "K")
    return contract(x, y, left, right, (left + right).replace("K", ""))


@numpy(np.inner, samples=("x[4], x[4]", "x[2,4], x[3,4]"))
def inner(a: Any, b: Any) -> Any:
    if not shape_of(a) or not shape_of(b):
        return np.multiply(strong(a), strong(b))
    return tensordot(a, b, axes=((-1,), (-1,)))


@numpy(np.outer, samples=("z[3], x[4]", "x[3], x[4]",))
def outer(a: Any, b: Any) -> Any:
    x, y = _pair(a, b)
    return np.multiply(reshape(x, (x.type.size, 1)), reshape(y, (1, y.type.size)))


@numpy(np.vdot, samples=("z[4], z[4]", "x[4], x[4]",))
def vdot(a: Any, b: Any) -> Any:
    x, y = _pair(a, b)
    line = reshape(x, (x.type.size,))
    return dot(np.conjugate(line) if x.type.dtype.kind == "c" else line, reshape(y, (y.type.size,)))


@numpy(np.tensordot, samples=(
    "z[2,3], z[3,4], 1", "x[2,3], x[3,4], 1", "x[2,3,4], x[4,3,5], ((1, 2), (1, 0))"))
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = _pair(a, b)
    if not isinstance(axes, (tuple, list)) and np.ndim(axes) == 0:
        count = as_int(axes, "number of axes")
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise error("W121", f"cannot contract {count} axes", types=[x.type, y.type])
        axes = (range(x.ndim - count, x.ndim), range(count))
    first, second = (axes_of(tuple(part) if np.ndim(part) else part, rank)
                     for part, rank in zip(axes, (x.ndim, y.ndim), strict=True))
    if len(first) != len(second):
        raise error("W102", "tensordot needs as many axes of the one operand as of the other")
    left = list(LETTERS[:x.ndim])
    right = list(LETTERS[x.ndim:x.ndim + y.ndim])
    y = _matched_axes(x, y, list(zip(first, second, strict=True)),
                      "choose other axes, or transpose")
    for i, j in zip(first, second, strict=True):
        right[j] = left[i]
    out = [c for c in left if c not in right] + [c for c in right if c not in left]
    return contract(x, y, "".join(left), "".join(right), "".join(out))


@numpy(np.einsum, samples=(
    "'ij,jk->ik', x[2,3], x[3,4]", "'bij,bjk->bik', x[2,3,4], x[2,4,3]", "'ij->j', x[2,3]",
    "'ij,j', x[2,3], x[3]", "'ii', x[3,3]", "'ii->i', x[3,3]", "'iji,jj->ji', x[2,3,2], x[3,3]",
    "'ij,jk,kl', x[5,2], x[2,6], x[6,2]", "'ab,b,ca,cd', x[2,3], x[3], x[4,2], x[4,5]",
    "'...i,i->...', x[2,3,4], x[4]", "x[2,3], [0, 1], x[3,4], [1, 2], [0, 2]",
    "x[2,3,3], [..., 1, 1]", "'iji,jj->ji', x[2,3,2], x[3,3], optimize=True",
    "'ij,k,kl->jli', x[2,3], x[4], x[4,2], optimize=True"))
def einsum(*operands: Any, dtype: Any = None, optimize: Any = False) -> Any:
    """The subscripts, then operands. Two at a time are contracted, those of least cost first; of
    ``"ii"`` the diagonal is taken before. Halves that are summed more than once are float32 until
    the last sum is done. What of no terms is summed before the last product is 0 whatever it meets
    then, infinities too, unless NumPy is to choose an order of its own."""
    subscripts, *arrays = operands if isinstance(operands[0], str) else _as_text(operands)
    terms, out = _parse(subscripts, [len(shape_of(x)) for x in arrays])
    kind = np.dtype(dtype) if dtype is not None else array_dtype(*arrays)
    wide = _FLOAT32 if as_dtype(kind).is_half and _has_sums_between(terms, out) else kind
    left = [_diagonals(to_tracer(x, wide), term) for x, term in zip(arrays, terms, strict=True)]
    sizes = _sizes(left)
    early: set[str] = set()
    while len(left) > 1:
        i, j = _cheapest(left, out) if len(left) > 2 else (0, 1)
        (y, second), (x, first) = left.pop(j), left.pop(i)
        needed = out + "".join(term for _, term in left)
        kept = "".join(dict.fromkeys(c for c in first + second if c in needed))
        kept = kept if left else out
        early |= set(first + second) - set(kept)
        if not left:
            early -= _long(x, first) & _long(y, second)
        multiply = optimize is not False and not set(first) & set(second) - set(kept)
        left.insert(0, ((_product if multiply else contract)(x, y, first, second, kept), kept))
    result, letters = _sum_alone(*left[0], out)
    if letters != out:
        result = current().emit("transpose", result, perm=tuple(letters.index(c) for c in out))
    if optimize is False:
        result = _of_terms(result, [sizes[c] for c in sorted(early)])
    return cast(result, kind)


def _long(x: Tracer, letters: str) -> set[str]:
    """The letters of dims that are no 1, which would be repeated."""
    return {letter for letter, dim in zip(letters, x.type.shape, strict=True) if dim != 1}


def _of_terms(result: Tracer, dims: Sequence[Dim]) -> Tracer:
    """The result, but 0 where one of these dims is: then there are no terms."""
    if 0 in dims:
        return current().full(0, result.dtype, result.type.shape)
    for dim in dims:
        if not isinstance(dim, int) and not nonnegative(dim - 1):
            result = masked(as_number(dim) > 0, result, result.dtype.type(0))
    return result


def _product(x: Tracer, y: Tracer, left: str, right: str, out: str) -> Tracer:
    """A contraction in which nothing that both have is summed, as one multiplication: unlike a sum
    of one product, which begins at 0, it may be -0."""
    def aligned(a: Tracer, letters: str) -> Any:
        a, letters = _sum_alone(a, letters, out)
        perm = tuple(letters.index(c) for c in out if c in letters)
        dims = dict(zip(letters, a.type.shape, strict=True))
        turned = current().emit("transpose", a, perm=perm)
        return reshape(turned, tuple(dims.get(c, 1) for c in out))

    product: Tracer = np.multiply(aligned(x, left), aligned(y, right))
    return product


def _has_sums_between(terms: Sequence[str], out: str) -> bool:
    """Whether there are sums before the last one: of two operands, or of letters of only one."""
    both = "".join(terms[1:]) + out, terms[0] + out
    return len(terms) > 2 or (len(terms) == 2 and any(
        set(term) - set(others) for term, others in zip(terms, both, strict=True)))


def _as_text(operands: Sequence[Any]) -> list[Any]:
    """``einsum(x, [0, 1], y, [1, 2], [0, 2])`` with letters."""
    def term(numbers: Sequence[Any]) -> str:
        return "".join("..." if number is Ellipsis else LETTERS[as_int(number, "letter")]
                       for number in numbers)

    count = len(operands) // 2
    text = ",".join(term(operands[2 * at + 1]) for at in range(count))
    if len(operands) % 2:
        text += "->" + term(operands[-1])
    return [text, *(operands[2 * at] for at in range(count))]


def _diagonals(x: Any, letters: str) -> tuple[Tracer, str]:
    """The operand with each of its letters once."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            i = letters.index(letter)
            j = letters.index(letter, i + 1)
            shape = x.type.shape
            if differ(shape[i], shape[j]):
                raise error("W104", f"dims {shape[i]} and {shape[j]} of '{letter}' differ",
                            types=[x.type])
            dim = shape[i] if isinstance(shape[i], int) else shape[j]
            x = matched(x, tuple(dim if at in (i, j) else own for at, own in enumerate(shape)))
            x = _diagonal(x, i, j)
            letters = letters[:i] + letters[i + 1:j] + letters[j + 1:] + letter
    return x, letters


def _diagonal(x: Tracer, i: int, j: int) -> Tracer:
    """The diagonal of two axes of one size as the last axis: of one operand alone a view, which may
    be written, unlike that of ``np.diagonal``."""
    def found(base: Any) -> Tracer:
        taken: Any = np.diagonal(base, 0, i, j)
        return Tracer(current(), current().value_of(taken))

    def put(base: Any, new: Any) -> Any:
        place = np.arange(base.shape[i], like=base)
        hit: Any = np.expand_dims(np.equal(place[:, None], place), tuple(
            axis for axis in range(base.ndim) if axis not in (i, j)))
        return np.where(hit, np.expand_dims(np.moveaxis(new, -1, i), j), base)

    made = found(x)
    views.link(made, views.Indexed(x, found, put))
    return made


def _cheapest(left: Sequence[tuple[Tracer, str]], out: str) -> tuple[int, int]:
    """The two operands to contract first: those whose product has the fewest terms, and of these
    the ones with the smallest result. Sizes that are not known count as large."""
    sizes: dict[str, int] = {}
    for x, letters in left:
        for letter, dim in zip(letters, x.type.shape, strict=True):
            sizes[letter] = max(sizes.get(letter, 1), dim if isinstance(dim, int) else _UNKNOWN)

    def cost(pair: tuple[int, int]) -> tuple[bool, int, int]:
        both = set(left[pair[0]][1] + left[pair[1]][1])
        needed = out + "".join(term for at, (_, term) in enumerate(left) if at not in pair)
        shared = set(left[pair[0]][1]) & set(left[pair[1]][1])
        return (not shared, math.prod(sizes[c] for c in both),
                math.prod(sizes[c] for c in both if c in needed))

    return min(itertools.combinations(range(len(left)), 2), key=cost)


def _parse(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with ``...`` and a missing result filled."""
    text = subscripts.replace(" ", "")
    left, arrow, out = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise error("W102", f"'{subscripts}' has {len(terms)} operands, got {len(ranks)}")
    spare = [c for c in LETTERS if c not in text]
    batch = max((rank - len(term) + 3 for term, rank in zip(terms, ranks, strict=True)
                 if "..." in term), default=0)
    dots = "".join(spare[:batch])
    filled = []
    for term, rank in zip(terms, ranks, strict=True):
        own = dots[batch - (rank - len(term) + 3):] if "..." in term else ""
        term = term.replace("...", own)
        if len(term) != rank or (term and not term.isalpha()):
            raise error("W102", f"'{subscripts}' does not fit an operand of {rank} dims")
        filled.append(term)
    if arrow:
        out = out.replace("...", dots)
    else:
        every = "".join(filled)
        out = dots + "".join(sorted(c for c in set(every) - set(dots) if every.count(c) == 1))
    unknown = set(out) - set("".join(filled))
    if unknown or len(set(out)) != len(out):
        raise error("W102", f"the result of '{subscripts}' names a letter twice or one that no "
                            "operand has")
    return filled, out
