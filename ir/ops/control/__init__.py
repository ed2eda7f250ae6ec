"""Rows that order what runs: REGION (ops that hold graphs) and EFFECT."""
