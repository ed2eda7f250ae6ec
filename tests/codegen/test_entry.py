"""Calling compiled programs from Python: what is admitted, what is made, what is handed back.

Where nothing else is said a test runs on both paths, the emitted entry and ctypes.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import tracemalloc
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from native_engine import (
    FAILS,
    HEAD,
    MIB,
    MISFITS,
    NOTHING,
    TWICE,
    VECTOR,
    Engine,
    Make,
    array,
    entry,
    out,
)
from numpy._core.multiarray import get_handler_name
from support.runs import FailedRunError, fail

from weft.codegen.cpu.host.entry import emit_entry
from weft.codegen.cpu.host.layout import LAYOUT
from weft.codegen.cpu.host.pool import POOLED_BYTES
from weft.ir.indices.index import symbol
from weft.ir.plans.entry import Entry, Input, Output
from weft.ir.types import DTYPES
from weft.runtime.entry import support
from weft.runtime.entry.layout import Array, layout_holds, samples
from weft.runtime.entry.native import native_call
from weft.runtime.entry.through_ctypes import CtypesCall


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture(params=["native", "ctypes"])
def make(request: pytest.FixtureRequest, engine: Engine) -> Make:
    if request.param == "ctypes":
        return engine.by_ctypes
    return engine.native


@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_result_for_each_size(make: Make, count: int) -> None:
    x = np.arange(count, dtype=np.float32)
    y = make(VECTOR, TWICE).call(x)
    assert type(y) is np.ndarray and y.dtype == np.float32 and y.flags.owndata
    np.testing.assert_array_equal(y, 2 * x + 1)


def unaligned(shape: tuple[int, ...]) -> Array:
    memory = np.zeros(int(np.prod(shape)) * 4 + 1, np.uint8)
    return memory[1:].view(np.float32).reshape(shape)


X = np.zeros((4, 8), np.float32)
MISSES = {
    "no argument": (),
    "two arguments": (X, X),
    "other dtype": (X.astype(np.float64),),
    "same width": (X.view(np.int32),),
    "byte-swapped": (X.astype(">f4"),),
    "other dim": (np.zeros((4, 9), np.float32),),
    "rank too small": (X[0],),
    "rank too large": (X[None],),
    "subclass": (np.ma.masked_array(X),),
    "NumPy scalar": (np.float32(1),),
    "list": ([[0.0] * 8] * 4,),
    "None": (None,),
    "structured": (X.view([("a", "f4")]),),
    "void": (X.view("V4"),),
}


@pytest.mark.parametrize("args", MISSES.values(), ids=MISSES)
def test_unexpected_arguments_are_not_implemented(make: Make, args: tuple[Any, ...]) -> None:
    call = make(entry([array("b", 8)], [out("b", 8)], single=True), NOTHING).call
    assert call(*args) is NotImplemented
    assert call(X).shape == (4, 8)


def copying(at: int, count: int, item: int, dims: bool = True) -> str:
    """A program that copies argument ``at`` of ``count``; its size is ``item`` bytes by the first
    dim."""
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i32 @f{HEAD} {{
  %from.slot = getelementptr ptr, ptr %args, i64 {at}
  %from = load ptr, ptr %from.slot
  %to.slot = getelementptr ptr, ptr %args, i64 {count}
  %to = load ptr, ptr %to.slot
  %n = {"load i64, ptr %dims" if dims else "add i64 0, 1"}
  %size = mul i64 %n, {item}
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  ret i32 0
}}"""


def strided_arrays() -> dict[str, Array]:
    shape = (4, 8)
    values = np.arange(32, dtype=np.float32).reshape(shape)
    odd = unaligned(shape)
    odd[:] = values
    return {
        "transposed": values.T.copy().T,
        "strided": np.repeat(values, 2, axis=1)[:, ::2],
        "backwards": values[::-1, ::-1].copy()[::-1, ::-1],
        "inside": np.pad(values, 3)[3:-3, 3:-3],
        "broadcast": np.broadcast_to(values[1], shape),
        "unaligned": odd,
        "frozen": np.asfortranarray(values),
    }


