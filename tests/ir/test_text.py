"""Text of graph, kernel and plan: what is printed parses back as the same thing."""

from __future__ import annotations

import inspect
import random
import re
import textwrap
import time
from collections.abc import Callable

import programs
import pytest
from conftest import GOLDEN
from hypothesis import given

import weft.ir.kernels.kernel
import weft.ir.plans.plan
import weft.ir.text.printer
from weft.ir.diagnose import TextError
from weft.ir.graph import Builder, Graph
from weft.ir.indices.index import Expr, Symbol
from weft.ir.indices.space import separate_space
from weft.ir.kernels.kernel import Kernel, Load
from weft.ir.loc import Loc
from weft.ir.ops.table import OPS
from weft.ir.plans.plan import Alloc, Plan
from weft.ir.text.parser import parse, parse_graph, parse_kernel, parse_plan
from weft.ir.text.printer import print_graph, print_kernel, print_plan
from weft.ir.text.same import same_graph, same_kernel, same_plan
from weft.ir.types import Device, TensorType, parse_type
from weft.ir.verify.verifier import read, verify_graph, verify_kernel, verify_plan

Golden = Callable[[str, str], None]


@given(programs.graphs())
def test_graphs_round_trip(graph: Graph) -> None:
    text = print_graph(graph)
    parsed = parse_graph(text)
    assert print_graph(parsed) == text
    assert same_graph(parsed, graph)
    verify_graph(graph)
    verify_graph(parsed)


@given(programs.kernels())
def test_kernels_round_trip(kernel: Kernel) -> None:
    text = print_kernel(kernel)
    parsed = parse_kernel(text)
    assert print_kernel(parsed) == text
    assert same_kernel(parsed, kernel)
    verify_kernel(kernel)
    verify_kernel(parsed)


@given(programs.plans())
def test_plans_round_trip(plan: Plan) -> None:
    text = print_plan(plan, kernels=True)
    parsed = parse_plan(text)
    assert print_plan(parsed, kernels=True) == text
    assert same_plan(parsed, plan)
    assert same_plan(parse_plan(print_plan(plan), plan.kernels), plan)
    verify_plan(parsed)


@given(programs.graphs(most=4), programs.kernels(), programs.plans())
def test_a_file_of_several_items(graph: Graph, kernel: Kernel, plan: Plan) -> None:
    text = "\n\n".join((print_graph(graph), print_plan(plan, kernels=True), print_kernel(kernel)))
    items = parse(f"// a comment\n{text}\n")
    assert [type(item) for item in items] == [Graph, Kernel, Plan, Kernel]
    assert same_graph(items[0], graph)  # type: ignore[arg-type]
    assert same_plan(items[2], plan)  # type: ignore[arg-type]
    assert same_kernel(items[3], kernel)  # type: ignore[arg-type]


@pytest.mark.parametrize(("module", "word", "read"), [
    (weft.ir.text.printer, "graph @", parse_graph),
    (weft.ir.kernels.kernel, "kernel @", parse_kernel), (weft.ir.plans.plan, "plan @", parse_plan)])
def test_examples_of_the_docstrings_parse(
    module: object, word: str, read: Callable[[str], object]
) -> None:
    lines = (inspect.getdoc(module) or "").splitlines()
    first = next(at for at, line in enumerate(lines) if line.strip().startswith(word))
    last = lines.index("    }", first)
    text = textwrap.dedent("\n".join(lines[first:last + 1]))
    item = read(text)
    printed = {parse_graph: print_graph, parse_kernel: print_kernel, parse_plan: print_plan}
    assert printed[read](item) == text  # type: ignore[operator]


