"""What programs are, as data: types, dims, one row per op, the graph, the kernel language and the
plan. Each of the three has its text form, the rules that it keeps, and an interpreter that says
what it means. Needs NumPy and ml_dtypes only, and nothing else of Weft; all else needs this.
"""
