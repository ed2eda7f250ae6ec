"""Wrong programs with queues; see ``programs``."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import weft

from .programs import X, wrong


@wrong("W305", KeyError)
def an_element_of_another_dtype() -> None:
    q = weft.FIFOQueue(10, "f32[3]", name="rows")
    q.enqueue(np.zeros(3))  # here


@wrong("W305", KeyError)
def an_element_of_another_shape_in_a_graph() -> None:
    q = weft.FIFOQueue(10, "f32[3]", name="rows")
    with weft.Graph().as_default():
        x = weft.placeholder("f32[b,4]")
        q.enqueue_many(x * 2)  # here


@wrong("W305", KeyError)
def sizes_that_differ_in_a_plain_queue() -> None:
    weft.FIFOQueue(10, weft.Spec("f32", (None,)))  # here


@wrong("W411", RuntimeError)
def an_element_for_a_closed_queue() -> None:
    q = weft.FIFOQueue(10, "i64[]", name="closed")
    q.close()
    q.enqueue(1)  # here


@wrong("W412", EOFError)
def a_step_at_the_end_of_its_queue() -> None:
    q, g = weft.FIFOQueue(10, "i64[]", name="numbers"), weft.Graph()
    with g.as_default():
        x = q.dequeue_many(2)  # here
        y = x * 2
    q.enqueue(1)
    q.close()
    weft.Session(g).run(y)


@wrong("W413", TimeoutError)
def a_call_that_waits_too_long() -> None:
    q = weft.FIFOQueue(10, "i64[]", name="empty")
    q.dequeue(timeout=0.01)  # here


@wrong("W113", NotImplementedError)
def a_queue_in_a_compiled_function() -> None:
    q = weft.FIFOQueue(10, "f64[3]", name="rows")

    @weft.compile
    def step(x: Any) -> Any:
        return x + q.dequeue()  # here

    step(X)


@wrong("W113", NotImplementedError)
def a_size_that_a_queue_tells_in_a_branch() -> None:
    q = weft.FIFOQueue(10, "f64[]", name="rows")
    with weft.Graph().as_default():
        x = weft.placeholder("bool[]")
        weft.cond(x, lambda: q.dequeue_up_to(3), lambda: np.zeros(3))  # here


@wrong("W407", TypeError)
def a_queue_that_is_copied() -> None:
    q = weft.FIFOQueue(10, "f64[3]", name="rows")
    copy.deepcopy({"rows": q})  # here


@wrong("W305", KeyError)
def a_timeout_that_never_comes() -> None:
    q = weft.FIFOQueue(10, "f64[3]", name="rows")
    q.dequeue(timeout=float("nan"))  # here


@wrong("W408", OSError)
def a_checkpoint_in_a_folder_that_is_none() -> None:
    with tempfile.TemporaryDirectory() as folder:
        weft.save(Path(folder) / "missing" / "w", {"w": X})  # here


@wrong("W305", KeyError)
def an_element_of_complex_numbers() -> None:
    q = weft.FIFOQueue(10, "bf16[3]", name="rows")
    q.enqueue([1j, 2j, 3j])  # here


@wrong("W305", KeyError)
def an_element_that_is_text() -> None:
    q = weft.FIFOQueue(10, "f32[3]", name="rows")
    q.enqueue("abc")  # here


@wrong("W304", KeyError)
def a_saver_that_counts_by_name() -> None:
    weft.Saver("run", {"w": X}, step="steps")  # here


@wrong("W304", KeyError)
def a_checkpoint_of_complex_numbers() -> None:
    with tempfile.TemporaryDirectory() as folder:
        weft.save(Path(folder) / "w", {"c": np.array([1 + 2j])})  # here
