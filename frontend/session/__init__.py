"""Graphs that are built by hand, and sessions that run parts of them."""
