"""Packed, register-tiled matrix products: how they are cut, and their code. Knows no kernel."""
