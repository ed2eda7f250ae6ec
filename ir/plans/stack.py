"""What a call puts on the stack of its thread, and what a thread brings to a kernel beside it.

A thread may have little stack: 256 KB in servers with many of them, 128 KB in some C libraries. So
all frames of a call together, from its native entry to the innermost function of a kernel, take
``STACK_BYTES`` at most. What may be large has a share of it, and is elsewhere when it is larger:

    weft_walk    what a call's arguments are taken apart into ARGUMENTS_BYTES   else from the heap
    weft_entry   pointers to arguments and results, dims      ARGUMENTS_BYTES   else from the heap
      weft_run   the arena                                    ARENA_BYTES       else kept for calls
        @f       registers and the context of a kernel        STEPS_BYTES       else from the heap
          kernel kept rows, turned tiles, sums in memory      WORKSPACE_BYTES   else in its scratch
            sorts counts of bytes, and levels of parts

The rest is for registers that LLVM spills, of which a fused kernel needs a few KB, and for the
functions between. Tests measure the frames that LLVM makes. A function of the host that a program
calls has its own.
"""

from __future__ import annotations

STACK_BYTES = 64 << 10
ARGUMENTS_BYTES = 4 << 10
ARENA_BYTES = 8 << 10
STEPS_BYTES = 4 << 10
WORKSPACE_BYTES = 8 << 10

# Scratch that a worker has for the kernels it runs: addresses, of which pages exist once touched.
# What needs more is run by the calling thread alone, whose scratch is a part of the arena.
SCRATCH_BYTES = 64 << 20
