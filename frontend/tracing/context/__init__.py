"""The state of a trace: the graph being built, its scopes, and what it knows of its numbers."""
