"""Rows of the HOST family: what NumPy computes between kernels, with its gradients."""
