"""Control flow whose bodies are partitions: what is asked of the executor, round by round.

A driver is a generator. It yields a body with the values of its parameters, and is sent the
results; what it returns is what its node gives. So a loop over devices holds no thread while its
body runs, and reads like the loop that it is (``ir/ops/control/region`` says what the bodies take):

    while at != limit and (yield test, state)[0]:
        state = yield body, state
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Node, control_of
from ...ir.indices.walk import evaluate
from ...ir.ops.control.region import Branching, Looping
from ..state import Array
from .frames import Driver, Frames, size_array


def driver(
    node: Node, sizes: Sequence[str], bodies: Mapping[str, tuple[Frames, Sequence[str]]]
) -> Callable[[Sequence[Array]], Driver]:
    """What starts the driver of a node. Its arguments are the node's operands, then an array for
    each of ``sizes``; ``bodies`` have the sizes that they are told after their own parameters."""
    control = control_of(node)
    count = len(node.inputs)

    def told(args: Sequence[Array], body: str, round_: int = 0) -> list[Array]:
        known = dict(zip(sizes, args[count:], strict=True))
        if isinstance(control, Looping):
            known[control.index] = size_array(round_)
        return [known[name] for name in bodies[body][1]]

    if isinstance(control, Branching):
        def choose(args: Sequence[Array]) -> Driver:
            body = "then" if args[0] else "other"
            return (yield bodies[body][0], [*args[1:count], *told(args, body)])

        return choose
    assert isinstance(control, Looping), "only branches and loops have bodies of their own"
    return lambda args: _loop(node, control, args[:count], _dims(sizes, args[count:]),
                              lambda body, at: (bodies[body][0], told(args, body, at)))


def _dims(sizes: Sequence[str], arrays: Sequence[Array]) -> dict[str, int]:
    return {name: array.shape[0] for name, array in zip(sizes, arrays, strict=True)}


def _loop(
    node: Node, control: Looping, operands: Sequence[Array], dims: Mapping[str, int],
    body_of: Callable[[str, int], tuple[Frames, list[Array]]],
) -> Driver:
    carried, first = control.carried, control.carried + control.scanned
    state = list(operands[:carried])
    rows, rest = operands[carried:first], operands[first:]
    count = -1 if control.count is None else evaluate(control.count, dims)
    stacked = [_stack(value.type, dims) for value in node.results[carried:]]
    at = 0
    while at != count:
        place = count - 1 - at if control.reverse else at
        given = [*state, *(row[place, ...] for row in rows), *rest]
        if control.test is not None:
            test, sizes = body_of("test", at)
            (more,) = yield test, [*given, *sizes]
            if not more:
                break
        body, sizes = body_of("body", at)
        results = yield body, [*given, *sizes]
        state = list(results[:carried])
        for array, row in zip(stacked, results[carried:], strict=True):
            array[place, ...] = row
        at += 1
    return [*state, *stacked]


def _stack(type_: Any, dims: Mapping[str, int]) -> Array:
    return np.zeros([evaluate(dim, dims) for dim in type_.shape], type_.dtype.numpy)
