"""Bodies of loops and branches: what leaves them, what they choose, where they write."""
