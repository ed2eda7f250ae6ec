"""Tracers: values of a graph that behave like NumPy arrays."""
