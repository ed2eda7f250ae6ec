"""Kernels on a GPU beside PyTorch's, with values that lie there: seconds, and ratios."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from weft.codegen.gpu.source import emit_triton
from weft.frontend.engine.building.gpu import gpu_device
from weft.ir.indices.walk import evaluate
from weft.runtime.device.memory import ALIGNMENT
from weft.runtime.device.walk import Loaded, Walk

ROUNDS = 20


def kernels(function: Callable[..., Any], *args: Any) -> tuple[float, float, Any, str]:
    """Seconds of one run on the device, of building, and its result."""
    began = time.perf_counter()
    plan = weft.compile(function, device="gpu:0").lower(*args).stages.plan
    device = gpu_device("gpu:0")
    images = {name: emit_triton(kernel) for name, kernel in plan.kernels.items()}
    loaded = device.load(list(images.values()))
    built = time.perf_counter() - began
    known = {name: Loaded(image, kernel) for (name, image), kernel in zip(
        images.items(), loaded, strict=True)}
    stream = device.stream()
    memory = {}
    for slot, array in zip(plan.params, args, strict=False):
        memory[slot.name] = device.allocate(array.nbytes)
        stream.upload(array, memory[slot.name].address)
    for slot in plan.results:
        memory[slot.name] = device.allocate(evaluate(slot.type.nbytes, {}))
    arena, status = device.allocate(evaluate(plan.arena, {})), device.allocate(ALIGNMENT)
    walk = Walk(plan, known, stream, {}, {name: each.address for name, each in memory.items()},
                arena.address, status.address)
    walk.run()
    seconds = timed(walk.begin, stream.synchronise)
    slot = plan.results[0]
    result = np.empty(slot.type.shape, slot.type.dtype.numpy)
    stream.download(memory[slot.name].address, result)
    return seconds, built, result, f"{len(plan.kernels)} kernels"


def timed(begin: Callable[[], object], wait: Callable[[], object]) -> float:
    """Seconds of one of many runs that are begun one after the other; the median of five."""
    samples = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(ROUNDS):
            begin()
        wait()
        samples.append((time.perf_counter() - began) / ROUNDS)
    return sorted(samples)[2]


def peer(function: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """Seconds of one run of PyTorch's, and its result."""
    import torch

    tensors = [torch.from_numpy(np.asarray(a)).cuda() for a in args]
    for _ in range(3):
        result = function(*tensors)
    torch.cuda.synchronize()
    seconds = timed(lambda: function(*tensors), torch.cuda.synchronize)
    return seconds, result.float().cpu().numpy()


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.T * np.float32(0.125)) @ v


def training(hidden: int = 1024, batch: int = 1024) -> None:
    """A step of a network of three layers, with Adam: seconds with PyTorch's beside them."""
    import torch

    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, 784)).astype(np.float32)
    y = rng.integers(0, 10, batch)
    sizes = [(784, hidden), (hidden, hidden), (hidden, 10)]
    start = [(rng.standard_normal(size) * 0.03).astype(np.float32) for size in sizes]
    weights = [weft.Variable(array, name=f"w{at}") for at, array in enumerate(start)]
    graph = weft.Graph()
    with weft.device("gpu:0"):
        adam = weft.optim.Adam(1e-3)
    with graph.as_default(), weft.device("gpu:0"):
        images = weft.placeholder("f32", (batch, 784), name="x")
        labels = weft.placeholder("i64", (batch,), name="y")
        h = np.maximum(images @ weights[0], 0)
        h = np.maximum(h @ weights[1], 0)
        loss = weft.nn.cross_entropy(h @ weights[2], labels)
        train = adam.minimize(loss, weights)
    session = weft.Session(graph, devices=("gpu:0",))
    began = time.perf_counter()
    losses = [float(session.run([loss, train], {images: x, labels: y})[0])]
    first = time.perf_counter() - began
    samples = []
    for _ in range(30):
        began = time.perf_counter()
        losses.append(float(session.run([loss, train], {images: x, labels: y})[0]))
        samples.append(time.perf_counter() - began)
    params = [torch.nn.Parameter(torch.from_numpy(array.copy()).cuda()) for array in start]
    optimizer = torch.optim.Adam(params, 1e-3)
    others, theirs = [], []
    for _ in range(31):
        began = time.perf_counter()
        h2 = torch.relu(torch.from_numpy(x).cuda() @ params[0])
        value = torch.nn.functional.cross_entropy(
            torch.relu(h2 @ params[1]) @ params[2], torch.from_numpy(y).cuda())
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        theirs.append(float(value))
        others.append(time.perf_counter() - began)
    here, there = sorted(samples)[15], sorted(others)[15]
    print(f"training step      {here * 1e3:9.3f} ms  torch {there * 1e3:9.3f} ms  "
          f"ratio {there / here:6.2f}  first {first:.1f} s  losses {losses[-1]:.5f} "
          f"{theirs[-1]:.5f}")


