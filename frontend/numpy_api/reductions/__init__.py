"""NumPy's functions that make less of an axis: sums, statistics, quantiles, counts."""
