"""The axes of kernels: how they are joined, walked, unrolled and read across."""
