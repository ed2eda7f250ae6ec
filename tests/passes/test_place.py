"""Placement: constraints, colocation of variables, errors."""

from __future__ import annotations

import re

import pytest

from weft.ir.diagnose import Error
from weft.ir.graph import Builder, Graph, Node
from weft.ir.loc import Loc
from weft.ir.ops.table import OPS
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph
from weft.ir.types import CPU0, F64, Device, TensorType
from weft.ir.verify.verifier import verify_graph
from weft.passes.fusion.fuse import fuse
from weft.passes.placement.constraints import groups_of, nearest
from weft.passes.placement.costs import Costs
from weft.passes.placement.place import place
from weft.passes.placement.units import units_of
from weft.passes.state import resolve_state

T = TensorType(F64, (3,))
DEVICES = tuple(map(Device.parse, ("cpu:0", "cpu:1", "gpu:0", "gpu:1")))


def model(constraint: str | None = None, *, second: str | None = None) -> Graph:
    """A read and an assignment of one variable, and a node of its own."""
    graph = Graph("g", variables={"w": T})
    b = Builder(graph, OPS, share=False, fold=False)
    b.locs = (Loc("model.py", 3),)
    b.device = Device.parse(constraint) if constraint else None
    value = b.emit(OPS["read_var"], [], {"var": "w", "type": T}).results[0]
    b.locs, b.device = (Loc("model.py", 4),), None
    graph.results = [b.tanh(value)]
    b.device = Device.parse(second) if second else None
    b.emit(OPS["assign_var"], [b.neg(value)], {"var": "w", "type": T})
    return graph


def homes(graph: Graph) -> dict[str, str]:
    return {node.name: str(node.device) for node in graph.nodes}


def test_the_default_is_the_first_device() -> None:
    placed = place(model()).graph
    verify_graph(placed)
    assert set(homes(placed).values()) == {"cpu:0"}


def test_partial_constraints_and_colocation() -> None:
    graph = model("gpu", second="/gpu:1")
    before = print_graph(graph)
    placed = place(graph, DEVICES).graph
    assert homes(placed) == {"read_var": "gpu:1", "tanh": "gpu:1", "neg": "gpu:1",
                             "assign_var": "gpu:1"}
    assert print_graph(graph) == before


def test_the_next_value_of_a_variable_stays_with_it() -> None:
    graph = resolve_state(model(second="gpu:0"))
    placed = place(graph, DEVICES).graph
    verify_graph(placed)
    assert homes(placed) == {"tanh": "cpu:0", "neg": "gpu:0"}
    assert placed.var_results == {"w": 1} and list(placed.var_params) == ["w"]


def test_a_device_that_does_not_exist() -> None:
    with pytest.raises(Error) as caught:
        place(model("gpu:7"), DEVICES)
    assert str(caught.value) == (
        "W401: 'read_var' must be on gpu:7, which does not exist\n"
        "  --> model.py:3\n"
        "  fix: use one of the devices there are: cpu:0, cpu:1, gpu:0, gpu:1")


def test_constraints_that_cannot_hold_together() -> None:
    with pytest.raises(Error, match="shares 'w' with nodes that must be on gpu:0, gpu:1"):
        place(model("gpu", second="cpu"), DEVICES)


def test_fits() -> None:
    worker = Device.parse("/job:worker/task:1/gpu:0")
    assert worker.fits(None) and worker.fits(Device.parse("/job:worker"))
    assert worker.fits(Device.parse("gpu")) and not worker.fits(Device.parse("/task:0"))
    assert not CPU0.fits(Device.parse("/job:worker")) and not CPU0.fits(Device.parse("cpu:1"))


def test_variables_that_share_a_node_share_a_device() -> None:
    graph = Graph("g", variables={"a": T, "c": T})
    b = Builder(graph, OPS, share=False, fold=False)
    x = graph.add_param(T, "x")
    b.device = Device.parse("gpu:1")
    shared = b.neg(x)
    b.device = None
    for var in ("a", "c"):
        b.emit(OPS["assign_var"], [shared], {"var": var, "type": T})
    placed = place(resolve_state(graph), DEVICES).graph
    assert [str(node.device) for node in placed.nodes] == ["gpu:1"]
    assert isinstance(placed.nodes[0], Node)


