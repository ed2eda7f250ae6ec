"""Layers, optimisers, random numbers, special functions: NumPy code over public names."""
