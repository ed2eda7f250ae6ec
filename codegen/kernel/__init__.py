"""From regions to kernels, for any target: lowering, loop nests, launches."""