CPUS = DEVICES[:2]


def graph_of(text: str) -> Graph:
    return parse_graph(text)


def test_names_inside_of_names() -> None:
    def inside(inner: str, outer: str) -> str:
        return str(Device.parse(inner).inside(Device.parse(outer)))

    assert inside("cpu:1", "/job:worker/task:1") == "/job:worker/task:1/cpu:1"
    assert inside("cpu", "cpu:1") == "cpu:1" and inside("gpu", "cpu:1") == "gpu"
    assert inside("/task:2", "/job:ps/gpu:1") == "/job:ps/task:2/gpu:1"
    assert inside("/job:ps", "/job:worker/task:1") == "/job:ps"


def test_constraints_that_both_hold() -> None:
    gpu = Device.parse("gpu")
    assert gpu.meet(Device.parse("/job:a")) == Device.parse("/job:a/gpu")
    assert gpu.meet(None) is gpu and gpu.meet(CPU0) is None


def test_the_nearest_devices() -> None:
    def names(constraint: str) -> list[str]:
        return [str(device) for device in nearest(Device.parse(constraint), DEVICES)]

    assert names("gpu:7") == ["gpu:0", "gpu:1"] and names("/job:ps/cpu:1") == ["cpu:1"]
    assert len(nearest(Device.parse("/job:ps"), DEVICES)) == len(DEVICES)


def test_soft_placement_says_what_it_does_not_keep() -> None:
    placed = place(model("gpu:7"), CPUS, soft=True)
    problem, = placed.ignored
    assert str(problem) == ("W406: 'read_var' should be on gpu:7, but can only be on cpu:0 or cpu:1"
                            "\n  --> model.py:3")
    assert place(model("gpu:7"), (CPU0,), soft=True).ignored[0].code == "W406"
    assert not place(model("cpu:1"), CPUS, soft=True).ignored


def test_where_a_variable_lives_is_a_constraint() -> None:
    graph = model()
    graph.homes["w"] = Device.parse("cpu:1")
    placed = place(resolve_state(graph), CPUS)
    assert placed.graph.homes == {"w": Device.parse("cpu:1")}
    assert homes(placed.graph)["neg"] == "cpu:1"
    assert placed.why["neg"] == "with w"
    graph.homes["w"] = Device.parse("cpu:5")
    with pytest.raises(Error, match="variable 'w' must be on cpu:5, which does not exist"):
        place(resolve_state(graph), CPUS)


def test_a_new_value_that_is_made_elsewhere_is_sent_home() -> None:
    graph = resolve_state(model(second="cpu:1"))
    graph.homes["w"] = CPU0
    placed = place(graph, CPUS).graph
    assert homes(placed)["neg"] == "cpu:1" and placed.homes == {"w": CPU0}


def test_assignments_that_contradict_each_other() -> None:
    graph = model("cpu:0", second="cpu:1")
    b = Builder(graph, OPS, share=False, fold=False)
    b.device, b.locs = CPU0, (Loc("model.py", 9),)
    b.emit(OPS["assign_var"], [graph.results[0]], {"var": "w", "type": T})
    with pytest.raises(Error, match="'w' is assigned on cpu:0, but lives on cpu:1") as caught:
        resolve_state(graph)
    assert [loc.line for loc in caught.value.locs] == [9, 4]


def test_homes_are_text() -> None:
    graph = model()
    graph.homes["w"] = Device.parse("/job:ps/cpu:1")
    text = print_graph(resolve_state(graph))
    assert 'var "w": f64[3] in %w out 1 on /job:ps/cpu:1' in text
    again = parse_graph(text)
    assert again.homes == graph.homes and print_graph(again) == text
    again.homes["x"] = CPU0
    with pytest.raises(Error, match="'x' has a device, but is no variable"):
        verify_graph(again)


