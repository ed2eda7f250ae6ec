"""What needs a GPU: checks that its results are right, and how fast they come."""
