"""Interpreters: what graphs, kernels and plans mean, computed by NumPy."""
