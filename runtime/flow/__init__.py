"""Runs the segments of a partition (``ir/partition``) in one process: threads, frames, failure."""
