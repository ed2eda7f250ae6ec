"""How much work is worth something else: what choices of passes and schedules compare with.

All of them follow from the table of speeds and the caches of the reference machine:

    of a launch      AWAKE         a worker that is woken helps from here on
                     SPLIT         each half is worth to wake a worker: a long sum is cut
                     SPREAD        to have tasks for all cores is worth a pass through memory
                     LAUNCH        single numbers that are computed sooner than one more launch
    of an element    LOAD          as cheap as to read it (``statements``)
                     STORED        computed again, or stored and loaded
                     PASS          computed in vectors, in a loop of its own
    of bytes         NEAR, MIDDLE, FAR
"""

from __future__ import annotations

from ..machine import CPU

_CPU = CPU.speed

AWAKE = _CPU.additions(_CPU.wake)
SPLIT = 2 * AWAKE
SPREAD = 4 * AWAKE
LAUNCH = _CPU.singles(_CPU.launch)

STORED = _CPU.additions(2 * 4 / _CPU.memory)  # a float32 to memory and back
PASS = 3 * STORED  # rows of operands, of what is made of them, and of the loop that reads it

NEAR = CPU.l1          # stays in the first-level cache
MIDDLE = CPU.l2 // 4   # a task's part of the second-level cache, beside what else it reads
FAR = 16 * CPU.l2      # more than any cache of one core holds
