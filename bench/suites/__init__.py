"""The public benchmark suites of others, run as they are written: nothing of them is here.

    python -m bench.suites npbench ~/npbench              each program: right, refused or wrong
    python -m bench.suites npbench ~/npbench --time       and its time beside NumPy's
    python -m bench.suites npbench ~/npbench --only cholesky,adi

A program is decorated unchanged. Its results, and its arguments afterwards, are compared with
NumPy's; each runs in a process of its own, which has a time limit.
"""
