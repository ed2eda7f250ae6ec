"""Straight lines of equal segments, as Python's loops leave them, become loops."""
