"""Kernels as Triton source. triton is imported here only."""
