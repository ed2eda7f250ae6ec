"""Lists of rewritten code: longer and shorter ones, chosen items, and room for them."""
