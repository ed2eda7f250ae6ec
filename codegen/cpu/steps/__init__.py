"""The steps of a plan: a constant table of rows, and the one loop that runs them."""
