"""What a compiled program returns besides 0 and the number of a check that failed."""

NO_MEMORY = -1  # the sizes are past all memory
MISFIT = -5     # the sizes of arguments do not agree with each other
