"""The pool that large results come from, and what its arrays are to NumPy and to a fork."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest
from native_engine import MIB, NOTHING, TWICE, VECTOR, Engine, array, entry, out
from numpy._core.multiarray import get_handler_name

from weft.codegen.cpu.host.pool import POOLED_BYTES
from weft.codegen.cpu.host.support import emit_support
from weft.runtime.entry.layout import Array
from weft.runtime.entry.support import Support


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


def address_of(result: Array) -> int:
    return int(result.ctypes.data)


def test_large_results_are_recycled(engine: Engine) -> None:
    pool, call = engine.support, engine.native(VECTOR, TWICE).call
    pool.trim_pool()
    x = np.arange(MIB, dtype=np.float32)
    first = call(x)
    assert get_handler_name(first) == "weft"
    assert get_handler_name() == "default_allocator"
    assert address_of(first) % 64 == 0 and first.flags.owndata and first.base is None
    second, kept = call(x), first.copy()
    assert address_of(first) != address_of(second)
    reused = address_of(second)
    view = second[10:20]
    del second
    third = call(x + 1)  # the view keeps the memory of the second
    np.testing.assert_array_equal(view, kept[10:20])
    assert address_of(third) != reused
    del view
    assert pool.pool_state().blocks == 1
    hits = pool.pool_state().hits
    fourth = call(x[:-1000])  # a little smaller fits, too
    assert address_of(fourth) == reused and pool.pool_state().hits == hits + 1
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(third, kept + 2)
    assert address_of(call(x[: MIB // 2])) != reused  # half the size does not


def test_pool_is_bounded(engine: Engine) -> None:
    pool, call = engine.support, engine.native(VECTOR, NOTHING).call
    pool.trim_pool()
    results = [call(np.zeros(MIB // 4 + 1_000 * i, np.float32)) for i in range(68)]
    latest = [address_of(result) for result in results[-64:]]
    while results:
        del results[0]
    state = pool.pool_state()
    assert state.blocks == 64 and state.bytes >= 64 * MIB
    sizes = [MIB // 4 + 1_000 * i for i in range(4, 68)]
    again = [call(np.zeros(size, np.float32)) for size in sizes]
    assert sorted(map(address_of, again)) == sorted(latest)
    del again
    results = [call(np.zeros(25 * MIB, np.float32)) for _ in range(4)]  # 100 MiB each
    del results
    assert pool.pool_state().bytes <= 256 * MIB and pool.pool_state().blocks == 2
    call(np.zeros(70 * MIB, np.float32))  # too large to be kept at all
    assert pool.pool_state().blocks == 2
    pool.trim_pool()
    assert pool.pool_state().blocks == pool.pool_state().bytes == 0


def test_results_from_the_pool_are_ordinary_arrays(engine: Engine) -> None:
    pool, call, count = engine.support, engine.native(VECTOR, TWICE).call, POOLED_BYTES // 4
    pool.trim_pool()
    y = call(np.arange(count, dtype=np.float32))
    y.resize(2 * count, refcheck=False)
    assert pool.pool_state().blocks == 1  # the memory that the array had
    np.testing.assert_array_equal(y[:count], 2 * np.arange(count, dtype=np.float32) + 1)
    assert not y[count:].any()
    y.resize(10, refcheck=False)
    np.testing.assert_array_equal(y, 2 * np.arange(10) + 1)
    assert pool.pool_state().blocks == 2


def test_blocks_say_no_more_than_they_hold(engine: Engine) -> None:
    library = engine.link(emit_support())
    support = Support(library.__getitem__, keep=library)
    types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
    malloc = ctypes.CFUNCTYPE(*types)(library["weft_pool_malloc"])
    free = ctypes.CFUNCTYPE(None, *types)(library["weft_pool_free"])
    usable = ctypes.CDLL(None).malloc_usable_size
    usable.argtypes, usable.restype = [ctypes.c_void_p], ctypes.c_size_t
    for size in (1, 63, 64, 65, 100_000, MIB - 1, MIB, 3 * MIB + 1, 40 * MIB):
        memory = malloc(None, size)
        capacity = ctypes.c_int64.from_address(memory - 64).value
        assert memory % 64 == 0 and size <= capacity <= usable(memory - 64) - 64
        free(None, memory, size)
    support.trim_pool()


def test_handler_changes_sizes(engine: Engine) -> None:
    """As C's realloc does: from nothing, to the same size, and not at all."""
    library = engine.link(emit_support())
    support = Support(library.__getitem__, keep=library)
    types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
    realloc = ctypes.CFUNCTYPE(*types)(library["weft_pool_realloc"])
    first = realloc(None, None, MIB)
    ctypes.memset(first, 7, MIB)
    assert realloc(None, first, 1 << 62) is None
    assert ctypes.string_at(first, MIB) == b"\7" * MIB and support.pool_state().blocks == 0
    second = realloc(None, first, 2 * MIB)
    assert ctypes.string_at(second, MIB) == b"\7" * MIB and support.pool_state().blocks == 1
    third = realloc(None, second, 1000)
    assert ctypes.string_at(third, 1000) == b"\7" * 1000 and support.pool_state().blocks == 2


def test_handler_makes_zeroed_memory(engine: Engine) -> None:
    """NumPy calls calloc only if it allocates while our handler is set, so ask it directly."""
    library = engine.link(emit_support())
    support = Support(library.__getitem__, keep=library)
    types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
    calloc = ctypes.CFUNCTYPE(*types)(library["weft_pool_calloc"])
    free = ctypes.CFUNCTYPE(None, *types[1:])(library["weft_pool_free"])
    for _ in range(3):
        memory = calloc(None, 2 * MIB, 1)
        assert ctypes.string_at(memory, 2 * MIB) == bytes(2 * MIB)
        ctypes.memset(memory, 1, 2 * MIB)
        free(None, memory, 2 * MIB)
    assert support.pool_state().hits == 2
    assert calloc(None, 1 << 62, 8) is None


def test_fork(engine: Engine) -> None:
    call = engine.native(entry([array("n")], [out("n")], single=True, arena=MIB), TWICE).call
    x = np.arange(MIB, dtype=np.float32)
    call(x)
    child = os.fork()
    if child == 0:
        right = all(np.array_equal(call(x), 2 * x + 1) for _ in range(3))
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(call(x), 2 * x + 1)


def test_the_smallest_pooled_result_is_recycled(engine: Engine) -> None:
    pool, call = engine.support, engine.native(VECTOR, TWICE).call
    for count, pooled in ((POOLED_BYTES // 4, True), (POOLED_BYTES // 4 - 1, False)):
        pool.trim_pool()
        x = np.ones(count, np.float32)
        call(x)  # which dies at once
        before = pool.pool_state()
        assert before.blocks == pooled
        call(x)
        assert pool.pool_state().hits - before.hits == pooled


def test_the_pool_counts_what_it_has_and_has_not(engine: Engine) -> None:
    pool, call = engine.support, engine.native(VECTOR, TWICE).call
    pool.trim_pool()
    start, x = pool.pool_state(), np.ones(MIB, np.float32)
    kept = [call(x), call(x)]
    assert (pool.pool_state().hits, pool.pool_state().misses) == (start.hits, start.misses + 2)
    kept.clear()
    call(x)
    assert (pool.pool_state().hits, pool.pool_state().misses) == (start.hits + 1, start.misses + 2)
