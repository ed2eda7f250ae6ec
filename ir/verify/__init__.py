"""The rules that graphs, kernels and plans keep, one named check each."""
