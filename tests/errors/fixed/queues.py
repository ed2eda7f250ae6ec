"""``errors/queues.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import weft

from ..programs import X
from .fixing import fixed


@fixed("x.astype(np.float32)")
def an_element_of_another_dtype() -> Any:
    q, x = weft.FIFOQueue(10, "f32[3]", name="rows"), np.arange(3.0)
    q.enqueue(x.astype(np.float32))
    return q.dequeue(), [0.0, 1, 2]


@fixed("give the queue other specs")
def an_element_of_another_shape_in_a_graph() -> Any:
    q, g = weft.FIFOQueue(10, "f32[4]", name="rows"), weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32[b,4]")
        put = q.enqueue_many(x * 2)
    weft.Session(g).run(put, {x: X})
    return q.dequeue_many(3), 2 * X


@fixed("weft.PaddingFIFOQueue")
def sizes_that_differ_in_a_plain_queue() -> Any:
    q = weft.PaddingFIFOQueue(10, weft.Spec("f32", (None,)))
    q.enqueue([1.0, 2.0])
    q.enqueue([3.0])
    return q.dequeue_many(2), [[1.0, 2], [3, 0]]


@fixed("close it when its last producer is done")
def an_element_for_a_closed_queue() -> Any:
    q = weft.FIFOQueue(10, "i64[]", name="closed")
    q.enqueue(1)
    q.close()
    return q.dequeue(), 1


@fixed("dequeue_up_to")
def a_step_at_the_end_of_its_queue() -> Any:
    q, g = weft.FIFOQueue(10, "i64[]", name="numbers"), weft.Graph()
    with g.as_default():
        y = q.dequeue_up_to(2) * 2
    q.enqueue(1)
    q.close()
    return weft.Session(g).run(y), [2]


@fixed("see who is to fill or empty it")
def a_call_that_waits_too_long() -> Any:
    q = weft.FIFOQueue(10, "i64[]", name="empty")
    q.enqueue(7)
    return q.dequeue(timeout=0.01), 7


@fixed("take the element outside and pass it as an argument")
def a_queue_in_a_compiled_function() -> Any:
    q = weft.FIFOQueue(10, "f64[4]", name="rows")
    q.enqueue(np.arange(4.0))
    return weft.compile(lambda x, row: x + row)(X, q.dequeue()), X + np.arange(4.0)


@fixed("such as a sum")
def a_size_that_a_queue_tells_in_a_branch() -> Any:
    q, g = weft.FIFOQueue(10, "f64[]", name="rows"), weft.Graph()
    q.enqueue_many([1.0, 2.0, 4.0])
    with g.as_default():
        x = weft.placeholder("bool[]")
        y = weft.cond(x, lambda: q.dequeue_up_to(3).sum(), lambda: np.float64(0))
    return weft.Session(g).run(y, {x: True}), 7.0


@fixed("make one in each process, and send elements")
def a_queue_that_is_copied() -> Any:
    one, other = (weft.FIFOQueue(10, "f64[3]", name="rows") for _ in range(2))
    one.enqueue([1.0, 2, 3])
    other.enqueue(one.dequeue())
    return other.dequeue(), [1.0, 2, 3]


@fixed("timeout=10.0")
def a_timeout_that_never_comes() -> Any:
    q = weft.FIFOQueue(10, "f64[3]", name="rows")
    q.enqueue([1.0, 2, 3])
    return q.dequeue(timeout=10.0), [1.0, 2, 3]


@fixed("the folder may be written to")
def a_checkpoint_in_a_folder_that_is_none() -> Any:
    into = np.zeros_like(X)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "missing").mkdir()
        weft.save(Path(folder) / "missing" / "w", {"w": X})
        weft.restore(Path(folder) / "missing" / "w", {"w": into})
    return into, X


@fixed("np.real(x).astype(ml_dtypes.bfloat16)")
def an_element_of_complex_numbers() -> Any:
    q, x = weft.FIFOQueue(10, "bf16[3]", name="rows"), [1 + 1j, 2j, 3]
    q.enqueue(np.real(x).astype(ml_dtypes.bfloat16))
    return q.dequeue().astype(np.float32), [1.0, 0, 3]


@fixed("np.array([1, 2], np.float32)")
def an_element_that_is_text() -> Any:
    q = weft.FIFOQueue(10, "f32[2]", name="rows")
    q.enqueue(np.array([1, 2], np.float32))
    return q.dequeue(), [1.0, 2.0]


@fixed("step=100", "a variable that each update adds 1 to")
def a_saver_that_counts_by_name() -> Any:
    steps = weft.Variable(3, name="steps")
    with tempfile.TemporaryDirectory() as folder:
        with weft.Saver(folder, {"w": X}, step=steps):
            steps.assign_add(1)
        counted = weft.restore(folder, {})
        weft.save(folder, {"w": X}, step=100, keep=2)
        return [counted, weft.restore(folder, {})], [4, 100]


@fixed("np.atleast_1d(x).view(np.float64)")
def a_checkpoint_of_complex_numbers() -> Any:
    x, pairs = np.array([1 + 2j]), np.zeros(2)
    with tempfile.TemporaryDirectory() as folder:
        weft.save(Path(folder) / "w", {"c": np.atleast_1d(x).view(np.float64)})
        weft.restore(Path(folder) / "w", {"c": pairs})
    return pairs.view(np.complex128), x
