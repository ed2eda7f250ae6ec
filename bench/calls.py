"""Tiny calls: what a call costs when there is next to nothing to compute.

The limit is one ``ndarray.copy`` for each result: making the array, with its contents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table

TITLE = "tiny calls"


def affine(_: Framework) -> Function:
    def run(x: Any) -> Any:
        return x * 2 + 1

    return run


def three(_: Framework) -> Function:
    def run(x: Any, w: Any, b: Any) -> Any:
        return x * w + b

    return run


def pair(_: Framework) -> Function:
    def run(x: Any, y: Any) -> Any:
        return x + y, x - y

    return run


def scalar(_: Framework) -> Function:
    def run(x: Any, rate: float) -> Any:
        return x * rate

    return run


def keywords(framework: Any) -> Function:
    """Three keywords, one of them left out, and an option that is a text."""
    def scaled(x: Any, rate: Any = 1.0, shift: Any = 0.0, mode: str = "sum") -> Any:
        return x * rate + shift if mode == "sum" else x * rate - shift

    compiled = framework.compile(scaled)
    if framework.name == "jax":
        compiled = framework.jax.jit(scaled, static_argnames="mode")
    return lambda x: compiled(x, rate=2.0, mode="sum")


def closed_over(framework: Framework) -> Function:
    scale = framework.array(np.full(8, 2, np.float32))
    return framework.compile(lambda x: x * scale)


def method(framework: Framework) -> Function:
    """A method that reads its object's arrays."""
    class Model:
        def __init__(self) -> None:
            self.w = framework.array(np.full(8, 2, np.float32))

        def run(self, x: Any) -> Any:
            return x * self.w

    if framework.name == "weft":
        Model.run = weft.compile(Model.run)  # type: ignore[method-assign]
        model = Model()
        return lambda x: model.run(x)
    return framework.compile(Model().run)


def changing(framework: Framework) -> Function:
    """A method that sets an attribute of its object; jax.jit gives it back to be set."""
    class Model:
        def __init__(self) -> None:
            self.mean = framework.array(np.zeros(8, np.float32))

        def run(self, x: Any) -> Any:
            self.mean = self.mean * 0.9 + x * 0.1

    if framework.name == "weft":
        Model.run = weft.compile(Model.run)  # type: ignore[method-assign]
    model = Model()
    update = framework.compile(lambda mean, x: mean * 0.9 + x * 0.1)

    def run(x: Any) -> Any:
        if framework.name in ("weft", "numpy"):
            model.run(x)
        else:
            model.mean = update(model.mean, x)
        return model.mean

    return run


def in_place(framework: Framework) -> Function:
    """An array that the call adds to; JAX's are another one afterwards."""
    total = framework.array(np.zeros(8, np.float32))

    def add(total: Any, x: Any) -> None:
        total += x

    if framework.name == "jax":
        held, added = [total], framework.compile(lambda total, x: total + x)

        def step(x: Any) -> Any:
            held[0] = added(held[0], x)
            return held[0]

        return step
    add_to = framework.compile(add)

    def run(x: Any) -> Any:
        add_to(total, x)
        return total

    return run


def into_a_dict(framework: Framework) -> Function:
    """An item of a dict that the call sets."""
    log: dict[str, Any] = {"loss": framework.array(np.zeros(8, np.float32))}
    if framework.name in ("weft", "numpy"):
        def note(log: Any, x: Any) -> None:
            log["loss"] = x * 2

        noted = framework.compile(note)
        return lambda x: (noted(log, x), log["loss"])[1]
    doubled = framework.compile(lambda x: x * 2)

    def run(x: Any) -> Any:
        log["loss"] = doubled(x)
        return log["loss"]

    return run


def first_of(_: Framework) -> Function:
    def run(params: Any) -> Any:
        return params["layer00"]["w"] * 2 + params["layer49"]["b"]

    return run


def nest(_: Framework) -> Function:
    def run(params: Any) -> Any:
        return {layer: {name: value * 2 + 1 for name, value in held.items()}
                for layer, held in params.items()}

    return run


def read_state(framework: Framework) -> Function:
    """A layer whose weights live outside of its arguments."""
    scale, shift = (framework.array(np.full(8, value, np.float32)) for value in (2, 1))
    if framework.name == "weft":
        scale, shift = weft.Variable(scale), weft.Variable(shift)

    def run(x: Any) -> Any:
        return x * scale + shift

    return framework.compile(run)


def write_state(framework: Framework) -> Function:
    """A running mean: each framework's own way to keep state from call to call."""
    first = np.zeros(8, np.float32)
    if framework.name == "weft":
        mean = weft.Variable(first)

        def assign(x: Any) -> Any:
            new = mean * 0.9 + x * 0.1
            mean.assign(new)
            return new

        return framework.compile(assign)
    state = framework.array(first)
    update = framework.compile(lambda mean, x: mean * 0.9 + x * 0.1)

    def step(x: Any) -> Any:
        nonlocal state
        state = update(state, x)
        return state

    return step


def run(bench: Bench) -> list[Table]:
    rng = np.random.default_rng(0)

    def vector() -> Any:
        return rng.standard_normal(8).astype(np.float32)

    params = {f"layer{at:02}": {"b": vector(), "w": vector()} for at in range(50)}
    works = [
        Workload("x * 2 + 1, 8 floats", affine, (vector(),), must=1.0, call_bound=True),
        Workload("x * w + b, 3 arguments", three, (vector(), vector(), vector()), call_bound=True),
        Workload("x + y, x - y: 2 results", pair, (vector(), vector()), call_bound=True),
        Workload("x * rate, a Python float", scalar, (vector(), 0.5), call_bound=True),
        Workload("keywords, a default, a static", keywords, (vector(),), ready=True,
                 call_bound=True),
        Workload("closes over an array", closed_over, (vector(),), ready=True, call_bound=True),
        Workload("method", method, (vector(),), ready=True, call_bound=True),
        Workload("method that sets an attribute", changing, (vector(),), ready=True, checks=3,
                 call_bound=True),
        Workload("total += x, an argument", in_place, (vector(),), ready=True, checks=3,
                 call_bound=True),
        Workload("log['loss'] = x * 2", into_a_dict, (vector(),), ready=True, checks=3,
                 call_bound=True),
        Workload("nested dict of 100 leaves in", first_of, (params,), call_bound=True),
        Workload("nested dict of 100 leaves in and out", nest, (params,), call_bound=True),
        Workload("reads two Variables", read_state, (vector(),), ready=True, call_bound=True),
        Workload("updates a Variable", write_state, (vector(),), ready=True, checks=3,
                 call_bound=True),
    ]
    return [bench.compare(TITLE, works)]
