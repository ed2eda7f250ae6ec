"""The models of examples/models: each first step is that of plain float64 loops; each runs."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support import models

import weft
from weft.frontend.cli.main import main

pytest.importorskip("sklearn", reason="the examples extra is not installed")

FOLDER = Path(__file__).parents[2] / "examples" / "models"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
# The losses of a model by the names of their references, where there are several.
SEVERAL = {"gan": {"gan_critic": "critic_loss", "gan_generator": "generator_loss"},
           "words": {name: name for name in ("negative_sampling", "sampled_softmax")}}
LOSSES = [(name, *pair) for name in NAMES for pair in SEVERAL.get(name, {name: "loss"}).items()]


class Drawn:
    """A generator whose numbers are known."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def choice(self, *_: Any, **__: Any) -> Any:
        return self.numbers

    random = choice


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def batch(name: str, model: Any) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """First parameters, the arguments of the loss, and what its reference takes of them."""
    rng = np.random.default_rng(3)
    if name in ("convnet", "resnet"):
        x, y, *_ = model.data("small")
        return model.init(rng), (x[:6], y[:6], model.statistics()), (x[:6], y[:6])
    if name == "gpt":
        train, _, characters = model.data()
        ids = train[np.arange(0, 100, 50)[:, None] + np.arange(9)]
        return model.init(rng, len(characters), "small"), (ids, 2), (ids, 2)
    if name == "lstm":
        train, _, characters = model.data()
        ids = train[np.arange(0, 150, 50) + np.arange(6)[:, None]]
        state = rng.normal(size=(2, 3, 8)).astype("f4")
        return model.init(rng, len(characters), 8), (ids, (*state,)), (ids, state)
    if name in SEVERAL["gan"]:
        noise = rng.normal(size=(5, model.LATENT)).astype("f4")
        given = (noise,) if name == "gan_generator" else (model.data("small")[0][:5], noise)
        return model.init(rng), given, given
    if name in SEVERAL["words"]:
        words, near = model.data("small")[0][:9].T
        numbers = (rng.integers(0, 60, (9, 8)) if name == "negative_sampling" else
                   rng.random(model.SAMPLED))
        args = words, near, Drawn(numbers), np.ones(60) / 60
        return model.init(rng, 60), args, (words, near, numbers)
    if name == "vae":
        x = model.data("small")[0][:5]
        noise = rng.normal(size=(5, model.LATENT)).astype("f4")
        return model.init(rng), (x, noise), (x, noise)
    if name == "factorisation":
        x, seen = model.data("small")
        return model.init(rng, 9, 64), (x[:9], seen[:9]), (x[:9], seen[:9])
    if name == "q_learning":
        cells, moves, following = rng.integers(0, (36, 4, 36), (20, 3)).T
        ends = following % 5 == 0
        given = (model.init(rng), cells, moves, ends.astype("f4"), following, ends)
        return model.init(rng), given, given
    x, y, *_ = model.data("small")
    first = model.init(rng) if name == "neural_ode" else model.init()
    return first, (x, y), (x, y)


@pytest.mark.parametrize(("file", "name", "loss"), LOSSES)
def test_the_first_step(file: str, name: str, loss: str) -> None:
    """The loss, and of each parameter the gradient at places of its own and along itself."""
    model = load(file)
    params, args, given = batch(name, model)

    def value(params: Any) -> Any:
        found = getattr(model, loss)(params, *args)
        return found[0] if isinstance(found, tuple) else found

    found, grads = weft.compile(weft.value_and_grad(value))(params)
    leaves, structure = weft.tree.flatten(weft.tree.map(lambda p: np.asarray(p, float), params))
    given = weft.tree.map(lambda x: x.astype(float) if np.result_type(x) == np.float32 else x,
                          given)

    def reference(changed: list[Any]) -> float:
        return float(getattr(models, name)(weft.tree.unflatten(structure, changed), *given))

    np.testing.assert_allclose(found, reference(leaves), rtol=1e-5)
    rng = np.random.default_rng(5)
    for at, grad in enumerate(weft.tree.leaves(grads)):
        grad = np.asarray(grad, float)
        ways = [grad / max(np.linalg.norm(grad), 1e-30)]
        for place in rng.choice(grad.size, min(3, grad.size), replace=False):
            ways.append(np.eye(1, grad.size, place).reshape(grad.shape))
        for way in ways:
            def moved(by: float, at: int = at, way: Any = way) -> float:
                return reference([*leaves[:at], leaves[at] + by * way, *leaves[at + 1:]])

            slope = (moved(1e-6) - moved(-1e-6)) / 2e-6  # small, for the sake of relu's kink
            assert abs(np.sum(grad * way) - slope) <= 1e-5 * np.linalg.norm(grad) + 1e-8, (name, at)


@pytest.mark.filterwarnings("ignore")  # of scikit-learn's fits, to so few rows
@pytest.mark.parametrize("name", NAMES)
def test_each_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Small, as a command, with its picture."""
    assert main(["demo", name, "--size", "small", "-o", str(tmp_path)]) == 0
    assert "with compiling" in capsys.readouterr().out
    assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.long
def test_adversaries_are_trained_in_turn() -> None:
    """A fetch set changes the one and leaves the other; its loss is the reference's."""
    model = load("gan")
    first, args, _ = batch("gan_critic", model)
    params = weft.tree.map(weft.Variable, first)
    graph, parts = model.build(params, 10)
    session, fed = weft.Session(graph), dict(zip(("real:0", "noise:0"), args, strict=True))
    for name, needs in (("critic", ("real:0", "noise:0")), ("generator", ("noise:0",))):
        before = weft.tree.map(lambda variable: variable.numpy().copy(), params)
        value, _ = session.run(parts[name], {key: fed[key] for key in needs})
        wide = weft.tree.map(lambda x: x.astype(float), (before, *(fed[key] for key in needs)))
        np.testing.assert_allclose(value, getattr(models, f"gan_{name}")(*wide), rtol=1e-5)
        for part in ("critic", "generator"):
            for variable, old in zip(*map(weft.tree.leaves, (params[part], before[part])),
                                     strict=True):
                assert np.array_equal(variable.numpy(), old) == (part != name)


def test_examples_are_short_and_say_what_they_are() -> None:
    for name in NAMES:
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)) and len(text.splitlines()) <= 100, name
    for _, name, _ in LOSSES:
        assert hasattr(models, name), f"{name} has no reference"


def test_a_demo_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "gtp"]) == 2
    assert "gpt" in capsys.readouterr().err


def test_what_an_example_needs_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert main(["demo", "vae"]) == 2
    assert "needs sklearn.datasets: install the examples" in capsys.readouterr().err
