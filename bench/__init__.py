"""Benchmarks of Weft against NumPy, JAX and PyTorch; run from the checkout: ``python -m bench``."""
