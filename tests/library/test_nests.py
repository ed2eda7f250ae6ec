"""Models as dataclasses and registered classes, through transforms, loops and optimizers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import weft
from weft import nn, optim

RNG = np.random.default_rng(0)


@dataclasses.dataclass
class Dense:
    w: Any
    b: Any
    activation: str = dataclasses.field(default="tanh", metadata={"static": True})

    def __call__(self, x: Any) -> Any:
        return getattr(nn, self.activation)(nn.linear(x, self.w, self.b))


class Chain:
    """A class of one's own, whose layers are its children."""

    def __init__(self, *layers: Any) -> None:
        self.layers = layers


weft.tree.register(Chain, lambda chain: (chain.layers, ()), lambda _, layers: Chain(*layers))


def model() -> Chain:
    return Chain(Dense(RNG.normal(size=(3, 4)), np.zeros(4)),
                 Dense(RNG.normal(size=(4, 3)), np.zeros(3), "softplus"))


def loss(chain: Chain, x: Any) -> Any:
    for layer in chain.layers:
        x = layer(x)
    return np.mean(x ** 2)


def test_one_step_and_many() -> None:
    chain, x, sgd = model(), RNG.normal(size=(5, 3)), optim.SGD(0.1, momentum=0.5)
    value, grads = weft.value_and_grad(loss)(chain, x)
    assert isinstance(grads, Chain) and grads.layers[1].activation == "softplus"
    np.testing.assert_allclose(value, loss(chain, x))

    @weft.compile
    def train(chain: Any, x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            chain, state = carry
            value, grads = weft.value_and_grad(loss)(chain, x)
            return sgd.update(grads, state, chain), value

        return weft.scan(step, (chain, sgd.init(chain)), length=3)

    (trained, _), losses = train(chain, x)
    state, wanted = sgd.init(chain), []
    for _ in range(3):
        value, grads = weft.value_and_grad(loss)(chain, x)
        wanted.append(value)
        chain, state = sgd.update(grads, state, chain)
    np.testing.assert_allclose(losses, wanted, rtol=1e-10)
    for one, two in zip(weft.tree.leaves(trained), weft.tree.leaves(chain), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10)


def test_vjp_of_nests() -> None:
    chain, x = model(), RNG.normal(size=(5, 3))
    out, pull = weft.vjp(lambda chain: {"loss": loss(chain, x)}, chain)
    (found,) = pull({"loss": np.float64(1)})
    for one, two in zip(weft.tree.leaves(found), weft.tree.leaves(
            weft.grad(loss)(chain, x)), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)
    assert out["loss"] == loss(chain, x)


def test_what_does_not_match_says_so() -> None:
    chain = model()
    other = Chain(chain.layers[0], dataclasses.replace(chain.layers[1], activation="relu"))
    for wrong in (other, Chain(chain.layers[0]), [*chain.layers]):
        with pytest.raises(weft.Error, match="W102"):
            weft.tree.map(np.add, chain, wrong)
        with pytest.raises(weft.Error, match="W102"):
            optim.SGD(0.1).update(wrong, {}, chain)
