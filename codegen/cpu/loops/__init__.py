"""A tiled kernel as a native function: its nest of loops, the statements in them, the orders of its
sums, and its contractions as operands and epilogues of a matrix product. ``kernel`` begins."""
