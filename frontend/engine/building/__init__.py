"""From a traced graph to a program that runs: stages, linking, devices, what is handed over."""
