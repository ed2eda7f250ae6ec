"""Which nodes become one kernel: regions of a graph, grown, merged and absorbed."""
