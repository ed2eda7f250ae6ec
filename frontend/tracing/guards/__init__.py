"""What would be lost or frozen without a word: old names, forgotten writes, drawn numbers."""
