"""Training steps: a loss, its gradients and the update of all parameters.

Every framework keeps its parameters as its users do: Weft in Variables, NumPy in arrays that are
written in place, JAX in donated buffers that the step gives back, PyTorch in leaves with an
optimizer. The limit counts three products for each layer, but two for the first: nobody asks for
the gradient of the images.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import weft

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table

TITLE = "training steps"
RATES = {"sgd": 0.1, "adam": 1e-3}
BETAS = 0.9, 0.999

# Of a framework, its parameters and the arguments of a step.
Loss = Callable[..., Any]


def weft_step(framework: Framework, loss: Loss, first: list[Any], rule: str) -> Function:
    variables = [weft.Variable(array) for array in first]
    kind = {"sgd": weft.optim.SGD, "adam": weft.optim.Adam}[rule]
    optimizer = kind(RATES[rule])
    return framework.compile(lambda *batch: optimizer.minimize(
        lambda *batch: loss(framework, variables, *batch), variables, *batch))


def jax_step(framework: Framework, loss: Loss, first: list[Any], rule: str) -> Function:
    jax = importlib.import_module("jax")
    jnp, rate, (beta1, beta2) = jax.numpy, RATES[rule], BETAS
    tree = jax.tree_util.tree_map

    def update(params: Any, state: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(
            lambda params: loss(framework, params, *batch))(params)
        if rule == "sgd":
            return [p - rate * g for p, g in zip(params, grads, strict=True)], state, value
        means, squares, count = state
        count = count + 1
        means = tree(lambda m, g: beta1 * m + (1 - beta1) * g, means, grads)
        squares = tree(lambda v, g: beta2 * v + (1 - beta2) * g * g, squares, grads)
        one, two = 1 - beta1 ** count, 1 - beta2 ** count
        made = tree(lambda p, m, v: p - rate * (m / one) / (jnp.sqrt(v / two) + 1e-8),
                    params, means, squares)
        return made, (means, squares, count), value

    compiled = jax.jit(update, donate_argnums=(0, 1))
    params = [framework.array(array) for array in first]
    state: Any = () if rule == "sgd" else (
        *([jnp.zeros_like(p) for p in params] for _ in range(2)), jnp.float32(0))

    def step(*batch: Any) -> Any:
        nonlocal params, state
        params, state, value = compiled(params, state, *batch)
        return value

    return step


def torch_step(framework: Framework, loss: Loss, first: list[Any], rule: str) -> Function:
    torch = importlib.import_module("torch")
    params = [framework.array(array).requires_grad_() for array in first]
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[rule]
    optimizer = kind(params, lr=RATES[rule])
    function = framework.compile(lambda *batch: loss(framework, params, *batch))

    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        value = function(*batch)
        value.backward()
        optimizer.step()
        return value.detach()

    return step


STEPS: Mapping[str, Callable[..., Function]] = {
    "weft": weft_step, "jax": jax_step, "torch": torch_step, "torch-compiled": torch_step}


def training(name: str, loss: Loss, first: Sequence[Any], batch: tuple[Any, ...], rule: str, *,
             flop: int, moved: tuple[int, int], by_hand: Function | None = None,
             tolerance: float | None = None) -> Workload:
    """Steps of gradient descent; ``by_hand`` makes NumPy's, where there is one."""
    def made(framework: Framework) -> Function:
        if by_hand is not None and framework.name == "numpy":
            function: Function = by_hand(list(first))
            return function
        return STEPS[framework.name](framework, loss, list(first), rule)

    return Workload(name, made, batch, flop=flop, moved=moved, ready=True, checks=3,
                    tolerance=tolerance, by_numpy=by_hand is not None)


def parameters(widths: tuple[int, ...]) -> list[Any]:
    """Weights and biases of each layer (He et al., 2015)."""
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for fan_in, fan_out in pairwise(widths):
        scale = np.sqrt(2.0 / fan_in)
        made.append((rng.standard_normal((fan_in, fan_out)) * scale).astype(np.float32))
        made.append(np.zeros(fan_out, np.float32))
    return made


def perceptron_loss(framework: Framework, params: Any, images: Any, labels: Any) -> Any:
    h = images
    for weight, bias in zip(params[:-2:2], params[1:-2:2], strict=True):
        h = framework.relu(h @ weight + bias)
    return framework.cross_entropy(h @ params[-2] + params[-1], labels)


def perceptron_by_hand(first: list[Any]) -> Function:
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
            params[at] -= RATES["sgd"] * (hidden[at // 2].T @ grad)
            params[at + 1] -= RATES["sgd"] * np.sum(grad, axis=0)
            if down is not None:
                grad = down * (hidden[at // 2] > 0)
        return loss

    return step


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
    return training(f"MLP {'-'.join(map(str, widths))}, batch {batch}", perceptron_loss, first,
                    (images, labels), "sgd", flop=flop, moved=(held + images.nbytes, held),
                    by_hand=perceptron_by_hand)


def run(bench: Bench) -> list[Table]:
    works = [workload((784, 512, 512, 10), 128)]
    if not bench.quick:
        works += [workload((64, 128, 64, 10), 128), workload((64, 64, 64, 10), 32)]
    return [bench.compare(TITLE, works)]
