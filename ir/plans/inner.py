"""Host steps that native code runs without Python: a table of NumPy's own inner loops.

    np.linalg.inv of f64[4,4]    inv of numpy.linalg._umath_linalg, its loop "d->d":
      function, data             void (char **args, intp *dims, intp *steps, void *data)
      dims, steps                1, 4 and 0, 0, 32, 8, 32, 8: one matrix, contiguous
      slot                       where in the context the first result stands

NumPy computes in doubles, and numbers of 32 bits in doubles that it rounds: they have no loop here.
The context of a step is what the loop takes as ``args``: where its operands and results lie. A
result that begins with NaN may be none: NumPy fills it so where there is no inverse, and raises;
then the step is run by Python, as are all that have no loop. The table has a row for each step.
"""

from __future__ import annotations

WORDS = ("function", "data", "dims", "steps", "slot")
"""Of a row, 64 bits each. ``function`` is null where there is no loop."""
