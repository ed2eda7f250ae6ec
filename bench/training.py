"""Training steps: a multilayer perceptron, its gradients and the update of its parameters.

Every framework keeps its parameters as its users do: Weft in Variables, NumPy in arrays that are
written in place, JAX in donated buffers that the step gives back, PyTorch in leaves with an SGD
optimizer. The limit counts three products for each layer, but two for the first: nobody asks for
the gradient of the images.
"""

from __future__ import annotations

import importlib
from itertools import pairwise
from typing import Any

import numpy as np

import weft

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table

TITLE = "training steps"
RATE = 0.1


def parameters(widths: tuple[int, ...]) -> list[Any]:
    """Weights and biases of each layer (He et al., 2015)."""
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for fan_in, fan_out in pairwise(widths):
        scale = np.sqrt(2.0 / fan_in)
        made.append((rng.standard_normal((fan_in, fan_out)) * scale).astype(np.float32))
        made.append(np.zeros(fan_out, np.float32))
    return made


def loss_of(framework: Framework, params: Any, images: Any, labels: Any) -> Any:
    h = images
    for weight, bias in zip(params[:-2:2], params[1:-2:2], strict=True):
        z = h @ weight + bias
        h = framework.np.relu(z) if "torch" in framework.name else framework.np.maximum(z, 0)
    return framework.cross_entropy(h @ params[-2] + params[-1], labels)


def weft_step(framework: Framework, first: list[Any]) -> Function:
    variables = [weft.Variable(array) for array in first]
    optimizer = weft.optim.SGD(RATE)

    def step(images: Any, labels: Any) -> Any:
        return optimizer.minimize(
            lambda images, labels: loss_of(framework, variables, images, labels),
            variables, images, labels)

    return framework.compile(step)


def numpy_step(_: Framework, first: list[Any]) -> Function:
    """Back-propagation by hand."""
    params = [array.copy() for array in first]

    def step(images: Any, labels: Any) -> Any:
        hidden = [images]
        for weight, bias in zip(params[:-2:2], params[1:-2:2], strict=True):
            hidden.append(np.maximum(hidden[-1] @ weight + bias, 0))
        logits = hidden[-1] @ params[-2] + params[-1]
        shifted = logits - np.max(logits, axis=1, keepdims=True)
        powers = np.exp(shifted)
        sums = np.sum(powers, axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = np.mean(np.log(sums[:, 0]) - shifted[rows, labels])
        grad = powers / sums
        grad[rows, labels] -= 1
        grad /= np.float32(len(labels))
        for at in range(len(params) - 2, -1, -2):
            down = grad @ params[at].T if at else None
            params[at] -= RATE * (hidden[at // 2].T @ grad)
            params[at + 1] -= RATE * np.sum(grad, axis=0)
            if down is not None:
                grad = down * (hidden[at // 2] > 0)
        return loss

    return step


def jax_step(framework: Framework, first: list[Any]) -> Function:
    jax = importlib.import_module("jax")

    def update(params: Any, images: Any, labels: Any) -> Any:
        loss, grads = jax.value_and_grad(
            lambda params: loss_of(framework, params, images, labels))(params)
        return [p - RATE * g for p, g in zip(params, grads, strict=True)], loss

    compiled = jax.jit(update, donate_argnums=0)
    params = [framework.array(array) for array in first]

    def step(images: Any, labels: Any) -> Any:
        nonlocal params
        params, loss = compiled(params, images, labels)
        return loss

    return step


def torch_step(framework: Framework, first: list[Any]) -> Function:
    torch = importlib.import_module("torch")
    params = [framework.array(array).requires_grad_() for array in first]
    optimizer = torch.optim.SGD(params, lr=RATE)
    loss_function = framework.compile(
        lambda images, labels: loss_of(framework, params, images, labels))

    def step(images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_function(images, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


STEPS = {"weft": weft_step, "numpy": numpy_step, "jax": jax_step, "torch": torch_step,
         "torch-compiled": torch_step}


def workload(widths: tuple[int, ...], batch: int) -> Workload:
    """A training step for images of ``widths[0]`` pixels and ``widths[-1]`` classes."""
    rng = np.random.default_rng(1)
    images = rng.standard_normal((batch, widths[0])).astype(np.float32)
    labels = rng.integers(0, widths[-1], batch)
    first = parameters(widths)
    products = [a * b for a, b in pairwise(widths)]
    flop = 2 * batch * (3 * sum(products) - products[0])
    # Parameters are read and written once, images are read.
    held = sum(array.nbytes for array in first)
    return Workload(f"MLP {'-'.join(map(str, widths))}, batch {batch}",
                    lambda framework: STEPS[framework.name](framework, first), (images, labels),
                    flop=flop, moved=(held + images.nbytes, held), ready=True, checks=3)


def run(bench: Bench) -> list[Table]:
    works = [workload((784, 512, 512, 10), 128)]
    if not bench.quick:
        works += [workload((64, 128, 64, 10), 128), workload((64, 64, 64, 10), 32)]
    return [bench.compare(TITLE, works)]
