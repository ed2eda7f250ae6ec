"""What is written to files and read again: checkpoints, their history, and files that are whole."""
