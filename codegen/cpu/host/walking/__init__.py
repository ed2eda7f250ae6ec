"""The interpreter of walks, by which native code takes calls (``ir/plans/walk``)."""
