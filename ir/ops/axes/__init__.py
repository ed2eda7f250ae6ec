"""Rows that go along axes: REDUCE, CONTRACT, SCAN, SORT and SEARCH."""