def run_speeds() -> None:
    import torch

    rng = np.random.default_rng(0)

    def f4(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    big = f4(16384, 8192)
    rows: list[tuple[str, Any, Any, tuple[Any, ...], float, float]] = [
        ("copy", lambda x: x + np.float32(1), lambda x: x + 1, (big,), 2 * big.nbytes, 0),
        ("x*y+exp(z)", lambda x, y: x * y + np.exp(x), torch.compile(
            lambda x, y: x * y + torch.exp(x)), (big, big[::-1].copy()), 3 * big.nbytes, 0),
        ("transpose", lambda x: x.T + np.float32(0), lambda x: x.T.contiguous(), (big,),
         2 * big.nbytes, 0),
        ("sum all", lambda x: np.sum(x), torch.sum, (big,), big.nbytes, 0),
        ("sum rows", lambda x: np.sum(x, axis=1), lambda x: x.sum(1), (big,), big.nbytes, 0),
        ("sum columns", lambda x: np.sum(x, axis=0), lambda x: x.sum(0), (big,), big.nbytes, 0),
        ("softmax 8192", softmax, lambda x: torch.softmax(x, 1), (big,), 2 * big.nbytes, 0),
        ("layer norm 8192", layer_norm, lambda x: torch.nn.functional.layer_norm(x, (8192,)),
         (big,), 2 * big.nbytes, 0),
        ("softmax 1024", softmax, lambda x: torch.softmax(x, 1), (big.reshape(-1, 1024),),
         2 * big.nbytes, 0),
        ("softmax 128", softmax, lambda x: torch.softmax(x, 1), (big.reshape(-1, 128),),
         2 * big.nbytes, 0),
        ("max rows", lambda x: np.max(x, axis=1), lambda x: x.max(1).values, (big,), big.nbytes, 0),
        ("sum rows of 64", lambda x: np.sum(x, axis=1), lambda x: x.sum(1), (big.reshape(-1, 64),),
         big.nbytes, 0),
        ("sum few rows", lambda x: np.sum(x, axis=1), lambda x: x.sum(1), (big.reshape(64, -1),),
         big.nbytes, 0),
        ("cumsum rows", lambda x: np.cumsum(x, axis=1), lambda x: torch.cumsum(x, 1), (big,),
         2 * big.nbytes, 0),
        ("f32 4096^3", lambda x, y: x @ y, lambda x, y: x @ y, (f4(4096, 4096), f4(4096, 4096)),
         0, 2 * 4096.0**3),
        ("f32 512^3", lambda x, y: x @ y, lambda x, y: x @ y, (f4(512, 512), f4(512, 512)),
         0, 2 * 512.0**3),
        ("attention 4096x64", attention, lambda q, k, v: torch.softmax(
            q @ k.T * 0.125, 1) @ v, (f4(4096, 64), f4(4096, 64), f4(4096, 64)), 0,
         4 * 4096.0**2 * 64),
        ("matvec", lambda x, y: x @ y, lambda x, y: x @ y, (big, f4(8192)), big.nbytes, 0),
    ]
    for name, ours, theirs, args, size, flops in rows:
        try:
            there, want = peer(theirs, *args)
            here, built, got, what = kernels(ours, *args)
            near = np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)
            rate = (f"{size / here / 1e12:6.2f} TB/s, theirs {size / there / 1e12:6.2f}" if size
                    else f"{flops / here / 1e12:6.2f} TF/s, theirs {flops / there / 1e12:6.2f}")
            print(f"{name:<18} {here * 1e3:9.3f} ms  torch {there * 1e3:9.3f} ms  "
                  f"ratio {there / here:6.2f}  {rate}  off {near:.1e}  {what}, built {built:.1f} s",
                  flush=True)
        except Exception as problem:
            print(f"{name:<18} {type(problem).__name__}: {str(problem)[:300]}", flush=True)
    training()
