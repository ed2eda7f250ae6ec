"""NumPy's functions that make arrays and rearrange their elements."""
