"""Loops of rewritten code: what they are over, their rounds, and which are loops of the program."""
