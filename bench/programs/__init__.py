"""Programs that the benchmarks have in common with the tests."""