def test_functions_of_the_host_need_a_cpu() -> None:
    graph = graph_of("""
        graph @g(%x: f64[3,3]) -> (%0: f64[3,3]) {
          %0: f64[3,3] = inv %x
          return %0
        }""")
    assert homes(place(graph, DEVICES[::-1]).graph) == {"inv": "cpu:1"}
    with pytest.raises(Error, match=r"np\.linalg\.inv runs on cpu devices only"):
        place(graph, DEVICES[2:])
    graph.nodes[0].device = Device.parse("gpu:0")
    with pytest.raises(Error, match=r"must be on gpu:0, where np\.linalg\.inv cannot run"):
        place(graph, DEVICES)
    with pytest.raises(Error, match="runs on cpu devices only"):
        graph.nodes[0].device = None
        place(graph, DEVICES[2:], soft=True)


BRANCHES = """
    graph @g(%x: f32[16,256], %y: f32[16,256], %w: f32[256,256]) -> (%s: f32[16,256]) {
      %a: f32[16,256] = contract %x, %w {dims = "mk,kn->mn"}
      %b: f32[16,256] = contract %y, %w {dims = "mk,kn->mn"}
      %c: f32[16,256] = tanh %a
      %d: f32[16,256] = tanh %b
      %e: f32[16,256] = contract %c, %w {dims = "mk,kn->mn"}
      %f: f32[16,256] = contract %d, %w {dims = "mk,kn->mn"}
      %s: f32[16,256] = add %e, %f
      return %s
    }"""


def test_branches_run_side_by_side() -> None:
    placed = place(graph_of(BRANCHES), CPUS)
    assert homes(placed.graph) == {"a": "cpu:0", "b": "cpu:1", "c": "cpu:0", "d": "cpu:1",
                                   "e": "cpu:0", "f": "cpu:1", "s": "cpu:0"}
    assert placed.seconds < 0.7 * placed.alone
    assert placed.why["b"].startswith("finished first there: ")
    assert placed.why["a"] == placed.why["c"]  # one unit


def test_a_kernel_is_in_parts_where_it_waits_for_what_may_be_elsewhere() -> None:
    """The sum is fused with a product of either side, neither of which waits for the other."""
    graph = graph_of(BRANCHES)
    units = units_of(graph, groups_of(graph, CPUS), Costs())
    found = sorted("".join(node.name for node in unit.nodes) for unit in units)
    assert found == ["ac", "bd", "e", "f", "s"]


def test_fusion_for_a_trial_keeps_apart_what_may_not_be_together() -> None:
    graph = graph_of(BRANCHES)
    graph.nodes[2].device = Device.parse("cpu:1")
    units = units_of(graph, groups_of(graph, CPUS), Costs())
    assert ("c",) in [tuple(node.name for node in unit.nodes) for unit in units]
    placed = place(graph, CPUS)
    assert homes(placed.graph)["c"] == "cpu:1" and placed.why["c"] == "constraint cpu:1"


def test_fusion_never_joins_devices() -> None:
    graph = graph_of("""
        graph @g(%x: f32[8]) -> (%c: f32[8]) {
          %a: f32[8] = tanh %x on cpu:0
          %b: f32[8] = neg %a on cpu:1
          %c: f32[8] = add %b, %a on cpu:1
          return %c
        }""")
    assert [str(node.device) for node in fuse(graph).nodes] == ["cpu:0", "cpu:1"]


def test_small_steps_stay_on_one_device() -> None:
    graph = graph_of(BRANCHES.replace("256", "8"))
    placed = place(graph, CPUS)
    assert len(set(homes(placed.graph).values())) == 1
    assert placed.why["a"].startswith("one device: ")
    assert placed.report().startswith(f"a step of {1e6 * placed.seconds:.4g} us on 1 device, ")


def test_one_device_has_all_workers() -> None:
    """What is shared out well needs no second device, whose workers it would lose."""
    graph = graph_of(BRANCHES.replace("[16,", "[2048,"))
    assert len(set(homes(place(graph, CPUS, workers=1).graph).values())) == 2
    assert len(set(homes(place(graph, CPUS, workers=2).graph).values())) == 1


