"""Scalar mathematics: the primitives that back ends know, and what is written over them."""