@pytest.mark.parametrize("case", strided_arrays())
def test_arrays_that_are_not_contiguous_are_read_by_their_strides(make: Make, case: str) -> None:
    x = strided_arrays()[case]
    x.flags.writeable = case != "frozen" and x.flags.writeable
    before, references = x.copy(), sys.getrefcount(x)
    call = make(entry([array("n", 8)], [out("n", 8)], single=True), copying(0, 1, 32)).call
    y = call(x)
    np.testing.assert_array_equal(y, before)
    np.testing.assert_array_equal(x, before)
    assert y.flags.c_contiguous and not np.shares_memory(x, y)
    assert sys.getrefcount(x) == references


def test_strided_arrays_without_elements_and_of_symbolic_sizes(make: Make) -> None:
    call = make(entry([array("n", 8)], [out("n", 8)], single=True), copying(0, 1, 32)).call
    assert call(np.zeros((8, 0), np.float32).T).shape == (0, 8)
    for count in (1, 2, 5):
        x = np.arange(8 * count, dtype=np.float32).reshape(8, count).T
        np.testing.assert_array_equal(call(x), x)


def test_several_strided_arrays_at_once(make: Make) -> None:
    both = make(entry([array("n"), array("n"), array("n")], [out("n")], single=True),
                copying(1, 3, 4)).call
    x = np.arange(12, dtype=np.float32)
    for first, second in ((x[::2], x[1::2]), (x[:6], x[::-2]), (x[::2], x[6:])):
        np.testing.assert_array_equal(both(first, second, x[::2]), second)


def test_nothing_is_copied_for_a_call_that_misses(engine: Engine) -> None:
    call = engine.native(entry([array(1024, 1024), array("n")], [out("n")], single=True),
                         NOTHING).call
    large = np.zeros((1024, 1024), np.float32).T
    assert call(large, large[0]) is not NotImplemented
    pooled = engine.support.pool_state()
    assert call(large, "no array") is NotImplemented
    assert engine.support.pool_state() == pooled


@pytest.mark.parametrize("name", DTYPES)
def test_scalars_of_numpy(make: Make, name: str) -> None:
    dtype = DTYPES[name]
    call = make(entry([Input("scalar", name)], [out(1, dtype=name)], single=True),
                copying(0, 1, dtype.itemsize, dims=False)).call
    for value in (np.ones((), dtype.numpy)[()], np.zeros((), dtype.numpy)[()]):
        assert call(value).tobytes() == value.tobytes()
    others = [np.ones((), each.numpy)[()] for key, each in DTYPES.items() if key != name]
    for other in (*others, np.ones((), dtype.numpy), np.ones(1, dtype.numpy), 1.0, 1, True, 1j):
        assert call(other) is NotImplemented


def test_keywords_are_not_implemented(make: Make) -> None:
    assert make(VECTOR, TWICE).call(x=X[0]) is NotImplemented
    assert make(VECTOR, TWICE).call(X[0], axis=0) is NotImplemented


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(make: Make, name: str) -> None:
    call = make(entry([array("n", dtype=name)], [out("n", dtype=name)], single=True), NOTHING).call
    assert call(np.zeros(3, DTYPES[name].numpy)).dtype is DTYPES[name].numpy
    for other, dtype in DTYPES.items():
        if other != name:
            assert call(np.zeros(3, dtype.numpy)) is NotImplemented


def test_equal_dtypes_of_other_objects(make: Make) -> None:
    longs = make(entry([array("n", dtype="i64")], [out("n")], single=True), NOTHING).call
    assert longs(np.zeros(3, np.longlong)) is not NotImplemented
    assert longs(np.zeros(3, np.ulonglong)) is NotImplemented
    floats = np.zeros(3, np.dtype("f4", metadata={"unit": "m"}))
    assert make(VECTOR, TWICE).call(floats) is not NotImplemented


def test_bytes_are_no_bfloat16(make: Make) -> None:
    spec = entry([array("n", dtype="bf16")], [out("n", dtype="bf16")], single=True)
    assert make(spec, NOTHING).call(np.zeros(3, "V2")) is NotImplemented