def test_views_go_with_their_readers() -> None:
    graph = graph_of("""
        graph @g(%x: f32[4,8]) -> (%b: f32[4,8]) {
          %a: f32[8,4] = neg %x
          %v: f32[4,8] = transpose %a {perm = (1, 0)}
          %b: f32[4,8] = tanh %v on cpu:1
          return %b
        }""".replace("%a: f32[8,4] = neg %x", "%n: f32[4,8] = neg %x on cpu:0\n"
                     "          %a: f32[8,4] = transpose %n {perm = (1, 0)}"))
    assert homes(place(graph, CPUS).graph) == {"n": "cpu:0", "a": "cpu:1", "v": "cpu:1",
                                               "b": "cpu:1"}


def test_a_report_has_a_line_for_each_run_of_units() -> None:
    placed = place(graph_of(BRANCHES), CPUS)
    assert re.fullmatch(r"""a step of \d+\.\d+ us on 2 devices, \d+\.\d+ us on one
  cpu:0    \d+\.\d+ us  c and 1 more: finished first there: \d+\.\d+ us against \d+\.\d+ us on cpu:1
  cpu:1    \d+\.\d+ us  d and 1 more: finished first there: .*
  cpu:0    .*
  cpu:1    .*
  cpu:0 +\d.* us  s: .*""", placed.report())


def test_costs_are_text() -> None:
    costs = Costs(sizes={"b": 32}).measuring({"cpu*1 tanh 12ab": 3e-6})
    assert Costs.from_json(costs.to_json()) == costs
    for text in ("", "{}", '{"format": 2}', costs.to_json().replace('"call"', '"cull"')):
        with pytest.raises(Error, match="W403: not a cost model"):
            Costs.from_json(text)


def test_what_was_measured_goes_before_estimates() -> None:
    graph = graph_of(BRANCHES)
    costs = Costs()
    units = units_of(graph, groups_of(graph, CPUS), costs)
    known = {f"cpu*1 {costs.signature(unit.form)}": 1e-6 for unit in units}
    assert len(known) == 3  # equal units of other names are one
    placed = place(graph, CPUS, costs.measuring(known))
    assert placed.seconds == pytest.approx(len(units) * 1e-6 + costs.call)


def test_estimates_count_rounds_and_sizes() -> None:
    def seconds(text: str, **sizes: int) -> float:
        graph = graph_of(text)
        costs = Costs(sizes=sizes)
        return sum(costs.seconds(unit.form, CPU0) for unit in units_of(
            graph, groups_of(graph, (CPU0,)), costs))

    symbolic = BRANCHES.replace("[16,", "[b,")
    assert seconds(symbolic, b=16) == seconds(BRANCHES)
    assert seconds(symbolic, b=160) > 5 * seconds(BRANCHES)
    loop = """
        graph @g(%x: f32[256,256]) -> (%y: f32[256,256]) {
          %y: f32[256,256] = scan %x {carried = 1, scanned = 0, length = N, reverse = false,
            index = "i", body = graph @body(%c: f32[256,256]) -> (%d: f32[256,256]) {
              %d: f32[256,256] = contract %c, %c {dims = "mk,kn->mn"}
              return %d
            }}
          return %y
        }"""
    assert seconds(loop.replace("N", "40")) == pytest.approx(4 * seconds(loop.replace("N", "10")))


@pytest.mark.parametrize(("text", "device"), [
    ("/job:localhost/replica:0/task:0/device:CPU:1", "cpu:1"), ("/job:localhost/gpu:0", "gpu:0"),
    ("/replica:0/device:GPU:2", "gpu:2"), ("/job:worker/replica:0/task:3/cpu:1",
                                           "/job:worker/task:3/cpu:1")])
def test_names_as_tensorflow_writes_them(text: str, device: str) -> None:
    assert str(Device.parse(text)) == device
