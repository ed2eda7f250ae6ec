"""Rewriting of graphs to smaller ones that mean the same: the driver, and rules as tables."""
