"""Export of compiled programs, and artifacts loaded again."""
