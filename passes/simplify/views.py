"""Rules for views, reductions of views, and views folded into contractions.

A view is an index map, so two views in a row are one, and one that maps each index to itself is
none. Transposes move towards the parameters, where they become the order of letters in a
contraction: (x.T @ y).T is one contraction without a transpose.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ...ir.graph import Value
from ...ir.indices.index import Dim, product
from ...ir.ops.axes.reduce import contract_letters, is_matrix_product
from ...ir.ops.table import OPS
from .rewrite import Match, Rewriter, Rule

FEW = 8  # numbers that are reduced one by one
# What two numbers of a reduction become one by.
_PAIRS = MappingProxyType({"max": "maximum", "min": "minimum", "any": "or_", "all": "and_"})


def _transpose_identity(match: Match) -> bool:
    perm = match.attrs[0]["perm"]
    return bool(perm == tuple(range(len(perm))))


def _transpose_transpose(r: Rewriter, match: Match) -> Any:
    outer, inner = (attrs["perm"] for attrs in match.attrs)
    return r.transpose(match["x"], perm=tuple(inner[axis] for axis in outer))


def _transpose_units(r: Rewriter, match: Match) -> Any:
    """A transpose that only moves axes of size 1 keeps the order of elements."""
    shape, perm = match["x"].shape, match.attrs[0]["perm"]
    wide = [axis for axis in perm if shape[axis] != 1]
    return r.reshape(match["x"], shape=match.type.shape) if wide == sorted(wide) else None


def _transpose_broadcast(r: Rewriter, match: Match) -> Any:
    perm, axes = match.attrs[0]["perm"], match.attrs[1]["axes"]
    places = [perm.index(axis) for axis in axes]  # of the axes of x in the result
    order = sorted(range(len(places)), key=places.__getitem__)
    inner = r.transpose(match["x"], perm=tuple(order))
    return r.broadcast(inner, shape=match.type.shape, axes=tuple(sorted(places)))


def _transpose_contract(r: Rewriter, match: Match) -> Any:
    # A contraction that is also read as it stands would be computed twice.
    if r.uses[match.inner[0]] > 1:
        return None
    lhs, rhs, out = contract_letters(match.attrs[1]["dims"])
    turned = "".join(out[axis] for axis in match.attrs[0]["perm"])
    return r.contract(match["x"], match["y"], dims=f"{lhs},{rhs}->{turned}")


def _same_shape(match: Match) -> bool:
    return match["x"].shape == match.type.shape


def _reshape_reshape(r: Rewriter, match: Match) -> Any:
    return r.reshape(match["x"], shape=match.type.shape)


def _broadcast_units(r: Rewriter, match: Match) -> Any:
    """A broadcast whose new axes have size 1 is a reshape."""
    axes = match.attrs[0]["axes"]
    new = [dim for axis, dim in enumerate(match.type.shape) if axis not in axes]
    return r.reshape(match["x"], shape=match.type.shape) if all(dim == 1 for dim in new) else None


def _broadcast_broadcast(r: Rewriter, match: Match) -> Any:
    outer, inner = (attrs["axes"] for attrs in match.attrs)
    return r.broadcast(match["x"], shape=match.type.shape,
                       axes=tuple(outer[axis] for axis in inner))


def _broadcast_pad(r: Rewriter, match: Match) -> Any:
    """What repeats a region of a constant, as masks of updates are, is such a region of all of
    it."""
    axes, shape, pad = match.attrs[0]["axes"], match.attrs[0]["shape"], match.attrs[1]
    if match.constant("k") is None or any(shape[axis] != size for axis, size in zip(
            axes, match.inner[0].shape, strict=True)):
        return None
    whole = {axis: at for at, axis in enumerate(axes)}
    low, high, interior = (tuple(pad[key][whole[axis]] if axis in whole else 0
                                 for axis in range(len(shape)))
                           for key in ("low", "high", "interior"))
    sizes = tuple(match["k"].shape[whole[axis]] if axis in whole else dim
                  for axis, dim in enumerate(shape))
    return r.pad(r.broadcast(match["k"], shape=sizes, axes=axes), low=low, high=high,
                 interior=interior, value=pad["value"])


def _broadcast_reshape(r: Rewriter, match: Match) -> Any:
    """Axes of size 1 that a reshape put in for a broadcast are new axes like any other."""
    outer, middle = match.attrs[0]["axes"], match.inner[0].shape
    kept: list[int] = []
    dims = list(match["x"].shape)
    for axis, dim in zip(outer, middle, strict=True):
        if len(kept) < len(dims) and dims[len(kept)] == dim:
            kept.append(axis)
        elif dim != 1:
            return None
    if len(kept) < len(dims):
        return None
    return r.broadcast(match["x"], shape=match.type.shape, axes=tuple(kept))


def _slice_whole(match: Match) -> bool:
    attrs = match.attrs[0]
    return (_same_shape(match) and all(first == 0 for first in attrs["start"])
            and all(step == 1 for step in attrs["step"]))


def _slice_slice(r: Rewriter, match: Match) -> Any:
    outer, inner = match.attrs
    start = tuple(first + by * more for first, by, more in zip(
        inner["start"], inner["step"], outer["start"], strict=True))
    step = tuple(by * more for by, more in zip(inner["step"], outer["step"], strict=True))
    return r.slice(match["x"], start=start, step=step, shape=outer["shape"])


def _slice_pad(match: Match) -> bool:
    """True if the slice takes back exactly what the pad put in."""
    part, pad = match.attrs
    steps = tuple(gap + 1 for gap in pad["interior"])
    return _same_shape(match) and (part["start"], part["step"]) == (pad["low"], steps)


def _pad_nothing(match: Match) -> bool:
    attrs = match.attrs[0]
    return all(width == 0 for width in (*attrs["low"], *attrs["high"], *attrs["interior"]))


def _static_dim(r: Rewriter, match: Match) -> Value | None:
    size = match.attrs[0]["size"]
    return r.builder.full(size, match.type) if isinstance(size, int) else None


def _iota_unit(r: Rewriter, match: Match) -> Value | None:
    one = match.type.shape[match.attrs[0]["axis"]] == 1
    return r.builder.full(0, match.type) if one else None


def _reduce_units(r: Rewriter, match: Match) -> Any:
    """A reduction over no axes, or axes of size 1, keeps the elements."""
    x, axes = match["x"], match.attrs[0]["axes"]
    if any(x.shape[axis] != 1 for axis in axes):
        return None
    return r.reshape(x, shape=match.type.shape)


def _plain_units(r: Rewriter, match: Match) -> Any:
    """A sum starts from 0.0, and so ends an extreme: -0.0 becomes 0.0 even of one number."""
    kept = _reduce_units(r, match)
    return None if kept is None else _plain(r, kept)


def _plain(r: Rewriter, x: Any) -> Any:
    """Floats, with 0.0 for -0.0."""
    return r.add(x, 0.0) if x.dtype.is_float else x


def _reduce_reduce(op: str) -> Any:
    def replace(r: Rewriter, match: Match) -> Any:
        outer, inner = (attrs["axes"] for attrs in match.attrs)
        left = [axis for axis in range(len(match["x"].shape)) if axis not in inner]
        axes = tuple(sorted((*inner, *(left[axis] for axis in outer))))
        return getattr(r, op)(match["x"], axes=axes)

    return replace


def _unspread(
    r: Rewriter, match: Match
) -> tuple[Any, tuple[int, ...], tuple[Dim, ...]] | None:
    """For a reduction of a broadcast: the smaller broadcast, its axes, and the sizes dropped."""
    axes, spread = match.attrs[0]["axes"], match.attrs[1]["axes"]
    shape = match.inner[0].shape
    gone = [axis for axis in axes if axis not in spread]
    if not gone:
        return None
    left = [axis for axis in range(len(shape)) if axis not in gone]
    smaller = r.broadcast(match["x"], shape=tuple(shape[axis] for axis in left),
                          axes=tuple(left.index(axis) for axis in spread))
    return (smaller, tuple(left.index(axis) for axis in axes if axis not in gone),
            tuple(shape[axis] for axis in gone))


def _sum_broadcast(r: Rewriter, match: Match) -> Any:
    """n times the same integer; a float sum is rounded at every step, so it stays."""
    found = _unspread(r, match)
    count = product(found[2]) if found else None
    if found is None or not isinstance(count, int):
        return None
    total = r.sum(found[0], axes=found[1])
    half, whole = 1 << (total.dtype.bits - 1), 1 << total.dtype.bits
    low = half if total.dtype.kind == "i" else 0
    return r.mul(total, (count + low) % whole - low)


def _extreme_broadcast(op: str) -> Any:
    def replace(r: Rewriter, match: Match) -> Any:
        found = _unspread(r, match)
        # Of a symbolic axis it is not known whether it has any elements at all.
        if found is None or not all(isinstance(dim, int) and dim > 0 for dim in found[2]):
            return None
        return getattr(r, op)(found[0], axes=found[1])

    return replace


def _order_kept(letters: str, turned: str, out: str) -> bool:
    """True if the letters that are summed over stand in one order, which fixes the sum's bits."""
    return [c for c in letters if c not in out] == [c for c in turned if c not in out]