SCALARS = f"""
define i32 @f{HEAD} {{
  %float_ = load ptr, ptr %args
  %i.slot = getelementptr ptr, ptr %args, i64 1
  %int_ = load ptr, ptr %i.slot
  %b.slot = getelementptr ptr, ptr %args, i64 2
  %bool_ = load ptr, ptr %b.slot
  %f.out.slot = getelementptr ptr, ptr %args, i64 3
  %f.out = load ptr, ptr %f.out.slot
  %i.out.slot = getelementptr ptr, ptr %args, i64 4
  %i.out = load ptr, ptr %i.out.slot
  %b.out.slot = getelementptr ptr, ptr %args, i64 5
  %b.out = load ptr, ptr %b.out.slot
  %x = load double, ptr %float_
  store double %x, ptr %f.out
  %i = load i64, ptr %int_
  store i64 %i, ptr %i.out
  %b = load i8, ptr %bool_
  store i8 %b, ptr %b.out
  ret i32 0
}}"""


class Int(int):
    pass


def test_python_scalars(make: Make) -> None:
    inputs = [Input("float", "f64"), Input("int", "i64"), Input("bool", "bool")]
    outputs = [out(dtype="f64"), out(dtype="i64"), out(dtype="bool")]
    call = make(entry(inputs, outputs), SCALARS).call
    for args in [(0.1, 2**63 - 1, True), (-0.0, -(2**63), False), (float("inf"), 7, True)]:
        assert [value.item() for value in call(*args)] == list(args)
        assert [value.shape for value in call(*args)] == [()] * 3
    for wrong in [(1, 1, True), (np.float64(1), 1, True), (1.0, 2**63, True), (1.0, True, True),
                  (1.0, Int(1), True), (1.0, 1.0, True), (1.0, 1, 1), (1.0, 1, np.True_)]:
        assert call(*wrong) is NotImplemented


def test_symbols_must_agree(make: Make) -> None:
    spec = entry([array("b", "n"), array("n", 3), array("b", "b")], [out("n", 2, "b")])
    call = make(spec, NOTHING).call

    def args(b: int, n: int, n2: int, b2: int, b3: int) -> list[Array]:
        return [np.zeros(s, np.float32) for s in ((b, n), (n2, 3), (b2, b3))]

    for b, n in itertools.product((0, 1, 5), (0, 1, 4)):
        (y,) = call(*args(b, n, n, b, b))
        assert y.shape == (n, 2, b)
    for wrong in [(5, 4, 3, 5, 5), (5, 4, 4, 4, 5), (5, 4, 4, 5, 4), (0, 1, 1, 0, 1)]:
        assert call(*args(*wrong)) is NotImplemented


