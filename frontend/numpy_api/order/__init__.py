"""NumPy's functions that need the elements in a row: cumulative ones, sorts and searches."""
