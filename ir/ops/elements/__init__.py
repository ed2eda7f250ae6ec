"""Rows that compute element by element: MAP, and complex numbers from their parts."""
