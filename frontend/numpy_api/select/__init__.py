"""Elements by index, by number and under masks: read and written."""
