"""``weft demo``: train a digit classifier on real images, from data to exported artifact.

The images are the UCI handwritten digits (1,797 of 8 x 8 pixels) that scikit-learn ships. The
model and its training step are plain NumPy code; the step, gradient and Adam update included, is
one native program.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.record import record
from ...runtime.storage.checkpoint import save
from ..face.compile import compile as compile_function
from ..interchange.ahead import export
from ..library import nn, optim
from ..tracing.arrays.variable import Variable
from . import pictures

Array = np.ndarray[Any, Any]

BATCH = 128
WIDTHS = (64, 256, 128, 10)
RATE = 2e-3


@record(frozen=True)
class Digits:
    """Images as rows of 64 float32 in [0, 1], labels as int64; one fifth is held out."""

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array


def load_digits(seed: int = 0) -> Digits:
    """The UCI digits, shuffled and split. Raises W404 when scikit-learn is not installed."""
    _need("sklearn", "rich", "matplotlib")
    from sklearn.datasets import load_digits as load

    images, labels = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    images = (images[order] / 16.0).astype(np.float32)
    labels = labels[order].astype(np.int64)
    held = len(images) // 5
    return Digits(images[held:], labels[held:], images[:held], labels[:held])


def _need(*modules: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise error("W404", f"the demo needs {', '.join(missing)}",
                    hint="install the examples: pip install 'weft[examples]'")


def make_variables(seed: int = 0) -> list[Variable]:
    """Weights (He et al., 2015) and zero biases of the layers of ``WIDTHS``."""
    rng = np.random.default_rng(seed)
    variables = []
    for layer, (fan_in, fan_out) in enumerate(pairwise(WIDTHS), 1):
        scale = np.sqrt(2.0 / fan_in)
        weights = rng.standard_normal((fan_in, fan_out)) * scale
        variables.append(Variable(weights.astype(np.float32), name=f"w{layer}"))
        variables.append(Variable(np.zeros(fan_out, np.float32), name=f"b{layer}"))
    return variables


def logits(variables: list[Variable], images: Any) -> Any:
    """Scores of the ten classes for each row of ``images``."""
    h = images
    for at in range(0, len(variables) - 2, 2):
        h = nn.relu(h @ variables[at] + variables[at + 1])
    return h @ variables[-2] + variables[-1]


def make_step(variables: list[Variable], rate: Variable) -> Callable[[Array, Array], Array]:
    """The training step: one compiled program that returns the loss and updates the variables."""
    adam = optim.Adam(rate)

    def loss(images: Any, labels: Any) -> Any:
        return np.mean(nn.cross_entropy(logits(variables, images), labels))

    @compile_function
    def step(images: Any, labels: Any) -> Any:
        return adam.minimize(loss, variables, images, labels)

    return step


def shifted(images: Array, rng: np.random.Generator) -> Array:
    """Each image moved by up to one pixel, so that the model cannot learn positions by heart."""
    grid = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    moves = rng.integers(0, 3, (len(images), 2))
    rows = moves[:, 0, None] + np.arange(8)
    columns = moves[:, 1, None] + np.arange(8)
    moved = grid[np.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None, :]]
    return np.ascontiguousarray(moved.reshape(-1, 64))


@record(frozen=True)
class Training:
    """The loss and seconds of each step, and what the first one took."""

    losses: list[float]
    seconds: list[float]
    first_seconds: float


def train(
    variables: list[Variable], digits: Digits, epochs: int, seed: int, console: Any
) -> Training:
    """Adam on shifted images, with a learning rate that falls as a cosine."""
    from rich.progress import track

    rate = Variable(np.float32(RATE), name="rate", trainable=False)
    step = make_step(variables, rate)
    rng = np.random.default_rng(seed)
    losses: list[float] = []
    seconds: list[float] = []
    for epoch in track(range(epochs), "training", console=console):
        rate.assign(np.float32(RATE * 0.5 * (1 + np.cos(np.pi * epoch / epochs))))
        order = rng.permutation(len(digits.train_images))
        images = shifted(digits.train_images[order], rng)
        labels = digits.train_labels[order]
        for first in range(0, len(images) - BATCH + 1, BATCH):
            batch = images[first:first + BATCH], labels[first:first + BATCH]
            start = time.perf_counter()
            loss = step(*batch)
            seconds.append(time.perf_counter() - start)
            losses.append(float(loss))
    return Training(losses, seconds[1:], seconds[0])


def run(folder: Path, epochs: int = 200, seed: int = 0) -> float:
    """Train, print what it took, and write checkpoint, loss curve and classifier to ``folder``.

    Returns the accuracy on the held-out images.
    """
    digits = load_digits(seed)
    from rich.console import Console

    console = Console()
    variables = make_variables(seed)
    trained = train(variables, digits, epochs, seed, console)
    classify = compile_function(_named(variables))
    accuracy = float(np.mean(classify(digits.test_images) == digits.test_labels))
    folder.mkdir(parents=True, exist_ok=True)
    save(folder / "digits.safetensors", variables, step=len(trained.losses))
    pictures.draw({"losses": trained.losses}, folder / "loss.png",
                  f"UCI digits, {'-'.join(map(str, WIDTHS))}")
    artifact = export(classify, "f32[1,64]", path=folder / "classifier")
    console.print(f"first step, with trace and compile  {1e3 * trained.first_seconds:.0f} ms")
    console.print(f"later steps, median                 {1e6 * np.median(trained.seconds):.0f} us")
    console.print(f"accuracy on {len(digits.test_labels)} held-out images  {100 * accuracy:.1f} %")
    for path in (folder / "digits.safetensors", folder / "loss.png", artifact):
        console.print(f"wrote {path}")
    return accuracy


def _named(variables: list[Variable]) -> Callable[[Any], Any]:
    def classify(images: Any) -> Any:
        return np.argmax(logits(variables, images), axis=1)

    return classify
