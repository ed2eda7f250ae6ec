"""Every check of the verifier fails on an IR that was broken for it, and names itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from weft.ir.diagnose import Error, VerifyError
from weft.ir.graph import Builder, Graph, Node, Value
from weft.ir.indices.index import symbol
from weft.ir.indices.space import separate_space
from weft.ir.kernels.kernel import Axis, Const, Kernel, Store
from weft.ir.loc import Loc
from weft.ir.ops.table import OPS
from weft.ir.record import replace
from weft.ir.text.parser import parse_kernel
from weft.ir.types import F32, F64, parse_type
from weft.ir.verify.verifier import GRAPH_CHECKS, KERNEL_CHECKS, verify_graph, verify_kernel

Golden = Callable[[str, str], None]


def sound_graph() -> Graph:
    """%x; tanh, sum, update, full after update, fused(exp) and a result that is a parameter."""
    graph = Graph("f")
    x = graph.add_param(parse_type("f32[b,4]"), "x")
    w = graph.add_param(parse_type("f32[4]"), "w")
    graph.variables["v"] = w.type
    b = Builder(graph, OPS, share=False, fold=False)
    b.locs = (Loc("model.py", 3, "f"),)
    y = b.tanh(x)
    total = b.sum(y, axes=(0,))
    update = b.emit(OPS["update_var"], (total,), {"var": "v", "type": w.type})
    b.after = (update,)
    half = b.full(0.5, y.type)
    b.after = ()
    body = Graph("body")
    inner = Builder(body, OPS, share=False, fold=False)
    body.results = [inner.exp(body.add_param(y.type, "p0"))]
    fused = b.emit(OPS["fused"], (half,), {"body": body, "space": separate_space(body)}).results[0]
    graph.results = [fused, x]
    return graph


def node(graph: Graph, name: str) -> Node:
    return next(node for node in graph.nodes if node.name == name)


def body(graph: Graph) -> Graph:
    inner: Graph = node(graph, "fused").attrs["body"]
    return inner


def _attr(name: str, key: str, value: Any) -> Callable[[Graph], None]:
    def change(graph: Graph) -> None:
        node(graph, name).attrs[key] = value

    return change


def _type(name: str, text: str) -> Callable[[Graph], None]:
    def change(graph: Graph) -> None:
        node(graph, name).results[0].type = parse_type(text)

    return change


def _set(which: str, **fields: Any) -> Callable[[Graph], None]:
    def change(graph: Graph) -> None:
        for key, value in fields.items():
            setattr(node(graph, which), key, value)

    return change


def _move_tanh_down(graph: Graph) -> None:
    graph.nodes.insert(1, graph.nodes.pop(0))


def _foreign_result(graph: Graph) -> None:
    graph.results.append(Value(parse_type("f32[]"), "stranger:0"))


def _share_results(graph: Graph) -> None:
    node(graph, "sum").results = node(graph, "tanh").results


def _param_of_node(graph: Graph) -> None:
    graph.params.append(graph.nodes[0].results[0])


def _operand_of_the_outer_graph(graph: Graph) -> None:
    body(graph).nodes[0].inputs = (graph.params[0],)


def _duplicate_param(graph: Graph) -> None:
    graph.params[1].name = "x:0"


def _param_without_port(graph: Graph) -> None:
    graph.params[0].name = "x"


def _value_name(graph: Graph) -> None:
    node(graph, "sum").results[0].name = "total:0"


def _unbound_dim(graph: Graph) -> None:
    b = Builder(graph, OPS, share=False, fold=False)
    b.dim(size=symbol("s"))


def _measured_below(graph: Graph) -> None:
    b = Builder(graph, OPS, share=False, fold=False)
    number = b.dim(size=symbol("s"))
    b.emit(OPS["extent"], (number,), {"size": symbol("s")})


def _bad_dim_name(graph: Graph) -> None:
    graph.add_param(parse_type("f32[mod1]").with_shape((symbol("nan"),)), "z")


def _effect_in_body(graph: Graph) -> None:
    inner = body(graph)
    Builder(inner, OPS).emit(OPS["read_var"], (), {"var": "v", "type": parse_type("f32[4]")})
    graph.nodes[-1].attrs["space"] = separate_space(inner)


def _no_variable(graph: Graph) -> None:
    del graph.variables["v"]


def _variable_of_another_type(graph: Graph) -> None:
    graph.variables["v"] = parse_type("f64[4]")


def _after_below(graph: Graph) -> None:
    node(graph, "tanh").after = (node(graph, "full"),)


def _state(var: str, param: int | None, result: int | None) -> Callable[[Graph], None]:
    def change(graph: Graph) -> None:
        if param is not None:
            graph.var_params[var] = graph.params[param]
        if result is not None:
            graph.var_results[var] = result

    return change


def _state_outside(graph: Graph) -> None:
    graph.var_params["v"] = Value(parse_type("f32[4]"), "w:0")


BROKEN_GRAPHS: list[tuple[str, Callable[[Graph], None], str]] = [
    ("check_order", _move_tanh_down, r"at 'sum': operand 0 \(tanh:0\) is not defined above"),
    ("check_order", _foreign_result, "result stranger:0 is not defined"),
    ("check_order", _share_results, "at 'sum': result 0 .* does not belong"),
    ("check_order", _param_of_node, "parameter tanh:0 is the result of a node"),
    ("check_order", _operand_of_the_outer_graph, "body at 'exp': operand 0"),
    ("check_names", _set("sum", name="tanh"), "the name 'tanh' is taken"),
    ("check_names", _set("sum", name="w"), "the name 'w' is taken"),
    ("check_names", _set("sum", name=""), "taken or empty"),
    ("check_names", _duplicate_param, "parameter name 'x:0' is taken"),
    ("check_names", _param_without_port, "has no port"),
    ("check_names", _value_name, "result 0 is named 'total:0'"),
    ("check_arity", _set("tanh", inputs=()), "tanh takes 1 operands, got 0"),
    ("check_attrs", _set("sum", attrs={}), r"attributes are \[\], not \['axes'\]"),
    ("check_attrs", _attr("tanh", "speed", 3), r"attributes are \['speed'\], not \[\]"),
    ("check_attrs", _attr("sum", "axes", [0]), r"axes = \[0\] is no tuple"),
    ("check_attrs", _attr("sum", "axes", (None,)), "is no tuple"),
    ("check_attrs", _attr("full", "dtype", "f32"), "is no DType"),
    ("check_attrs", _attr("full", "value", "1"), "is no float"),
    ("check_attrs", _attr("fused", "space", 1), "is no str"),
    ("check_attrs", _attr("fused", "body", 1), "is no object"),
    ("check_types", _type("tanh", "f32[b,5]"), r"stored types are \[f32\[b,5\]\], inferred"),
    ("check_types", _attr("sum", "axes", (7,)), "out of range"),
    ("check_types", _attr("sum", "axes", ("a",)), "the row of sum fails"),
    ("check_dims", _unbound_dim, "at 'dim': dim s is not in the type of any parameter"),
    ("check_dims", _measured_below, "at 'dim': dim s is measured below"),
    ("check_dims", _bad_dim_name, "'nan' is not a name for a dim"),
    ("check_effects", _effect_in_body, "read_var inside the body"),
    ("check_effects", _no_variable, "no variable 'v'"),
    ("check_effects", _variable_of_another_type, "no variable 'v' of this type"),
    ("check_after", _after_below, "'full' is to run before"),
    ("check_state", _state("v", 0, None), "variable 'v' is not a parameter of its type"),
    ("check_state", _state_outside, "variable 'v' is not a parameter of its type"),
    ("check_state", _state("v", None, 1), "variable 'v' is not a result of its type"),
    ("check_state", _state("v", None, 5), "variable 'v' is not a result of its type"),
]


@pytest.mark.parametrize(("check", "breaks", "message"), BROKEN_GRAPHS)
def test_broken_graphs(check: str, breaks: Callable[[Graph], None], message: str) -> None:
    graph = sound_graph()
    verify_graph(graph)
    breaks(graph)
    with pytest.raises(VerifyError, match=f"^W601: {check} of graph @.*{message}"):
        verify_graph(graph)


KERNEL = '''
kernel @k(x: f32[b,8], ids: i64[b], y: mut f32[b,8], s: mut f32[b], a: mut f32[8]) {
  par i in b by 4, lane j in 8 {
    %0: f32 = x[i, j]
    %1: f32 = reduce max %0 over j
    %2: f32 = sub %0, %1
    %3: i64 = ids[i]
    %4: i64 = const 0
    %5: bool = ge %3, %4
    check %5 site 1
    %6: f32 = x[%3, j] if %5
    %7: f32 = contract %6, %2 over j
    %8: i64 = index 8*i + j
    %9: f32 = cast %8
    y[i, j] = %2 if %5
    s[i] = %7
    y[i, 7 - j] += %9
  }
}'''


def test_the_sound_kernel() -> None:
    verify_kernel(parse_kernel(KERNEL))


BROKEN_KERNELS = [
    ("check_axes", "lane j in 8", "lane i in 8", "'i' is not a free name"),
    ("check_axes", "lane j in 8", "lane b in 8", "'b' is not a free name"),
    ("check_axes", "lane j in 8", "lane mod in 8", "'mod' is not a free name"),
    ("check_axes", "b by 4", "b by 0", "no valid kind and block"),
    ("check_axes", "lane j in 8", "lane j in i", "'i' is not a free name"),
    ("check_axes", "lane j in 8", "lane j in %0", "depends on a value"),
    ("check_axes", "s: mut f32[b]", "s: mut f32[i]", "'i' is not a free name"),
    ("check_params", "ids: i64", "x: i64", "two parameters"),
    ("check_params", "= x[i, j]", "= z[i, j]", "no parameter 'z'"),
    ("check_params", "= x[i, j]", "= x[i]", "1 indices for f32"),
    ("check_params", "y: mut", "y:", "a store to 'y', which is not mutable"),
    ("check_definitions", "sub %0, %1", "sub %0, %9", "%9 is not defined above"),
    ("check_definitions", "%1: f32", "%0: f32", "'%0' is not a free name"),
    ("check_definitions", "if %5\n    s", "if %11\n    s", "%11 is not defined above"),
    ("check_definitions", "x[%3, j]", "x[%8, j]", "%8 is not defined above"),
    ("check_dtypes", "%0: f32 = x", "%0: f64 = x", "the dtype is f64, should be f32"),
    ("check_dtypes", "%4: i64 = const 0", "%4: i64 = const 0.0", "no constant of i64"),
    ("check_dtypes", "%8: i64 = index", "%8: f32 = index", "an index of dtype f32"),
    ("check_dtypes", "sub %0, %1", "sub %0, %0, %1", "sub takes 2 operands"),
    ("check_dtypes", "sub %0, %1", "subtract %0, %1", "no primitive"),
    ("check_dtypes", "%2: f32", "%2: f64", "the dtype is f64, should be f32"),
    ("check_dtypes", "ge %3, %4", "ge %3, %0", "ge does not take"),
    ("check_dtypes", "reduce max", "reduce sub", "no combiner 'sub'"),
    ("check_dtypes", "reduce max", "reduce or_", "combiner 'or_' does not take f32"),
    ("check_dtypes", "%1: f32 = reduce", "%1: i64 = reduce", "the dtype is i64"),
    ("check_dtypes", "contract %6, %2", "contract %6, %5", "two numeric operands"),
    ("check_dtypes", "%7: f32", "%7: f64", "the dtype is f64"),
    ("check_dtypes", "+= %9", "+= %8", "a value of i64 stored to 'y' of f32"),
    ("check_dtypes", "check %5", "check %4", "a check needs a bool"),
    ("check_dtypes", "site 1", "site 0", "from 1 on"),
    ("check_dtypes", "%2 if %5", "%2 if %2", "a guard must be bool"),
    ("check_indices", "x[%3, j]", "x[%2, j]", "%2 is an index but no integer"),
    ("check_indices", "8*i + j\n", "8*i + nan\n", "'nan' is neither an axis nor a dim"),
    ("check_reductions", "%0 over j", "%0 over k", "there is no axis 'k'"),
    ("check_reductions", "%0 over j", "%0 over i", "'i' is a par axis"),
    ("check_nesting", "par i in b by 4, lane j in 8", "lane j in 8, seq i in b by 4",
     "the sum over 'j' depends on 'i', which is looped over inside of it"),
    ("check_orders", "reduce max %0 over j", "reduce add %0 over j", "needs an order: {lanes 32}"),
    ("check_orders", "max %0 over j", "max %0 over j {lanes 32}", "a max of f32 has no order"),
    *(("check_orders", "max %0 over j", f"add %0 over j {order}", f"{order} is no order")
      for order in ("{lanes 0}", "{lanes 12}", "{lanes 128}", "{lanes 8, chunk 32}",
                    "{lanes 8, chunk 96}")),
    ("check_stores", "s[i] = %7", "s[i] = %2", "blocks of axis 'j' store to one element"),
    ("check_stores", "s[i] = %7", "a[j] = %7", "blocks of axis 'i' store to one element"),
    ("check_stores", "s[i] = %7", "a[7] = %7 if %5", "blocks of axis 'i'"),
    ("check_stores", "y[i, 7 - j] +=", "y[%3, j] +=", "blocks of axis 'i'"),
    ("check_stores", "s[i] = %7", "a[j] += %0", "blocks of axis 'i'"),
]


@pytest.mark.parametrize(("check", "old", "new", "message"), BROKEN_KERNELS)
def test_broken_kernels(check: str, old: str, new: str, message: str) -> None:
    assert old in KERNEL
    with pytest.raises(VerifyError, match=f"^W601: {check} of kernel @k: .*{re.escape(message)}"):
        verify_kernel(parse_kernel(KERNEL.replace(old, new, 1)))


STAGED = """
kernel @k(x: f32[64,32], w: f32[32,80], y: mut f32[64,80])
    local (s: f32[16,80] at 0, t: f32[16] at 5120) {
  par i in 64 by 16, lane j in 80, seq k in 32 by 32 {
    %0: f32 = x[i, k]
    %1: f32 = w[k, j]
    %2: f32 = contract %0, %1 over k
    s[i mod 16, j] = %2
    %3: f32 = s[i mod 16, j]
    %4: f32 = reduce max %3 over j
    t[i mod 16] = %4
    %5: f32 = s[i mod 16, j]
    %6: f32 = t[i mod 16]
    %7: f32 = sub %5, %6
    y[i, j] = %7
  }
}
"""
OVERWRITTEN = """
kernel @k(x: f32[64,32], w: f32[32,80], y: mut f32[64,80])
    local (s: f32[16,80] at 0, t: f32[16,80] at 0) {
  par i in 64 by 16, lane j in 80, seq k in 32 by 32 {
    %0: f32 = x[i, k]
    %1: f32 = w[k, j]
    %2: f32 = contract %0, %1 over k
    s[i mod 16, j] = %2
    %3: f32 = s[i mod 16, j]
    %4: f32 = reduce max %3 over j
    %5: f32 = sub %3, %4
    t[i mod 16, j] = %5
    %6: f32 = t[i mod 16, j]
    y[i, j] = %6
  }
}
"""
SORTED = """kernel @k(x: f32[9,20], y: mut f32[9,20], room: mut i32[9,20]) {
  par i in 9 by 1, seq j in 20 by 1 {
    %0: f32 = x[i, j]
    sort y[i, j] = %0 over j in room
  }
}"""
CARRIED = """
kernel @k(x: f32[9,8], y: mut f32[9,8]) {
  seq i in 9 by 1, par j in 8 by 8 {
    %0: f32 = const 0.0
    %1: f32 = carry %0 next %3 over i
    %2: f32 = x[i, j]
    %3: f32 = add %1, %2
    y[i, j] = %3
  }
}
"""
TILED = """kernel @k(x: f32[64,100], w: f32[100,80], y: mut f32[64,80]) {
  par i in 64 by 24, par j in 80 by 48, seq k in 100 by 56 {
    %0: f32 = x[i, k]
    %1: f32 = w[k, j]
    %2: f32 = contract %0, %1 over k {rows i, columns j, lanes 8, tile 6x2, block 24x48x56, cut, lhs in_place along k, rhs panels along j}
    y[i, j] = %2
  }
}"""  # noqa: E501
ROWS, PANELS = "lhs in_place along k", "rhs panels along j"
BROKEN_STAGES = [
    (STAGED, "check_locals", "t: f32[16] at 5120", "t: f32[16] at 64", "'s' and 't' overlap"),
    (STAGED, "check_locals", "at 5120", "at 5130", "begin at a multiple of 64"),
    (STAGED, "check_locals", "t: f32[16]", "t: f32[b]", "has no size"),
    (STAGED, "check_locals", "sub %5, %6", "sub %3, %6", "a value of an earlier stage"),
    (STAGED, "check_locals", "%3: f32 = s[i mod 16, j]", "%3: f32 = t[i mod 16]",
     "'t' is read before a stage has stored it"),
    (OVERWRITTEN, "check_locals", "t[i mod 16, j] = %5\n", "t[i mod 16, 79 - j] = %5\n",
     "'s' and 't' overlap"),
    (OVERWRITTEN, "check_locals", "t[i mod 16, j] = %5\n",
     "%7: f32 = reduce max %5 over j\n%8: f32 = sub %5, %7\nt[i mod 16, j] = %5\n"
     "y[i, j] = %8\n", "'s' and 't' overlap"),
    (OVERWRITTEN, "check_locals", "%6: f32 = t[i mod 16, j]\n",
     "%6: f32 = t[i mod 16, j]\n%7: f32 = s[i mod 16, j]\n", "'s' and 't' overlap"),
    (STAGED, "check_params", "s: f32[16,80]", "x: f32[16,80]", "two parameters"),
    (STAGED, "check_reductions", "over k\n", "over (k, k)\n", "summed over twice"),
    (CARRIED, "check_carries", "next %3", "next %9", "%9, the next value, is not defined below"),
    (CARRIED, "check_carries", "next %3", "next %0", "%0, the next value, is not defined below"),
    (CARRIED, "check_carries", "seq i in 9 by 1", "seq i in 9 by 3", "no seq axis by 1"),
    (CARRIED, "check_carries", "next %3 over i", "next %3 over k", "there is no axis 'k'"),
    (CARRIED, "check_carries", "const 0.0", "x[i, j]", "the first value depends on 'i'"),
    (SORTED, "check_rows", "seq j", "par j", "tasks are rows"),
    (SORTED, "check_rows", "y[i, j]", "y[i, 0]", "'y' is not one row of 'j' for each task"),
    (SORTED, "check_rows", "mut i32[9,20]", "mut i32[9,2]", "'room' is no room for the rows"),
    (SORTED, "check_rows", "    sort", "    y[i, j] = %0\n    sort", "does nothing else"),
    (STAGED, "check_bounds", "w[k, j]", "w[k + 1, j]", "an index of 'w', f32[32,80], is from 1"),
    (STAGED, "check_bounds", "w: f32[32,80]", "w: f32[32,79]", "is from 0 to 79"),
    (SORTED, "check_bounds", "x[i, j]", "x[9, j]", "is 9"),
    (CARRIED, "check_bounds", "x[i, j]", "x[8 - i, j - 1]", "is from -1 to 6"),
    *((TILED, "check_orders", "{rows", f"{{chunk {chunk}, rows", f"no chunks of {chunk}")
      for chunk in (32, 96)),
    *((TILED, "check_tilings", *rest) for rest in (
        ("rows i,", "rows k,", "rows k and columns j are no two axes beside 'k'"),
        ("rows i, columns j", "rows j, columns i", "%0 depends on 'i', which is the other"),
        ("    %0: f32 = x[i, k]", "    %0: f32 = x[i, j]", "%0 depends on 'j'"),
        ("par i in", "par h in 1 by 2, par i in", "'h' is no side of the product"),
        ("    y[i, j] = %2", "    %3: f32 = reduce max %0 over k\n    y[i, j] = %2",
         "%3 is summed or carried beside"),
        ("lanes 8", "lanes 12", "a power of two"), ("lanes 8", "lanes 128", "a power of two"),
        ("tile 6x2", "tile 0x2", "from 1 to 64 vectors"),
        ("tile 6x2", "tile 12x6", "from 1 to 64 vectors"),
        (PANELS, f"{PANELS}, swap", "%1 is no plain array with 'k' side by side"),
        ("tile 6x2", "tile 5x2", "24 is none of 5 rows"),
        ("tile 6x2", "tile 6x4", "48 is none of 32 columns"),
        ("24x48x56", "24x48x60", "60 is none of 8 lanes"),
        ("24x48x56", "24x48x64", "'k' goes by 56, the block is 64 deep"),
        (", cut", "", "it has to be 'cut'"),
        ("{rows", "{chunk 64, rows", "the sums of 2 of them may wait"),
        ("{rows i, columns j", "{chunk 64, waits 1, rows i, columns j", "the sums of 2 of them"),
        (", cut", ", cut, waits 2", "sums of chunks wait where there are chunks"),
        (ROWS, "lhs in_place along i", "no plain array with 'i' side by side"),
        (ROWS, "lhs in_place along j", "lhs in_place is read along i or along k"),
        (ROWS, "lhs rows 64 along i", "lhs rows is read along k or no axis"),
        (ROWS, "lhs rows 63 along k", "lhs rows 63: 64 elements are needed"),
        (ROWS, "lhs panels 64 along i", "panels are of one size"),
        (ROWS, "lhs in_place 99 along k", "rows of %0 are 100 apart"),
        (PANELS, "rhs turned along j", "rhs turned is read along k"),
        (PANELS, "rhs lines 47 along j", "rhs lines 47: 48 elements are needed"),
        (PANELS, "rhs panels along i", "along j or along k or no axis"),
        ("24x48x56, cut, lhs in_place", "24x48x56, cut, swap, lhs in_place",
         "no plain array with 'k' side by side"),
    )),
    (TILED.replace(PANELS, "rhs in_place along j"), "check_tilings", "par j in 80", "par j in 8",
     "a tile of 16 is more than 'j' may have"),
    (TILED, "check_tilings", "par i in 64", "par i in 5", "a tile of 6 is more than 'i' may have"),
    (TILED, "check_tilings", "par i in 64", "par i in b", "a tile of 6 is more than 'i' may have"),
    (TILED.replace("tile 6x2", "tile 12x2").replace("lhs in_place", "lhs rows 64"),
     "check_tilings", "cut,", "cut, swap,", "a tile that is turned has no more rows than lanes"),
]


@pytest.mark.parametrize(("text", "check", "old", "new", "message"), BROKEN_STAGES)
def test_broken_stages(text: str, check: str, old: str, new: str, message: str) -> None:
    verify_kernel(parse_kernel(text))
    assert old in text
    with pytest.raises(VerifyError, match=f"^W601: {check} of kernel @k: .*{re.escape(message)}"):
        verify_kernel(parse_kernel(text.replace(old, new, 1)))


@pytest.mark.parametrize(("old", "new", "message"), [
    ("over k\n", "over k {rows i, lanes 16}\n", "'rows, lanes' is no complete tiling"),
    ("at 0,", "of 0,", "expected 'at'"),
    ("over k\n", "over (k\n", "expected ','"),
])
def test_broken_texts_of_stages(old: str, new: str, message: str) -> None:
    assert old in STAGED
    with pytest.raises(Error, match=re.escape(message)) as problem:
        parse_kernel(STAGED.replace(old, new, 1))
    assert problem.value.code == "W501"


def test_kernels_that_have_no_text() -> None:
    kernel = parse_kernel(KERNEL)

    def with_stmt(at: int, **fields: Any) -> Kernel:
        body = list(kernel.body)
        body[at] = replace(body[at], **fields)
        return replace(kernel, body=tuple(body))

    last = len(kernel.body) - 1
    assert isinstance(kernel.body[last], Store)
    for check, broken in (
            ("check_definitions", with_stmt(last, name="%20")),
            ("check_definitions", with_stmt(0, name="")),
            ("check_dtypes", with_stmt(last, dtype=F64)),
            ("check_dtypes", replace(kernel, body=(Const("%0", F32, 1), *kernel.body[1:]))),
            ("check_axes", replace(kernel, axes=(kernel.axes[0], Axis("j", 8, "lane", 4)))),
            ("check_axes", replace(kernel, axes=(
                kernel.axes[0], Axis("j", 8, "thread", 1))))):  # type: ignore[arg-type]
        with pytest.raises(VerifyError, match=check):
            verify_kernel(broken)


def test_a_store_at_a_computed_index_holds_its_axes() -> None:
    verify_kernel(parse_kernel('''
        kernel @k(x: f32[8], ids: i64[8], y: mut f32[9]) {
          seq i in 8 by 1 {
            %0: i64 = ids[i]
            %1: f32 = x[i]
            y[%0] = %1
          }
        }'''))


def test_stores_along_an_axis_of_one_element() -> None:
    verify_kernel(parse_kernel('''
        kernel @k(x: f32[1,8], y: mut f32[1,8]) {
          par i in 1 by 1, lane j in 8 {
            %0: f32 = x[i, j]
            y[0, j] = %0
          }
        }'''))


SCHEDULED = """
kernel @k(x: f32[9,40], y: mut f32[9,40], z: mut f32[40], a: mut f32[2]) warps 8 pipeline 3 {
  par i in 9 by 1, lane j in 40 {
    vectorize j by 32 keep %0
    %0: f32 = x[i, j]
    %1: f32 = reduce add %0 over j {lanes 32, chunk 64}
    %2: bool = lt %0, %1
    %3: f32 = sub %0, %1
    y[i, j] = %3 if %2
  }
}
"""
COLUMNS = """
kernel @k(x: f32[9,40], y: mut f32[9,40], z: mut f32[40], a: mut f32[2]) {
  seq i in 9 by 1, par j in 40 by 64 {
    vectorize j by 8
    %0: f32 = x[i, j]
    %1: f32 = reduce add %0 over i {lanes 8, unrolled}
    z[j] = %1
  }
}
"""
TURNED = """
kernel @k(x: f32[40,90], y: mut f32[90,40]) {
  par j in 40 by 64, par i in 90 by 64 {
    vectorize j by 16 turn %0
    %0: f32 = x[j, i]
    %1: f32 = sin %0
    %2: bool = lt %0, %1
    y[i, j] = %1
  }
}
"""
BROKEN_SCHEDULES = [
    (TURNED, "turn %0", "turn %1", "%1 is no load"),
    (TURNED, "turn %0", "turn %0, %9", "%9 is no load"),
    (TURNED, "vectorize j", "vectorize i", "of lines along 'j' that 'i' crosses"),
    (TURNED, "i in 90 by 64", "i in 90 by 1", "several indices of 'j' and of one other axis"),
    (TURNED, "x[j, i]", "y[i, j]", "of lines along 'i' that 'j' crosses"),
    (TURNED, "i in 90 by 64", "i in 90 by 1024", "has more than 32768 bytes"),
    (SCHEDULED, "by 32", "by 12", "lanes are a power of two from 2 to 256"),
    (SCHEDULED, "by 32", "by 512", "lanes are a power of two from 2 to 256"),
    (SCHEDULED, "j by 32", "k by 32", "there is no axis 'k'"),
    (SCHEDULED, "by 32", "by 16", "%1 is a sum {lanes 32, chunk 64}: it wants a multiple"),
    (SCHEDULED, "by 32", "by 128", "%1 is a sum {lanes 32, chunk 64}: it wants a multiple"),
    (SCHEDULED, "keep %0", "keep %1", "%1 is no value of a row along 'j'"),
    (SCHEDULED, "keep %0", "keep %9", "%9 is no value of a row along 'j'"),
    (SCHEDULED, "keep %0", "keep %0, %2", "%2 is bool"),
    (SCHEDULED, "vectorize j", "vectorize i", "a row is kept where the stage sums over 'i'"),
    (SCHEDULED, "lane j in 40", "lane j in 10000", "a row of %0 has more than 32768 bytes"),
    (SCHEDULED, "lane j in 40", "lane j in b", "a row of %0 has more than 32768 bytes"),
    (SCHEDULED, "keep %0\n", "\n vectorize j by 64\n", "or it has vectors already"),
    (SCHEDULED, "%2: bool", "%8: f32 = contract %0, %0 over j\n    %2: bool", "index by index"),
    (SCHEDULED, "chunk 64}", "chunk 64, by lanes 1}", "the sum is along the vectors"),
    (SCHEDULED, "warps 8", "warps 6", "warps are a power of two"),
    (SCHEDULED, "pipeline 3", "pipeline 0", "at least 1 round is begun"),
    (COLUMNS, "i in 9 by 1", "i in 900 by 1", "only loops of at most 128 rounds are unrolled"),
    (COLUMNS, "i in 9 by 1", "i in b by 1", "only loops of at most 128 rounds are unrolled"),
    (COLUMNS, "8, unrolled", "1, by lanes 2", "of lanes as many as the sum has"),
    (COLUMNS, "8, unrolled", "32, by lanes 16", "a power of two, up to 8"),
    (COLUMNS, "8, unrolled", "32, in strips 6", "a power of two, up to 8"),
    (COLUMNS, "8, unrolled", "8, by lanes 4, few 16", "a power of two, up to 8"),
    (COLUMNS, "8, unrolled", "2, in strips 8, few 4", "of lanes as many as the sum has"),
    (COLUMNS, "8, unrolled", "8, in strips 4, few 3", "a power of two, up to 8"),
    (COLUMNS, "8, unrolled", "8, by lanes 3", "a power of two, up to 8"),
    (COLUMNS, "8, unrolled", "8, across 3", "a power of two, up to 8"),
    (COLUMNS.replace("by 8", "by 128"), "8, unrolled", "8, across 4", "go across rows"),
    (COLUMNS, "z[j] = %1", "z[j] += %1", "sums are taken in turn"),
    (COLUMNS, "vectorize j", "vectorize i", "the sum is along the vectors"),
]


@pytest.mark.parametrize(("text", "old", "new", "message"), BROKEN_SCHEDULES)
def test_broken_schedules(
    text: str, old: str, new: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser shows the line; the verifier says the same of a kernel that a pass has made."""
    verify_kernel(parse_kernel(text))
    assert old in text
    broken = text.replace(old, new, 1)
    with pytest.raises(Error, match=f"^W501: .*{re.escape(message)}") as caught:
        parse_kernel(broken)
    shown = str(caught.value).splitlines()
    number = int(shown[1].removeprefix("  --> line ").partition(",")[0])
    assert shown[2].strip("| ") == broken.splitlines()[number - 1].strip()
    assert shown[3].endswith("^")
    monkeypatch.setattr("weft.ir.text.kernel.schedule_problems", lambda kernel: ())
    with pytest.raises(VerifyError, match=f"check_schedule of kernel @k: .*{re.escape(message)}"):
        verify_kernel(parse_kernel(broken))