def test_expressions_of_symbols(make: Make) -> None:
    spec = entry([array("n")], [out("2*n", "n"), out("n - 3"), out(4, "n - 3"),
                                out("n//2", "max(n - 4, 0)", "n mod 3")])
    call = make(spec, NOTHING).call
    for n in (3, 4, 9):
        shapes = [y.shape for y in call(np.zeros(n, np.float32))]
        assert shapes == [(2 * n, n), (n - 3,), (4, n - 3), (n // 2, max(n - 4, 0), n % 3)]
    assert call(np.zeros(2, np.float32)) is NotImplemented  # a negative size


def test_a_symbol_may_be_a_size_of_several(make: Make) -> None:
    """What a program is told is the size of an argument, whatever the plan says that it is."""
    pairs = symbol("2*n")
    spec = Entry("f", (Input("array", "f32", (3, pairs)), array("n")),
                 (Output("f32", (pairs, symbol("n") * 2)),), ("n", "2*n"), single=True)
    assert spec.places == ((1, 0), (0, 1))
    shape = make(spec, NOTHING).call(np.zeros((3, 10), np.float32), np.zeros(7, np.float32)).shape
    assert shape == (10, 14)


def test_impossible_sizes(make: Make) -> None:
    large, endless = 1 << 45, 1 << 61
    for factor, expected in ((large, MemoryError), (endless, None)):
        call = make(entry([array("n")], [out("n"), out(f"{factor}*n")]), NOTHING).call
        x = np.zeros(1, np.float32)
        if expected is None:
            assert call(x) is NotImplemented
        else:
            with pytest.raises(expected):
                call(x)
        assert get_handler_name() == "default_allocator"
    assert np.zeros(3).sum() == 0  # no exception was left behind


def test_failing_program_and_no_outputs(make: Make) -> None:
    """What has begun and failed raises; where nothing has happened, the caller is told so."""
    call = make(entry([array("n")], [out("n")] * 5), FAILS).call
    with pytest.raises(FailedRunError, match=r"^7$"):
        call(np.zeros(3, np.float32))
    call = make(entry([array("n")], [out("n")] * 5), MISFITS).call
    assert call(np.zeros(3, np.float32)) is NotImplemented
    assert make(entry([], []), NOTHING).call() == ()


def counted_objects() -> list[int]:
    dtype = np.dtype(np.float32)
    return [sys.getrefcount(item) for item in (dtype, NotImplemented, np.ndarray, X)]


@pytest.mark.parametrize("program", [NOTHING, FAILS])
def test_references_and_memory_do_not_grow(engine: Engine, program: str) -> None:
    spec = entry([array("b", 8)], [out("b", 8)] * 3 + [out(POOLED_BYTES // 4)])
    native = engine.native(spec, program)

    def call(*args: Any) -> None:
        with suppress(FailedRunError):
            native.call(*args)

    call(X)
    calls = [(X,), (), (X[0],), (X, X)]
    tracemalloc.start()
    before, memory = counted_objects(), tracemalloc.get_traced_memory()[0]
    for _ in range(2500):
        for args in calls:
            call(*args)
    assert counted_objects() == before
    assert tracemalloc.get_traced_memory()[0] - memory < 20_000
    tracemalloc.stop()


# y[0] = the address of the arena, y[1] = threads
SHOWS = f"""
define i32 @f{HEAD} {{
  %slot = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %slot
  %address = ptrtoint ptr %arena to i64
  store i64 %address, ptr %y
  %second = getelementptr i64, ptr %y, i64 1
  store i64 %threads, ptr %second
  ret i32 0
}}"""


def test_arena_is_aligned_and_kept(make: Make) -> None:
    def arena(size: int | None, program: str = SHOWS) -> Any:
        spec = entry([array("n")], [out(2, dtype="i64")], single=True, arena=size)
        program += "\ndefine i64 @f_arena(ptr %dims) {\n  %n = load i64, ptr %dims\n" \
                   "  %m = mul i64 %n, 1024\n  ret i64 %m\n}" if size is None else ""
        made = make(spec, program)
        made.threads = 3
        return made

    x = np.zeros(3, np.float32)
    assert arena(0).call(x).tolist() == [0, 3]
    small = arena(1000)
    assert small.call(x)[0] % 64 == 0 and small.call(x)[0] != 0
    large = arena(5 * MIB)
    addresses = {int(large.call(x)[0]) for _ in range(5)}
    assert len(addresses) == 1 and addresses.pop() % 64 == 0
    large.release()
    large.release()
    assert large.call(x)[0] % 64 == 0
    symbolic = arena(None)
    for n in (0, 1, 5, 200, 100, 300, 2):
        address = int(symbolic.call(np.zeros(n, np.float32))[0])
        assert address % 64 == 0 and (address != 0) == (n > 0)
    assert symbolic.threads == 3


MEETING = """
declare i32 @sched_yield()
@present = global i32 0
define i32 @f(ptr %args, ptr %dims, ptr %arena, i64 %threads, ptr %control) {
entry:
  %x = load ptr, ptr %args
  %mark = load i64, ptr %x
  store i64 %mark, ptr %arena
  %old = atomicrmw add ptr @present, i32 1 seq_cst
  br label %wait
wait:
  %n = phi i32 [ 0, %entry ], [ %more, %again ]
  %now = load atomic i32, ptr @present seq_cst, align 4
  %all = icmp sge i32 %now, 4
  br i1 %all, label %met, label %again
again:
  %ignored = call i32 @sched_yield()
  %more = add i32 %n, 1
  %tired = icmp sgt i32 %more, 3000000
  br i1 %tired, label %late, label %wait
met:
  %slot = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %slot
  %back = load i64, ptr %arena
  store i64 %back, ptr %y
  ret i32 0
late:
  ret i32 1
}"""


@pytest.mark.parametrize("size", [64, 2 * MIB])
def test_four_threads_meet_in_one_program(make: Make, size: int) -> None:
    """They can only meet if the GIL is released; each must find its own arena."""
    spec = entry([array(1, dtype="i64")], [out(1, dtype="i64")],
                 single=True, arena=size, release_gil=True)
    made, results = make(spec, MEETING), dict[int, set[Any]]()

    def work(mark: int) -> None:
        for _ in range(50):  # after the first all are there
            result = made.call(np.array([mark]))
            results.setdefault(mark, set()).add(result if result is NotImplemented else result[0])

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {mark: {mark} for mark in range(1, 5)}


class Keep:
    library: Any


@pytest.mark.parametrize("path", ["native", "ctypes"])
def test_code_lives_as_long_as_its_callable(engine: Engine, path: str) -> None:
    made: Any
    library = engine.link(emit_entry(VECTOR), TWICE, ["f"])
    keep = Keep()
    keep.library, gone = library, weakref.ref(keep)
    if path == "native":
        made = native_call("f", library.__getitem__, engine.support, keep=keep, fail=fail)
    else:
        made = CtypesCall(VECTOR, library.__getitem__, keep=keep, fail=fail)
    call = made.call
    del made, keep, library
    gc.collect()
    y = call(np.arange(MIB, dtype=np.float32))
    assert gone() is not None
    del call
    gc.collect()
    assert gone() is None
    assert y[5] == 11  # and its memory outlives the code
    del y


def test_layout_is_checked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert layout_holds(frozenset(LAYOUT.items()))
    for name, offset in LAYOUT.items():
        for other in {*LAYOUT.values(), offset + 4, offset + 8} - {offset}:
            assert not layout_holds(frozenset({**LAYOUT, name: other}.items())), (name, other)
    assert not layout_holds(frozenset({**LAYOUT, "array.colour": 80}.items()))
    symbols = dict[str, int]()  # an artifact without an entry
    assert native_call("f", symbols.__getitem__, engine.support, keep=None, fail=fail) is None
    assert native_call("f", symbols.__getitem__, None, keep=None, fail=fail) is None
    monkeypatch.setenv("WEFT_NATIVE_CALL", "0")
    assert engine.maybe_native(VECTOR, TWICE) is None


def test_entry_spec_is_checked() -> None:
    with pytest.raises(ValueError, match="single"):
        entry([array(1)], [], single=True)
    with pytest.raises(ValueError, match="passed as f32"):
        entry([Input("float", "f32")], [])
    with pytest.raises(ValueError, match="a scalar argument has no dims"):
        entry([Input("scalar", "f32", (1,))], [])
    with pytest.raises(ValueError, match="differ in m"):
        Entry("f", (array("n"),), (), ("n", "m"))
    with pytest.raises(ValueError, match=r"2\*n, is no number and no symbol"):
        entry([array("n", "2*n")], [])
    with pytest.raises(ValueError, match="no input has the results' dims m"):
        entry([array("n")], [out("n + m")])
    with pytest.raises(ValueError, match="64 dims"):
        entry([], [out(*[1] * 65)])


def test_there_is_no_advice_on_pages_but_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    address = support._process_address
    assert address("memcpy") != 0
    if sys.platform == "linux":
        assert address("madvise") != 0
    monkeypatch.setattr(support.sys, "platform", "darwin")
    assert address("madvise") == 0 != address("memcpy")


def test_samples_differ_in_every_field_that_is_read() -> None:
    given = samples()
    for field in (lambda a: a.ndim, lambda a: a.flags.writeable, lambda a: a.flags.aligned,
                  lambda a: a.flags.c_contiguous, lambda a: a.flags.f_contiguous,
                  lambda a: a.dtype.num, lambda a: a.dtype.byteorder in "=|", lambda a: a.size > 0):
        assert len({field(sample) for sample in given}) > 1


def test_calls_use_one_thread_unless_told_otherwise(engine: Engine) -> None:
    assert engine.by_ctypes(VECTOR, TWICE).threads == 1
