"""What nodes say of the ranges of integers (``ranges``): a rule for each op, in tables.

    forms        what the result is: ``a + b``, one of two, what is left by ``& 7``
    truths       what holds where a comparison is true, and where it is false
    decisions    a comparison that is always true, or false
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...ir.graph import Node, Value, constant_of
from ...ir.indices.index import Dim, Expr, symbol, symbols_of
from ...ir.ops.op import Kind
from ...ir.ops.table import OPS
from ...ir.types import BOOL, I64
from .ranges import Known, Ranges, limits_of


def learn_node(ranges: Ranges, node: Node) -> None:
    """Note what is known of the results of a node, integers or truth values, or of a size that it
    tells."""
    if len(node.results) != 1:
        return
    (result,) = node.results
    if node.op.kind is Kind.EXTENT:
        _measure(ranges, node.inputs[0], min(symbols_of(node.attrs["size"])))
    if result.dtype == BOOL and (rule := _TRUTHS.get(node.op.name)) is not None:
        ranges.truths[result] = rule(ranges, node)
    elif result.dtype.is_int and (form := _FORMS.get(node.op.name)) is not None:
        found = form(ranges, node)
        if found is not None:
            ranges.exprs[result] = found


def _measure(ranges: Ranges, number: Value, size: str) -> None:
    """A size is a number. What is told by that number, or is so much more, goes by the size from
    here on, as loops and arrays do; by that of ``np.arange(n)``, where n is measured after it."""
    expr = ranges.expr(number)
    before = next((name for name, limits in ranges.limits.items() if name[0] != "%"
                   and len(limits.high) == 1 and limits.high[0] in limits.low
                   and _is_floored(ranges, limits.high[0], expr)), None)
    if before is None:
        made = ranges.bound(size, (0, expr), (expr,))
    else:
        made = symbol(before)
        ranges.bound(size, (0, made), (made,))
    for value, other in list(ranges.exprs.items()):
        more = other - expr
        if isinstance(more, int) and not isinstance(other, int):
            ranges.exprs[value] = made + more


def _is_floored(ranges: Ranges, low: Dim, expr: Dim) -> bool:
    """Whether a bound is the maximum of an expression and 0."""
    return isinstance(low, Expr) and any(
        low == symbol(name) and set(ranges.limits[name].least) == {expr, 0}
        for name in symbols_of(low) if name in ranges.limits)


def exact(ranges: Ranges, node: Node) -> Dim | None:
    """What a sum or product of two integers is, were there no end of them; None if it is not
    linear."""
    rule = _SUMS.get(node.attrs.get("of", node.op.name))
    return None if rule is None else rule(*map(ranges.expr, node.inputs[-2:]))


_SUMS: Mapping[str, Callable[[Dim, Dim], Dim | None]] = MappingProxyType({
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b if isinstance(a, int) or isinstance(b, int) else None,
})


def fits(ranges: Ranges, node: Node) -> bool:
    """Whether a sum or product of two integers surely is a number of its dtype."""
    expr, dtype = exact(ranges, node), node.results[0].dtype
    if expr is not None:
        return ranges.fits(expr, dtype)
    ends, (low, high) = _product(ranges, node), limits_of(dtype)
    return ends is not None and low <= ends[0] and ends[1] <= high


_BITS = 64  # of a shift of which more is known than that it has no end


def _product(ranges: Ranges, node: Node) -> tuple[int, int] | None:
    """What a product of two integers, or of one and a power of two, is at least and at most; None
    if that is not known."""
    op = node.attrs.get("of", node.op.name)
    if op not in ("mul", "shl"):
        return None
    ends = [(ranges.least(expr), ranges.most(expr)) for expr in map(ranges.expr, node.inputs[-2:])]
    found = [a * b if op == "mul" else a << b for a in ends[0] for b in ends[1]
             if a is not None and b is not None and (op == "mul" or 0 <= b < _BITS)]
    return (min(found), max(found)) if len(found) == 4 else None


def _arithmetic(ranges: Ranges, node: Node) -> Dim | None:
    expr = exact(ranges, node)
    if not fits(ranges, node):
        return None
    if expr is None and node.op is OPS["unwrapped"]:
        return ranges.expr(node.inputs[0])
    return _between(ranges, node.results[0], *(_product(ranges, node) or (None, None))) if (
        expr is None) else expr


def _negated(ranges: Ranges, node: Node) -> Dim | None:
    expr = -1 * ranges.expr(node.inputs[0])
    return expr if ranges.fits(expr, node.results[0].dtype) else None


def _same(ranges: Ranges, node: Node) -> Dim | None:
    """Elements of the first operand, at other places perhaps."""
    value, (result,) = node.inputs[0], node.results
    if not (value.dtype.is_int or value.dtype == BOOL):
        return None
    expr = ranges.expr(value)
    if not ranges.fits(expr, result.dtype):
        return None
    if ranges.is_uniform(expr) or (value.shape == result.shape and node.op is OPS["cast"]):
        return expr
    return _other_element(ranges, result, expr)


def _other_element(ranges: Ranges, value: Value, expr: Dim) -> Expr:
    """An element of an array of which others are an expression: within its bounds."""
    apart = [name for name in symbols_of(expr) if not ranges.is_uniform(symbol(name))]
    if len(apart) == 1 and apart[0] not in symbols_of(rest := expr - symbol(apart[0])):
        limits = ranges.limits[apart[0]]
        low, high = ([rest + end for end in ends if ranges.is_uniform(end)]
                     for ends in (limits.low, limits.high))
        return ranges.some(value.dtype, low, high, scalar=not value.shape)
    return _between(ranges, value, ranges.least(expr), ranges.most(expr))


def _between(ranges: Ranges, value: Value, low: int | None, high: int | None) -> Expr:
    return ranges.some(value.dtype, [low] if low is not None else [],
                       [high] if high is not None else [], scalar=not value.shape)


def _extreme(sign: int) -> Callable[[Ranges, Node], Dim | None]:
    def found(ranges: Ranges, node: Node) -> Dim | None:
        a, b = map(ranges.expr, node.inputs)
        return _extreme_of(ranges, node, a, b, sign)

    return found


def _extreme_of(ranges: Ranges, node: Node, a: Dim, b: Dim, sign: int) -> Dim:
    """The larger of two, or with a sign of -1 the smaller."""
    first, (result,) = ranges.holds((a - b) * sign), node.results
    if first is not None:
        return a if first else b
    uniform = ranges.is_uniform(a) and ranges.is_uniform(b)
    if sign > 0:
        ends = [ranges.most(a), ranges.most(b)]
        high = [] if None in ends else [max(end for end in ends if end is not None)]
        return ranges.some(result.dtype, [a, b], high, least=(a, b) if uniform else (),
                           scalar=uniform)
    ends = [ranges.least(a), ranges.least(b)]
    low = [] if None in ends else [min(end for end in ends if end is not None)]
    return ranges.some(result.dtype, low, [a, b], scalar=uniform)


def _spanned(ranges: Ranges, node: Node) -> Dim | None:
    """How many integers there are from one to another: their difference, which may not be one of
    64 bits, or none."""
    a, b = map(ranges.expr, node.inputs)
    if ranges.fits(b - a, I64):
        return _extreme_of(ranges, node, b - a, 0, 1)
    uniform = ranges.is_uniform(b - a)
    return ranges.some(I64, [0], least=(b - a, 0) if uniform else (), scalar=uniform)


def _chosen(ranges: Ranges, node: Node) -> Dim | None:
    """One of two, of which each is bounded by what chooses it: ``a if a < b else b``."""
    a, b = map(ranges.expr, node.inputs[1:])
    cases = [ranges, ranges]
    if known := ranges.truths.get(node.inputs[0]):
        cases = [ranges.inside(), ranges.inside()]
        for case, facts in zip(cases, known, strict=True):
            case.learn(facts)
        for sign in (1, -1):  # the larger, the smaller
            if cases[0].holds((a - b) * sign) and cases[1].holds((b - a) * sign):
                return _extreme_of(ranges, node, a, b, sign)
    lows = [case.least(each) for case, each in zip(cases, (a, b), strict=True)]
    highs = [case.most(each) for case, each in zip(cases, (a, b), strict=True)]
    return _between(ranges, node.results[0],
                    None if None in lows else min(low for low in lows if low is not None),
                    None if None in highs else max(high for high in highs if high is not None))


def _remainder(ranges: Ranges, node: Node) -> Dim | None:
    a, b = map(ranges.expr, node.inputs)
    if not ranges.holds(b - 1) or not ranges.is_uniform(b):
        return None
    if ranges.holds(a) and ranges.holds(b - 1 - a):
        return a
    return ranges.some(node.results[0].dtype, [0], [b - 1], scalar=not node.results[0].shape)


def _quotient(ranges: Ranges, node: Node) -> Dim | None:
    a, b = map(ranges.expr, node.inputs)
    if not isinstance(b, int) or b <= 0:
        return None
    low, high = ranges.least(a), ranges.most(a)
    return _between(ranges, node.results[0], None if low is None else low // b,
                    None if high is None else high // b)


def _common_bits(ranges: Ranges, node: Node) -> Dim | None:
    """``a & b``: no bits but those of one that is not negative."""
    if not _are_numbers(node):
        return None
    most = [ranges.most(expr) for expr in map(ranges.expr, node.inputs) if ranges.holds(expr)]
    if not most:
        return None
    known = [each for each in most if each is not None]
    return _between(ranges, node.results[0], 0, min(known) if known else None)


def _all_bits(ranges: Ranges, node: Node) -> Dim | None:
    """``a | b`` and ``a ^ b`` of what is not negative: no more bits than the longer one has."""
    if not _are_numbers(node) or not all(ranges.holds(ranges.expr(x)) for x in node.inputs):
        return None
    most = [ranges.most(ranges.expr(value)) for value in node.inputs]
    bits = [each.bit_length() for each in most if each is not None]
    return _between(ranges, node.results[0], 0,
                    None if None in most else (1 << max(bits)) - 1)


def _shifted(ranges: Ranges, node: Node) -> Dim | None:
    """``a >> b`` of what is not negative."""
    a, b = map(ranges.expr, node.inputs)
    if not ranges.holds(a):
        return None
    low, high = ranges.least(a), ranges.most(a)
    if not isinstance(b, int) or not 0 <= b < node.results[0].dtype.bits:
        return _between(ranges, node.results[0], 0, high)
    return _between(ranges, node.results[0], 0 if low is None else low >> b,
                    None if high is None else high >> b)


def _place_in_axis(ranges: Ranges, node: Node) -> Dim | None:
    size = node.inputs[0].shape[node.attrs["axis"]]
    return ranges.some(node.results[0].dtype, [0], [size - 1], scalar=not node.results[0].shape)


def _place_in_last(ranges: Ranges, node: Node) -> Dim | None:
    size = node.inputs[0].shape[-1]
    return ranges.some(node.results[0].dtype, [0], [size - 1], scalar=False)


def _counted(ranges: Ranges, node: Node) -> Dim | None:
    size = node.attrs["shape"][node.attrs["axis"]]
    return ranges.some(node.results[0].dtype, [0], [size - 1], scalar=False)


def _chosen_elements(ranges: Ranges, node: Node) -> Dim | None:
    """Elements of the first operand, and 0 where there are fewer than asked for."""
    expr = ranges.expr(node.inputs[0])
    low, high = ranges.least(expr), ranges.most(expr)
    return _between(ranges, node.results[0], None if low is None else min(low, 0),
                    None if high is None else max(high, 0))


def _size(ranges: Ranges, node: Node) -> Dim | None:
    size: Dim = node.attrs["size"]
    return size


_FORMS: Mapping[str, Callable[[Ranges, Node], Dim | None]] = MappingProxyType({
    "dim": _size, "iota": _counted, "neg": _negated,
    # Of one that is checked no more is known before: what uses it does so all the same.
    **dict.fromkeys(("add", "sub", "mul", "shl", "unwrapped"), _arithmetic),
    **dict.fromkeys(("cast", "broadcast", "reshape", "slice", "transpose", "identity", "gather",
                     "checked", "ensure", "awaiting"), _same),
    "span": _spanned, "maximum": _extreme(1), "minimum": _extreme(-1), "select": _chosen,
    "mod": _remainder, "floordiv": _quotient, "and_": _common_bits, "shr": _shifted,
    **dict.fromkeys(("or_", "xor"), _all_bits), "narrow": _same,
    "argmax": _place_in_axis, "argmin": _place_in_axis,
    "argsort": _place_in_last, "argpartition": _place_in_last,
    "compress": _chosen_elements,
})


def _less(strict: int, swap: bool) -> Callable[[Ranges, Node], tuple[Known, Known]]:
    """``a < b``, or with ``swap`` ``b < a``: ``b - a - 1 >= 0``, and if false ``a - b >= 0``."""
    def found(ranges: Ranges, node: Node) -> tuple[Known, Known]:
        if not _are_numbers(node) or any(value.shape for value in node.inputs):
            return (), ()
        a, b = map(ranges.expr, node.inputs[::-1] if swap else node.inputs)
        return (b - a - strict,), (a - b - (1 - strict),)

    return found


def _equal(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    if not _are_numbers(node) or any(value.shape for value in node.inputs):
        return (), ()
    a, b = map(ranges.expr, node.inputs)
    return (a - b, b - a), ()


def _both(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    one, other = (ranges.truths.get(value, ((), ())) for value in node.inputs)
    return (*one[0], *other[0]), ()


def _either(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    one, other = (ranges.truths.get(value, ((), ())) for value in node.inputs)
    return (), (*one[1], *other[1])


def _chosen_truth(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    """Python's ``c and a``, which is ``c`` where that is false, and ``c or b``."""
    c, a, b = node.inputs
    truths = [ranges.truths.get(value, ((), ())) for value in node.inputs]
    return ((*truths[0][0], *truths[1][0]) if b is c else (),
            (*truths[0][1], *truths[2][1]) if a is c else ())