def _contract_transpose(side: int) -> Any:
    def replace(r: Rewriter, match: Match) -> Any:
        lhs, rhs, out = contract_letters(match.attrs[0]["dims"])
        letters = (lhs, rhs)[side]
        perm = match.attrs[1]["perm"]
        turned = "".join(letters[perm.index(axis)] for axis in range(len(perm)))
        if not _order_kept(letters, turned, out) and match.type.dtype.is_float:
            return None
        dims = f"{lhs},{turned}->{out}" if side else f"{turned},{rhs}->{out}"
        return r.contract(match["x"], match["y"], dims=dims)

    return replace


def _contract_broadcast(side: int) -> Any:
    """A letter along which one operand only repeats is left to the other operand."""
    def replace(r: Rewriter, match: Match) -> Any:
        parts = list(contract_letters(match.attrs[0]["dims"]))
        letters, other, out = parts[side], parts[1 - side], parts[2]
        spread = match.attrs[1]["axes"]
        gone = [at for at, letter in enumerate(letters)
                if at not in spread and letter in other and letter in out]
        if not gone:
            return None
        operand = match["y" if side else "x"]
        left = [at for at in range(len(letters)) if at not in gone]
        shape = tuple(match.inner[0].shape[at] for at in left)
        smaller = r.broadcast(operand, shape=shape, axes=tuple(left.index(at) for at in spread))
        parts[side] = "".join(letters[at] for at in left)
        pair = (match["x"], smaller) if side else (smaller, match["y"])
        dims = f"{parts[0]},{parts[1]}->{out}"
        whole = (match["x"], match.inner[0]) if side else (match.inner[0], match["y"])
        if match.type.dtype.is_float and is_matrix_product(
                dims, *(value.shape for value in pair)) != is_matrix_product(
                match.attrs[0]["dims"], *(value.shape for value in whole)):
            return None  # rounded otherwise
        return r.contract(*pair, dims=dims)

    return replace