def test_a_schedule_of_a_kernel_that_is_not_sound_is_not_looked_at() -> None:
    with pytest.raises(VerifyError, match="check_definitions"):
        verify_kernel(parse_kernel(SCHEDULED.replace("sub %0", "sub %7")))


def test_no_check_is_one_that_cannot_fail() -> None:
    staged = [("check_schedule",), *((check, *_) for _, check, *_ in BROKEN_STAGES)]
    for checks, broken in ((GRAPH_CHECKS, BROKEN_GRAPHS),
                           (KERNEL_CHECKS, [*BROKEN_KERNELS, *staged])):
        assert {check.__name__ for check in checks} == {case[0] for case in broken}
        assert all(check.__doc__ for check in checks)


def test_golden_messages(golden: Golden) -> None:
    graph = sound_graph()
    _type("sum", "f32[5]")(graph)
    kernel = parse_kernel(KERNEL.replace("s[i] = %7", "s[i] = %2", 1))
    messages = []
    with pytest.raises(VerifyError) as caught:
        verify_graph(graph)
    messages.append(str(caught.value))
    with pytest.raises(VerifyError) as caught:
        verify_kernel(kernel)
    messages.append(str(caught.value))
    golden("\n\n".join(messages), "text/verify.txt")


def test_what_has_no_text_is_shown_as_it_is() -> None:
    graph = sound_graph()
    _attr("full", "value", object())(graph)
    with pytest.raises(VerifyError, match="<full = full>"):
        verify_graph(graph)
