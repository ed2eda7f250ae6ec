"""Rows that say where elements come from and go to: VIEW, GATHER and SCATTER."""
