"""What is compiled once for each process or artifact: threads, results, the entry from Python."""
