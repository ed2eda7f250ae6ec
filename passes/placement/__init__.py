"""Placement: a device for every node of a graph.

What may be where (``constraints``), what is placed as one (``units``: a future kernel, a loop) and
what it costs (``costs``), the simulation in which each unit goes where it finishes first
(``simulate``), minimum cuts that take crossings away again (``cut``), and ``place``, which asks
them in this order and says why each node is where it is.
"""
