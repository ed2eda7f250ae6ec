"""NumPy's functions that work element by element, and those that call the user's functions."""