def _not(ranges: Ranges, node: Node) -> tuple[Known, Known]:
    one, other = ranges.truths.get(node.inputs[0], ((), ()))
    return other, one


def _are_numbers(node: Node) -> bool:
    return all(value.dtype.is_int for value in node.inputs)


_TRUTHS: Mapping[str, Callable[[Ranges, Node], tuple[Known, Known]]] = MappingProxyType({
    "lt": _less(1, False), "gt": _less(1, True), "le": _less(0, False), "ge": _less(0, True),
    "eq": _equal, "and_": _both, "or_": _either, "not_": _not,
    "select": _chosen_truth,
})


def decided(ranges: Ranges, node: Node) -> bool | None:
    """What a comparison of integers always gives; None if that is not known."""
    rule = _DECISIONS.get(node.op.name)
    if rule is None or not _are_numbers(node):
        return None
    return rule(ranges, *map(ranges.expr, node.inputs))


def _are_equal(ranges: Ranges, a: Dim, b: Dim) -> bool | None:
    if ranges.holds(a - b - 1) or ranges.holds(b - a - 1):
        return False
    return True if ranges.holds(a - b) and ranges.holds(b - a) else None


def _are_apart(ranges: Ranges, a: Dim, b: Dim) -> bool | None:
    equal = _are_equal(ranges, a, b)
    return None if equal is None else not equal


_DECISIONS: Mapping[str, Callable[[Ranges, Dim, Dim], bool | None]] = MappingProxyType({
    "lt": lambda ranges, a, b: ranges.holds(b - a - 1), "eq": _are_equal,
    "le": lambda ranges, a, b: ranges.holds(b - a), "ne": _are_apart,
    "gt": lambda ranges, a, b: ranges.holds(a - b - 1),
    "ge": lambda ranges, a, b: ranges.holds(a - b),
})


def step_of(value: Value, param: Value) -> tuple[int, bool] | None:
    """By what constant a value is more than a parameter, and whether it is checked that the sum
    does not leave its dtype; None if it is something else."""
    step, checked = 0, True
    while value is not param:
        node = value.node
        if node is None or (node.op is not OPS["add"] and node.attrs.get("of") != "add"):
            return None
        a, b = node.inputs[-2:]
        if constant_of(b) is None:
            a, b = b, a
        number = constant_of(b)
        if not isinstance(number, int):
            return None
        checked = checked and node.op is OPS["unwrapped"]
        value, step = a, step + number
    return step, checked
