"""What rewritten statements do: regions for the parts that run on one way, or in rounds."""
