"""The public benchmark suites of others, run as they are written: nothing of them is here.

    python -m bench.suites npbench ~/npbench              each program: right, refused or wrong
    python -m bench.suites npbench ~/npbench --time       and its time beside NumPy's
    python -m bench.suites npbench ~/npbench --only cholesky,adi
    python -m bench.suites numpy-benchmarks ~/numpy-benchmarks
    python -m bench.suites pyhpc ~/pyhpc-benchmarks --size 65536

A program is decorated unchanged. Its results, and its arguments afterwards, are compared with
NumPy's; each runs in a process of its own, which has a time limit. Where Numba or JAX is
installed, what a suite has for it is timed too.
"""
