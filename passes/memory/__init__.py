"""Where values live: lifetimes, sharing, and offsets in one arena."""