def mlp() -> Graph:
    """A graph with everything that text must hold."""
    graph = Graph("mlp")
    x = graph.add_param(parse_type("f32[b,784]"), "x")
    w = graph.add_param(parse_type("f32[784,10]"), "params['w']")
    b = Builder(graph, OPS, share=False, fold=False)
    count = TensorType(OPS["iota"].samples[-1].attrs["dtype"], ())
    graph.variables["step count"] = count
    b.locs = (Loc("/home/me/model.py", 12, "dense.<locals>.f"), Loc("my lib.py", 3))
    y = b.emit(OPS["contract"], (x, w), {"dims": "mk,kn->mn"}, name="layer1/logits").results[0]
    b.locs, b.device = (), Device("gpu", 0)
    one = b.full(1, count)
    update = b.emit(OPS["update_var"], (one,), {"var": "step count", "type": count}, name="update")
    b.device, b.after = None, (update,)
    size = b.emit(OPS["dim"], (), {"size": (x.shape[0] + 1) // 2}).results[0]
    b.after = ()
    padded = b.pad(y, low=(0, 1), high=(2, 0), interior=(0, 0), value=float("-inf"))
    body = Graph("softmax body")
    p = body.add_param(padded.type, "p0")
    inner = Builder(body, OPS, share=False, fold=False)
    total = inner.sum(inner.exp(p), axes=(1,))
    body.results = [total, inner.log(total)]
    fused = b.emit(OPS["fused"], (padded,), {"space": separate_space(body), "body": body},
                   name="fused_0")
    graph.results = [*fused.results, size, x]
    return graph


def test_golden_graph(golden: Golden) -> None:
    graph = mlp()
    verify_graph(graph)
    golden(print_graph(graph), "text/graph.ir")
    assert same_graph(parse_graph(print_graph(graph)), graph)


def test_names_and_places_survive() -> None:
    graph = parse_graph(print_graph(mlp()))
    logits = graph.nodes[0]
    assert logits.name == "layer1/logits" and logits.results[0].name == "layer1/logits:0"
    assert logits.locs == (Loc("/home/me/model.py", 12, "dense.<locals>.f"), Loc("my lib.py", 3))
    assert [value.name for value in graph.params] == ["x:0", "params['w']:0"]
    assert graph.nodes[2].device == Device("gpu", 0)
    assert graph.nodes[3].after == (graph.nodes[2],)
    # Names are known to the graph, so that nodes added later get others.
    b = Builder(graph, OPS)
    assert b.tanh(graph.params[0]).name == "tanh:0"
    assert graph.unique_name("update") == "update_1"
    assert graph.unique_name("x") == "x_1"


def test_explicit_state_survives() -> None:
    text = textwrap.dedent('''\
        graph @step(%x: f32[3], %w: f32[3]) -> (%0: f32[3]) {
          var "w": f32[3] in %w out 0
          var "unused": f32[]
          %0: f32[3] = add %w, %x  // "add"
          return %0
        }''')
    graph = parse_graph(text)
    assert graph.var_params == {"w": graph.params[1]} and graph.var_results == {"w": 0}
    assert print_graph(graph) == text
    verify_graph(graph)


def test_text_written_by_hand() -> None:
    """Notes may be missing, labels may be words, comments may stand on any line."""
    graph = parse_graph('''
        // what a person writes
        graph @f(%x: f32[b, 4]) -> (%y: f32[b,4]) {  // comment
          %0: f32[b,4] = tanh %x
          %y: f32[b,4] = mul %0,
                             %x   // no name
          %1: f32[b,4] = tanh %y  // "tanh_1" m.py:3
          return %y
        }
    ''')
    assert [node.name for node in graph.nodes] == ["tanh", "y", "tanh_1"]
    verify_graph(graph)


def test_axes_of_parsed_kernels_know_their_sizes() -> None:
    kernel = parse_kernel('''
        kernel @k(x: f32[4,8], y: mut f32[32]) {
          par i in 4 by 1, lane j in 8 {
            %0: f32 = x[i, j]
            y[8*i + j] = %0
          }
        }''')
    load = kernel.body[0]
    assert isinstance(load, Load) and isinstance(load.indices[0], Expr)
    assert load.indices[0].terms[0][0][0] == Symbol("i")
    assert load.indices[0].terms[0][0][0].size == 4


ERRORS = [
    ("", "expected 'graph'"),
    ("graph f() -> () { return }", "expected '@'"),
    ("graph @f(%x: f31[]) -> () { return }", "not a type"),
    ("graph @f(%x: f32[2 b]) -> () { return }", "not a dim"),
    ("graph @f(%x: f32[], %x: f32[]) -> () { return }", "%x is defined twice"),
    ("graph @f() -> () {\n  %0: f32[] = tanh %x\n  return }", "%x is not defined above"),
    ("graph @f(%x: f32[]) -> () {\n  %0: f32[] = tanhh %x\n  return }", "no op named 'tanhh'"),
    ("graph @f(%x: f32[]) -> (%x: f64[]) { return %x }", "not the results"),
    ("graph @f(%x: f32[]) -> () { return %x }", "not the results"),
    ('graph @f(%x: f32[]) -> () {\n %0: f32[] = tanh %x // "x"\n return }', "used twice"),
    ('graph @f(%x: f32[]) -> () {\n %0: f32[] = tanh %x\n %1: f32[] = exp %x // "tanh"\n return }',
     "used twice"),
    ('graph @f(%x: f32[]) -> () {\n %0: f32[] = tanh %x // "y" somewhere\n return }', "a place"),
    ('graph @f(%x: f32[]) -> () {\n %0: f32[] = tanh %x after "y"\n return }', "no node named"),
    ("graph @f(%x: f32[]) -> () {\n %0: f32[] = tanh %x on tpu:0\n return }", "not a device"),
    ("graph @f(%x: f32[]) -> () {\n %0: f32[] = sum %x {axes}\n return }", "expected '='"),
    ("graph @f(%x: f32[]) -> () {\n %0: f32[] = sum %x {axes = }\n return }", "the value of"),
    ("graph @f(%x: f32[]) -> () {\n %0: f32[] = sum %x {axes = (1 2)}\n return }", "not a dim"),
    ("graph @f() -> () {\n return }\ngraph", "the end of the text"),
    ("graph @f() -> () {\n", "expected an op or 'return'"),
    ('graph @"\\q"() -> () { return }', "not a string literal"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_wrong_graphs_are_errors(text: str, message: str) -> None:
    with pytest.raises(TextError, match="W501: .*" + re.escape(message)) as caught:
        parse_graph(text)
    assert re.search(r"--> line \d+, column \d+\n   \|   .*\n   \|    *\^$", str(caught.value))


@pytest.mark.parametrize("name", sorted(
    str(path.relative_to(GOLDEN)) for folder in ("kernels", "plans", "schedules")
    for path in (GOLDEN / folder).iterdir() if not path.name.startswith(("triton", "matrices"))))
def test_golden_files_are_texts(name: str) -> None:
    """What they hold can be read back, and is sound."""
    assert read((GOLDEN / name).read_text(encoding="utf-8"))


_TOKEN = re.compile(r"%?[^\W\d][\w.]*|%\w+|-?\d+\.?\d*|[^\s\w]")
_NUMBERS = ("0", "1", "-1", "7", "16", "1000000000000", "9" * 23, "2.5", "nan")


def changed(text: str, rng: random.Random) -> str:
    """A text with one thing wrong, or other than it was."""
    tokens, lines = list(_TOKEN.finditer(text)), text.splitlines()
    one, other, line = rng.choice(tokens), rng.choice(tokens), rng.randrange(len(lines))
    number = rng.choice([token for token in tokens if token[0].isdigit()])
    match rng.randrange(6):
        case 0:
            return text[:one.start()] + text[one.end():]
        case 1:
            return text[:one.start()] + other[0] + text[one.end():]
        case 2:
            return "\n".join(lines[:line] + lines[line + 1:])
        case 3:
            return "\n".join(lines[:line] + lines[line:line + 1] + lines[line:])
        case 4:
            return text[:number.start()] + rng.choice(_NUMBERS) + text[number.end():]
        case _:
            return text[:one.start()]


@pytest.mark.parametrize("name", [
    "kernels/attention.txt", "kernels/forces.txt", "kernels/rounds_of_numbers.txt",
    "plans/cond_in_scan.plan", "plans/while_newton.plan", "schedules/sum_long.txt"])
def test_broken_texts_are_errors_with_a_place(name: str) -> None:
    """However a text is broken: an error of its own, with the line and the column."""
    text, rng, refused = (GOLDEN / name).read_text(encoding="utf-8"), random.Random(name), 0
    for _ in range(60):
        try:
            read(changed(text, rng))
        except TextError as problem:
            refused += 1
            assert re.search(r"\n  --> line \d+, column \d+\n", str(problem))
    assert refused >= 40


KERNEL = '''
kernel @k(x: f32[4], y: mut f32[4]) {
  par i in 4 by 1 {
    %0: f32 = x[i]
    y[i] = %0
  }
}'''


@pytest.mark.parametrize(("old", "new", "message"), [
    ("by 1", "", "expected 'by'"), ("%0: f32 =", "%0: f33 =", "no dtype named 'f33'"),
    ("= %0", "= %1", "%1 is not defined above"), ("x[i]", "contract %0 over i", "expected ','"),
    ("x[i]", "reduce add %0 over i {lane 3}", "expected 'lanes'"),
    ("x[i]", "reduce add %0 over i {lanes}", "expected a number"),
    ("x[i]", "reduce add %0 over i {lanes 4, 3}", "expected a chunk"),
    ("x[i]", "reduce add %0 over i {lanes 4", "expected ','"),
    ("x[i]", "reduce add %0 over i {lanes 4, by rows}", "a chunk, 'unrolled', 'by lanes'"),
    ("x[i]", "reduce add %0 over i {lanes 4, by lanes}", "expected a number"),
    ("x[i]", "reduce add %0 over i {lanes 4, by lanes 2, 4}", "expected 'few'"),
    ("x[i]", "reduce add %0 over i {lanes 4, in strips 2, few}", "expected a number"),
    ("x[i]", "reduce add %0 over i {lanes 4, unrolled, chunk 64}", "expected '}'"),
    ("    y[i]", "    vectorize i by 4\n    y[i]", "above the first statement of a stage"),
    ("    %0", "    vectorize i in 4\n    %0", "a statement"),
    ("mut f32[4]) {", "mut f32[4]) warps 4 {", "expected 'pipeline'"),
    ("x[i]", "const x", "a number"), ("x[i]", "[i]", "a load or an operation"),
    ("y[i] = %0", "y = %0", "a statement"), ("4 by 1 {", "4 by 1, {", "an axis"),
    ("x[i]", "x[i +]", "not a dim"), ("  }\n}", "}", "expected '}'")])
def test_wrong_kernels_are_errors(old: str, new: str, message: str) -> None:
    with pytest.raises(TextError, match=re.escape(message)):
        parse_kernel(KERNEL.replace(old, new, 1))


PLAN = '''
plan @p(%x: f32[4]) -> (%y: f32[4]) arena = 64 {
  check 1 W124 "range"
  alloc %t: f32[4] at 0
  launch @k(%x, %t) on cpu:0
  copy %t to %y
}'''


@pytest.mark.parametrize(("old", "new", "message"), [
    ("check 1", "check 2", "checks are numbered"), ("W124", "X124", "an error code"),
    ("alloc", "allok", "a step"), (" on cpu:0", "", "expected 'on'"),
    ("%x, %t", "x, %t", "expected '%'"), ("= 64", "= six+", "not a dim")])
def test_wrong_plans_are_errors(old: str, new: str, message: str) -> None:
    assert isinstance(parse_plan(PLAN).steps[0], Alloc)
    with pytest.raises(TextError, match=re.escape(message)):
        parse_plan(PLAN.replace(old, new, 1))


def test_golden_error(golden: Golden) -> None:
    text = print_graph(mlp()).replace("tanh", "tan").replace("exp %p0", "exp %p1")
    with pytest.raises(TextError) as caught:
        parse_graph(text)
    golden(str(caught.value), "text/error.txt")


def test_attributes_without_text_are_errors() -> None:
    graph = mlp()
    graph.nodes[0].attrs["dims"] = object()
    with pytest.raises(TypeError, match="no text"):
        print_graph(graph)


@pytest.mark.long
def test_a_long_chain(capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph("chain")
    value = graph.add_param(parse_type("f32[b,4]"), "x")
    b = Builder(graph, OPS, share=False, fold=False)
    for _ in range(25_000):
        value = b.add(b.tanh(value), value)
    graph.results = [value]
    start = time.perf_counter()
    parsed = parse_graph(print_graph(graph))
    verify_graph(parsed)
    assert same_graph(parsed, graph)
    with capsys.disabled():
        print(f" [50,000 nodes: {time.perf_counter() - start:.1f} s]", end="")
