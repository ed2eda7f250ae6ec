"""Runs the segments of a partition (``ir/plans/partition``) in one process: threads, frames,
failure."""
