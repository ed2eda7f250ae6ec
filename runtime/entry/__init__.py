"""How Python calls native code."""
