"""What a compiled program needs in order to run: calls from Python, the values of variables,
threads, checkpoints, and artifacts read from disk. Imports ``ir`` only, so what was compiled ahead
of time runs without the compiler.
"""
