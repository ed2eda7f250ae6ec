"""Graphs made from graphs: derivatives."""
