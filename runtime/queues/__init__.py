"""Queues: what they hold, who waits for them, and changes that happen as a whole."""
