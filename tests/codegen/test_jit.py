"""Code is linked wherever the process has room for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

# All gaps between mappings are filled, then 3 GiB blocks are laid down with holes of one page
# between them: sections that are mapped one at a time land further apart than the 32 bits of
# a relative address reach.
SCATTERED = """
import ctypes, mmap
import numpy as np
import weft

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PRIVATE_ANONYMOUS_NORESERVE = 0x4022

def reserve(size):
    return libc.mmap(None, size, 0, PRIVATE_ANONYMOUS_NORESERVE, -1, 0)

x = np.linspace(0.1, 1, 256, dtype=np.float32).reshape(16, 16)
weft.compile(lambda x: x + 1)(x)  # LLVM is loaded and has its memory
blocks = [reserve(3 << 30) for _ in range(8)]
lowest, highest = min(blocks), max(blocks)
size = 1 << 28
while size >= mmap.PAGESIZE:
    if reserve(size) < lowest:
        size //= 2
for block in blocks:
    libc.munmap(block, mmap.PAGESIZE)
ones = [reserve(mmap.PAGESIZE) for _ in range(3)]
assert max(ones) - min(ones) > 1 << 32, "small mappings are not scattered"
for one in ones:
    libc.munmap(one, mmap.PAGESIZE)
got = weft.compile(lambda x: np.tanh(x) @ x + np.exp(x))(x)
assert np.allclose(got, np.tanh(x) @ x + np.exp(x), 1e-5), got
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="lays out the address space as Linux does")
def test_sections_are_linked_where_only_scattered_pages_are_free() -> None:
    ran = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, text=True,
                         timeout=120, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
