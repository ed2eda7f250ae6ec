"""Rows put in order: the keys of their elements, and how these are sorted."""
