"""Programs that once took much of the stack, run by a thread with little of it.

    python small_stacks.py compiled 128     compiled by the main thread, called by a small one
    python small_stacks.py cold 256         all of it by a small thread
    python small_stacks.py main 0           by the main thread, whatever its stack is

Results are NumPy's. ``done`` is the last line; a stack that is too small ends the process.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import weft

Case = tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]
DTYPES = ("f8", "f4", "i8", "i4", "i2", "u1", "?", "f2")


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmaxes(x: Any) -> Any:
    """Several rows of one kernel are kept."""
    powers = [np.exp(x * scale) for scale in range(1, 13)]
    return [each / each.sum(axis=1, keepdims=True) for each in powers]


def turned(*arrays: Any) -> Any:
    return arrays[0] + sum(array.T * 2 for array in arrays[1:])


def reductions(x: Any) -> Any:
    return (x.sum(0), x.sum(1), x.sum(), x.mean(0), x.std(0), x.max(0), x.argmin(1), x.var(1),
            [np.sin(x * scale).sum(0) for scale in range(12)])


def scans(x: Any) -> Any:
    return np.cumsum(x, 0), np.cumsum(x, 1), np.maximum.accumulate(x, 1), np.cumprod(x / 3, 0)


def sorts(x: Any) -> Any:
    return np.sort(x, axis=1), np.argsort(x, axis=1, kind="stable"), np.sort(x, axis=0)


def ranks(x: Any) -> Any:
    return np.median(x), np.quantile(x, 0.3), np.partition(x, 7)[7], np.sort(x)


def products(a: Any, b: Any) -> Any:
    return a @ b, a.T @ b, np.tanh(a @ b.T)


def loop(x: Any) -> Any:
    count = 0
    while x.sum() < 1e6:
        x = x * 2 if x[0] > 3 else x + 1
        count += 1
    return x, count


def gradient(w: Any, x: Any) -> Any:
    return weft.grad(lambda w: np.sum(np.tanh(x @ w) ** 2))(w)


def plain_gradient(w: Any, x: Any) -> Any:
    y = np.tanh(x @ w)
    return x.T @ (2 * y * (1 - y * y))


def long_list(values: Any) -> Any:
    return np.array(values).sum() + values[7]


def of_dict(arrays: Any) -> Any:
    return np.stack(list(arrays.values())).sum(axis=0)


def pairs(*numbers: float) -> Any:
    return [a * b for a in numbers for b in numbers]


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    rows, square = rng.random((40, 4000)), rng.random((300, 300))
    tall = rng.random((2000, 200))
    yield "softmax", softmax, softmax, (rows,)
    yield "softmax32", softmax, softmax, (rows.astype("f4"),)
    yield "softmaxes", softmaxes, softmaxes, (rows,)
    yield "turned", turned, turned, tuple(square + n for n in range(9))
    yield "turned_bytes", turned, turned, tuple(
        (100 * square).astype("i1") + np.int8(n) for n in range(3))
    yield "reductions", reductions, reductions, (tall,)
    yield "reductions32", reductions, reductions, (tall.astype("f4"),)
    yield "scans", scans, scans, (square,)
    yield "loop", loop, loop, (np.arange(5.0),)
    yield "gradient", gradient, plain_gradient, (rng.random((40, 30)), rng.random((50, 40)))
    yield "pairs", pairs, pairs, tuple(rng.random(24).tolist())
    yield "ranks", ranks, ranks, (rng.random(200_000),)
    yield "list", long_list, long_list, (rng.random(3000).tolist(),)
    yield "dict", of_dict, of_dict, ({f"a{n}": rng.random(30) for n in range(600)},)
    for dtype in DTYPES:
        values = (rows * 200 - 3).astype(dtype)
        yield f"sorts_{dtype}", sorts, sorts, (values,)
        yield f"ranks_{dtype}", np.sort, np.sort, (np.tile(values.reshape(-1), 6),)
    for dtype in ("f8", "f4", "c16", "i4"):
        yield f"products_{dtype}", products, products, tuple(
            (square * scale).astype(dtype) for scale in (1, 3))


def sessions() -> None:
    """A graph with a variable, and what is loaded of an export."""
    total = weft.Variable(np.zeros(3000), name="total")
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (40, 3000), name="x")
        step = total.assign_add(softmax(x).sum(axis=0))
    with weft.Session(graph) as session:
        values = np.random.default_rng(1).random((40, 3000))
        for _ in range(3):
            _, found = session.run([step, total], {x: values})
        np.testing.assert_allclose(found, 3 * softmax(values).sum(axis=0))


def agree(found: Any, wanted: Any, name: str) -> None:
    one, other = weft.tree.flatten(found)[0], weft.tree.flatten(wanted)[0]
    assert len(one) == len(other), name
    for a, b in zip(one, other, strict=True):
        tolerance = 2e-2 if np.asarray(b).dtype == np.float16 else 2e-4
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


def exported(folder: Path) -> list[tuple[Any, Any, tuple[Any, ...]]]:
    found = []
    for name, function, plain, args in cases():
        if name in ("softmaxes", "turned", "dict", "sorts_f8"):
            weft.export(function, *args, path=folder / name)
            found.append((weft.load(folder / name), plain, args))
    return found


def in_thread(kilobytes: int, work: Callable[[], None]) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threading.stack_size(kilobytes << 10)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    threading.stack_size(0)
    if failed:
        raise failed[0]


def main(way: str, kilobytes: int) -> None:
    compiled = [(name, weft.compile(function), plain(*args), args)
                for name, function, plain, args in cases()]

    def call() -> None:
        for name, function, wanted, args in compiled:
            for _ in range(3):
                found = function(*args)
            agree(found, wanted, name)
            print(name, flush=True)
        sessions()

    if way == "cold":
        in_thread(kilobytes, call)
    else:
        call()
    if way == "compiled":
        in_thread(kilobytes, call)
    with tempfile.TemporaryDirectory() as folder:
        loaded = exported(Path(folder))

        def call_loaded() -> None:
            for function, plain, args in loaded:
                agree(function(*args), plain(*args), function.name)

        if way == "main":
            call_loaded()
        else:
            in_thread(kilobytes, call_loaded)
    print("done")


if __name__ == "__main__":
    warnings.simplefilter("ignore", weft.RecompileWarning)
    main(sys.argv[1], int(sys.argv[2]))
