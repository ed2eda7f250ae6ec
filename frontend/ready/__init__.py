"""Programs that are ready: made by an earlier process, and called without tracing or compiling."""