def _reduce_parts(op: str) -> Any:
    def replace(r: Rewriter, match: Match) -> Any:
        """Few numbers that were put together to be reduced are reduced two by two, in the order of
        vectors: halves meet."""
        joined = match.inner[0].node
        assert joined is not None
        axis, parts = joined.attrs["axis"], list(joined.inputs)
        if match.attrs[0]["axes"] != (axis,) or len(parts) > FEW or any(
                part.shape[axis] != 1 for part in parts):
            return None
        shape = match.type.shape
        values = [r.reshape(part, shape=shape) for part in parts]
        while len(values) > 1:
            half = 1 << (len(values) - 1).bit_length() - 1
            values[:half] = [r.make(OPS[_PAIRS[op]], (one, other), {})[0] for one, other in zip(
                values[:half], values[half:], strict=False)] + values[len(values) - half:half]
            del values[half:]
        return _plain(r, values[0])

    return replace


def _reductions(op: str, exact: str) -> tuple[Rule, ...]:
    """The rules of one reduction; it is associative, bit for bit, for the dtype kinds ``exact``."""
    units = _plain_units if op in ("sum", "max", "min") else _reduce_units
    spread = _sum_broadcast if op == "sum" else _extreme_broadcast(op)
    kinds = exact if op == "sum" else "iufb"
    parts = [Rule(f"{op}-parts", f"{op}(concatenate(...))", _reduce_parts(op))] * (op in _PAIRS)
    return (Rule(f"{op}-units", f"{op}(x)", units), *parts,
            Rule(f"{op}-{op}", f"{op}({op}(x))", _reduce_reduce(op), exact),
            Rule(f"{op}-broadcast", f"{op}(broadcast(x))", spread, kinds))


VIEWS: tuple[Rule, ...] = (
    Rule("identity", "identity(x)", "x"),
    Rule("stop-gradient", "stop_gradient(x)", "x"),
    Rule("transpose-identity", "transpose(x)", "x", when=_transpose_identity),
    Rule("transpose-transpose", "transpose(transpose(x))", _transpose_transpose),
    Rule("transpose-units", "transpose(x)", _transpose_units),
    Rule("transpose-broadcast", "transpose(broadcast(x))", _transpose_broadcast),
    Rule("transpose-contract", "transpose(contract(x, y))", _transpose_contract),
    Rule("reshape-same", "reshape(x)", "x", when=_same_shape),
    Rule("reshape-reshape", "reshape(reshape(x))", _reshape_reshape),
    Rule("broadcast-same", "broadcast(x)", "x", when=_same_shape),
    Rule("broadcast-units", "broadcast(x)", _broadcast_units),
    Rule("broadcast-broadcast", "broadcast(broadcast(x))", _broadcast_broadcast),
    Rule("broadcast-pad", "broadcast(pad(k))", _broadcast_pad),
    Rule("broadcast-reshape", "broadcast(reshape(x))", _broadcast_reshape),
    Rule("slice-whole", "slice(x)", "x", when=_slice_whole),
    Rule("slice-slice", "slice(slice(x))", _slice_slice),
    Rule("slice-pad", "slice(pad(x))", "x", when=_slice_pad),
    Rule("pad-nothing", "pad(x)", "x", when=_pad_nothing),
    Rule("concatenate-one", "concatenate(x)", "x"),
    Rule("dim-static", "dim()", _static_dim),
    Rule("iota-unit", "iota()", _iota_unit),
    *_reductions("sum", "iu"),
    *_reductions("max", "iub"),
    *_reductions("min", "iub"),
    *_reductions("any", "b"),
    *_reductions("all", "b"),
    Rule("contract-transpose-lhs", "contract(transpose(x), y)", _contract_transpose(0)),
    Rule("contract-transpose-rhs", "contract(x, transpose(y))", _contract_transpose(1)),
    Rule("contract-broadcast-lhs", "contract(broadcast(x), y)", _contract_broadcast(0)),
    Rule("contract-broadcast-rhs", "contract(x, broadcast(y))", _contract_broadcast(1)),
)
