"""What is asked of sizes before memory is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....ir.indices.index import Dim, Expr, Monomial, Symbol, parts_of, terms_of
from ....ir.plans.plan import MOST_BYTES, Plan, Require, tasks_of
from ..dims import emit_dim
from ..text import FunctionText


def check_need(f: FunctionText, need: Require, dims: Mapping[str, str]) -> None:
    """Return the number of a requirement if it does not hold."""
    left, right = emit_dim(f, need.left, dims), emit_dim(f, need.right, dims)
    wrong = "slt" if need.sign == ">=" else "ne"
    return_if(f, f(f"icmp {wrong} i64 {left}, {right}"), need.site)


def sizes_to_compute(plan: Plan) -> list[Dim]:
    """All sizes that a program computes as it runs."""
    sizes = [plan.arena, *(step.arena for step in plan.measures),
             *(type_.nbytes for type_ in plan.types().values())]
    for kernel in plan.kernels.values():
        sizes += [param.type.nbytes for param in kernel.params]
        sizes += [tasks_of(kernel), *(axis.extent for axis in kernel.axes)]
    return sizes + [side for need in plan.requires for side in (need.left, need.right)]


def check_range(
    f: FunctionText, sizes: Iterable[Dim], dims: Mapping[str, str], status: int
) -> None:
    """Return if a size could overflow. The sum of all their terms, each at its largest, is taken in
    floating point, where it cannot; below MOST_BYTES every size is exact, on the way to it, too."""
    largest: dict[Monomial, int] = {}
    for size in sizes:
        for monomial, scale in terms_of(size):
            if monomial:
                largest[monomial] = max(largest.get(monomial, 0), abs(scale))
    total = _magnitude(f, Expr(tuple(largest.items())), dims) if largest else "0.0"
    return_if(f, f(f"fcmp ogt double {total}, {float(MOST_BYTES):e}"), status)


def _magnitude(f: FunctionText, dim: Dim, dims: Mapping[str, str]) -> str:
    """A bound of the terms of an expression, as a double that is at least 1."""
    total = "1.0"
    for monomial, scale in terms_of(dim):
        term = f"{float(abs(scale)):e}"
        for atom in monomial:
            if isinstance(atom, Symbol):
                size = f(f"uitofp i64 {dims[atom.name]} to double")
                size = f.call("double", "llvm.maxnum.f64", ("double", size), ("double", "1.0"))
            else:
                size = _magnitude(f, _sum_of(parts_of(atom)), dims)
            term = f(f"fmul double {term}, {size}")
        total = f(f"fadd double {total}, {term}")
    return total


def _sum_of(dims: Sequence[Dim]) -> Dim:
    """An expression with the terms of several, which do not cancel."""
    terms: dict[Monomial, int] = {}
    for dim in dims:
        for monomial, scale in terms_of(dim):
            terms[monomial] = terms.get(monomial, 0) + abs(scale)
    return Expr(tuple(terms.items()))


def return_if(f: FunctionText, condition: str, code: str | int, type_: str = "i32") -> None:
    failed, fine = f.fresh("failed"), f.fresh("fine")
    f.branch(condition, failed, fine)
    f.place(failed)
    f.ret(f"{type_} {code}")
    f.place(fine)
