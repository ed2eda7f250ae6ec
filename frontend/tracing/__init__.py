"""Running a Python function on tracers, which record a graph."""
