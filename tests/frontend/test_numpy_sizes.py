"""Every row of NumPy's functions, on its samples of one array, with a first axis of any size: one
compile serves all, and does what NumPy does at each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_samples import Sample
from test_numpy_rows import SAMPLES, agree

import weft
from weft.ir.diagnose import Error

SIZES = (4, 0, 1, 2, 7)
# What only a known size gives: how many results there are, what shape they have, where slices of
# both ends meet. Refused by name while tracing.
NEEDS_SIZE: dict[str, str] = {
    "np.apply_along_axis": "W113", "np.squeeze": "W105", "np.cov": "W105", "np.corrcoef": "W105",
    "np.tril_indices_from": "W201", "np.triu_indices_from": "W201", "np.unstack": "W201",
    "np.delete": "W105", "np.pad": "W105", "np.vander": "W201", "np.poly": "W201",
    "np.polyval": "W201", "np.polyadd": "W105", "np.polysub": "W105", "np.correlate": "W102",
    "np.polymul": "W102",
}


def resized(x: Any, size: int) -> Any:
    return np.resize(x, (size, *x.shape[1:])) if x.size else np.zeros((size, *x.shape[1:]), x.dtype)


ONE = [param for param in SAMPLES
       if len(arrays := param.values[0].arrays(np.float64)) == 1 and arrays[0].ndim]


@pytest.mark.parametrize("sample", ONE)
def test_any_size(sample: Sample) -> None:
    array, = sample.arrays(np.float64)

    @weft.compile(dynamic={"x": {0: "b"}})
    def function(x: Any) -> Any:
        return sample.call(x)

    for size in SIZES:
        x = resized(array, size)
        try:
            wanted = sample.call(x)
        except (ValueError, IndexError, TypeError, ZeroDivisionError):
            with pytest.raises(Error):
                function(x)
            continue
        try:
            found = function(x)
        except Error as problem:
            if problem.code == "W105" and ("must be equal" in problem.message):
                return  # where a named dim meets another one, it is not repeated if it is 1
            if sample.row.name in NEEDS_SIZE:
                assert problem.code in NEEDS_SIZE[sample.row.name].split(), problem
                return
            raise
        agree(found, wanted, 1e-12)
