"""The text forms of graphs, kernels and plans: printing, and parsing what was printed."""
