"""Rounds of loops: a whole loop as one kernel, a round as one, and its parts."""
