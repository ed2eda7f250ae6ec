"""NumPy's functions on tracers, by subject."""
